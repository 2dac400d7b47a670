"""The logarithm of a decay: λ = exp(log + i · phase), read off the expression.

Rules (for a λ whose definitions are inlined):

    log e^x = x            log σ(x) = −softplus(−x)      log(1 − σ(x)) = −softplus(x)
    log ab = log a + log b  log a/b = log a − log b       log a^c = c log a
    log e^z = Re z, phase Im z    log cis θ = 0, phase θ   log conj z: the phase changes sign
    log 1 = 0

Everything else is LOG_OF: the logarithm is taken of the computed value, `1 − x` through log1p(−x).
A rule is used only where it holds for all values: a logarithm is split over a product or a power
when each factor is positive by its form (an exponential, a sigmoid, …) or stands alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dsfc.expr.build import ZERO, add, is_one, is_zero, mul, neg, num, sub
from dsfc.expr.normal import push_renames
from dsfc.expr.tree import Add, Div, Expr, Field, Mul, Num, Ones, Pow, Prim, Rename, Size
from dsfc.system.ir import Decay, LogForm


def decay_of(value: Expr) -> Decay:
    """Returns the decay of a diagonal transition.

    Args:
        value: λ, its definitions inlined.

    Returns:
        The decay. For a real λ the phase is None and `log` is log λ, which is defined where λ > 0
        only: a λ that can be negative (a tanh) must be used through `value`. For a complex λ that
        has no closed polar form, `log` is the complex logarithm of λ and the phase is None.
    """
    pushed = push_renames(value)
    if value.field is Field.REAL:
        polar = _real(pushed)
        return Decay(value, polar.log, None, _form(polar.exact))
    complex_polar = _complex(pushed)
    if complex_polar is None:
        return Decay(value, _prim("log", value), None, LogForm.LOG_OF)
    return Decay(value, complex_polar.log, complex_polar.phase, _form(complex_polar.exact))


def _form(exact: bool) -> LogForm:
    return LogForm.EXACT if exact else LogForm.LOG_OF


def _prim(name: str, arg: Expr) -> Expr:
    return Prim(name, (arg,), arg.field)


@dataclass(frozen=True, slots=True)
class _Polar:
    """log |x| and the phase of x.

    Attributes:
        exact: the logarithm is closed; the value is then positive (or has modulus e^log) by form.
    """

    log: Expr
    phase: Expr
    exact: bool


def _log_of(e: Expr) -> _Polar:
    """The logarithm of a value that has no closed one."""
    rest = _one_minus(e)
    return _Polar(_prim("log", e) if rest is None else _prim("log1p", neg(rest)), ZERO, False)


def _one_minus(e: Expr) -> Expr | None:
    """Returns x when the expression reads 1 − x, else None."""
    if isinstance(e, Add) and any(is_one(a) for a in e.args):
        return neg(add(*(a for a in e.args if not is_one(a))))
    return None


def _real(e: Expr) -> _Polar:
    match e:
        case Num(value) if value > 0:
            return _Polar(ZERO if value == 1 else _prim("log", e), ZERO, True)
        case Ones():
            return _Polar(ZERO, ZERO, True)
        case Size():
            return _Polar(_prim("log", e), ZERO, True)
        case Prim("exp", (x,)):
            return _Polar(x, ZERO, True)
        case Prim("sigmoid", (x,)):
            return _Polar(neg(_prim("softplus", neg(x))), ZERO, True)
        case Prim("sqrt", (x,)):
            return _scaled(_real(x), Fraction(1, 2))
        case Prim("abs", (x,)) if x.field is Field.COMPLEX:
            polar = _complex(x)
            # A real factor of x without a closed logarithm may be negative, and |x| has one.
            return _Polar(polar.log, ZERO, True) if polar and polar.exact else _log_of(e)
        case Prim("re", (x,)) if x.field is Field.REAL:
            return _real(x)
        case Mul(args):
            return _real_product(e, args)
        case Div(numerator, denominator):
            top, bottom = _real(numerator), _real(denominator)
            if top.exact or bottom.exact:
                return _joined(top, _scaled(bottom, Fraction(-1)))
            return _log_of(e)
        case Pow(base, exponent):
            inner = _real(base)
            if inner.exact and exponent.field is Field.REAL:
                return _Polar(mul(exponent, inner.log), ZERO, True)
            return _log_of(e)
        case Add():
            return _real_sum(e)
        case Rename(old, new, arg):
            polar = _real(arg)
            if polar.exact:
                return _Polar(push_renames(Rename(old, new, polar.log)), ZERO, True)
            return _log_of(e)
        case _:
            return _log_of(e)


def _real_product(e: Expr, args: tuple[Expr, ...]) -> _Polar:
    """Closed factors are split off; what is left stays together: its factors' signs may cancel."""
    parts = [(a, _real(a)) for a in args]
    rest = [a for a, p in parts if not p.exact]
    out = _Polar(ZERO, ZERO, True)
    for _, p in parts:
        if p.exact:
            out = _joined(out, p)
    if not rest:
        return out
    remaining = mul(*rest)
    return _joined(out, _real(rest[0]) if len(rest) == 1 else _log_of(remaining))


def _real_sum(e: Add) -> _Polar:
    """1 − σ(x) = σ(−x); everything else is a logarithm of the sum."""
    rest = _one_minus(e)
    if isinstance(rest, Prim) and rest.name == "sigmoid":
        return _Polar(neg(_prim("softplus", rest.args[0])), ZERO, True)
    return _log_of(e)


def _complex(e: Expr) -> _Polar | None:
    """The polar form of a complex value; None when a factor has no closed one."""
    if e.field is Field.REAL:
        return _real(e)
    match e:
        case Prim("exp", (z,)):
            return _Polar(real_part(z), imaginary_part(z), True)
        case Prim("cis", (theta,)):
            return _Polar(ZERO, theta, True)
        case Prim("conj", (z,)):
            polar = _complex(z)
            return None if polar is None else _Polar(polar.log, neg(polar.phase), polar.exact)
        case Mul(args):
            return _complex_product(args)
        case Div(numerator, denominator):
            top, bottom = _complex(numerator), _complex(denominator)
            if top is None or bottom is None:
                return None
            return _joined(top, _scaled(bottom, Fraction(-1)))
        case Pow(base, Num(value)) if value.denominator == 1:
            polar = _complex(base)
            return None if polar is None else _scaled(polar, value)
        case Rename(old, new, arg):
            polar = _complex(arg)
            if polar is None:
                return None
            log, phase = (push_renames(Rename(old, new, x)) for x in (polar.log, polar.phase))
            return _Polar(log, phase, polar.exact)
        case _:
            return None


def _complex_product(args: tuple[Expr, ...]) -> _Polar | None:
    real = [a for a in args if a.field is Field.REAL]
    out = _real(mul(*real)) if real else _Polar(ZERO, ZERO, True)
    for a in args:
        if a.field is Field.COMPLEX:
            polar = _complex(a)
            if polar is None:
                return None
            out = _joined(out, polar)
    return out


def _scaled(p: _Polar, factor: Fraction) -> _Polar:
    f = num(factor)
    return _Polar(mul(f, p.log), mul(f, p.phase), p.exact)


def _joined(a: _Polar, b: _Polar) -> _Polar:
    return _Polar(add(a.log, b.log), add(a.phase, b.phase), a.exact and b.exact)


def real_part(z: Expr) -> Expr:
    """Returns Re z as a real expression, resolved through sums, products, cplx, cis, exp, conj."""
    return _cartesian(z)[0]


def imaginary_part(z: Expr) -> Expr:
    """Returns Im z as a real expression; see `real_part`."""
    return _cartesian(z)[1]


def _cartesian(z: Expr) -> tuple[Expr, Expr]:
    if z.field is Field.REAL:
        return z, ZERO
    match z:
        case Add(args):
            parts = [_cartesian(a) for a in args]
            return add(*(p[0] for p in parts)), add(*(p[1] for p in parts))
        case Mul(args):
            out: tuple[Expr, Expr] = (mul(*(a for a in args if a.field is Field.REAL)), ZERO)
            for a in args:
                if a.field is Field.COMPLEX:
                    out = _times(out, _cartesian(a))
            return out
        case Div(numerator, denominator) if denominator.field is Field.REAL:
            re, im = _cartesian(numerator)
            return Div(re, denominator), ZERO if is_zero(im) else Div(im, denominator)
        case Prim("cplx", (re, im)):
            return re, im
        case Prim("conj", (inner,)):
            re, im = _cartesian(inner)
            return re, neg(im)
        case Rename(old, new, arg):
            re, im = _cartesian(arg)
            return Rename(old, new, re), ZERO if is_zero(im) else Rename(old, new, im)
        case _:
            return Prim("re", (z,), Field.REAL), Prim("im", (z,), Field.REAL)


def _times(a: tuple[Expr, Expr], b: tuple[Expr, Expr]) -> tuple[Expr, Expr]:
    re = sub(_product(a[0], b[0]), _product(a[1], b[1]))
    im = add(_product(a[0], b[1]), _product(a[1], b[0]))
    return re, im


def _product(a: Expr, b: Expr) -> Expr:
    return ZERO if is_zero(a) or is_zero(b) else mul(a, b)
