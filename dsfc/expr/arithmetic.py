"""Constructors of sums, products, quotients and powers: they flatten, absorb ones, fold numbers.

The order of terms and factors is kept as written, so that renderings are stable and readable.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from dsfc.expr.tree import Add, Axis, Div, Expr, Mul, Num, Ones, Pow, Reduce, Reduction, children


def num(value: int | Fraction) -> Num:
    """Returns an exact number."""
    return Num(Fraction(value))


LONGEST = 4096
"""Bits of the longest number; Python prints no number of more than 14,000."""
ZERO = num(0)
ONE = num(1)
MINUS_ONE = num(-1)


def ones(axes: Iterable[Axis]) -> Expr:
    """Returns the tensor of ones over `axes`; the number 1 when there are none."""
    over = frozenset(axes)
    return Ones(over) if over else ONE


def is_one(expr: Expr) -> bool:
    """Returns whether the expression is the scalar number 1."""
    return expr is ONE


def is_zero(expr: Expr) -> bool:
    """Returns whether the expression is the scalar number 0."""
    return expr is ZERO


def add(*args: Expr) -> Expr:
    """Returns the sum: flattened, numbers folded into one, zeros dropped. No arguments give 0.

    `ones` beside a term that has its axes is the number 1. Dropping a zero keeps the axes because
    `+` joins equal axes, or scalars to anything.
    """
    flat: list[Expr] = []
    constant = Fraction(0)
    position: int | None = None
    terms = [t for a in args for t in (a.args if isinstance(a, Add) else (a,))]
    for t in terms:
        number = _number(t, terms)
        if number is None:
            flat.append(t)
        else:
            constant += number
            position = len(flat) if position is None else position
    if constant and position is not None:
        flat.insert(position, num(constant))
    if not flat:
        return ZERO
    return flat[0] if len(flat) == 1 else Add(tuple(flat))


def _number(term: Expr, terms: list[Expr]) -> Fraction | None:
    """The number a summand stands for: `2`, or `2 * ones` beside a term that has those axes."""
    if isinstance(term, Num):
        return term.value
    factors = term.args if isinstance(term, Mul) else (term,)
    if not all(isinstance(f, Num | Ones) for f in factors):
        return None
    if not any(term.axes <= t.axes for t in terms if t is not term and not _constant(t)):
        return None
    out = Fraction(1)
    for f in factors:
        out *= f.value if isinstance(f, Num) else 1
    return out


def _constant(term: Expr) -> bool:
    factors = term.args if isinstance(term, Mul) else (term,)
    return all(isinstance(f, Num | Ones) for f in factors)


def mul(*args: Expr) -> Expr:
    """Returns the product: flattened, numbers folded to the front, ones absorbed.

    `Ones` factors whose axes the other factors already have are dropped. A zero gives 0 only when
    no axes are lost; else 0 · ones.
    """
    flat: list[Expr] = []
    constant = Fraction(1)
    unit: frozenset[Axis] = frozenset()
    for a in args:
        for t in a.args if isinstance(a, Mul) else (a,):
            if isinstance(t, Num):
                constant *= t.value
            elif isinstance(t, Ones):
                unit |= t.over
            else:
                flat.append(t)
    have: frozenset[Axis] = frozenset().union(*(t.axes for t in flat)) if flat else frozenset()
    if constant == 0:
        missing = have | unit
        return Mul((ZERO, Ones(missing))) if missing else ZERO
    if unit - have:
        flat.append(Ones(unit - have))
    if constant != 1 or not flat:
        flat.insert(0, num(constant))
    return flat[0] if len(flat) == 1 else Mul(tuple(flat))


def neg(arg: Expr) -> Expr:
    """Returns -arg."""
    return mul(MINUS_ONE, arg)


def sub(left: Expr, right: Expr) -> Expr:
    """Returns left - right."""
    return add(left, neg(right))


def div(numerator: Expr, denominator: Expr) -> Expr:
    """Returns the quotient; numbers are folded, a unit denominator is dropped.

    Raises:
        ZeroDivisionError: the denominator is the number 0.
    """
    if isinstance(denominator, Num):
        if isinstance(numerator, Num):
            return num(numerator.value / denominator.value)
        return mul(num(1 / denominator.value), numerator)
    return Div(numerator, denominator)


def power(base: Expr, exponent: Expr) -> Expr:
    """Returns base ^ exponent; integer powers of numbers are folded where they stay short."""
    if is_one(exponent):
        return base
    if isinstance(exponent, Num) and exponent.value == 0 and not base.axes:
        return ONE
    if isinstance(base, Num) and isinstance(exponent, Num):
        e = exponent.value
        if e.denominator == 1 and (base.value or e > 0) and _bits(base.value) * abs(e) <= LONGEST:
            return num(base.value**e.numerator)
    return Pow(base, exponent)


def steepness(expr: Expr, known: dict[Expr, int]) -> int:
    """Returns the largest product of constant integer powers on a way down an expression.

    Args:
        expr: the expression.
        known: what was found for subexpressions before; gains what is found now.
    """
    if expr not in known:
        below = max((steepness(child, known) for child in children(expr)), default=1)
        if isinstance(expr, Pow) and isinstance(expr.exponent, Num):
            below *= max(1, abs(int(expr.exponent.value)))
        known[expr] = below
    return known[expr]


def is_long(value: Fraction) -> bool:
    """Returns whether a number has more digits than any constant of a model."""
    return _bits(value) > LONGEST


def exact_power(value: Fraction, exponent: int) -> Fraction:
    """Returns value ^ exponent.

    Raises:
        OverflowError: the result has more digits than any constant of a model.
        ZeroDivisionError: 0 to a negative power.
    """
    if _bits(value) * abs(exponent) > 2 * LONGEST:
        raise OverflowError(f"a number of {_bits(value)} bits to the power {exponent}")
    return value**exponent


def _bits(value: Fraction) -> int:
    return max(value.numerator.bit_length(), value.denominator.bit_length())


def total(axes: Iterable[Axis], arg: Expr) -> Expr:
    """Returns Σ over each of the axes, in canonical order."""
    for axis in sorted(axes):
        arg = Reduce(Reduction.SUM, axis, arg)
    return arg
