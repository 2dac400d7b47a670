"""Operations along a dimension: parts of axes and of time, padding, sums over the past, filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from dsfc.lift import loops
from dsfc.lift.axes import Axis, Layout, Time, axes_of, resolved
from dsfc.lift.build import cumulative, num, op
from dsfc.lift.failure import CannotLift
from dsfc.lift.ir import (
    Along,
    Apply,
    Before,
    Contract,
    Fir,
    First,
    Input,
    Iota,
    Node,
    Now,
    Num,
    Ones,
    Op,
    Param,
    Reduce,
    Rename,
    State,
    Token,
    rebuilt,
)
from dsfc.lift.ir import axes as axes_below
from dsfc.lift.values import Value, delayed, filled, time_of, with_time

if TYPE_CHECKING:
    from dsfc.lift.recognise import Recogniser


def narrow(
    node: Node, axes: tuple[Axis, ...], first: int, fresh: tuple[Axis, ...], count: int
) -> Node:
    """Returns entries `first` … of a dimension of a node, along a fresh axis; none for one.

    Raises:
        CannotLift: they are not the entries of parameters alone.
    """

    def inside(child: Node) -> Node:
        return narrow(child, axes, first, fresh, count)

    if not set(axes) & set(axes_below(node, {})):
        return node
    match node:
        case Param(dims=dims):
            for at, dim in enumerate(dims):
                if axes_of(dim) == axes:
                    cut = (*node.cuts, (at, first, count))
                    return replace(
                        node, dims=(*dims[:at], fresh, *dims[at + 1 :]), cuts=cut, where=None
                    )
        case Iota(axis=axis) if axes_of((axis,)) == axes:
            start = num(first)
            if not fresh:
                return start
            return op("+", Iota(fresh[0]), start) if first else Iota(fresh[0])
        case Ones(axes=own):
            kept = tuple(a for a in axes_of(own) if a not in axes)
            return Ones((*kept, *fresh)) if (*kept, *fresh) else Num(num(1).value)
        case Apply(map=map_, arg=arg, target=target):
            if set(axes) <= set(axes_of(target)):
                part = inside(map_)
                assert isinstance(part, Param)
                rest = tuple(a for a in axes_of(target) if a not in axes)
                return Apply(part, arg, node.source, (*rest, *fresh), node.each)
            if not set(axes) & {*axes_of(node.source), *axes_of(node.each)}:
                return replace(node, arg=inside(arg))
        case Contract(axes=over) | Reduce(axes=over) if not set(axes) & set(axes_of(over)):
            return rebuilt(node, inside)
        case Along(axis=over) if not set(axes) & set(axes_of(over)):
            return rebuilt(node, inside)
        case Rename(new=new) if axes_of((new,)) != axes:
            return rebuilt(node, inside)
        case Op(name="*", args=args) if any(isinstance(a, Iota | Ones | Num) for a in args):
            return op("*", *map(inside, args))
        case Op():
            return rebuilt(node, inside)
        case Fir() | Token():
            return rebuilt(node, inside)
        case Input(name=name):
            hint = "make them arguments of their own, or projections"
            raise CannotLift(f"a part of the entries of the input {name}", hint=hint)
    if type(node).__name__ in ("Delay", "At", "Run", "Masked", "Past"):
        return rebuilt(node, inside)
    raise CannotLift("a part of the entries of a state or of a normalised value")


def _window(r: Recogniser, x: Value, at: int, first: int, count: int) -> Value:
    """Entries `first` … of a dimension."""
    entry = resolved(x.layout[at])
    time = time_of(entry)
    if time is None:
        axes = axes_of(entry)
        if len(axes) != len(entry) or not axes:
            raise CannotLift("a part of the batch")
        total = 1
        for a in axes:
            total *= a.size
        if count == total:
            return x
        fresh = (Axis(count),) if count > 1 else ()
        node = narrow(x.node, axes, first, fresh, count)
        return Value(node, (*x.layout[:at], fresh, *x.layout[at + 1 :]))
    if entry != (time,):
        raise CannotLift("a part of time in a dimension that holds the batch too")
    if len(x.times) > 1:
        raise CannotLift("a part of the tokens of a table of pairs")
    if count == 1 and time.size > 1:
        token = first - time.delay
        if not 0 <= token < r.trace.length:
            return Value(Num(num(0).value), (*x.layout[:at], (), *x.layout[at + 1 :]))
        node = x.node if isinstance(x.node, Num) else Token(x.node, token)
        return Value(node, (*x.layout[:at], (), *x.layout[at + 1 :]))
    return at_full_length(
        r, x.node, x.layout, at, replace(time, size=count, delay=time.delay - first)
    )


def at_full_length(r: Recogniser, node: Node, layout: Layout, at: int, time: Time) -> Value:
    """A value with another axis of tokens; one of full length that begins late is a delay."""
    if time.size == r.trace.length:
        if time.delay < 0:
            hint = "pad in front by one token less than there are taps"
            raise CannotLift("a value reads tokens to come", hint=hint)
        node, time = delayed(node, time.delay), replace(time, delay=0)
    entry = with_time(resolved(layout[at]), time)
    return Value(node, (*layout[:at], entry, *layout[at + 1 :]))


def select(r: Recogniser, x: Value, dim: int, index: int) -> Value:
    """`x.select(dim, index)`, or `x[:, index]`."""
    node = r.now.args[0] if r.now.args else None
    if x.tokens and index in x.tokens:
        return x.tokens[index]
    if x.tokens:
        at = dim % len(x.layout)
        rest = (*x.layout[:at], *x.layout[at + 1 :])
        assert isinstance(node, torch.fx.Node)
        return Value(Num(num(0).value), rest, view=(node, index % r.trace.length))
    x = r.whole(x)
    at, entry = r.entry(x, dim)
    total = 1
    for f in entry:
        total *= f.size
    index %= total
    built = _window(r, x, at, index, 1) if total > 1 else x
    out = Value(built.node, (*built.layout[:at], *built.layout[at + 1 :]))
    if time_of(entry) is not None and isinstance(node, torch.fx.Node):
        out.view = node, index
    return out


def slice_(
    r: Recogniser, x: Value, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Value:
    """`x[…, start:end]`."""
    node = r.now.args[0] if r.now.args else None
    x = x if x.tokens else r.whole(x)
    at = dim % len(x.layout)
    total = 1
    for f in resolved(x.layout[at]):
        total *= f.size
    first, last, step = slice(start, end, step).indices(total)
    if x.tokens and last - first == 1 and first in x.tokens:
        held = x.tokens[first]
        return Value(held.node, (*held.layout[:at], (), *held.layout[at:]))
    x = r.whole(x)
    if step != 1:
        raise CannotLift(f"a step of {step} through a dimension")
    if last - first == total:
        return x
    out = _window(r, x, at, first, last - first)
    if (
        time_of(resolved(x.layout[at])) is not None
        and last - first == 1
        and isinstance(node, torch.fx.Node)
    ):
        out.view = node, first
    return out


def split_into(r: Recogniser, x: Value, parts: int, dim: int) -> list[Value]:
    """Returns equal parts of a dimension."""
    x = r.whole(x)
    at, entry = r.entry(x, dim)
    total = 1
    for f in entry:
        total *= f.size
    each = -(-total // parts)
    return [_window(r, x, at, k, min(each, total - k)) for k in range(0, total, each)]


def _chunk(r: Recogniser, x: Value, parts: int, dim: int = 0) -> list[Value]:
    return split_into(r, x, parts, dim)


def _split(r: Recogniser, x: Value, sizes: Any, dim: int = 0) -> list[Value]:
    x = r.whole(x)
    at, entry = r.entry(x, dim)
    total = 1
    for f in entry:
        total *= f.size
    if isinstance(sizes, int):
        sizes = [min(sizes, total - k) for k in range(0, total, sizes)]
    out, first = [], 0
    for count in sizes:
        out.append(_window(r, x, at, first, count))
        first += count
    return out


def _unbind(r: Recogniser, x: Value, dim: int = 0) -> list[Value]:
    x = r.whole(x)
    at, entry = r.entry(x, dim)
    total = 1
    for f in entry:
        total *= f.size
    return [select(r, x, at, k) for k in range(total)]


def _narrow(r: Recogniser, x: Value, dim: int, start: int, count: int) -> Value:
    return slice_(r, x, dim, start, start + count)


def stack(r: Recogniser, values: Sequence[Any], dim: int = 0) -> Value:
    """`torch.stack`: of one value for each token, the outputs of a loop."""
    known = [r.whole(v) for v in values]
    at = dim % (len(known[0].layout) + 1)
    wide = [Value(v.node, (*v.layout[:at], (), *v.layout[at:])) for v in known]
    if len(values) != r.trace.length:
        return _joined_axis(r, wide, at)
    return _loop(r, wide, at)


def _loop(r: Recogniser, values: list[Value], at: int) -> Value:
    """One value for each token, side by side along a dimension of size 1."""
    nodes, layout = r.broadcast.together(values)
    if any(isinstance(f, Time) for e in layout for f in e):
        raise CannotLift("values of all tokens are stacked for each token")
    axes = tuple(f for e in layout for f in e if isinstance(f, Axis))
    nodes = [filled(n, axes) if isinstance(n, Num) else n for n in nodes]
    node = loops.stream(nodes)
    return Value(node, (*layout[:at], (Time(r.trace.length),), *layout[at + 1 :]))


def _joined_axis(r: Recogniser, values: list[Value], at: int) -> Value:
    """Values side by side along a new axis, by weights that are 1 at one of its entries."""
    if len(values) != 2:
        raise CannotLift(f"{len(values)} values side by side along an axis", hint=_CAT)
    nodes, layout = r.broadcast.together(values)
    axis = Axis(2)
    sides = [op("-", num(1), Iota(axis)), Iota(axis)]
    node = op("+", *(op("*", n, s) for n, s in zip(nodes, sides, strict=True)))
    return Value(node, (*layout[:at], (axis,), *layout[at + 1 :]))


_CAT = "apply a projection of its own to each, and add them up"


def cat(r: Recogniser, values: Sequence[Any], dim: int = 0) -> Value:
    """`torch.cat`: tokens side by side, or zeros in front of a stream."""
    if len(values) == 1:
        return r.whole(values[0])
    zeros = [
        isinstance(v, Value) and v.const is not None and not bool(v.const.any()) for v in values
    ]
    known = [v if z else r.whole(v) for v, z in zip(values, zeros, strict=True)]
    streams = [v for v, z in zip(known, zeros, strict=True) if not z]
    at = dim % len(streams[0].layout)
    entries = [resolved(v.layout[at]) for v in streams]
    if len(values) == r.trace.length and not any(entries):
        whole = [r.whole(v) for v in values]
        return _loop(r, [_flat(v, at) for v in whole], at)
    time = time_of(entries[0])
    if time is None or len(streams) != 1:
        raise CannotLift("values side by side along an axis or in time", hint=_CAT)
    place = zeros.index(False)
    before = sum(int(v.const.shape[at]) for v in known[:place] if v.const is not None)
    after = sum(int(v.const.shape[at]) for v in known[place + 1 :] if v.const is not None)
    return _padded(r, streams[0], at, before, after)


def _flat(value: Value, at: int) -> Value:
    return Value(value.node, (*value.layout[:at], (), *value.layout[at + 1 :]))


def _padded(r: Recogniser, x: Value, at: int, before: int, after: int) -> Value:
    time = time_of(resolved(x.layout[at]))
    if time is None or len(x.times) > 1:
        raise CannotLift("padding along an axis or of pairs of tokens")
    node = x.node
    if time.delay < 0 < before:
        if time.delay < -1:
            raise CannotLift("padding of a value whose first tokens are left out")
        node = op("*", node, op("-", num(1), First()))
    if isinstance(node, Num) and node.value:
        raise CannotLift("padding of a constant")
    moved = replace(time, size=time.size + before + after, delay=time.delay + before)
    return at_full_length(r, node, x.layout, at, moved)


def pad(r: Recogniser, x: Value, pads: list[int], mode: Any = "constant", value: Any = 0) -> Value:
    """`F.pad` with zeros, in time."""
    if isinstance(mode, int | float):
        mode, value = "constant", mode
    if mode != "constant" or value not in (0, None):
        raise CannotLift("padding with anything but 0")
    x = r.whole(x)
    for k in range(0, len(pads), 2):
        at = len(x.layout) - 1 - k // 2
        before, after = pads[k], pads[k + 1]
        total = 1
        for f in resolved(x.layout[at]):
            total *= f.size
        cut = -min(before, 0), total + min(after, 0)
        if cut != (0, total) and max(before, 0) == 0:
            x = _window(r, x, at, cut[0], cut[1] - cut[0])
            after = max(after, 0)
        elif cut[1] != total:
            time = time_of(resolved(x.layout[at]))
            if time is None:
                raise CannotLift("padding along an axis")
            moved = replace(time, size=time.size + before + after, delay=time.delay + before)
            x = at_full_length(r, x.node, x.layout, at, moved)
            continue
        if max(before, 0) or max(after, 0):
            x = _padded(r, x, at, max(before, 0), max(after, 0))
    return x


# Over the past


def _past(r: Recogniser, x: Value, dim: int, what: str) -> tuple[Value, tuple[Axis, ...]]:
    x = r.whole(x)
    _, entry = r.entry(x, dim)
    time = time_of(entry)
    if time is None:
        raise CannotLift(f"{what} along an axis")
    if len(x.times) > 1 or time.size != r.trace.length or time.delay:
        raise CannotLift(f"{what} over a part of the tokens")
    return x, x.axes


def cumsum(r: Recogniser, x: Value, dim: int, **options: Any) -> Value:
    """`x.cumsum(dim)`: a state that adds up."""
    x, axes = _past(r, x, dim, "cumsum")
    state = cumulative(filled(x.node, axes))
    state.axes, state.where = axes, r.lines.where(r.now)
    return Value(Now(state), x.layout)


def _cumprod(r: Recogniser, x: Value, dim: int, **options: Any) -> Value:
    x, axes = _past(r, x, dim, "cumprod")
    state = State(axes, start=Num(num(1).value), where=r.lines.where(r.now))
    state.update = op("*", filled(x.node, axes), Before(state))
    return Value(Now(state), x.layout)


def _cummax(r: Recogniser, x: Value, dim: int) -> list[Any]:
    x, axes = _past(r, x, dim, "cummax")
    state = State(axes, where=r.lines.where(r.now))
    state.update = op("max", Before(state), filled(x.node, axes))
    return [Value(Now(state), x.layout), None]


def _logcumsumexp(r: Recogniser, x: Value, dim: int) -> Value:
    return r.unary("log", cumsum(r, r.unary("exp", x), dim))


# In place


def copy_(r: Recogniser, target: Value, source: Any, *rest: Any) -> Value:
    """`out[:, t] = value`: a tensor that is filled token by token."""
    known = r.whole(source)
    if target.view is None:
        r.own(0)
        r.replace(r.argument(0), known)
        return known
    node, token = target.view
    base = r.stored(node)
    at = next(k for k, e in enumerate(_base_layout(r, base)) if time_of(e) is not None)
    value = known
    if len(value.layout) == len(_base_layout(r, base)):
        value = Value(value.node, (*value.layout[:at], *value.layout[at + 1 :]))
    return _fill(r, node, base, at, token, value)


def _base_layout(r: Recogniser, base: Value) -> Layout:
    return base.layout if base.tokens else r.whole(base).layout


def _fill(
    r: Recogniser, node: torch.fx.Node, base: Value, at: int, token: int, value: Value
) -> Value:
    if base.const is not None and bool(base.const.any()) and not base.tokens:
        raise CannotLift("a tensor that is filled token by token does not start from zeros")
    tokens = {**base.tokens, token: value}
    if len(tokens) == r.trace.length:
        built: Value = stack(r, [tokens[k] for k in range(r.trace.length)], at)
        r.replace(node, built)
        return built
    start = base
    filled_ = Value(Num(num(0).value), _base_layout(r, start), tokens=tokens)
    r.replace(node, filled_)
    return filled_


def _select_scatter(r: Recogniser, x: Value, value: Value, dim: int, index: int) -> Value:
    if time_of(resolved(_base_layout(r, x)[dim])) is None:
        raise CannotLift("an entry of an axis is assigned to")
    return _fill(r, r.now, x, dim, index % r.trace.length, r.whole(value))


OPERATIONS: dict[str, Any] = {
    "select": select, "slice": slice_, "chunk": _chunk, "split": _split, "split_with_sizes": _split,
    "unbind": _unbind, "narrow": _narrow, "stack": stack, "cat": cat, "concat": cat,
    "constant_pad_nd": pad, "pad": pad, "cumsum": cumsum, "cumprod": _cumprod, "cummax": _cummax,
    "logcumsumexp": _logcumsumexp, "copy_": copy_, "select_scatter": _select_scatter,
}  # fmt: skip
