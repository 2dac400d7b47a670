"""Fractions of polynomials over named atoms, in lowest terms, by FLINT; i² = −1.

Equal values have equal keys: numerator and denominator have no common factor, the denominator is
free of i, and its leading coefficient is positive.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import cached_property

from flint import Ordering, fmpz_mpoly, fmpz_mpoly_ctx

TERMS = 5_000
"""Terms of a numerator or a denominator, at most."""


class TooMany(Exception):
    """More atoms are asked for than there is room for: start again with twice the room."""


class Beyond(Exception):
    """A value outgrows this checker, or there is none."""


class TooLarge(Beyond):
    """A value has too many terms."""


class Ring:
    """Atoms, and the polynomials over them.

    Attributes:
        names: of the atoms; the first is i.
    """

    def __init__(self, room: int) -> None:
        self.context = fmpz_mpoly_ctx.get([f"x{k}" for k in range(room)], Ordering.lex)
        self.atoms = self.context.gens()
        self.names = ["i"]
        self._places = {"i": 0}
        self.square = self.atoms[0] ** 2 + 1
        self.one = Value(self, self.context.constant(1), self.context.constant(1))
        self.zero = self.number(0)
        self.i = self.value(self.atoms[0])

    def place(self, name: str) -> int:
        if name not in self._places:
            if len(self.names) == len(self.atoms):
                raise TooMany
            self._places[name] = len(self.names)
            self.names.append(name)
        return self._places[name]

    def atom(self, name: str) -> Value:
        return self.value(self.atoms[self.place(name)])

    def number(self, value: Fraction | int) -> Value:
        value = Fraction(value)
        top, below = (self.context.constant(k) for k in value.as_integer_ratio())
        return Value(self, top, below)

    def value(self, top: fmpz_mpoly, below: fmpz_mpoly | None = None) -> Value:
        """A fraction in lowest terms."""
        below = self.context.constant(1) if below is None else self._reduced(below)
        top = self._reduced(top)
        if below.is_zero():
            raise ZeroDivisionError
        if below.degrees()[0]:
            other = below.compose(-self.atoms[0], *self.atoms[1:])
            top, below = self._reduced(top * other), self._reduced(below * other)
        if top.is_zero():
            return Value(self, top, self.context.constant(1))
        common = top.gcd(below)
        if not common.is_one():
            top, below = top // common, below // common
        if below.leading_coefficient() < 0:
            top, below = -top, -below
        if len(top) > TERMS or len(below) > TERMS:
            raise TooLarge("a value has too many terms")
        return Value(self, top, below)

    def _reduced(self, p: fmpz_mpoly) -> fmpz_mpoly:
        return p if p.is_zero() or p.degrees()[0] < 2 else divmod(p, self.square)[1]

    def total(self, parts: Iterable[Value]) -> Value:
        out = self.zero
        for part in parts:
            out = out + part
        return out


class Value:
    """A fraction, as `Ring.value` makes it; immutable."""

    def __init__(self, ring: Ring, top: fmpz_mpoly, below: fmpz_mpoly) -> None:
        self.ring, self.top, self.below = ring, top, below

    @cached_property
    def key(self) -> str:
        return f"{self.top}/{self.below}"

    @cached_property
    def places(self) -> frozenset[int]:
        """Which atoms stand in it."""
        return atoms_of(self.top) | atoms_of(self.below)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self.ring.names[k] for k in self.places)

    @property
    def number(self) -> Fraction | None:
        if self.places:
            return None
        return Fraction(int(self.top.leading_coefficient() if not self.top.is_zero() else 0),
                        int(self.below.leading_coefficient()))  # fmt: skip

    def __bool__(self) -> bool:
        return not self.top.is_zero()

    def __add__(self, other: Value) -> Value:
        if not other:
            return self
        if not self:
            return other
        top = self.top * other.below + other.top * self.below
        return self.ring.value(top, self.below * other.below)

    def __neg__(self) -> Value:
        return Value(self.ring, -self.top, self.below)

    def __sub__(self, other: Value) -> Value:
        return self + -other

    def __mul__(self, other: Value) -> Value:
        if len(self.top) * len(other.top) > 50 * TERMS:
            raise TooLarge("a product has too many terms")
        return self.ring.value(self.top * other.top, self.below * other.below)

    def __truediv__(self, other: Value) -> Value:
        return self.ring.value(self.top * other.below, self.below * other.top)

    def power(self, exponent: int) -> Value:
        if abs(exponent) > 64:
            raise Beyond("an exponent is too large")
        top, below = self.top ** abs(exponent), self.below ** abs(exponent)
        return self.ring.value(*((top, below) if exponent >= 0 else (below, top)))

    def put(self, values: Mapping[int, Value]) -> Value:
        """The value with atoms replaced, by place."""
        held = self.places & values.keys()
        if not held:
            return self
        return _put(self.ring, self.top, values) / _put(self.ring, self.below, values)


def atoms_of(p: fmpz_mpoly) -> frozenset[int]:
    return frozenset(k for k, e in enumerate(p.degrees()) if e > 0)


def _put(ring: Ring, p: fmpz_mpoly, values: Mapping[int, Value]) -> Value:
    """All terms over one denominator: for each atom, that of its value to the highest power."""
    degrees = p.degrees()
    held = [k for k in sorted(atoms_of(p)) if k in values]
    powers = {}
    for k in held:
        tops, belows = [ring.context.constant(1)], [ring.context.constant(1)]
        for _ in range(degrees[k]):
            tops.append(tops[-1] * values[k].top)
            belows.append(belows[-1] * values[k].below)
        powers[k] = tops, belows
    same: dict[tuple[int, ...], dict[tuple[int, ...], int]] = {}
    for exponents, c in p.to_dict().items():
        rest = list(exponents)
        for k in held:
            rest[k] = 0
        there = same.setdefault(tuple(exponents[k] for k in held), {})
        there[tuple(rest)] = c
    top, below = ring.context.constant(0), ring.context.constant(1)
    for exponents, terms in same.items():
        part = ring.context.from_dict(terms)
        for k, e in zip(held, exponents, strict=True):
            part = part * powers[k][0][e] * powers[k][1][degrees[k] - e]
        top = top + part
    for k in held:
        below = below * powers[k][1][degrees[k]]
    return ring.value(top, below)
