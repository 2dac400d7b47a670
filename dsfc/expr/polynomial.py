"""Sparse polynomials with rational coefficients and exponents over expressions as atoms.

The order of terms and factors is a function of the expressions' structure alone: it does not depend
on hash seeds or on the order in which expressions were built.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from hashlib import blake2b
from weakref import WeakKeyDictionary

from dsfc.expr.build import ONE, ZERO, add, mul, num, power
from dsfc.expr.tree import Expr, Field, Prim, argument_names, children

IMAGINARY = Prim("cplx", (ZERO, ONE), Field.COMPLEX)
"""The imaginary unit as an atom."""

Monomial = tuple[tuple[Expr, Fraction], ...]
"""Atoms with non-zero exponents, sorted by `order_key`."""

OrderKey = tuple[str, str, bytes]


# --- a structural order ---------------------------------------------------------------------------

_KEYS: WeakKeyDictionary[Expr, OrderKey] = WeakKeyDictionary()


def order_key(expr: Expr) -> OrderKey:
    """Returns a sorting key that depends on the structure of the expression only."""
    key = _KEYS.get(expr)
    if key is None:
        name = str(getattr(expr, "name", "") or "")
        digest = blake2b(digest_size=16)
        digest.update(_own_text(expr).encode())
        for child in children(expr):
            sub = order_key(child)
            digest.update(sub[0].encode() + b"\0" + sub[1].encode() + b"\0" + sub[2])
        key = _KEYS[expr] = (type(expr).__name__, name, digest.digest())
    return key


def _own_text(expr: Expr) -> str:
    parts = [type(expr).__name__]
    for name in argument_names(type(expr)):
        value = getattr(expr, name)
        if isinstance(value, Expr):
            continue
        if isinstance(value, frozenset):
            value = sorted(value)
        if isinstance(value, tuple) and any(isinstance(v, Expr) for v in value):
            value = len(value)
        parts.append(f"{name}={value!r}")
    return ";".join(parts)


# --- polynomials ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Polynomial:
    """Σ coefficient · monomial, sorted, without zero coefficients.

    Attributes:
        terms: pairs (monomial, coefficient).
    """

    terms: tuple[tuple[Monomial, Fraction], ...]

    @property
    def is_zero(self) -> bool:
        """Whether this is the zero polynomial."""
        return not self.terms

    @property
    def single(self) -> tuple[Monomial, Fraction] | None:
        """The only term, or None when there are none or several."""
        return self.terms[0] if len(self.terms) == 1 else None

    @property
    def constant(self) -> Fraction | None:
        """The value when the polynomial is a rational number, else None."""
        if not self.terms:
            return Fraction(0)
        if len(self.terms) == 1 and not self.terms[0][0]:
            return self.terms[0][1]
        return None

    def atoms(self) -> frozenset[Expr]:
        """Returns the atoms that occur."""
        return frozenset(a for m, _ in self.terms for a, _ in m)


def _monomial_key(m: Monomial) -> tuple[tuple[OrderKey, Fraction], ...]:
    return tuple((order_key(a), e) for a, e in m)


def _collect(terms: Iterable[tuple[Monomial, Fraction]]) -> Polynomial:
    table: dict[Monomial, Fraction] = {}
    for m, c in terms:
        table[m] = table.get(m, Fraction(0)) + c
    kept = [(m, c) for m, c in table.items() if c]
    return Polynomial(tuple(sorted(kept, key=lambda t: _monomial_key(t[0]))))


def constant(value: Fraction | int) -> Polynomial:
    """Returns the polynomial of a number."""
    return _collect([((), Fraction(value))])


def atom(expr: Expr, exponent: Fraction | int = 1) -> Polynomial:
    """Returns expr^exponent with the expression taken as an atom."""
    return Polynomial(((((expr, Fraction(exponent)),), Fraction(1)),))


def plus(*args: Polynomial) -> Polynomial:
    """Returns the sum."""
    return _collect(t for p in args for t in p.terms)


def scale(p: Polynomial, factor: Fraction | int) -> Polynomial:
    """Returns factor · p."""
    f = Fraction(factor)
    return _collect((m, c * f) for m, c in p.terms)


def times(a: Polynomial, b: Polynomial) -> Polynomial:
    """Returns the product, multiplied out."""
    return plus(*(scale(_join(m, n), c * d) for m, c in a.terms for n, d in b.terms))


def _join(a: Monomial, b: Monomial) -> Polynomial:
    """The product of two monomials, with i² = −1."""
    table: dict[Expr, Fraction] = dict(a)
    for x, e in b:
        table[x] = table.get(x, Fraction(0)) + e
    sign = Fraction(1)
    if IMAGINARY in table:
        turns, table[IMAGINARY] = divmod(table[IMAGINARY], 2)
        sign = Fraction((-1) ** int(turns))
    kept = tuple(sorted(((x, e) for x, e in table.items() if e), key=lambda t: order_key(t[0])))
    return Polynomial(((kept, sign),))


def base_power(base: Expr, exponent: Fraction) -> Expr:
    """Returns the factor base^exponent of a monomial as an expression.

    For complex m, (e^m)^c stands for e^{c m}; the principal power of e^m may be another number.
    """
    if exponent.denominator != 1 and isinstance(base, Prim) and base.name == "exp":
        if base.kind is Field.COMPLEX:
            return Prim("exp", (mul(num(exponent), base.args[0]),), Field.COMPLEX)
    return power(base, num(exponent))


def to_expr(p: Polynomial) -> Expr:
    """Returns the polynomial as an expression, terms and factors in the normal form's order."""
    return add(*(mul(num(c), *(base_power(a, e) for a, e in m)) for m, c in p.terms))


def content(p: Polynomial) -> tuple[Fraction, Monomial, Polynomial]:
    """Splits p = coefficient · monomial · rest, with the greatest common monomial taken out.

    The rest has integer coefficients without a common divisor, its first one positive. For a
    polynomial of one term the rest is 1; the zero polynomial is returned as (0, (), 1).
    """
    if p.is_zero:
        return Fraction(0), (), constant(1)
    numerator = denominator = 0
    for _, c in p.terms:
        numerator = _gcd(numerator, abs(c.numerator))
        denominator = _lcm(denominator, c.denominator)
    coefficient = Fraction(numerator, denominator)
    if p.terms[0][1] < 0:
        coefficient = -coefficient
    shared: dict[Expr, Fraction] = dict(p.terms[0][0])
    for m, _ in p.terms[1:]:
        here = dict(m)
        shared = {a: min(e, here.get(a, Fraction(0))) for a, e in shared.items()}
        for a, e in here.items():
            if e < 0 and a not in shared:
                shared[a] = e
    common = tuple(sorted(((a, e) for a, e in shared.items() if e), key=lambda t: order_key(t[0])))
    inverse: Monomial = tuple((a, -e) for a, e in common)
    rest = plus(*(scale(_join(m, inverse), c / coefficient) for m, c in p.terms))
    return coefficient, common, rest


def _gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a


def _lcm(a: int, b: int) -> int:
    return b if a == 0 else a * b // _gcd(a, b)


def leads_negative(p: Polynomial) -> bool:
    """Returns whether the first coefficient is negative: fixes one of x and −x."""
    return bool(p.terms) and p.terms[0][1] < 0
