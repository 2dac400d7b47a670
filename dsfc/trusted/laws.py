"""Laws of functions that are not rational, applied to values of states.

A call of such a function is a generator, the same in both systems where its arguments are equal.
Where the second system's arguments are other values, related to the first's by a factor or by
something added, a law of the function still gives its value:

    abs, relu, max, min    f(r x) = r f(x)          r > 0; abs also r < 0
    max, min               f(x + s, y + s) = f(x, y) + s
    sqrt                   f(r² x) = r f(x)         r > 0
    sign                   f(r x) = f(x)            r > 0
    exp                    f(k x + s) = f(x)^k e^s  k an integer
    log                    f(r x) = f(x) + log r    r > 0

r and s are values of the present token; r may hold entries of states that are never negative. Each
law is an identity of functions, so nothing is assumed but what is checked here: that r is positive.
That the arguments are so related is one more thing that the rows have to show.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dsfc.trusted.claim import Coefficient, Relation
from dsfc.trusted.conditions import read
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.generator_names import STATE, lags
from dsfc.trusted.polynomial import ONE, ZERO, Polynomial, Quotient
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.symbols import Call, Symbols

SCALES: Mapping[str, tuple[int, int]] = {
    "abs": (1, 1), "relu": (1, 1), "max": (1, 1), "min": (1, 1), "sqrt": (2, 1), "sign": (1, 0),
    "log": (1, 0), "exp": (1, 0),
}  # fmt: skip
"""Function → (power of r in its arguments, power of r that its value has as a factor)."""

MOVES = frozenset({"max", "min", "exp"})
"""Functions with a law for something added to all arguments."""


@dataclass(frozen=True, slots=True)
class Law:
    """How a call of the second system is related to that of the first.

    Attributes:
        scale: r.
        shift: s.
    """

    scale: Quotient
    shift: Quotient

    @property
    def trivial(self) -> bool:
        """Whether the arguments are equal."""
        return self.scale.number == 1 and not self.shift

    def argument(self, head: str, value: Quotient) -> Quotient:
        """Returns the second system's argument, given the first's."""
        if self.trivial:
            return value
        self._check_head(head)
        return self.scale.power(SCALES[head][0]) * value + self.shift

    def value(self, symbols: Symbols, head: str, value: Quotient) -> Quotient:
        """Returns the second system's value, given the first's."""
        if self.trivial:
            return value
        self._check_head(head)
        if head == "exp":
            exponent = self.scale.number
            if exponent is None or exponent.denominator != 1 or not 1 <= abs(exponent) <= 8:
                raise Rejected("a factor in an exponent is not a small integer")
            return value.power(int(exponent)) * symbols.exp(self.shift)
        if head == "log":
            return value + symbols.log(self.scale)
        scale = self.scale
        if head == "abs" and _negative(scale):
            scale = -scale
        return scale.power(SCALES[head][1]) * value + self.shift

    def _check_head(self, head: str) -> None:
        if head not in SCALES or (self.shift and head not in MOVES):
            raise Rejected(f"`{head}` has no such law")


def law(relation: Relation) -> Law:
    """Returns a stored relation, its conditions unchecked.

    Raises:
        Rejected: it is not written in the one way.
    """
    return Law(_quotient(relation.scale), _quotient(relation.shift))


def _quotient(stored: tuple[Coefficient, Coefficient]) -> Quotient:
    above, below = (read(part) for part in stored)
    return Quotient(above) / Quotient(below)


def check_names(symbols: Symbols, laws: tuple[Law, ...], cells: frozenset[str]) -> None:
    """Checks that laws speak of values of the present token.

    Args:
        symbols: all generators of the claim.
        laws: what is stored.
        cells: every entry of a state.

    Raises:
        Rejected: a law names what there is not, or another token.
    """
    for law in laws:
        for name in law.scale.names | law.shift.names:
            if name not in cells and not symbols.knows(name):
                raise Rejected(f"a law names `{name}`, which is not there")
            if STATE not in name and not lags(frozenset({name})) <= {0}:
                raise Rejected("a law reads another token")
        if any(STATE in name for name in law.shift.names) or not symbols.is_real(law.shift):
            raise Rejected("a law adds what is no real value of the token")


def check_signs(
    symbols: Symbols, laws: tuple[Law, ...], heads: tuple[str, ...], kept: frozenset[str]
) -> None:
    """Checks that factors are positive.

    Args:
        symbols: all generators of the claim.
        laws: what is stored.
        heads: the functions called at a token, in order.
        kept: entries of states that are never negative.

    Raises:
        Rejected: a factor may be 0 or negative.
    """
    for law, head in zip(laws, heads, strict=False):
        if law.trivial or head == "exp":
            continue  # an integer in an exponent is seen by `Law.value`
        if head == "log" and any(STATE in name for name in law.scale.names):
            raise Rejected("a logarithm of states stands in a law")
        scale = -law.scale if head == "abs" and _negative(law.scale) else law.scale
        if not positive(symbols, scale, kept):
            raise Rejected("a factor is not positive term by term")


def _negative(q: Quotient) -> bool:
    return all(c < 0 for c in q.num.terms.values())


# --- signs ----------------------------------------------------------------------------------------


def positive(symbols: Symbols, q: Quotient, kept: frozenset[str]) -> bool:
    """Returns whether a value is positive, term by term, where some state entries are ≥ 0."""
    return all(_sign(symbols, p, kept, strict=True) for p in (q.num, *q.den))


def _sign(symbols: Symbols, p: Polynomial, kept: frozenset[str], strict: bool) -> bool:
    """Whether no term is negative and, if strict, one is positive."""
    some = False
    for m, c in p.terms.items():
        held = [(name, e) for name, e in m if STATE in name]
        rest = Polynomial({tuple(f for f in m if STATE not in f[0]): c})
        if not symbols.is_positive(rest) or any(e < 0 or name not in kept for name, e in held):
            return False
        some = some or not held
    return some or not strict


def never_negative(symbols: Symbols, steps: Iterable[Mapping[str, Quotient]]) -> frozenset[str]:
    """Returns the entries of states that are ≥ 0 at every token.

    They start at 0, and every update gives a sum of products of positive values and of such
    entries.

    Args:
        symbols: all generators.
        steps: entry → its value after the token, for each of the first tokens and the later ones.
    """
    updates = tuple(steps)
    kept = frozenset(updates[0]).intersection(*updates) if updates else frozenset()
    while True:
        left = frozenset(
            name
            for name in kept
            if all(
                _sign(symbols, step[name].num, kept, strict=False)
                and all(_sign(symbols, base, kept, strict=True) for base in step[name].den)
                for step in updates
            )
        )
        if left == kept:
            return kept
        kept = left


def check_positive(
    symbols: Symbols, steps: Iterable[Mapping[str, Quotient]], values: Iterable[Quotient]
) -> None:
    """Checks that values of states that b's output is divided by are positive at every token.

    Raises:
        Obstacle: one may be 0, and leave b without a value.
    """
    parts = {p for q in values for p in (q.num, *q.den)}
    kept = never_negative(symbols, steps) if parts else frozenset()
    if not all(_sign(symbols, p, kept, strict=True) for p in parts):
        raise Obstacle("a denominator of states may leave b without a value")


def check_divisors(
    symbols: Symbols, steps: Iterable[Mapping[str, Quotient]], conditions: bool
) -> None:
    """Checks that what updates divide by, where it holds states, is positive at every token.

    Args:
        symbols: all generators.
        conditions: whether something is assumed; then nothing is known of what takes its values.
        steps: entry → its value after the token, for each of the first tokens and the later ones.

    Raises:
        Obstacle: it may be 0.
    """
    updates = tuple(steps)
    values = [q for step in updates for q in step.values()]
    held = {base for q in values for base in q.den if any(STATE in g for g in base.names)}
    alone = any(e < 0 and STATE in name for q in values for m in q.num.terms for name, e in m)
    if not held and not alone:
        return
    kept = never_negative(symbols, updates)
    if conditions or alone or not all(_sign(symbols, p, kept, strict=True) for p in held):
        raise Obstacle("an update divides by a value of the state that may be 0")


def related(law: Law, pair: tuple[Call, Call]) -> list[tuple[Quotient, Quotient]]:
    """Returns what must be equal for a law to give a call of the second system its value."""
    a, b = pair
    arguments = (law.argument(a.head, x) for x in a.args)
    return list(zip(arguments, b.args, strict=True))


EQUAL = Law(ONE, ZERO)
"""The arguments are equal."""
