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

Monomial = tuple[tuple[int, Fraction], ...]
"""Pairs (atom, exponent), by atom; exponents may be negative, never 0, and fractions only of
exponentials."""
Polynomial = Mapping[Monomial, Fraction]
"""Monomial → coefficient, no zero coefficients."""

Clearing = Callable[[int], tuple[int, Polynomial, int]]
"""Exponent of an atom → (exponent that stays, polynomial, its exponent) in the atom's place."""

ONE: Polynomial = {(): Fraction(1)}
_I = 0
"""The atom of the imaginary unit."""
_IMAGINARY: Polynomial = {((_I, Fraction(1)),): Fraction(1)}


def equal(left: Any, right: Any) -> bool:
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

    def vanishes(self, value: Any) -> bool:
        """Returns whether a SymPy expression is 0 as a rational function of its atoms."""
        return not self._cleared(self.polynomial(value))

    def polynomial(self, e: Any) -> Polynomial:
        """Returns a SymPy expression as a polynomial over atoms, inverses being atoms."""
        if e not in self._done:
            self._done[e] = self._rooted(self._of(e))
        return self._done[e]

    def _of(self, e: Any) -> Polynomial:
        if e.is_Rational:
            return _constant(Fraction(int(e.p), int(e.q)))
        if e.is_Add:
            return _plus(*(self.polynomial(a) for a in e.args))
        if e.is_Mul:
            return self._times(*(self.polynomial(a) for a in e.args))
        name = e.func.__name__
        if name == "exp":
            return self._exponential(self.polynomial(e.args[0]))
        if name in ("cos", "sin"):
            return self._wave(self.polynomial(e.args[0]), name)
        if name == "Abs":
            return self._size(self.polynomial(e.args[0]))
        if name == "ImaginaryUnit":
            return _IMAGINARY
        if e.is_Pow:
            return self._power_of(e)
        if name in ("re", "im"):
            return self._part(e.args[0], name)
        if e.is_Symbol or not e.args:
            return self._atom(("leaf", e))
        arguments = [_key(self.polynomial(a)) for a in e.args]
        unordered = name in ("Max", "Min")
        return self._atom((name, frozenset(arguments) if unordered else tuple(arguments)))

    def _part(self, arg: Any, name: str) -> Polynomial:
        x, bar = self.polynomial(arg), self.polynomial(arg.conjugate())
        if name == "re":
            return _scaled(_plus(x, bar), Fraction(1, 2))
        half = _scaled(_IMAGINARY, Fraction(-1, 2))
        return self._times(half, _plus(x, _scaled(bar, Fraction(-1))))

    def _number(self, key: object) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def _atom(self, key: object, kind: _Root | _Inverse | None = None) -> Polynomial:
        number = self._number(key)
        if kind is not None:
            self._kinds[number] = kind
        return {((number, Fraction(1)),): Fraction(1)}

    def _exponential(self, exponent: Polynomial) -> Polynomial:
        """Π e^{m c}: one atom per monomial m, its coefficient c as exponent."""
        atoms = {self._number(("exp", m)): c for m, c in exponent.items()}
        return {tuple(sorted(atoms.items())): Fraction(1)}

    def _wave(self, x: Polynomial, name: str) -> Polynomial:
        """Euler's formula: cos x = (e^{ix} + e^{-ix}) / 2, sin x = -i (e^{ix} - e^{-ix}) / 2."""
        turned = self._times(_IMAGINARY, x)
        forth, back = self._exponential(turned), self._exponential(_scaled(turned, Fraction(-1)))
        if name == "cos":
            return _scaled(_plus(forth, back), Fraction(1, 2))
        half = _scaled(_IMAGINARY, Fraction(-1, 2))
        return self._times(half, _plus(forth, _scaled(back, Fraction(-1))))

    def _size(self, p: Polynomial) -> Polynomial:
        """|c m q| = |c| |m| |q|, with the same choice of q for all multiples of a polynomial."""
        if not p:
            return {}
        (m, c), monic = self._monic(p)
        parts = [self._integer_power(self._atom(("size", a)), int(k)) for a, k in m if a != _I]
        if len(p) > 1:
            parts.append(self._atom(("size", _key(monic))))
        return _scaled(self._times(*parts), abs(c))

    def _power_of(self, e: Any) -> Polynomial:
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
        (m, c), monic = self._monic(p)
        unit: Polynomial = {tuple((a, -k) for a, k in m): 1 / c}
        if len(p) == 1:
            return self._times(unit, ONE)
        return self._times(unit, self._atom(("inverse", _key(monic)), _Inverse(monic)))

    def _monic(self, p: Polynomial) -> tuple[tuple[Monomial, Fraction], Polynomial]:
        """A term of a polynomial and the quotient by it, the same for all its multiples."""
        # In lexicographic order of exponents the smallest term stays so under every multiple.
        atoms = sorted({a for m in p for a, _ in m if a != _I})
        zero = Fraction(0)

        def order(m: Monomial) -> tuple[Fraction, ...]:
            powers = dict(m)
            return (*(powers.get(a, zero) for a in atoms), powers.get(_I, zero))

        m, c = min(p.items(), key=lambda term: order(term[0]))
        unit: Polynomial = {tuple((a, -k) for a, k in m): 1 / c}
        return (m, c), self._times(p, unit)

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

    def _rooted(self, p: Polynomial) -> Polynomial:
        """The same value with every root to a power below its degree."""
        while True:
            for number, kind in self._kinds.items():
                if isinstance(kind, _Root):
                    exponents = self._exponents(p, number)
                    if not all(0 <= k < kind.degree for k in exponents):
                        p = self._replaced(p, number, _lowered(kind))
                        break
            else:
                return p

    def _cleared(self, p: Polynomial) -> Polynomial:
        """A multiple of p without inverses, the latest cleared first."""
        while True:
            # Clearing an inverse brings in earlier ones, or others from under a root.
            p = self._rooted(p)
            for number in sorted(self._kinds, reverse=True):
                kind = self._kinds[number]
                exponents = self._exponents(p, number)
                if isinstance(kind, _Inverse) and any(exponents):
                    p = self._replaced(p, number, _multiplied(kind, max(exponents)))
                    break
            else:
                return p

    def _exponents(self, p: Polynomial, number: int) -> list[int]:
        return [int(dict(m).get(number, 0)) for m in p]

    def _replaced(self, p: Polynomial, number: int, rule: Clearing) -> Polynomial:
        parts = []
        for m, c in p.items():
            rest = tuple(pair for pair in m if pair[0] != number)
            kept, by, times = rule(int(dict(m).get(number, 0)))
            atom: Polynomial = {((number, Fraction(kept)),): Fraction(1)} if kept else ONE
            parts.append(self._times({rest: c}, atom, self._integer_power(by, times)))
        return _plus(*parts)


def _lowered(root: _Root) -> Clearing:
    return lambda k: (k % root.degree, root.radicand, k // root.degree)


def _multiplied(inverse: _Inverse, most: int) -> Clearing:
    return lambda k: (0, inverse.of, most - k)


def _joined(m: Monomial, n: Monomial) -> tuple[Monomial, int]:
    """The product of two monomials and the sign from i² = -1."""
    powers = dict(m)
    for a, k in n:
        powers[a] = powers.get(a, Fraction(0)) + k
    turns = int(powers.pop(_I, 0)) % 4
    sign = -1 if turns >= 2 else 1
    if turns % 2:
        powers[_I] = Fraction(1)
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
