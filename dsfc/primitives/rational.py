"""Exact equality of SymPy expressions as rational functions over atoms.

An atom is a symbol, a function of (recursively normalised) arguments, an exponential of a monomial
or a root. Two expressions are equal when their difference, with denominators cleared, is the zero
polynomial in the atoms: then they are the same function wherever both are defined. The converse
holds up to relations between atoms that are not listed here (i² = -1, e^{a+b} = e^a e^b,
(x^{1/q})^q = x, Re x = (x + x̄)/2), so False means: not equal by these rules.

Nothing is expanded by SymPy and nothing is guessed numerically.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

Monomial = tuple[tuple[int, int], ...]
"""Pairs (atom, exponent), by atom; exponents may be negative, never 0."""
Polynomial = Mapping[Monomial, Fraction]
"""Monomial → coefficient, no zero coefficients."""

Clearing = Callable[[int], tuple[int, Polynomial, int]]
"""Exponent of an atom → (exponent that stays, polynomial, its exponent) in the atom's place."""

ONE: Polynomial = {(): Fraction(1)}
_I = 0
"""The atom of the imaginary unit."""


def equal(left: Any, right: Any) -> bool:  # noqa: ANN401
    """Returns whether two SymPy expressions are the same rational function of their atoms."""
    return Atoms().vanishes(left - right)


@dataclass(frozen=True, slots=True)
class _Root:
    """radicand^(1 / degree)."""

    radicand: Polynomial
    degree: int


@dataclass(frozen=True, slots=True)
class _Inverse:
    """1 / polynomial, the polynomial having two terms or more."""

    of: Polynomial


class Atoms:
    """Numbers atoms in the order they are met; atoms inside an atom have smaller numbers."""

    def __init__(self) -> None:
        """Starts with the imaginary unit."""
        self._numbers: dict[object, int] = {"i": _I}
        self._kinds: dict[int, _Root | _Inverse] = {}
        self._done: dict[Any, Polynomial] = {}

    def vanishes(self, value: Any) -> bool:  # noqa: ANN401
        """Returns whether a SymPy expression is 0 as a rational function of its atoms."""
        return not self._cleared(self.polynomial(value))

    def polynomial(self, e: Any) -> Polynomial:  # noqa: ANN401
        """Returns a SymPy expression as a polynomial over atoms, inverses being atoms."""
        if e not in self._done:
            self._done[e] = self._of(e)
        return self._done[e]

    def _of(self, e: Any) -> Polynomial:  # noqa: ANN401
        if e.is_Rational:
            return _constant(Fraction(int(e.p), int(e.q)))
        if e.is_Add:
            return _plus(*(self.polynomial(a) for a in e.args))
        if e.is_Mul:
            return self._times(*(self.polynomial(a) for a in e.args))
        name = e.func.__name__
        if name == "exp":
            return self._exponential(self.polynomial(e.args[0]))
        if name == "ImaginaryUnit":
            return {((_I, 1),): Fraction(1)}
        if e.is_Pow:
            return self._power_of(e)
        if name in ("re", "im"):
            return self._part(e.args[0], name)
        if e.is_Symbol or not e.args:
            return self._atom(("leaf", e))
        arguments = [_key(self.polynomial(a)) for a in e.args]
        unordered = name in ("Max", "Min")
        return self._atom((name, frozenset(arguments) if unordered else tuple(arguments)))

    def _part(self, arg: Any, name: str) -> Polynomial:  # noqa: ANN401
        x, bar = self.polynomial(arg), self.polynomial(arg.conjugate())
        if name == "re":
            return _scaled(_plus(x, bar), Fraction(1, 2))
        minus_half_i: Polynomial = {((_I, 1),): Fraction(-1, 2)}
        return self._times(minus_half_i, _plus(x, _scaled(bar, Fraction(-1))))

    def _atom(self, key: object, kind: _Root | _Inverse | None = None) -> Polynomial:
        number = self._numbers.setdefault(key, len(self._numbers))
        if kind is not None:
            self._kinds[number] = kind
        return {((number, 1),): Fraction(1)}

    def _exponential(self, exponent: Polynomial) -> Polynomial:
        out = ONE
        for m, c in exponent.items():
            atom = self._atom(("exp", m, c.denominator))
            out = self._times(out, self._integer_power(atom, c.numerator))
        return out

    def _power_of(self, e: Any) -> Polynomial:  # noqa: ANN401
        base, exponent = e.args
        if not exponent.is_Rational:
            b, x = self.polynomial(base), self.polynomial(exponent)
            return self._atom(("pow", _key(b), _key(x)))
        p, q = int(exponent.p), int(exponent.q)
        b = self.polynomial(base)
        if q > 1:
            b = self._atom(("root", _key(b), q), _Root(b, q))
        return self._integer_power(b, p)

    def _integer_power(self, base: Polynomial, exponent: int) -> Polynomial:
        if exponent < 0:
            base, exponent = self._inverse(base), -exponent
        out = ONE
        for _ in range(exponent):
            out = self._times(out, base)
        return out

    def _inverse(self, p: Polynomial) -> Polynomial:
        if not p:
            raise ZeroDivisionError("the inverse of 0")
        # Divided by one of its monomials, a polynomial and its multiples have one inverse atom.
        m, c = min(p.items())
        unit: Polynomial = {tuple((a, -k) for a, k in m): 1 / c}
        if len(p) == 1:
            return self._times(unit, ONE)
        monic = self._times(p, unit)
        return self._times(unit, self._atom(("inverse", _key(monic)), _Inverse(monic)))

    def _times(self, *factors: Polynomial) -> Polynomial:
        out = ONE
        for f in factors:
            terms: dict[Monomial, Fraction] = {}
            for m, c in out.items():
                for n, d in f.items():
                    k, sign = _joined(m, n)
                    terms[k] = terms.get(k, Fraction(0)) + sign * c * d
            out = {m: c for m, c in terms.items() if c}
        return out

    def _cleared(self, p: Polynomial) -> Polynomial:
        """Removes roots beyond their degree and inverses, the latest atoms first."""
        while True:
            # Clearing an atom brings in earlier ones, or inverses of what stood under a root.
            for number in sorted(self._kinds, reverse=True):
                exponents = [dict(m).get(number, 0) for m in p]
                rule = self._clearing(self._kinds[number], exponents)
                if rule is not None:
                    p = self._replaced(p, number, rule)
                    break
            else:
                return p

    def _clearing(self, kind: _Root | _Inverse, exponents: list[int]) -> Clearing | None:
        """How an atom with these exponents is removed; None when there is nothing to remove."""
        if isinstance(kind, _Root):
            degree, radicand = kind.degree, kind.radicand
            if all(0 <= k < degree for k in exponents):
                return None
            return lambda k: (k % degree, radicand, k // degree)
        if not any(exponents):
            return None
        most, of = max(exponents), kind.of
        return lambda k: (0, of, most - k)

    def _replaced(self, p: Polynomial, number: int, rule: Clearing) -> Polynomial:
        parts = []
        for m, c in p.items():
            rest = tuple(pair for pair in m if pair[0] != number)
            kept, by, times = rule(dict(m).get(number, 0))
            atom: Polynomial = {((number, kept),): Fraction(1)} if kept else ONE
            parts.append(self._times({rest: c}, atom, self._integer_power(by, times)))
        return _plus(*parts)


def _joined(m: Monomial, n: Monomial) -> tuple[Monomial, int]:
    """The product of two monomials and the sign from i² = -1."""
    powers = dict(m)
    for a, k in n:
        powers[a] = powers.get(a, 0) + k
    turns = powers.pop(_I, 0) % 4
    sign = -1 if turns >= 2 else 1
    if turns % 2:
        powers[_I] = 1
    return tuple(sorted((a, k) for a, k in powers.items() if k)), sign


def _key(p: Polynomial) -> frozenset[tuple[Monomial, Fraction]]:
    return frozenset(p.items())


def _constant(c: Fraction) -> Polynomial:
    return {(): c} if c else {}


def _scaled(p: Polynomial, c: Fraction) -> Polynomial:
    return {m: c * d for m, d in p.items()}


def _plus(*parts: Polynomial) -> Polynomial:
    out: dict[Monomial, Fraction] = {}
    for p in parts:
        for m, c in p.items():
            out[m] = out.get(m, Fraction(0)) + c
    return {m: c for m, c in out.items() if c}
