"""A verdict under conditions in short: one sentence, and its conditions as rules over named axes.

What is said to follow from equal outputs is what the certificate has as forced, and the rest is
said to be assumed, or to be enough.
"""

from __future__ import annotations

from collections.abc import Iterator

from dsfc.prover.condition_text import ConditionText
from dsfc.prover.subsumes import Kinds
from dsfc.prover.verdict import Instance, NotAnInstance
from dsfc.trusted.claim import Conditional, ConstantSequence
from dsfc.trusted.comparable import slots
from dsfc.trusted.generator_names import LEAF, lags, shifted
from dsfc.trusted.polynomial import ZERO, Quotient, generator

SHOWN = 2
"""Entries of one array that are printed where no rule is one for all."""

NUMBERS = {"κ": "any numbers other than 0", "G": "any invertible matrices"}
"""What stands in rules and is the same at all tokens."""


def layers(kinds: Kinds) -> str:
    """Returns what is known of the mixers as layers, each with parameters of its own, as a clause.

    Args:
        kinds: the answers about two mixers.
    """
    forth = kinds.forth
    if isinstance(forth, NotAnInstance):
        proof = forth.proof
        always = isinstance(proof, ConstantSequence) and proof.always
        if slots(forth.certificate.claim):
            return "for no functions of the last tokens" if always else ""
        return "not as layers" if always else "not as layers in general"
    if isinstance(forth, Instance):
        return "the first is a case of the second"
    return ""


class Rules:
    """The conditions of a verdict as rules.

    Args:
        texts: the conditions.
        proof: what is shown of them.
    """

    def __init__(self, texts: ConditionText, proof: Conditional) -> None:
        self.texts, self.proof = texts, proof
        needed = {k for n in proof.needed for k in n.without}
        forced = set(proof.forced)
        self.given: list[str] = []
        self.then: list[str] = []
        self.loose: list[str] = []
        """Conditions of a proof without forced ones that no point shows to be needed."""
        alone: dict[str, int] = {}
        for family, text in texts.lines():
            line = texts.plain(text)
            array = texts.claim.conditions[family[0]].solved.partition("[")[0]
            alone[array] = alone.get(array, 0) + (len(family) == 1)
            if alone[array] > SHOWN:
                line = f"and so on for {texts.plain(array + '[]')} (--explain)"
                if line in (*self.given, *self.then):
                    continue
            if family[0] in forced:
                self.then.append(line if not texts.reads_back(family[0]) else "")
            else:
                self.given.append(line)
                if not forced and family[0] not in needed:
                    self.loose.append(line)
        self.then = [line for line in self.then if line]
        if forced:
            self.then += texts.over_time()

    def sentence(self, layers: str) -> str:
        """Returns what is known as one sentence, without its subject.

        Args:
            layers: see `layers`.
        """
        start = f"{layers}; " if layers else ""
        if not self.proof.forced:
            return f"{start}equal where the conditions below hold, which need not be all there are"
        timed = self.texts.over_time()
        inside = "with values inside as inputs of their own"
        if not timed:
            return f"{start}{inside}, equal exactly where the rules below hold"
        names = tuple(dict.fromkeys(name for name, _ in self._ratios()))
        rule = f"{timed[0]} at every token"
        if len(names) == 1 and self._fixes():
            rule = f"{names[0]} is the fixed sequence {timed[0]}"
        others = self.given or len(self.then) > 1
        paired = ", paired as given below" if self.given else ""
        more = " and the other rules below hold" if others else ""
        return f"{start}{inside}{paired}, equal exactly where {rule}{more}"

    def lines(self) -> list[str]:
        """Returns the rules, line by line."""
        every = (*self.given, *self.then)
        numbers = [f"{n}: {what}" for n, what in NUMBERS.items()
                   if any(f"{n}[" in line or f"({n})" in line for line in every)]  # fmt: skip
        same = [f"{'; '.join(numbers)}; the same at all tokens"] * bool(numbers)
        if not self.proof.forced:
            marked = [line + "   (not shown to be needed)" * (line in self.loose)
                      for line in self.given]  # fmt: skip
            out = ["  conditions", *(f"    {line}" for line in (*marked, *same))]
            out += _labelled("over time", self.texts.over_time())
        else:
            varied = ", ".join(self.texts.plain(f"{n}[]") for n in self.proof.varied)
            start = "assumed of how values of the two go together, " if self.given else ""
            out = [f"  given      {start}for all {varied}"]
            out += [f"    {line}" for line in (*self.given, *same)]
            out += ["  then       equal if and only if, at every token"]
            out += [f"    {line}" for line in self.then]
        out += _labelled("hence", self.texts.consequences())
        out += _labelled("grows", self.growth())
        return out

    def growth(self) -> list[str]:
        """Returns what conditions say of values whose ratio to the token before is given."""
        out = [f"{name}: it keeps its sign, and its modulus grows at every token"
               for name, up in self._ratios() if up]  # fmt: skip
        if self._fixes():
            out.append("its first value fixes all that follow, so no later input moves it")
        return list(dict.fromkeys(out))

    def _ratios(self) -> Iterator[tuple[str, bool]]:
        """Arrays x with e^m = x_i / x_{i-1}, or x_i given by x_{i-1}, and whether they grow."""
        for solved, head, value, exponent in self._timed():
            late = _late(value)
            if head == "exp" and late and _ratio(value, late):
                yield self._array(late), self.texts.symbols.positive(exponent)
            elif not head and value.names and value.names <= {shifted(solved, 1)}:
                yield self._array(solved), False

    def _array(self, name: str) -> str:
        return self.texts.plain(name.partition("[")[0] + "[]")

    def _timed(self) -> Iterator[tuple[str, str, Quotient, Quotient]]:
        """Conditions that link tokens: solved, its head, the value, and the argument."""
        for k, c in enumerate(self.texts.claim.conditions):
            head, args = self.texts.symbols.defined.get(c.solved, ("", ()))
            if self.texts.reads_back(k):
                yield c.solved, head, self.texts.values[c.solved], args[0] if args else ZERO

    def _fixes(self) -> bool:
        """Whether all are log(x_i / x_{i-1}) = c / x_i, c the same at all tokens, or give x_i.

        With x_{i-1} > 0 and c > 0 the function x log(x / x_{i-1}) grows from 0 without bound on
        x > x_{i-1}, and takes the value c once; negative x and c are the same with other signs.
        """
        for solved, head, value, argument in self._timed():
            if not head and value.names and value.names <= {shifted(solved, 1)}:
                continue
            late = _late(value)
            if head != "exp" or not late or not _ratio(value, late):
                return False
            rest = argument.substituted(self.texts.values) * Quotient(generator(late))
            if lags(rest.names) or not self.texts.symbols.positive(argument):
                return False
        return bool(self.texts.over_time())


def _late(value: Quotient) -> str:
    """The one entry of this token in a value; "" where there are others, or it is a sum."""
    late = [g for g in value.names if lags(frozenset({g})) == frozenset({0})]
    alone = len(late) == 1 and not value.den and LEAF.fullmatch(late[0]) is not None
    return late[0] if alone else ""


def _ratio(value: Quotient, late: str) -> bool:
    """Whether a value is x_i / x_{i-1}."""
    before = Quotient(generator(shifted(late, 1)))
    return not value - Quotient(generator(late)) / before


def _labelled(title: str, lines: list[str]) -> list[str]:
    return [f"  {title if not n else '':<10} {line}" for n, line in enumerate(lines)]
