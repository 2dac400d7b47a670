"""Values of one sequence as a structure of Lean, and the theorems about every one of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dsfc.lean.lemma import Lemma, written
from dsfc.lean.names import UNIT, Names
from dsfc.trusted.claim import Claim
from dsfc.trusted.polynomial import POLYNOMIAL_ONE, Polynomial

_TACTICS = ("LinearCombination", "Ring", "FieldSimp")
_SAYS = """Over a field, with every generator free, the rows of the proof are 0 after each token and
the outputs are equal. `linear_combination` has to check identities of polynomials alone.

Taken for granted here, and checked by the kernel of dsfc: that these equations are those of the
two mixers, what the laws of functions (e^(a+b) = e^a e^b, sigmoid, softplus, …) make of their
definitions, and that what is supposed not to be 0 is not 0 as a polynomial."""


@dataclass(frozen=True, slots=True)
class Run:
    """What a structure `Run` of Lean holds.

    Attributes:
        names: all identifiers.
        window: how many first tokens are written out.
        equations: name → the variable, the numerator and the denominator of its value.
        nonzero: name → what is not 0.
    """

    names: Names
    window: int
    equations: Mapping[str, tuple[str, Polynomial, Polynomial]]
    nonzero: Mapping[str, Polynomial]

    def text(
        self,
        heading: Sequence[str],
        rows: Sequence[Polynomial],
        start: Sequence[Lemma],
        kept: Sequence[Lemma],
        equal: Sequence[Lemma],
    ) -> str:
        """The file.

        Args:
            heading: lines of the comment that it begins with.
            rows: before a token, from the window on.
            start: lemmas of the first tokens: outputs, then rows.
            kept: that each row stays 0.
            equal: that outputs are equal.
        """
        parts = ["/-", *heading, "-/"]
        parts += [f"import Mathlib.Tactic.{name}" for name in _TACTICS]
        parts += ["", "namespace Dsfc", "", *self._structure()]
        parts += ["", "variable {K : Type*} [Field K] [CharZero K]"]
        for lemma in (*start, *kept, *equal):
            parts += ["", lemma.text()]
        first = [x for x in start if not x.name.startswith("start_")]
        begun = [x for x in start if x.name.startswith("start_")]
        parts += self._first(first)
        if rows:
            parts += self._rows(rows, begun, kept)
        parts += self._outputs(equal, len(rows))
        return "\n".join((*parts, "", "end Dsfc", ""))

    def _structure(self) -> list[str]:
        out = ["/-- The values of one sequence, token by token, in both mixers. -/",
               "structure Run (K : Type*) [Field K] where"]  # fmt: skip
        for base, name in self.names.bases.items():
            kind = "K" if base in self.names.constants else "ℕ → K"
            out += [f"  /-- {_comment(name)} -/"] if name else []
            out.append(f"  {base} : {kind}")
        if UNIT in self.names.bases:
            out.append(f"  I_square : {UNIT} * {UNIT} = -1")
        for name, (value, top, below) in self.equations.items():
            term = self._term(top, "")
            if below != POLYNOMIAL_ONE:
                term = f"({term}) / ({self._term(below, '')})"
            out.append(f"  {name} : {self._all(name)}{self._place(value, '')} = {term}")
        for name, p in self.nonzero.items():
            out.append(f"  {name} : {self._all(name)}{self._term(p, '')} ≠ 0")
        return out

    def _all(self, name: str) -> str:
        return "" if "_at_" in name else "∀ m : ℕ, "

    def _place(self, variable: str, run: str) -> str:
        """What a variable is in a run: an entry of a sequence, or a constant."""
        v = self.names.variables[variable]
        if v.token is not None:
            return f"{run}{v.base} {v.token}"
        if v.back is None:
            return f"{run}{v.base}"
        later = self.window - v.back
        return f"{run}{v.base} m" if later == 0 else f"{run}{v.base} (m + {later})"

    def _term(self, p: Polynomial, run: str) -> str:
        return written(p, {name: _grouped(self._place(name, run)) for name in p.names})

    def _used(self, lemma: Lemma) -> str:
        """A lemma applied to a run."""
        words = [lemma.name, *(f"({self._place(v, 'R.')})" for v in lemma.variables)]
        for name in lemma.hypotheses:
            if name in self.equations:
                words.append(self._equation(name))
            elif name.startswith("row_") and name not in self.nonzero:
                words.append(name)
            else:
                words.append(_instance(name))
        return " ".join(words)

    def _equation(self, name: str) -> str:
        if self.equations[name][2] == POLYNOMIAL_ONE:
            return _instance(name)
        return f"((eq_div_iff {_instance(f'{name}_ne')}).mp {_instance(name)})"

    def _goal(self, lemma: Lemma) -> str:
        return " = ".join(self._term(side, "R.") for side in lemma.goal)

    def _first(self, lemmas: Sequence[Lemma]) -> list[str]:
        return [
            "", "/-- The outputs are equal at the first tokens. -/",
            "theorem first_outputs (R : Run K) :",
            *_all_of([self._goal(x) for x in lemmas], " := by"),
            *_exact([self._used(x) for x in lemmas], "  "),
        ]  # fmt: skip

    def _rows(
        self, rows: Sequence[Polynomial], begun: Sequence[Lemma], kept: Sequence[Lemma]
    ) -> list[str]:
        pattern = _pattern(len(rows))
        return [
            "", f"/-- The rows are 0 after each token from {self.window - 1} on. -/",
            "theorem rows (R : Run K) (m : ℕ) :",
            *_all_of([f"{self._term(row, 'R.')} = 0" for row in rows], " := by"),
            "  induction m with", "  | zero =>",
            *_exact([self._used(x) for x in begun], "    "),
            "  | succ m ih =>", f"    obtain {pattern} := ih",
            *_exact([self._used(x) for x in kept], "    "),
        ]  # fmt: skip

    def _outputs(self, equal: Sequence[Lemma], rows: int) -> list[str]:
        known = [f"  obtain {_pattern(rows)} := rows R m"] if rows else []
        return [
            "", f"/-- The outputs are equal at each token from {self.window} on. -/",
            "theorem outputs (R : Run K) (m : ℕ) :",
            *_all_of([self._goal(x) for x in equal], " := by"),
            *known,
            *_exact([self._used(x) for x in equal], "  "),
        ]  # fmt: skip


def heading(claim: Claim, names: Names) -> list[str]:
    """Returns the lines that say what a file is about.

    Args:
        claim: what is proved.
        names: all identifiers.
    """
    sizes = ", ".join(f"{name} = {size}" for name, size in claim.sizes) or "none"
    same = ", ".join(f"{theirs} is {ours}" for theirs, ours in claim.names)
    return [
        f"The mixers {claim.a.name} (A) and {claim.b.name} (B) have equal outputs.",
        f"Sizes: {sizes}." + (f" Of B, {same}." if same else ""),
        "", *_SAYS.splitlines(), "",
        "In a `Run`, `step_` is the update of an entry of a state, `is_` an output or an argument",
        "of a function of states; m + w is a token from the w-th on.",
    ]  # fmt: skip


def _instance(name: str) -> str:
    return f"R.{name}" if "_at_" in name or name == "I_square" else f"(R.{name} m)"


def _comment(name: str) -> str:
    """A name inside a comment, which it cannot end."""
    return name.replace("-/", "- /").replace("/-", "/ -")


def _grouped(term: str) -> str:
    return f"({term})" if " " in term else term


def _pattern(count: int) -> str:
    names = ", ".join(f"row_{k}" for k in range(count))
    return f"⟨{names}⟩" if count > 1 else names


def _all_of(goals: Iterable[str], end: str) -> list[str]:
    lines = [f"    ({goal})" for goal in goals]
    return [line + (end if k == len(lines) - 1 else " ∧") for k, line in enumerate(lines)]


def _exact(terms: Sequence[str], indent: str) -> list[str]:
    if len(terms) == 1:
        return [f"{indent}exact {terms[0]}"]
    lines = [f"{indent}  {term}" + ("," if k < len(terms) - 1 else "⟩")
             for k, term in enumerate(terms)]  # fmt: skip
    return [f"{indent}exact ⟨", *lines]
