"""Operations of PyTorch by name: entry by entry, and those that only move dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from dsfc.lift import constants, filters, reductions, scans, tokens
from dsfc.lift.axes import Axis, Batch, Entry, Time, resolved
from dsfc.lift.build import num, power
from dsfc.lift.failure import CannotLift
from dsfc.lift.ir import MIRRORED, Masked, Node, Num
from dsfc.lift.recognise import Recogniser
from dsfc.lift.trace import name_of
from dsfc.lift.values import Value

Operation = Callable[..., Any]


def _unary(name: str) -> Operation:
    def run(r: Recogniser, x: Value, *rest: Any, **options: Any) -> Value:
        return r.unary(name, x)

    return run


def _binary(name: str) -> Operation:
    def run(
        r: Recogniser, a: Any, b: Any, *, alpha: float = 1, rounding_mode: str | None = None
    ) -> Value:
        if rounding_mode is not None:
            raise CannotLift("a division that rounds")
        if alpha != 1:
            b = r.elementwise("*", b, alpha)
        return r.elementwise(name, a, b)

    return run


def _rsub(r: Recogniser, a: Any, b: Any, alpha: float = 1) -> Value:
    built: Value = _binary("-")(r, b, a, alpha=alpha)
    return built


def _pow(r: Recogniser, base: Any, exponent: Any) -> Value:
    values = [r.whole(base), r.whole(exponent)]
    nodes, layout = r.broadcast.together(values)
    if isinstance(nodes[1], Num) and nodes[1].value == 1:
        return Value(nodes[0], layout)
    return Value(power(*nodes), layout)


def _square(r: Recogniser, x: Value) -> Value:
    return _pow(r, x, 2)


def _rsqrt(r: Recogniser, x: Value) -> Value:
    return r.elementwise("/", 1, r.unary("sqrt", x))


def _reciprocal(r: Recogniser, x: Value) -> Value:
    return r.elementwise("/", 1, x)


def _exp2(r: Recogniser, x: Value) -> Value:
    return _pow(r, 2, x)


def _log2(r: Recogniser, x: Value) -> Value:
    return r.elementwise("/", r.unary("log", x), math.log(2))


def _tan(r: Recogniser, x: Value) -> Value:
    return r.elementwise("/", r.unary("sin", x), r.unary("cos", x))


def _addcmul(r: Recogniser, a: Value, b: Value, c: Value, *, value: float = 1) -> Value:
    return r.elementwise("+", a, r.elementwise("*", value, r.elementwise("*", b, c)))


def _addcdiv(r: Recogniser, a: Value, b: Value, c: Value, *, value: float = 1) -> Value:
    return r.elementwise("+", a, r.elementwise("*", value, r.elementwise("/", b, c)))


def _lerp(r: Recogniser, a: Value, b: Value, weight: Any) -> Value:
    return r.elementwise("+", a, r.elementwise("*", weight, r.elementwise("-", b, a)))


def _gelu(r: Recogniser, x: Value, *, approximate: str = "none") -> Value:
    if approximate == "none":
        return r.unary("gelu", x)
    inner = r.elementwise("+", x, r.elementwise("*", 0.044715, _pow(r, x, 3)))
    scaled = r.elementwise("*", math.sqrt(2 / math.pi), inner)
    gate = r.elementwise("+", 1, r.unary("tanh", scaled))
    return r.elementwise("*", r.elementwise("*", 0.5, x), gate)


def _softplus(r: Recogniser, x: Value, beta: float = 1, threshold: float = 20) -> Value:
    """PyTorch's softplus is x above its threshold; the spec's is log(1 + e^x) everywhere."""
    if beta == 1:
        return r.unary("softplus", x)
    return r.elementwise("/", r.unary("softplus", r.elementwise("*", x, beta)), beta)


def _elu(
    r: Recogniser, x: Value, alpha: float = 1, scale: float = 1, input_scale: float = 1
) -> Value:
    if alpha == scale == input_scale == 1:
        return r.unary("elu", x)
    low = r.unary("expm1", r.elementwise("min", x, 0))
    return r.elementwise(
        "*", scale, r.elementwise("+", r.unary("relu", x), r.elementwise("*", alpha, low))
    )


def _leaky_relu(r: Recogniser, x: Value, slope: float = 0.01) -> Value:
    return r.elementwise(
        "+", r.unary("relu", x), r.elementwise("*", slope, r.elementwise("min", x, 0))
    )


def _clamp(
    r: Recogniser, x: Value, low: Any = None, high: Any = None, *, min: Any = None, max: Any = None
) -> Value:
    low, high = (low if low is not None else min), (high if high is not None else max)
    if low is not None:
        x = r.elementwise("max", x, low)
    return x if high is None else r.elementwise("min", x, high)


def _hardtanh(r: Recogniser, x: Value, low: float = -1, high: float = 1) -> Value:
    return _clamp(r, x, low, high)


def _relu6(r: Recogniser, x: Value) -> Value:
    return _clamp(r, x, 0, 6)


def _logit(r: Recogniser, x: Value, eps: float | None = None) -> Value:
    if eps is not None:
        x = _clamp(r, x, eps, 1 - eps)
    return r.unary("log", r.elementwise("/", x, r.elementwise("-", 1, x)))


def _glu(r: Recogniser, x: Value, dim: int = -1) -> Value:
    a, b = tokens.split_into(r, x, 2, dim)
    return r.elementwise("*", a, r.unary("sigmoid", b))


# Complex numbers


def _polar(r: Recogniser, size: Value, angle: Value) -> Value:
    return r.elementwise("*", size, r.unary("cis", angle))


def _view_as_complex(r: Recogniser, x: Value) -> Value:
    re, im = (tokens.select(r, x, -1, k) for k in (0, 1))
    return r.elementwise("cplx", re, im)


# Masks


def _mask(r: Recogniser, mask: Any) -> tuple[str, Value]:
    """The relation of tokens where a constant mask is true, and a value of its shape."""
    if not isinstance(mask, Value) or mask.const is None:
        hint = "a spec has masks of tokens up to the present one, by torch.tril for example"
        raise CannotLift(f"{name_of(r.now)} by a mask that is computed", hint=hint)
    known = constants.named(mask.const.double(), r.trace.length, r.trace.batch)
    if known is None:
        raise CannotLift(f"{name_of(r.now)} by a mask other than of earlier or later tokens")
    value = Value(*known)
    if not isinstance(value.node, Masked) or value.node.fill != 0.0:
        if isinstance(value.node, Num):
            return ("all" if value.node.value else "none"), value
        raise CannotLift(f"{name_of(r.now)} by a mask other than of earlier or later tokens")
    return value.node.relation, value


def _where(r: Recogniser, mask: Any, a: Any, b: Any) -> Value:
    relation, value = _mask(r, mask)
    if relation in ("all", "none"):
        return r.whole(a if relation == "all" else b)
    for kept, other, negate in ((a, b, False), (b, a, True)):
        fill = _number(other)
        if fill in (0.0, -math.inf):
            if negate:
                relation = {"le": "gt", "lt": "ge", "ge": "lt", "gt": "le"}[relation]
            return _masked(r, kept, value, relation, fill)
    raise CannotLift(
        "a choice by a mask between two values", hint="0 or -inf may stand where it fails"
    )


def _number(value: Any) -> float | None:
    if isinstance(value, bool | int | float):
        number = float(value)
    elif isinstance(value, Value) and value.const is not None and value.const.numel():
        first = value.const.flatten()[0]
        if not bool((value.const == first).all()):
            return None
        number = float(first)
    else:
        return None
    return -math.inf if number <= -1e8 else number


def _masked(r: Recogniser, x: Any, mask: Value, relation: str, fill: float) -> Value:
    nodes, layout = r.broadcast.together([r.whole(x), Value(Num(num(1).value), mask.layout)])
    times = [f.variable for e in layout for f in e if hasattr(f, "variable")]
    own = [f.variable for e in mask.layout for f in e if hasattr(f, "variable")]
    if len(times) != 2:
        raise CannotLift("a mask of pairs of tokens on what is no value of pairs")
    node: Node = nodes[0]
    if isinstance(node, Masked) and node.relation == relation:
        node = node.arg
    if times != own:
        relation = MIRRORED[relation]
    return Value(Masked(node, relation, fill), layout)


def _masked_fill(r: Recogniser, x: Value, mask: Any, fill: Any) -> Value:
    return _where(r, mask, fill, x)


def _triangle(keep: str) -> Operation:
    def run(r: Recogniser, x: Value, diagonal: int = 0) -> Value:
        n = r.trace.length
        ones = torch.ones(n, n)
        kept = torch.tril(ones, diagonal) if keep == "tril" else torch.triu(ones, diagonal)
        relation, mask = _mask(r, Value(num(0), (), const=kept))
        if relation in ("all", "none"):
            raise CannotLift(f"{keep} that keeps {relation}")
        return _masked(r, x, mask, relation, 0.0)

    return run


# Dimensions


def _same(r: Recogniser, x: Value, *rest: Any, **options: Any) -> Value:
    return x


def _to(r: Recogniser, x: Value, *rest: Any, **options: Any) -> Value:
    dtype = r.now.meta["val"].dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        raise CannotLift(f"a value is rounded to {dtype}")
    return x


def _view(r: Recogniser, x: Value, *rest: Any, **options: Any) -> Value:
    return r.viewed(r.whole(x), r.shape)


def _permute(r: Recogniser, x: Value, dims: list[int]) -> Value:
    x = r.whole(x)
    return Value(x.node, tuple(x.layout[d] for d in dims))


def _transpose(r: Recogniser, x: Value, a: int, b: int) -> Value:
    x = r.whole(x)
    layout = list(x.layout)
    layout[a], layout[b] = layout[b], layout[a]
    return Value(x.node, tuple(layout))


def _t(r: Recogniser, x: Value) -> Value:
    return _transpose(r, x, 0, 1) if len(r.whole(x).layout) == 2 else x


def _movedim(r: Recogniser, x: Value, source: Any, target: Any) -> Value:
    x = r.whole(x)
    rank = len(x.layout)
    froms = [s % rank for s in (source if isinstance(source, list) else [source])]
    tos = [t % rank for t in (target if isinstance(target, list) else [target])]
    order = [d for d in range(rank) if d not in froms]
    for to, origin in sorted(zip(tos, froms, strict=True)):
        order.insert(to, origin)
    return _permute(r, x, order)


def _unsqueeze(r: Recogniser, x: Value, dim: int) -> Value:
    x = r.whole(x)
    at = dim % (len(x.layout) + 1)
    return Value(x.node, (*x.layout[:at], (), *x.layout[at:]))


def _squeeze(r: Recogniser, x: Value, dim: Any = None) -> Value:
    x = r.whole(x)
    dims = range(len(x.layout)) if dim is None else dim if isinstance(dim, list) else [dim]
    gone = {d % len(x.layout) for d in dims}
    kept = tuple(e for at, e in enumerate(x.layout) if at not in gone or resolved(e))
    return Value(x.node, kept)


def _expand(r: Recogniser, x: Value, sizes: list[int], **options: Any) -> Value:
    """A dimension that is expanded broadcasts in whatever reads it; its size is made of no axis."""
    x = r.whole(x)
    layout = ((),) * (len(r.shape) - len(x.layout)) + x.layout
    new: list[Entry] = []
    for wanted, entry in zip(r.shape, layout, strict=True):
        if resolved(entry) or wanted == 1:
            new.append(entry)
        else:
            new.append(_sized(r, wanted))
    return Value(x.node, tuple(new))


def _sized(r: Recogniser, wanted: int) -> Entry:
    if wanted == r.trace.batch:
        return (Batch(wanted),)
    if wanted == r.trace.length:
        return (Time(wanted),)
    return (Axis(wanted),)


def _expand_as(r: Recogniser, x: Value, other: Value) -> Value:
    return _expand(r, x, [])


def _in_place(plain: Operation) -> Operation:
    def run(r: Recogniser, x: Value, *rest: Any, **options: Any) -> Value:
        if isinstance(x, Value) and x.view is not None:
            hint = "assign the token, `out[:, t] = …`, once"
            raise CannotLift("a token of a tensor is changed in place", hint=hint)
        r.own(0)
        result: Value = plain(r, x, *rest, **options)
        r.replace(r.argument(0), result)
        return result

    return run


OPERATIONS: dict[str, Operation] = {
    **{n: _unary(n) for n in (
        "exp", "log", "log1p", "expm1", "sqrt", "abs", "sign", "sin", "cos", "tanh", "erf",
        "sigmoid", "relu", "silu", "neg", "conj")},
    "conj_physical": _unary("conj"), "_conj": _unary("conj"), "sgn": _unary("sign"),
    "real": _unary("Re"), "imag": _unary("Im"), "log_sigmoid": _unary("logsigmoid"),
    "special_expit": _unary("sigmoid"), "negative": _unary("neg"), "special_expm1": _unary("expm1"),
    "add": _binary("+"), "sub": _binary("-"), "mul": _binary("*"), "div": _binary("/"),
    "subtract": _binary("-"), "multiply": _binary("*"), "divide": _binary("/"),
    "true_divide": _binary("/"), "rsub": _rsub, "maximum": _binary("max"),
    "minimum": _binary("min"),
    "complex": _binary("cplx"), "pow": _pow, "square": _square, "rsqrt": _rsqrt, "exp2": _exp2,
    "reciprocal": _reciprocal, "log2": _log2, "tan": _tan, "addcmul": _addcmul, "addcdiv": _addcdiv,
    "lerp": _lerp, "gelu": _gelu, "softplus": _softplus, "elu": _elu, "leaky_relu": _leaky_relu,
    "clamp": _clamp, "clamp_min": _clamp, "clamp_max": lambda r, x, high: _clamp(r, x, None, high),
    "clip": _clamp, "hardtanh": _hardtanh, "relu6": _relu6, "logit": _logit, "glu": _glu,
    "polar": _polar, "view_as_complex": _view_as_complex, "where": _where,
    "masked_fill": _masked_fill, "tril": _triangle("tril"), "triu": _triangle("triu"),
    "contiguous": _same, "clone": _same, "detach": _same, "alias": _same, "to": _to,
    "_to_copy": _to, "type_as": _to, "resolve_conj": _same, "lift_fresh_copy": _same,
    "float": _to, "double": _to,
    "view": _view, "reshape": _view, "_unsafe_view": _view, "flatten": _view, "unflatten": _view,
    "view_as": _view, "permute": _permute, "transpose": _transpose, "swapaxes": _transpose,
    "t": _t, "numpy_T": _t, "mT": lambda r, x: _transpose(r, x, -2, -1), "movedim": _movedim,
    "unsqueeze": _unsqueeze, "squeeze": _squeeze, "expand": _expand, "expand_as": _expand_as,
    "broadcast_to": _expand,
    "conv1d": filters.conv1d,
    **reductions.OPERATIONS,
    **scans.OPERATIONS,
    **tokens.OPERATIONS,
}  # fmt: skip
OPERATIONS |= {
    f"{n}_": _in_place(OPERATIONS[n])
    for n in ("add", "sub", "mul", "div", "exp", "neg", "sigmoid", "tanh", "relu", "silu", "clamp",
              "clamp_min", "sqrt", "pow", "masked_fill", "squeeze", "unsqueeze", "tril", "triu")
}  # fmt: skip
