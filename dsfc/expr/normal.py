"""The normal form of an expression: a polynomial over atoms, for matching.

Atoms are expressions that the normal form does not look into (leaves, maps, primitives of
normalised arguments); they are interned, so comparing them is comparing identities. Equal normal
forms are equal functions wherever all divisions are defined; the converse does not hold and nothing
relies on it.

What is known about atoms:

- exp: e^{Σ c m} is Π (e^m)^c, one generator per monomial m, with rational exponents c;
- the imaginary unit (i² = −1), so that cplx(a, b) = a + i b and cis θ = e^{iθ};
- square roots (√p)² = p;
- σ(−x) = 1 − σ(x).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from dsfc.expr.arithmetic import exact_power
from dsfc.expr.build import ZERO, div, mul, num, power, prim, remake
from dsfc.expr.polynomial import (
    IMAGINARY,
    Monomial,
    Polynomial,
    atom,
    base_power,
    constant,
    content,
    leads_negative,
    order_key,
    plus,
    scale,
    times,
    to_expr,
)
from dsfc.expr.tree import (
    Add,
    Axis,
    Div,
    Expr,
    Field,
    Iota,
    Map,
    Mul,
    Num,
    Ones,
    Pow,
    Prim,
    Reduce,
    Reduction,
    Rename,
    Series,
    Size,
    children,
)

TERM_LIMIT = 512
"""Products and powers with more terms than this are not multiplied out."""


@lru_cache(maxsize=256)  # classes, couplings and bounds ask for the same decay, one by one
def normalise(expr: Expr) -> Polynomial:
    """Returns the normal form of an expression.

    `Ones` counts as 1: a normal form is a function of the values at each index, not of the axes.
    """
    return _Normaliser().of(push_renames(expr))


def canonical(expr: Expr) -> Expr:
    """Returns the expression rebuilt from its normal form; equal normal forms give one object.

    A power of a sum that stands under another denominator is multiplied out when it is met again,
    so the normal form is taken until it is its own.
    """
    for _ in range(_ROUNDS):
        normal = to_expr(normalise(expr))
        if normal is expr:
            break
        expr = normal
    return expr


_ROUNDS = 8
"""More than nested quotients of any spec need."""


class _Normaliser:
    """One normalisation; shared sub-expressions are visited once."""

    def __init__(self) -> None:
        self._done: dict[Expr, Polynomial] = {}

    def of(self, expr: Expr) -> Polynomial:
        out = self._done.get(expr)
        if out is None:
            out = self._done[expr] = self._make(expr)
        return out

    def expr(self, expr: Expr) -> Expr:
        return to_expr(self.of(expr))

    def _make(self, e: Expr) -> Polynomial:
        match e:
            case Num(value):
                return constant(value)
            case Ones():
                return constant(1)
            case Add(args):
                return plus(*(self.of(a) for a in args))
            case Mul(args):
                return self._product(args)
            case Div(numerator, denominator):
                bottom = self.of(denominator)
                if bottom.is_zero:
                    return atom(e)
                return self._multiply(self.of(numerator), self._invert(bottom))
            case Pow(base, exponent):
                return self._power(base, exponent)
            case Prim():
                return self._prim(e)
            case Map() | Reduce(how=Reduction.SUM):
                return self._linear(e)
            case _:
                return atom(remake(e, tuple(self.expr(c) for c in children(e))))

    def _product(self, args: tuple[Expr, ...]) -> Polynomial:
        out = constant(1)
        for a in args:
            out = self._multiply(out, self.of(a))
        return out

    def _multiply(self, a: Polynomial, b: Polynomial) -> Polynomial:
        if len(a.terms) * len(b.terms) > TERM_LIMIT:
            # too large to multiply out: keep the longer side as one atom
            long, short = (a, b) if len(a.terms) >= len(b.terms) else (b, a)
            if len(short.terms) > TERM_LIMIT:
                return self._multiply(atom(to_expr(long)), atom(to_expr(short)))
            return times(atom(to_expr(long)), short)
        return self._squares(times(a, b))

    def _squares(self, p: Polynomial) -> Polynomial:
        """Squares of square roots replaced by what is under them."""
        out: list[Polynomial] = []
        for m, c in p.terms:
            roots = [(x, e) for x, e in m if isinstance(x, Prim) and x.name == "sqrt" and e >= 2]
            part = Polynomial(((tuple(f for f in m if f not in roots), c),))
            for x, e in roots:
                whole, rest = divmod(e, 2)
                part = times(part, atom(x, rest)) if rest else part
                for _ in range(int(whole)):
                    part = self._multiply(part, self.of(x.args[0]))
            out.append(part)
        return plus(*out)

    def _invert(self, p: Polynomial) -> Polynomial:
        coefficient, common, rest = content(p)
        out = Polynomial(((tuple((a, -e) for a, e in common), 1 / coefficient),))
        out = times(out, constant(1))  # applies the relation of i
        if rest.constant is None:
            out = times(out, atom(to_expr(rest), -1))
        return self._expand_sums(out)

    def _expand_sums(self, p: Polynomial) -> Polynomial:
        """An inverted denominator that comes back to the numerator is multiplied out again."""
        single = p.single
        if single is None:
            return p
        monomial, coefficient = single
        back = [(a, e) for a, e in monomial if isinstance(a, Add) and e > 0 and e.denominator == 1]
        if not back:
            return p
        kept = tuple(f for f in monomial if f not in back)
        out = Polynomial(((kept, coefficient),))
        for a, e in back:
            for _ in range(int(e)):
                out = self._multiply(out, self.of(a))
        return out

    def _power(self, base: Expr, exponent: Expr) -> Polynomial:
        e = self.of(exponent).constant
        if e is None:
            return atom(Pow(self.expr(base), self.expr(exponent)))
        return self._rational_power(self.of(base), e)

    def _rational_power(self, p: Polynomial, e: Fraction) -> Polynomial:
        if e == 0:
            return constant(1)
        if e.denominator == 1 and abs(e) <= 64:
            if e < 0 and p.is_zero:
                return atom(Pow(ZERO, num(e)))
            base = p if e > 0 else self._invert(p)
            out = constant(1)
            for _ in range(abs(int(e))):
                out = self._multiply(out, base)
            return self._expand_sums(out)
        single = p.single
        if single and single[1] == 1 and all(_is_positive(a) for a, _ in single[0]):
            return Polynomial(((tuple((a, x * e) for a, x in single[0]), Fraction(1)),))
        if e == Fraction(1, 2):
            return atom(_prim("sqrt", to_expr(p)))
        return atom(Pow(to_expr(p), num(e)))

    def _prim(self, e: Prim) -> Polynomial:
        if e.axis is None:
            match e.name, e.args:
                case "exp", (arg,):
                    return self._exp(self.of(arg))
                case "cis", (arg,):
                    return self._exp(times(atom(IMAGINARY), self.of(arg)))
                case "cplx", (re, im):
                    return plus(self.of(re), times(atom(IMAGINARY), self.of(im)))
                case "sqrt", (arg,):
                    return self._rational_power(self.of(arg), Fraction(1, 2))
                case "sigmoid", (arg,):
                    return self._sigmoid(self.of(arg))
                case "conj", (arg,):
                    return self._conj(arg)
                case ("re", (arg,)) if arg.field is Field.REAL:
                    return self.of(arg)
        args = tuple(self.expr(a) for a in e.args)
        # Arguments may have become real: Re and conj are then gone.
        primitive = prim(e.name, *args, axis=e.axis)
        return atom(primitive) if isinstance(primitive, Prim) else self.of(primitive)

    def _exp(self, p: Polynomial) -> Polynomial:
        out = constant(1)
        for m, c in p.terms:
            inner = to_expr(Polynomial(((m, Fraction(1)),)))
            if isinstance(inner, Prim) and inner.name == "log" and c.denominator == 1:
                factor = self._rational_power(self.of(inner.args[0]), c)
            else:
                factor = atom(_prim("exp", inner), c)
            out = self._multiply(out, factor)
        return out

    def _sigmoid(self, p: Polynomial) -> Polynomial:
        if leads_negative(p):
            return plus(constant(1), scale(atom(_prim("sigmoid", to_expr(scale(p, -1)))), -1))
        return atom(_prim("sigmoid", to_expr(p)))

    def _conj(self, arg: Expr) -> Polynomial:
        if arg.field is Field.REAL:
            return self.of(arg)
        match arg:
            case Add() | Mul() | Div():
                return self.of(remake(arg, tuple(_conjugate(c) for c in children(arg))))
            case Pow(base, Num() as exponent) if exponent.value.denominator == 1:
                return self.of(power(_conjugate(base), exponent))
            case Prim("exp", (inner,)):
                return self.of(_prim("exp", _conjugate(inner)))
            case Prim("cis", (inner,)):
                return self.of(_prim("cis", mul(num(-1), inner)))
            case Prim("cplx", (re, im)):
                return self.of(_prim("cplx", re, mul(num(-1), im)))
            case Prim("conj", (inner,)):
                return self.of(inner)
            case _:
                return atom(_prim("conj", self.expr(arg)))

    def _linear(self, e: Map | Reduce) -> Polynomial:
        """Σ over an axis and linear maps: split sums, take numbers (and for Σ free factors) out."""
        parts: list[Polynomial] = []
        for m, c in self.of(e.arg).terms:
            outside: Monomial = ()
            inside = m
            if isinstance(e, Reduce):
                outside = tuple(f for f in m if e.axis not in f[0].axes)
                inside = tuple(f for f in m if e.axis in f[0].axes)
                if not inside:
                    parts.append(times(Polynomial(((outside, c),)), atom(Size(e.axis))))
                    continue
            arg = to_expr(Polynomial(((inside, Fraction(1)),)))
            parts.append(times(Polynomial(((outside, c),)), atom(remake(e, (arg,)))))
        return plus(*parts)


def _is_positive(expr: Expr) -> bool:
    if isinstance(expr, Size):
        return True
    return isinstance(expr, Prim) and expr.name in ("exp", "sigmoid") and expr.kind is Field.REAL


def _prim(name: str, *args: Expr) -> Expr:
    kind = Field.COMPLEX if name in ("cplx", "cis") else max(a.field for a in args)
    return Prim(name, args, kind)


def _conjugate(expr: Expr) -> Expr:
    return expr if expr.field is Field.REAL else _prim("conj", expr)


_ELEMENTWISE = (Add, Mul, Div, Pow, Series)


def push_renames(expr: Expr) -> Expr:
    """Returns the expression with each `Rename` moved below the elementwise nodes under it."""
    done: dict[Expr, Expr] = {}

    def go(e: Expr) -> Expr:
        if e not in done:
            new = remake(e, tuple(go(c) for c in children(e)))
            done[e] = _renamed(new.arg, new.old, new.new) if isinstance(new, Rename) else new
        return done[e]

    return go(expr)


def _renamed(e: Expr, old: Axis, new: Axis) -> Expr:
    if old not in e.axes:
        return e
    if isinstance(e, _ELEMENTWISE) or (isinstance(e, Prim) and e.axis is None):
        return remake(e, tuple(_renamed(c, old, new) for c in children(e)))
    if isinstance(e, Ones):
        return Ones((e.over - {old}) | {new})
    if isinstance(e, Iota):
        return Iota(new)
    return Rename(old, new, e)


# --- products -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Factors:
    """coefficient · Π base^exponent, each base normalised.

    A base is an atom, or a sum whose terms have no common monomial and whose first coefficient is
    positive. Products are kept apart: (1 − a)(1 + a) has two bases.
    """

    coefficient: Fraction
    powers: tuple[tuple[Expr, Fraction], ...]

    def exponent(self, base: Expr) -> Fraction:
        """Returns the exponent of a base, 0 when it does not occur."""
        return dict(self.powers).get(base, Fraction(0))

    def expr(self) -> Expr:
        """Returns the product as an expression."""
        top = [base_power(b, e) for b, e in self.powers if e > 0]
        bottom = [base_power(b, -e) for b, e in self.powers if e < 0]
        upper = mul(num(self.coefficient), *top)
        return div(upper, mul(*bottom)) if bottom else upper


@lru_cache(maxsize=256)
def factors(expr: Expr) -> Factors:
    """Returns an expression as a product of normalised bases."""
    table: dict[Expr, Fraction] = {}
    coefficient = _gather(push_renames(expr), Fraction(1), table)
    kept = [(b, e) for b, e in table.items() if e]
    return Factors(coefficient, tuple(sorted(kept, key=lambda t: order_key(t[0]))))


def _gather(e: Expr, exponent: Fraction, table: dict[Expr, Fraction]) -> Fraction:
    match e:
        case Mul(args):
            out = Fraction(1)
            for a in args:
                out *= _gather(a, exponent, table)
            return out
        case Div(numerator, denominator):
            return _gather(numerator, exponent, table) * _gather(denominator, -exponent, table)
        case Pow(base, Num(value)) if value.denominator == 1:
            return _gather(base, exponent * value, table)
    coefficient, common, rest = content(normalise(e))
    for a, x in common:
        table[a] = table.get(a, Fraction(0)) + x * exponent
    if rest.constant is None:
        base = to_expr(rest)
        table[base] = table.get(base, Fraction(0)) + exponent
    if coefficient == 0 and exponent < 0:
        raise ZeroDivisionError("a denominator is identically zero")
    return exact_power(coefficient, int(exponent))
