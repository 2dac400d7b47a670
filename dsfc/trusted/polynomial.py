"""Laurent polynomials and quotients over named generators, exact and with one text per value.

A generator is known by its text, which says completely what it stands for: two generators with one
text are one function. Nothing here depends on relations between generators, but for i² = −1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import cache, cached_property
from hashlib import blake2b
from math import gcd, lcm

IMAGINARY = "i"
"""The imaginary unit. Every other generator has a bracket in its name."""

Monomial = tuple[tuple[str, int], ...]
"""Pairs (generator, exponent other than 0), sorted by name."""

TERM_LIMIT = 8_000
"""Terms of one polynomial; more is a `TooLarge`."""


DIVISION_LIMIT = 200
"""Terms of a quotient that is looked for; a longer one is left as a fraction."""


class TooLarge(Exception):
    """A polynomial grew over the limit."""


class Polynomial:
    """Σ coefficient · monomial; exponents may be negative. Immutable.

    Attributes:
        terms: monomial → coefficient other than 0, in no particular order.
    """

    def __init__(self, terms: Mapping[Monomial, Fraction]) -> None:
        """Keeps the terms whose coefficient is not 0."""
        self.terms: Mapping[Monomial, Fraction] = {m: c for m, c in terms.items() if c}
        if len(self.terms) > TERM_LIMIT:
            raise TooLarge(f"a polynomial of {len(self.terms)} terms")

    @cached_property
    def ordered(self) -> tuple[tuple[Monomial, Fraction], ...]:
        """The terms, sorted by monomial."""
        return tuple(sorted(self.terms.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(self.ordered)

    def __bool__(self) -> bool:
        return bool(self.terms)

    def __add__(self, other: Polynomial) -> Polynomial:
        out = dict(self.terms)
        for m, c in other.terms.items():
            out[m] = out[m] + c if m in out else c
        return Polynomial(out)

    def __neg__(self) -> Polynomial:
        return Polynomial({m: -c for m, c in self.terms.items()})

    def __mul__(self, other: Polynomial) -> Polynomial:
        if len(self.terms) * len(other.terms) > 50 * TERM_LIMIT:
            raise TooLarge("a product of polynomials")
        out: dict[Monomial, Fraction] = {}
        for m, c in self.terms.items():
            for n, d in other.terms.items():
                joined, sign = times(m, n)
                part = c * d if sign > 0 else -(c * d)
                known = out.get(joined)
                out[joined] = part if known is None else known + part
        return Polynomial(out)

    def power(self, exponent: int) -> Polynomial:
        """Returns the power; the exponent is not negative unless this is one term."""
        if exponent < 0:
            ((m, c),) = self.terms.items()
            inverse, sign = unit(m, -1)
            return Polynomial({inverse: sign / c}).power(-exponent)
        if exponent > 64:
            raise TooLarge(f"a power of exponent {exponent}")
        out = POLYNOMIAL_ONE
        for _ in range(exponent):
            out = out * self
        return out

    @cached_property
    def names(self) -> frozenset[str]:
        """The generators that occur."""
        return frozenset(name for m in self.terms for name, _ in m)

    @cached_property
    def text(self) -> str:
        """The one text of this polynomial."""
        return "+".join(_term(m, c) for m, c in self.ordered) or "0"

    def renamed(self, new: Callable[[str], str]) -> Polynomial:
        """Returns the polynomial with other names; different names must stay different."""
        return Polynomial(
            {tuple(sorted((new(g), e) for g, e in m)): c for m, c in self.terms.items()}
        )

    def split(self) -> tuple[Polynomial, Polynomial]:
        """Returns (c · monomial, p) with product this and p primitive, without common monomial.

        Proportional polynomials give the same p.
        """
        lowest: dict[str, int] = {}
        for name in self.names - {IMAGINARY}:
            lowest[name] = min(dict(m).get(name, 0) for m in self.terms)
        common = tuple(sorted((g, e) for g, e in lowest.items() if e))
        numbers = [Fraction(c) for c in self.terms.values()]
        content = Fraction(
            gcd(*(c.numerator for c in numbers)), lcm(*(c.denominator for c in numbers))
        )
        inverse, _ = unit(common, -1)
        rest = self * Polynomial({inverse: 1 / content})
        if rest.ordered[-1][1] < 0:
            rest, content = -rest, -content
        return Polynomial({common: content}), rest


def times(m: Monomial, n: Monomial) -> tuple[Monomial, int]:
    """Returns the product of two monomials and the sign that i² = −1 gives it."""
    if not m:
        return n, 1
    if not n:
        return m, 1
    powers = dict(m)
    for g, e in n:
        powers[g] = powers.get(g, 0) + e
    return _reduced(powers)


def unit(m: Monomial, exponent: int) -> tuple[Monomial, int]:
    """Returns a power of a monomial, of any exponent, and its sign."""
    return _reduced({g: e * exponent for g, e in m})


def _reduced(powers: dict[str, int]) -> tuple[Monomial, int]:
    sign = 1
    if IMAGINARY in powers:
        turns = powers.pop(IMAGINARY) % 4
        sign = -1 if turns >= 2 else 1
        if turns % 2:
            powers[IMAGINARY] = 1
    return tuple(sorted((g, e) for g, e in powers.items() if e)), sign


def _term(m: Monomial, c: Fraction) -> str:
    factors = [g if e == 1 else f"{g}^{e}" for g, e in m]
    return "*".join(factors if c == 1 and factors else [str(c), *factors])


def constant(value: Fraction | int) -> Polynomial:
    """Returns a number as a polynomial."""
    return Polynomial({(): Fraction(value)})


def generator(name: str) -> Polynomial:
    """Returns a generator as a polynomial."""
    return Polynomial({((name, 1),): Fraction(1)})


POLYNOMIAL_ZERO, POLYNOMIAL_ONE = constant(0), constant(1)


class Quotient:
    """num / Π base^exponent, zero exactly where `num` is; immutable.

    Bases have two terms or more and are as `Polynomial.split` gives them. A base that divides the
    numerator is cancelled, so what is a polynomial has no bases.

    Attributes:
        num: the numerator.
        den: base → positive exponent.
    """

    def __init__(self, num: Polynomial, den: Mapping[Polynomial, int] | None = None) -> None:
        """Cancels bases that divide the numerator."""
        kept: dict[Polynomial, int] = {}
        for base, exponent in sorted((den or {}).items(), key=lambda item: item[0].text):
            while exponent and num:
                smaller = divided(num, base)
                if smaller is None:
                    break
                num, exponent = smaller, exponent - 1
            if exponent and num:
                kept[base] = exponent
        self.num, self.den = num, kept

    def __bool__(self) -> bool:
        return bool(self.num)

    def __add__(self, other: Quotient) -> Quotient:
        if not other.num:
            return self
        if not self.num:
            return other
        den = dict(self.den)
        for base, exponent in other.den.items():
            den[base] = max(den.get(base, 0), exponent)
        return Quotient(_over(self, den) + _over(other, den), den)

    def __neg__(self) -> Quotient:
        return self * MINUS_ONE

    def __sub__(self, other: Quotient) -> Quotient:
        return self + -other

    def __mul__(self, other: Quotient) -> Quotient:
        den = dict(self.den)
        for base, exponent in other.den.items():
            den[base] = den.get(base, 0) + exponent
        return Quotient(self.num * other.num, den)

    def __truediv__(self, other: Quotient) -> Quotient:
        return self * other.inverse()

    def inverse(self) -> Quotient:
        """Returns 1 / this.

        Raises:
            ZeroDivisionError: this is 0.
        """
        if not self.num:
            raise ZeroDivisionError("a denominator is 0")
        simple, rest = self.num.split()
        top = simple.power(-1)
        for base, exponent in self.den.items():
            top = top * base.power(exponent)
        return Quotient(top, {} if rest == POLYNOMIAL_ONE else {rest: 1})

    def power(self, exponent: int) -> Quotient:
        """Returns an integer power."""
        base = self if exponent >= 0 else self.inverse()
        out = ONE
        for _ in range(abs(exponent)):
            out = out * base
        return out

    @property
    def number(self) -> Fraction | None:
        """The value where this is a rational number, else None."""
        if self.den or self.num.names:
            return None
        return self.num.terms.get((), Fraction(0))

    @cached_property
    def names(self) -> frozenset[str]:
        """The generators that occur."""
        return self.num.names.union(*(base.names for base in self.den))

    @cached_property
    def text(self) -> str:
        """A text; equal texts are equal values."""
        if not self.den:
            return self.num.text
        bases = (f"({b.text})^{e}" for b, e in sorted(self.den.items(), key=lambda t: t[0].text))
        return f"({self.num.text})/({'*'.join(bases)})"

    def renamed(self, new: Callable[[str], str]) -> Quotient:
        """Returns the value with other names; different names must stay different."""
        out = Quotient(self.num.renamed(new))
        for base, exponent in self.den.items():
            out = out * Quotient(base.renamed(new)).power(-exponent)
        return out

    def substituted(self, values: Mapping[str, Quotient]) -> Quotient:
        """Returns the value with generators replaced; the others stay."""
        out = _substituted(self.num, values)
        for base, exponent in self.den.items():
            out = out / _substituted(base, values).power(exponent)
        return out


def _substituted(p: Polynomial, values: Mapping[str, Quotient]) -> Quotient:
    if not p.names & values.keys():
        return Quotient(p)
    # Terms of one denominator are added as polynomials, and what divides is looked for at the end.
    same: dict[frozenset[tuple[Polynomial, int]], Polynomial] = {}
    den: dict[Polynomial, int] = {}
    for m, c in p.ordered:
        part = Quotient(Polynomial({tuple(f for f in m if f[0] not in values): c}))
        for name, exponent in m:
            if name in values:
                part = part * values[name].power(exponent)
        key = frozenset(part.den.items())
        same[key] = same[key] + part.num if key in same else part.num
        for base, exponent in key:
            den[base] = max(den.get(base, 0), exponent)
    num = POLYNOMIAL_ZERO
    for key, part_num in same.items():
        num = num + _over(Quotient(part_num, dict(key)), den)
    return Quotient(num, den)


def _over(q: Quotient, den: Mapping[Polynomial, int]) -> Polynomial:
    """The numerator of q over a common multiple of its denominator."""
    out = q.num
    for base, exponent in den.items():
        out = out * base.power(exponent - q.den.get(base, 0))
    return out


def divided(p: Polynomial, by: Polynomial) -> Polynomial | None:
    """Returns p / by where that is a Laurent polynomial, else None.

    Args:
        p: the dividend, other than 0.
        by: a polynomial of two terms or more, without negative exponents.
    """
    if not by.names <= p.names:
        return None
    shift, _ = _cleared(p)
    rest = p * Polynomial({shift: Fraction(1)})
    if not _may_divide(rest, by):
        return None
    names = tuple(sorted(p.names))

    @cache
    def exponents(m: Monomial) -> tuple[int, ...]:
        powers = dict(m)
        return tuple(powers.get(g, 0) for g in names)

    top, coefficient = max(by.terms.items(), key=lambda t: exponents(t[0]))
    lead = dict(top)
    out: dict[Monomial, Fraction] = {}
    while rest:
        m, c = max(rest.terms.items(), key=lambda t: exponents(t[0]))
        powers = dict(m)
        left = {g: powers.get(g, 0) - lead.get(g, 0) for g in powers.keys() | lead.keys()}
        if any(e < 0 for e in left.values()) or len(out) > DIVISION_LIMIT:
            return None
        term = tuple(sorted((g, e) for g, e in left.items() if e))
        out[term] = out.get(term, Fraction(0)) + c / coefficient
        rest = rest + -(by * Polynomial({term: c / coefficient}))
    inverse, _ = unit(shift, -1)
    return Polynomial(out) * Polynomial({inverse: Fraction(1)})


_PRIME = 2**61 - 31
"""A prime modulo which -1 is a square."""

_ROOT = pow(7, (_PRIME - 1) // 4, _PRIME)
"""A number whose square is -1 modulo the prime."""


def _may_divide(p: Polynomial, by: Polynomial) -> bool:
    """False only where by does not divide p: numbers for all generators but one, modulo a prime.

    What divides still does so after that, unless the numbers make it vanish.
    """
    if by.names == {IMAGINARY}:
        return True
    name = min(by.names - {IMAGINARY})
    top, bottom = _one_generator(p, name), _one_generator(by, name)
    if not any(bottom):
        return True
    while not bottom[-1]:
        bottom.pop()
    inverse = pow(bottom[-1], -1, _PRIME)
    for k in range(len(top) - 1, len(bottom) - 2, -1):
        factor = top[k] * inverse % _PRIME
        for j, c in enumerate(bottom):
            at = k - len(bottom) + 1 + j
            top[at] = (top[at] - factor * c) % _PRIME
    return not any(top[: len(bottom) - 1])


def _one_generator(p: Polynomial, name: str) -> list[int]:
    """Coefficients modulo the prime, by exponent of one generator, the others being numbers."""
    out = [0] * (1 + max(dict(m).get(name, 0) for m in p.terms))
    for m, c in p.terms.items():
        value, exponent = c.numerator * pow(c.denominator, -1, _PRIME), 0
        for g, e in m:
            if g == name:
                exponent = e
            else:
                value = value * pow(_number_for(g), e, _PRIME) % _PRIME
        out[exponent] = (out[exponent] + value) % _PRIME
    return out


@cache
def _number_for(name: str) -> int:
    """A number for a generator, the same in every process."""
    if name == IMAGINARY:
        return _ROOT
    return int.from_bytes(blake2b(name.encode(), digest_size=7).digest(), "big") + 2


def _cleared(p: Polynomial) -> tuple[Monomial, int]:
    """The monomial that makes all exponents of p at least 0."""
    lowest: dict[str, int] = {}
    for m in p.terms:
        for g, e in m:
            lowest[g] = min(lowest.get(g, 0), e)
    return unit(tuple(sorted((g, e) for g, e in lowest.items() if e)), -1)


def number(value: Fraction | int) -> Quotient:
    """Returns a number as a quotient."""
    return Quotient(constant(value))


ZERO, ONE, MINUS_ONE = Quotient(POLYNOMIAL_ZERO), Quotient(POLYNOMIAL_ONE), Quotient(constant(-1))
HALF = number(Fraction(1, 2))


def total(parts: Iterable[Quotient]) -> Quotient:
    """Returns the sum."""
    out = ZERO
    for part in parts:
        out = out + part
    return out
