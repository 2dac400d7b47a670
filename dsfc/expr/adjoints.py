"""Vector-Jacobian rules of the primitives, as builders of expressions.

The convention for complex values is PyTorch's: the gradient of a real loss L is
∂L/∂re + i ∂L/∂im. For a holomorphic f this gives x̄ = ȳ · conj(f'(x)); for a real argument of a
complex result the real part of that.

A rule is called with (arguments, result, cotangent, axis) and returns one cotangent per argument,
with the axes of the result; the caller sums the axes that an argument lacks.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from dsfc.expr.arithmetic import MINUS_ONE, ONE, ZERO, add, div, mul, neg, num, sub, total
from dsfc.expr.tree import Axis, Expr, Field, Prim, Reduce, Reduction, Size

Args = tuple[Expr, ...]
Rule = Callable[[Args, Expr, Expr, Axis | None], Args]

HALF = num(Fraction(1, 2))
TINY = num(Fraction(1, 10**12))


def conj(x: Expr) -> Expr:
    """Returns the complex conjugate; `x` itself when it is real."""
    return x if x.field is Field.REAL else Prim("conj", (x,), Field.COMPLEX)


def real(x: Expr) -> Expr:
    """Returns the real part; `x` itself when it is real."""
    return x if x.field is Field.REAL else Prim("re", (x,), Field.REAL)


def pulled(cotangent: Expr, partial: Expr, arg: Expr) -> Expr:
    """Returns ȳ · conj(∂y/∂x), its real part when x is real."""
    out = mul(cotangent, conj(partial))
    return real(out) if arg.field is Field.REAL else out


def _same(name: str, *args: Expr) -> Expr:
    return Prim(name, args, max(a.field for a in args))


def partials(*rules: Callable[[Args, Expr], Expr]) -> Rule:
    """Returns the rule of an elementwise function from its holomorphic partial derivatives."""

    def rule(args: Args, out: Expr, cotangent: Expr, axis: Axis | None) -> Args:
        return tuple(pulled(cotangent, r(args, out), a) for r, a in zip(rules, args, strict=True))

    return rule


def nothing(args: Args, out: Expr, cotangent: Expr, axis: Axis | None) -> Args:
    """The rule of functions whose derivative is 0 wherever it exists."""
    return tuple(ZERO for _ in args)


exp_ = partials(lambda a, y: y)
log_ = partials(lambda a, y: div(ONE, a[0]))
log1p_ = partials(lambda a, y: div(ONE, add(ONE, a[0])))
expm1_ = partials(lambda a, y: _same("exp", a[0]))
exprel_ = partials(lambda a, y: _same("exprel_slope", a[0]))
exprel_slope_ = partials(lambda a, y: div(sub(_same("exp", a[0]), mul(num(2), y)), a[0]))
sqrt_ = partials(lambda a, y: div(HALF, y))
sin_ = partials(lambda a, y: _same("cos", a[0]))
cos_ = partials(lambda a, y: neg(_same("sin", a[0])))
tanh_ = partials(lambda a, y: sub(ONE, mul(y, y)))
erf_ = partials(lambda a, y: mul(_gauss(a[0]), num(2)))
sigmoid_ = partials(lambda a, y: mul(y, _same("sigmoid", neg(a[0]))))
softplus_ = partials(lambda a, y: _same("sigmoid", a[0]))
logsigmoid_ = partials(lambda a, y: _same("sigmoid", neg(a[0])))
relu_ = partials(lambda a, y: _same("sign", y))
elu_ = partials(lambda a, y: _same("exp", _same("min", a[0], ZERO)))
max_ = partials(
    lambda a, y: _same("step", sub(a[0], a[1])), lambda a, y: _same("step", sub(a[1], a[0]))
)
min_ = partials(
    lambda a, y: _same("step", sub(a[1], a[0])), lambda a, y: _same("step", sub(a[0], a[1]))
)
cis_ = partials(lambda a, y: mul(Prim("cplx", (ZERO, ONE), Field.COMPLEX), y))


def _gauss(x: Expr) -> Expr:
    """exp(-x²) / √π."""
    root = _same("sqrt", Prim("pi", (), Field.REAL))
    return div(_same("exp", neg(mul(x, x))), root)


def _silu(a: Args, y: Expr) -> Expr:
    s = _same("sigmoid", a[0])
    return add(s, mul(y, _same("sigmoid", neg(a[0]))))


def _gelu(a: Args, y: Expr) -> Expr:
    """Φ(x) + x φ(x) with the normal distribution's Φ and density φ."""
    x = a[0]
    root = _same("sqrt", HALF)
    cumulative = mul(HALF, add(ONE, _same("erf", mul(x, root))))
    return add(cumulative, mul(x, root, _gauss(mul(x, root))))


silu_ = partials(_silu)
gelu_ = partials(_gelu)


def abs_(args: Args, out: Expr, cotangent: Expr, axis: Axis | None) -> Args:
    """|x| for real and complex x: x̄ = ȳ · x / |x|, and 0 at 0."""
    return (mul(cotangent, _same("sign", args[0])),)


def sign_(args: Args, out: Expr, cotangent: Expr, axis: Axis | None) -> Args:
    """Direction x / |x|: 0 for real x, else the part of ȳ across it, over |x|; 0 at 0."""
    (x,) = args
    if x.field is Field.REAL:
        return (ZERO,)
    along = mul(out, real(mul(cotangent, conj(out))))
    size = Prim("abs", (x,), Field.REAL)
    across = mul(sub(cotangent, along), _same("sign", size))
    return (div(across, _same("max", size, TINY)),)


def re_(args: Args, out: Expr, cotangent: Expr, axis: Axis | None) -> Args:
    """Re x: the cotangent stands in the real part."""
    return (Prim("cplx", (cotangent, ZERO), Field.COMPLEX),)


def im_(args: Args, out: Expr, cotangent: Expr, axis: Axis | None) -> Args:
    """Im x: the cotangent stands in the imaginary part; 0 for real x."""
    if args[0].field is Field.REAL:
        return (ZERO,)
    return (Prim("cplx", (ZERO, cotangent), Field.COMPLEX),)


def conj_(args: Args, out: Expr, cotangent: Expr, axis: Axis | None) -> Args:
    """Conj x."""
    return (conj(cotangent),)


def cplx_(args: Args, out: Expr, cotangent: Expr, axis: Axis | None) -> Args:
    """The value a + ib: the two parts of the cotangent."""
    if cotangent.field is Field.REAL:
        return (cotangent, ZERO)
    return (real(cotangent), Prim("im", (cotangent,), Field.REAL))


def _along(axis: Axis | None) -> Axis:
    if axis is None:
        raise TypeError("this primitive works along an axis")
    return axis


def softmax_(args: Args, out: Expr, cotangent: Expr, axis: Axis | None) -> Args:
    """Softmax along the axis: y (ȳ - Σ ȳ y)."""
    inner = total((_along(axis),), mul(cotangent, out))
    return (mul(out, add(cotangent, neg(inner))),)


def _length(x: Expr, axis: Axis) -> Expr:
    root = _same("sqrt", total((axis,), mul(x, x)))
    return Prim("max", (root, TINY), Field.REAL)


def l2norm_(args: Args, out: Expr, cotangent: Expr, axis: Axis | None) -> Args:
    """Unit vector x / ‖x‖: (ȳ - y Σ ȳ y) / ‖x‖, with ‖x‖ bounded below by 1e-12."""
    along = _along(axis)
    inner = total((along,), mul(cotangent, out))
    return (div(add(cotangent, mul(MINUS_ONE, out, inner)), _length(args[0], along)),)


def rmsnorm_(args: Args, out: Expr, cotangent: Expr, axis: Axis | None) -> Args:
    """Unit mean square, x √n / ‖x‖: (√n ȳ - y Σ ȳ y / √n) / ‖x‖, with ‖x‖ ≥ 1e-12."""
    along = _along(axis)
    root = _same("sqrt", Size(along))
    mean = Reduce(Reduction.MEAN, along, mul(cotangent, out))
    across = add(cotangent, mul(MINUS_ONE, out, mean))
    return (div(mul(root, across), _length(args[0], along)),)
