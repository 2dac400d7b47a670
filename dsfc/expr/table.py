"""The table of primitives: one row each, which is all that a compile knows of a primitive.

A row holds the name in specs, what it does to real and complex values, its value in NumPy, its
derivative, its range on intervals, its name in SymPy and how each backend prints it. Printers are
data: text with `{0}`, `{1}` for the arguments, `{dim}` for the position of the axis and `{size}`
for its size. Printed arguments must be atoms or parenthesised; results are atoms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsfc.expr import adjoints
from dsfc.expr.adjoints import Rule
from dsfc.expr.interval import (
    INF,
    NONNEG,
    POSITIVE,
    REALS,
    UNIT,
    Interval,
    above,
    increasing,
    minus,
)
from dsfc.expr.tree import Field

Array = NDArray[Any]
Range = Callable[..., Interval]


class FieldRule(Enum):
    """What a primitive takes, and the field of its result."""

    SAME = "takes real or complex, gives the same"
    REAL = "takes real, gives real"
    PART = "takes real or complex, gives real"
    COMPLEX = "takes real, gives complex"

    @property
    def takes_complex(self) -> bool:
        """Whether complex arguments are allowed."""
        return self not in (FieldRule.REAL, FieldRule.COMPLEX)

    def result(self, real: bool) -> Field:
        """Returns the field of the result; `real` says that all arguments are real."""
        if self is FieldRule.COMPLEX or (self is FieldRule.SAME and not real):
            return Field.COMPLEX
        return Field.REAL


class Monotone(Enum):
    """Whether a primitive is monotone in its (first) argument over the reals."""

    INCREASING = "increasing"
    DECREASING = "decreasing"
    NONE = "not monotone"


@dataclass(frozen=True, slots=True)
class Primitive:
    """One row.

    Attributes:
        name: key of the row, and the `name` of `Prim` nodes.
        spelling: the name in specs (`Re` for `re`; the same as `name` for most).
        arity: number of arguments.
        fields: which fields it takes and gives.
        value: NumPy function; primitives along an axis take `axis`, counted from the last.
        vjp: cotangents of the arguments, see `dsfc.expr.adjoints`.
        range: interval of the result from those of the (real) arguments, outward rounded.
        monotone: monotonicity in the first argument.
        sympy: name of the SymPy function; empty when SymPy has none and an opaque one is used.
        printers: backend → text of the call.
        meaning: what it computes, in one line of an editor.
        caveat: what goes wrong numerically or at special points; empty when nothing does.
        along_axis: whether it works along one axis.
        keeps_reals: whether it is the identity on real values (then no node is built for them).
        in_specs: whether a spec may name it; the rest arises in derivatives only.
    """

    name: str
    arity: int
    fields: FieldRule
    value: Callable[..., Any]
    vjp: Rule
    range: Range
    monotone: Monotone
    sympy: str
    printers: Mapping[str, str]
    caveat: str = ""
    along_axis: bool = False
    spelling: str = ""
    keeps_reals: bool = False
    in_specs: bool = True
    meaning: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        """Freezes the printers and fills the spelling."""
        object.__setattr__(self, "printers", MappingProxyType(dict(self.printers)))
        if not self.spelling:
            object.__setattr__(self, "spelling", self.name)


# --- values ---------------------------------------------------------------------------------------


def _sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def _softplus(x: Array) -> Array:
    return np.asarray(np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))))


def _elu(x: Array) -> Array:
    return np.asarray(np.where(x > 0, x, np.expm1(np.minimum(x, 0))))


_EXPREL_NEAR = 1e-4  # the first four terms of the series are exact to double precision below


def _exprel(x: Array) -> Array:
    near = np.abs(x) < _EXPREL_NEAR
    far = np.where(near, 1, x)
    return np.where(near, 1 + x / 2 * (1 + x / 3 * (1 + x / 4)), np.expm1(far) / far)


_SLOPE_NEAR = 0.25
_SLOPE_TERMS = tuple((k + 1) / math.factorial(k + 2) for k in range(13))
"""exprel'(x) = Σ (k + 1) x^k / (k + 2)!; as many terms as double precision has use for."""


def _exprel_slope(x: Array) -> Array:
    near = np.abs(x) < _SLOPE_NEAR
    series = np.zeros_like(x)
    for term in reversed(_SLOPE_TERMS):
        series = term + series * np.where(near, x, 0)
    far = np.where(near, 1, x)
    return np.where(near, series, (np.exp(far) - np.expm1(far) / far) / far)


def _scalar(value: Callable[[Array], Array]) -> Callable[[float], float]:
    def function(x: float) -> float:
        with np.errstate(over="raise"):
            try:
                return float(value(np.asarray(x)))
            except FloatingPointError as error:
                raise OverflowError from error

    return function


_erf = np.vectorize(math.erf, otypes=[np.float64])


def _gelu(x: Array) -> Array:
    return np.asarray(0.5 * x * (1 + _erf(x / math.sqrt(2))))


def _sign(x: Array) -> Array:
    if not np.iscomplexobj(x):
        return np.asarray(np.sign(x))
    size = np.abs(x)
    return np.where(size == 0, 0, x / np.where(size == 0, 1, size))


def _l2norm(x: Array, axis: int) -> Array:
    length = np.sqrt(np.sum(x * x, axis=axis, keepdims=True))
    return np.asarray(x / np.maximum(length, 1e-12))


def _rmsnorm(x: Array, axis: int) -> Array:
    return _l2norm(x, axis) * math.sqrt(x.shape[axis])


def _softmax(x: Array, axis: int) -> Array:
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return np.asarray(e / np.sum(e, axis=axis, keepdims=True))


# --- ranges ---------------------------------------------------------------------------------------

_exp = increasing(math.exp, POSITIVE, {0.0: 1.0})
_log = increasing(math.log, REALS, {1.0: 0.0})
_expm1 = increasing(math.expm1, Interval(-1.0, INF, open_low=True), {0.0: 0.0})
_exprel_range = increasing(_scalar(_exprel), POSITIVE, {0.0: 1.0}, ulps=8)
_exprel_slope_range = increasing(_scalar(_exprel_slope), POSITIVE, {0.0: 0.5}, ulps=16)
_log1p = increasing(math.log1p, REALS, {0.0: 0.0})
_sigmoid_range = increasing(
    lambda x: 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x)),
    UNIT,
    {0.0: 0.5},
)
_softplus_range = increasing(lambda x: max(x, 0.0) + math.log1p(math.exp(-abs(x))), POSITIVE)


def _log_of(a: Interval) -> Interval:
    return _log(a.meet(POSITIVE)) if a.high > 0 else REALS


def _log1p_of(a: Interval) -> Interval:
    inside = Interval(-1.0, INF, open_low=True)
    return _log1p(a.meet(inside)) if a.high > -1 else REALS


def _sqrt_of(a: Interval) -> Interval:
    if a.high < 0:
        return NONNEG
    return increasing(math.sqrt, NONNEG, {0.0: 0.0, 1.0: 1.0})(a.meet(NONNEG))


def _abs_of(a: Interval) -> Interval:
    if a.low >= 0:
        return a
    if a.high <= 0:
        return minus(a)
    m = minus(a)
    return Interval(0.0, a.hull(m).high, False, a.hull(m).open_high)


def _max_of(a: Interval, b: Interval) -> Interval:
    low = max((a.low, a.open_low and not a.low < b.low), (b.low, b.open_low and not b.low < a.low))
    high = max((a.high, not a.open_high), (b.high, not b.open_high))
    return Interval(low[0], high[0], low[1], not high[1])


def _min_of(a: Interval, b: Interval) -> Interval:
    return minus(_max_of(minus(a), minus(b)))


def _relu_of(a: Interval) -> Interval:
    return _max_of(a, Interval(0.0, 0.0))


def _elu_of(a: Interval) -> Interval:
    return Interval(
        a.low if a.low >= 0 else _expm1(a).low,
        a.high if a.high >= 0 else _expm1(a).high,
        a.open_low or a.low == -INF,
        a.open_high,
    )


def _sign_of(a: Interval) -> Interval:
    low = 1.0 if a.low > 0 or (a.low == 0 and a.open_low) else (0.0 if a.low == 0 else -1.0)
    high = -1.0 if a.high < 0 or (a.high == 0 and a.open_high) else (0.0 if a.high == 0 else 1.0)
    return Interval(low, high)


def _step_of(a: Interval) -> Interval:
    s = _sign_of(a)
    return Interval((s.low + 1) / 2, (s.high + 1) / 2)


def _within(interval: Interval) -> Range:
    return lambda *args: interval


_BALL = Interval(-1.0, 1.0)
_S, _R = FieldRule.SAME, FieldRule.REAL
_UP, _NOT = Monotone.INCREASING, Monotone.NONE
_PI = math.pi


def _torch(name: str, triton: str = "") -> dict[str, str]:
    out = {"torch": f"torch.{name}({{0}})"}
    return out | {"triton": triton} if triton else out


def _near(bound: str, series: str, far: str) -> str:
    """A series near 0, another formula elsewhere; `{far}` in that is 1 where it is not used."""
    near = f"torch.abs({{0}}) < {bound}"
    return f"torch.where({near}, {series}, {far.format(far=f'torch.where({near}, 1, {{0}})')})"


# The quotient has all digits as long as its argument is no denormal, but not its derivative, which
# autograd takes as the difference of two terms of size 1/x.
_EXPREL_TORCH = _near(
    "torch.finfo({0}.dtype).eps ** 0.25",
    "1 + {0} / 2 * (1 + {0} / 3 * (1 + {0} / 4))",
    "torch.expm1({{0}}) / {far}",
)
_SLOPE_TORCH = _near(
    str(_SLOPE_NEAR),
    " + {0} * (".join(map(repr, _SLOPE_TERMS)) + ")" * (len(_SLOPE_TERMS) - 1),
    "(torch.exp({{0}}) - torch.expm1({{0}}) / {far}) / {far}",
)

_ROWS = (
    Primitive("exp", 1, _S, np.exp, adjoints.exp_, _exp, _UP, "exp",
              _torch("exp", "tl.exp({0})"), "overflows above 709 (float64), 88 (float32)",
              meaning="e^x"),
    Primitive("log", 1, _S, np.log, adjoints.log_, _log_of, _UP, "log",
              _torch("log", "tl.log({0})"), "-inf at 0, NaN below (real)",
              meaning="natural logarithm"),
    Primitive("log1p", 1, _S, np.log1p, adjoints.log1p_, _log1p_of, _UP, "",
              _torch("log1p", "_log1p({0})"), "-inf at -1",
              meaning="log(1 + x)"),
    Primitive("expm1", 1, _S, np.expm1, adjoints.expm1_, _expm1, _UP, "",
              _torch("expm1", "_expm1({0})"), "overflows as exp",
              meaning="e^x - 1"),
    Primitive("exprel", 1, _S, _exprel, adjoints.exprel_, _exprel_range, _UP, "",
              {"torch": _EXPREL_TORCH, "triton": "_exp_quotient({0})"},
              "(e^x - 1) / x, 1 at 0; overflows as exp",
              meaning="(e^x - 1) / x, 1 at 0"),
    Primitive("exprel_slope", 1, _S, _exprel_slope, adjoints.exprel_slope_, _exprel_slope_range,
              _UP, "", {"torch": _SLOPE_TORCH},
              "derivative of exprel, 1/2 at 0; its own derivative is NaN at 0", in_specs=False,
              meaning="derivative of exprel"),
    Primitive("sqrt", 1, _S, np.sqrt, adjoints.sqrt_, _sqrt_of, _UP, "sqrt",
              _torch("sqrt", "tl.sqrt({0})"), "infinite derivative at 0, NaN below (real)",
              meaning="square root"),
    Primitive("abs", 1, FieldRule.PART, np.abs, adjoints.abs_, _abs_of, _NOT, "Abs",
              _torch("abs", "tl.abs({0})"), "derivative taken as 0 at 0",
              meaning="absolute value"),
    Primitive("sign", 1, _S, _sign, adjoints.sign_, _sign_of, _UP, "sign",
              _torch("sgn", "((({0}) > 0).to(tl.float32) - (({0}) < 0).to(tl.float32))"),
              "z / |z| for complex z, 0 at 0; derivative of the jump taken as 0",
              meaning="x / |x|, 0 at 0"),
    Primitive("step", 1, _R, lambda x: (np.sign(x) + 1) / 2, adjoints.nothing, _step_of, _UP,
              "Heaviside",
              {"torch": "(0.5 + 0.5 * torch.sgn({0}))",
               "triton": "(0.5 + 0.5 * ((({0}) > 0).to(tl.float32) - (({0}) < 0).to(tl.float32)))"},
              "1/2 at 0, so that ties of max and min share their derivative", in_specs=False,
              meaning="1 above 0, 0 below, 1/2 at 0"),
    Primitive("sin", 1, _S, np.sin, adjoints.sin_, _within(_BALL), _NOT, "sin",
              _torch("sin", "_sine({0}, 0)"),
              meaning="sine"),
    Primitive("cos", 1, _S, np.cos, adjoints.cos_, _within(_BALL), _NOT, "cos",
              _torch("cos", "_sine({0}, 1)"),
              meaning="cosine"),
    Primitive("tanh", 1, _S, np.tanh, adjoints.tanh_,
              increasing(math.tanh, Interval(-1.0, 1.0, True, True), {0.0: 0.0}), _UP, "tanh",
              _torch("tanh", "_tanh({0})"),
              meaning="hyperbolic tangent"),
    Primitive("erf", 1, _R, _erf, adjoints.erf_,
              increasing(math.erf, Interval(-1.0, 1.0, True, True), {0.0: 0.0}), _UP, "erf",
              _torch("erf", "tl.erf({0})"),
              meaning="error function"),
    Primitive("sigmoid", 1, _R, _sigmoid, adjoints.sigmoid_, _sigmoid_range, _UP, "",
              _torch("sigmoid", "tl.sigmoid({0})"), "rounds to 1 from about 37 (float64), 17",
              meaning="1 / (1 + e^(-x))"),
    Primitive("softplus", 1, _R, _softplus, adjoints.softplus_, _softplus_range, _UP, "",
              {"torch": "(-torch.nn.functional.logsigmoid(-({0})))",
               "triton": "(tl.maximum({0}, 0) + _log1p(tl.exp(-tl.abs({0}))))"},
              "torch's own softplus is linear above 20; the log-sigmoid form is not",
              meaning="log(1 + e^x)"),
    Primitive("logsigmoid", 1, _R, lambda x: -_softplus(-x), adjoints.logsigmoid_,
              lambda a: minus(_softplus_range(minus(a))), _UP, "",
              {"torch": "torch.nn.functional.logsigmoid({0})",
               "triton": "(tl.minimum({0}, 0) - _log1p(tl.exp(-tl.abs({0}))))"},
              meaning="log of sigmoid(x)"),
    Primitive("relu", 1, _R, lambda x: np.maximum(x, 0), adjoints.relu_, _relu_of, _UP, "",
              {"torch": "torch.relu({0})", "triton": "tl.maximum({0}, 0)"},
              "derivative 0 at 0",
              meaning="max(x, 0)"),
    Primitive("elu", 1, _R, _elu, adjoints.elu_, _elu_of, _UP, "",
              {"torch": "torch.nn.functional.elu({0})",
               "triton": "tl.where(({0}) > 0, {0}, _expm1(tl.minimum({0}, 0)))"},
              meaning="x above 0, e^x - 1 below"),
    Primitive("silu", 1, _R, lambda x: x * _sigmoid(x), adjoints.silu_,
              lambda a: Interval(-0.2784645427610739 if a.low < 0 else 0.0, max(a.high, 0.0),
                                 False, False), _NOT, "",
              {"torch": "torch.nn.functional.silu({0})", "triton": "(({0}) * tl.sigmoid({0}))"},
              meaning="x sigmoid(x)"),
    Primitive("gelu", 1, _R, _gelu, adjoints.gelu_,
              lambda a: Interval(-0.17004075057125412 if a.low < 0 else 0.0, max(a.high, 0.0),
                                 False, False), _NOT, "",
              {"torch": "torch.nn.functional.gelu({0})",
               "triton": "(0.5 * ({0}) * (1 + tl.erf(0.7071067811865476 * ({0}))))"},
              "the exact form with erf, not the tanh approximation",
              meaning="x times the normal distribution function of x"),
    Primitive("max", 2, _R, np.maximum, adjoints.max_, _max_of, _UP, "Max",
              {"torch": "torch.maximum({0}, {1})", "triton": "tl.maximum({0}, {1})"},
              "ties share the derivative",
              meaning="the larger of two values"),
    Primitive("min", 2, _R, np.minimum, adjoints.min_, _min_of, _UP, "Min",
              {"torch": "torch.minimum({0}, {1})", "triton": "tl.minimum({0}, {1})"},
              "ties share the derivative",
              meaning="the smaller of two values"),
    Primitive("re", 1, FieldRule.PART, np.real, adjoints.re_, _within(REALS), _NOT, "re",
              _torch("real"), spelling="Re", keeps_reals=True,
              meaning="real part"),
    Primitive("im", 1, FieldRule.PART, np.imag, adjoints.im_, _within(REALS), _NOT, "im",
              _torch("imag"), "torch.imag refuses real tensors", spelling="Im",
              meaning="imaginary part"),
    Primitive("conj", 1, _S, np.conj, adjoints.conj_, _within(REALS), _NOT,
              "conjugate", {"torch": "torch.conj_physical({0})"}, keeps_reals=True,
              meaning="complex conjugate"),
    Primitive("cplx", 2, FieldRule.COMPLEX, lambda a, b: a + 1j * b, adjoints.cplx_,
              _within(REALS), _NOT, "", {"torch": "torch.complex({0}, {1})"},
              "torch.complex needs tensors of one dtype and does not broadcast numbers",
              meaning="a + i b of two real values"),
    Primitive("cis", 1, FieldRule.COMPLEX, lambda x: np.exp(1j * x), adjoints.cis_,
              _within(REALS), _NOT, "",
              {"torch": "torch.polar(torch.ones_like({0}), {0})"}, "e^(iθ)",
              meaning="cos x + i sin x"),
    Primitive("pi", 0, _R, lambda: np.float64(_PI), adjoints.nothing,
              _within(Interval(_PI, above(_PI))), _NOT, "pi",
              {"torch": "math.pi", "triton": "3.141592653589793"},
              meaning="the number π"),
    Primitive("stop_gradient", 1, _R, lambda x: x, adjoints.nothing, lambda a: a, _UP, "",
              _torch("detach", "({0})"),
              "for references that a result does not depend on", in_specs=False,
              meaning="its argument, a constant for gradients"),
    Primitive("softmax", 1, _R, _softmax, adjoints.softmax_, _within(Interval(0.0, 1.0, True)),
              _NOT, "", {"torch": "torch.softmax({0}, dim={dim})"}, along_axis=True,
              meaning="e^x over its sum along an axis"),
    Primitive("l2norm", 1, _R, _l2norm, adjoints.l2norm_, _within(_BALL), _NOT, "",
              {"torch": "torch.nn.functional.normalize({0}, dim={dim}, eps=1e-12)"},
              "x / max(‖x‖, 1e-12): 0 at 0, with a steep derivative there", along_axis=True,
              meaning="x over its length along an axis"),
    Primitive("rmsnorm", 1, _R, _rmsnorm, adjoints.rmsnorm_, _within(REALS), _NOT, "",
              {"torch": "(torch.nn.functional.normalize({0}, dim={dim}, eps=1e-12)"
                        " * ({size}) ** 0.5)"},
              "√n x / max(‖x‖, 1e-12): no ε and no gain", along_axis=True,
              meaning="x over its root mean square along an axis"),
)  # fmt: skip

# In LaTeX arguments stand bare, or as factors; what is not here is its name in upright letters.
_LATEX = {
    "exp": r"e^{{{0}}}",
    "exprel": r"\frac{{e^{{{0}}} - 1}}{{{0}}}",
    "log": r"\log({0})",
    "sqrt": r"\sqrt{{{0}}}",
    "abs": r"\left|{0}\right|",
    "sin": r"\sin({0})",
    "cos": r"\cos({0})",
    "tanh": r"\tanh({0})",
    "sigmoid": r"\sigma({0})",
    "re": r"\operatorname{{Re}}({0})",
    "im": r"\operatorname{{Im}}({0})",
    "conj": r"\overline{{{0}}}",
    "cplx": r"({0} + i\,{1.factor})",
    "cis": r"e^{{i({0})}}",
    "pi": r"\pi",
}

# In C a primitive of real numbers is a function `real_…` of the header of kernels; these rows are
# printed otherwise. Kernels have complex numbers as two real ones, and no primitives along an axis.
_C = {"pi": "((real)3.141592653589793)", "re": "({0})", "stop_gradient": "({0})"}


def _printed(r: Primitive) -> Primitive:
    arguments = ", ".join(f"{{{k}}}" for k in range(r.arity))
    upright = rf"\operatorname{{{{{r.spelling}}}}}({arguments})"
    printers = {**r.printers, "latex": _LATEX.get(r.name, upright)}
    is_complex = r.fields is FieldRule.COMPLEX or r.name in ("im", "conj")
    if not (r.along_axis or is_complex):
        printers["c"] = _C.get(r.name, f"real_{r.name}({arguments})")
    return replace(r, printers=printers)


TABLE: Mapping[str, Primitive] = MappingProxyType({r.name: _printed(r) for r in _ROWS})
SPELLINGS: Mapping[str, str] = MappingProxyType({r.spelling: r.name for r in _ROWS if r.in_specs})


def row(name: str) -> Primitive:
    """Returns the row of a primitive.

    Raises:
        KeyError: there is none.
    """
    return TABLE[name]
