"""A polynomial identity under hypotheses, with the multipliers that show it, as a Lean theorem.

A lemma says: where some polynomials are equal, and others are not 0, two polynomials are equal. Its
proof is one identity, D · (goal) = Σ multiplier · hypothesis, D a product of what is not 0. Each
hypothesis that is written has a multiplier other than 0 or a part in D.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from dsfc.trusted.polynomial import POLYNOMIAL_ONE, POLYNOMIAL_ZERO, Polynomial, generator

ROUNDS = 4
"""How often all rows are taken off: what updates are divided by may leave products of pivots."""

SQUARE = generator("I") * generator("I") + POLYNOMIAL_ONE
"""What is 0 of the imaginary unit."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A hypothesis: value · below = top, `below` being other than 0.

    Attributes:
        name: of the hypothesis.
        value: a variable.
        top: a polynomial without it.
        below: likewise.
    """

    name: str
    value: str
    top: Polynomial
    below: Polynomial

    @property
    def text(self) -> str:
        """The left side: what division by `below` gives when it is multiplied out."""
        return (
            self.value
            if self.below == POLYNOMIAL_ONE
            else f"{self.value} * ({written(self.below)})"
        )


@dataclass(frozen=True, slots=True)
class Relation:
    """A hypothesis: a row is 0; what its pivot is multiplied by is other than 0.

    Attributes:
        name: of the hypothesis.
        row: a polynomial.
        pivot: a product of states, of exponents by name.
        factor: what multiplies it.
    """

    name: str
    row: Polynomial
    pivot: tuple[tuple[str, int], ...]
    factor: Polynomial


class NoIdentity(Exception):
    """What is left after all substitutions is not 0."""


@dataclass(slots=True)
class Reduction:
    """D · goal − Σ multiplier · hypothesis, on its way to 0.

    Attributes:
        left: what is left.
        multipliers: hypothesis → its multiplier so far.
        factors: hypothesis that something is not 0 → that, and its power in D.
    """

    left: Polynomial
    multipliers: dict[str, Polynomial] = field(default_factory=dict)
    factors: dict[str, tuple[Polynomial, int]] = field(default_factory=dict)

    def put(self, fact: Fact) -> None:
        """Replaces a variable by its value, multiplied out."""
        parts: dict[int, dict[tuple[tuple[str, int], ...], Fraction]] = {}
        for m, c in self.left.terms.items():
            rest = tuple(f for f in m if f[0] != fact.value)
            parts.setdefault(dict(m).get(fact.value, 0), {})[rest] = c
        highest = max(parts, default=0)
        if not highest:
            return
        product = generator(fact.value) * fact.below
        out, multiplier = POLYNOMIAL_ZERO, POLYNOMIAL_ZERO
        for power, terms in parts.items():
            part = Polynomial(terms) * fact.below.power(highest - power)
            out = out + part * fact.top.power(power)
            for j in range(power):
                multiplier = multiplier + part * product.power(j) * fact.top.power(power - 1 - j)
        self._scaled(fact.name, fact.below, highest)
        self.multipliers[fact.name] = multiplier
        self.left = out

    def use(self, relation: Relation) -> None:
        """Takes off the multiple of a row that holds its pivot."""
        pivot = dict(relation.pivot)
        terms = {}
        for m, c in self.left.terms.items():
            powers = dict(m)
            if all(powers.get(name, 0) >= e for name, e in pivot.items()):
                rest = {name: e - pivot.get(name, 0) for name, e in m}
                terms[tuple((name, e) for name, e in rest.items() if e)] = c
        multiplier = Polynomial(terms)
        if not multiplier:
            return
        self._scaled(relation.name, relation.factor, 1)
        known = self.multipliers.get(relation.name, POLYNOMIAL_ZERO)
        self.multipliers[relation.name] = known + multiplier
        self.left = self.left * relation.factor + -(multiplier * relation.row)

    def _scaled(self, name: str, factor: Polynomial, power: int) -> None:
        if factor == POLYNOMIAL_ONE:
            return
        scale = factor.power(power)
        self.multipliers = {h: m * scale for h, m in self.multipliers.items()}
        _, known = self.factors.get(f"{name}_ne", (factor, 0))
        self.factors[f"{name}_ne"] = factor, known + power

    def finish(self) -> None:
        """Reduces by I² = −1.

        Raises:
            NoIdentity: something is left.
        """
        multiplier = POLYNOMIAL_ZERO
        while high := {m: c for m, c in self.left.terms.items() if dict(m).get("I", 0) >= 2}:
            rest = Polynomial({_without_square(m): c for m, c in high.items()})
            multiplier = multiplier + rest
            self.left = self.left + -(rest * SQUARE)
        if multiplier:
            self.multipliers["I_square"] = multiplier
        if self.left:
            raise NoIdentity


def _without_square(m: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    return tuple((g, e - 2 * (g == "I")) for g, e in m if e - 2 * (g == "I"))


@dataclass(frozen=True, slots=True)
class Equation:
    """A hypothesis as it is written.

    Attributes:
        text: the left side.
        right: the right side.
        left: the left side as a polynomial.
    """

    text: str
    right: Polynomial
    left: Polynomial


@dataclass(frozen=True, slots=True)
class Lemma:
    """A lemma with its proof.

    Attributes:
        name: of the theorem.
        doc: what it says, one sentence.
        goal: both sides.
        equations: hypotheses that its proof uses, by name.
        reduction: its proof.
    """

    name: str
    doc: str
    goal: tuple[Polynomial, Polynomial]
    equations: Mapping[str, Equation]
    reduction: Reduction

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that occur, sorted."""
        parts = [*self.goal, *(p for x in self.equations.values() for p in (x.left, x.right))]
        parts += [p for p, _ in self.reduction.factors.values()]
        return tuple(sorted({name for p in parts for name in p.names}))

    @property
    def hypotheses(self) -> tuple[str, ...]:
        """Names of the hypotheses, in the order of the theorem."""
        return (*self.reduction.factors, *self.equations)

    def text(self) -> str:
        """The theorem in Lean."""
        r = self.reduction
        lines = [f"/-- {self.doc} -/", f"theorem {self.name}"]
        lines += [f"    ({name} : K)" for name in self.variables]
        lines += [f"    ({name} : {written(p)} ≠ 0)" for name, (p, _) in r.factors.items()]
        lines += [f"    ({n} : {x.text} = {written(x.right)})" for n, x in self.equations.items()]
        left, right = self.goal
        lines += ["    :", f"    {written(left)} = {written(right)} := by"]
        sums = " + ".join(f"({written(r.multipliers[n])}) * {n}" for n in self.equations) or "0"
        if not r.factors:
            return "\n".join((*lines, f"  linear_combination {sums}"))
        factors = [_power(f"({written(p)})", e) for p, e in r.factors.values()]
        shown = [n if e == 1 else f"(pow_ne_zero {e} {n})" for n, (_, e) in r.factors.items()]
        proof = shown[0]
        for one in shown[1:]:
            proof = f"(mul_ne_zero {proof} {one})"
        product = " * ".join(factors)
        return "\n".join((
            *lines,
            f"  have d : {product} ≠ 0 := {proof}",
            f"  have e : ({product}) * (({written(left)}) - ({written(right)})) = 0 := by",
            f"    linear_combination {sums}",
            "  exact sub_eq_zero.mp ((mul_eq_zero.mp e).resolve_left d)",
        ))  # fmt: skip


def shown(
    name: str,
    doc: str,
    goal: tuple[Polynomial, Polynomial],
    facts: tuple[Fact, ...],
    relations: tuple[Relation, ...] = (),
) -> Lemma:
    """Returns a lemma, its proof found by substitution.

    Args:
        name: of the theorem.
        doc: what it says.
        goal: both sides.
        facts: what variables are, each of variables that come later in this order.
        relations: rows that are 0, in reduced echelon form.

    Raises:
        NoIdentity: there is no such proof.
    """
    r = Reduction(goal[0] + -goal[1])
    for fact in facts:
        r.put(fact)
    for _ in range(ROUNDS):
        for relation in relations:
            r.use(relation)
    r.finish()
    equations = {f.name: Equation(f.text, f.top, generator(f.value) * f.below) for f in facts}
    equations |= {x.name: Equation(written(x.row), POLYNOMIAL_ZERO, x.row) for x in relations}
    square = generator("I") * generator("I")
    equations["I_square"] = Equation("I * I", -POLYNOMIAL_ONE, square)
    used = {n: equation for n, equation in equations.items() if r.multipliers.get(n)}
    return Lemma(name, doc, goal, used, r)


def written(p: Polynomial, name: Mapping[str, str] | None = None) -> str:
    """Returns a polynomial as a Lean term; `name` says what stands for a variable, or itself."""
    out = ""
    for factors_of, c in sorted(
        (sorted((place(g), g, e) for g, e in m), c) for m, c in p.terms.items()
    ):
        factors = [_power(g if name is None else name[g], e) for _, g, e in factors_of]
        size = abs(c)
        number = str(size) if size.denominator == 1 else f"({size})"
        if size != 1 or not factors:
            factors = [number, *factors]
        sign = ("-" if not out else " - ") if c < 0 else (" + " if out else "")
        out += sign + " * ".join(factors)
    return out or "0"


def place(variable: str) -> tuple[str, int]:
    """Returns base and time of a variable: by them terms stand in one order at all tokens."""
    base, at, token = variable.partition("_at_")
    base, _, back = base.partition("_back_")
    return base, -int(token) if at else int(back or 0)


def _power(base: str, exponent: int) -> str:
    return base if exponent == 1 else f"{base} ^ {exponent}"
