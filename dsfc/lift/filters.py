"""Filters along time: `conv1d`, by channel or over channels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dsfc.lift.axes import Layout, axes_of, resolved
from dsfc.lift.build import op
from dsfc.lift.failure import CannotLift
from dsfc.lift.ir import Fir, Node, Param
from dsfc.lift.reductions import product
from dsfc.lift.tokens import at_full_length, narrow
from dsfc.lift.values import Value, delayed, time_of

if TYPE_CHECKING:
    from dsfc.lift.recognise import Recogniser

_TAPS = 16
"""A filter over channels is written out with so many taps at most."""


def conv1d(
    r: Recogniser,
    x: Value,
    weight: Value,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Value:
    """`F.conv1d`, causal: padded in front, or on both sides and cut."""
    stride, dilation = _one(stride), _one(dilation)
    if stride != 1:
        raise CannotLift("a convolution that skips tokens (stride)")
    if isinstance(padding, str):
        raise CannotLift(f"a convolution with padding {padding!r}", hint=_AHEAD)
    x, weight = r.whole(x), r.whole(weight)
    if not isinstance(weight.node, Param):
        raise CannotLift("a convolution whose weight is no parameter")
    at = len(x.layout) - 1
    entry = resolved(x.layout[at])
    time = time_of(entry)
    if time is None or entry != (time,):
        raise CannotLift("a convolution along an axis", hint="conv1d takes [batch, channels, time]")
    taps = weight.layout[2]
    count = taps[0].size if taps else 1
    reach = (count - 1) * dilation
    out = replace(
        time, size=time.size + 2 * _one(padding) - reach, delay=time.delay + _one(padding) - reach
    )
    if out.size == r.trace.length and out.delay < 0:
        raise CannotLift("a convolution reads tokens to come", hint=_AHEAD)
    channels = 1
    for f in resolved(x.layout[-2]):
        channels *= f.size
    if groups == channels and weight.node.dims[0] and axes_of(weight.layout[0])[0].size == channels:
        node = _depthwise(r, x, weight, dilation)
        layout: Layout = x.layout
    elif groups == 1:
        node = _dense(r, x, weight, dilation, count)
        layout = (*x.layout[:-2], weight.layout[0], x.layout[-1])
    else:
        raise CannotLift(
            "a convolution of groups of channels", hint="groups = 1 or one per channel"
        )
    built = at_full_length(r, node, layout, at, out)
    if bias is None:
        return built
    bias = r.whole(bias)
    if any(t.delay > 0 for t in built.times):
        raise CannotLift("a convolution with bias reads beyond its padding")
    return r.elementwise("+", built, Value(bias.node, (*bias.layout, ())))


_AHEAD = "pad in front by (kernel_size - 1) * dilation tokens and nothing behind, or cut behind"


def _one(value: Any) -> int:
    return int(value[0] if isinstance(value, list | tuple) else value)


def _depthwise(r: Recogniser, x: Value, weight: Value, dilation: int) -> Node:
    assert isinstance(weight.node, Param)
    node = r.broadcast._paired(weight.node, x.layout[-2], weight.layout[0])
    if not weight.layout[2]:
        return op("*", node, x.node)
    if node is not weight.node:
        raise CannotLift("a convolution whose channels stand for two axes")
    (taps,) = axes_of(weight.layout[2])
    if dilation == 1:
        flipped = replace(weight.node, flipped=(2,))
        return Fir(flipped, x.node, taps)
    out: Node | None = None
    for lag in range(taps.size):
        part = narrow(weight.node, (taps,), taps.size - 1 - lag, (), 1)
        term = op("*", part, delayed(x.node, lag * dilation))
        out = term if out is None else op("+", out, term)
    assert out is not None
    return out


def _dense(r: Recogniser, x: Value, weight: Value, dilation: int, count: int) -> Node:
    if count > _TAPS:
        raise CannotLift(f"a convolution over channels with {count} taps; {_TAPS} are written out")
    out: Node | None = None
    for lag in range(count):
        part = weight.node
        if count > 1:
            part = narrow(weight.node, axes_of(weight.layout[2]), count - 1 - lag, (), 1)
        term = product(
            r, Value(delayed(x.node, lag * dilation), x.layout), "bct",
            Value(part, weight.layout[:2]), "oc", "bot",
        )  # fmt: skip
        out = term.node if out is None else op("+", out, term.node)
    assert out is not None
    return out
