"""Tensors that depend on no parameter and no input: computed in the trace, then given a formula."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import torch

from dsfc.lift.axes import Axis, Batch, Factor, Layout, Time
from dsfc.lift.build import num, op, position
from dsfc.lift.ir import Iota, Lag, Masked, Node, Num
from dsfc.lift.values import Value

_TOLERANCE = 1e-12

_CREATES = {
    "zeros",
    "ones",
    "full",
    "arange",
    "eye",
    "empty",
    "scalar_tensor",
    "linspace",
    "tril_indices",
}
_LIKE = {
    "zeros_like",
    "ones_like",
    "new_zeros",
    "new_ones",
    "new_full",
    "full_like",
    "empty_like",
    "new_empty",
}


def is_mask(tensor: torch.Tensor) -> bool:
    """Returns whether a buffer is a table of 0, 1 and -inf, or of whole numbers."""
    if not tensor.is_floating_point() and not tensor.is_complex():
        return True
    values = set(tensor.flatten()[:65536].tolist()) if tensor.ndim > 1 else {2.0}
    return not tensor.is_complex() and values <= {0.0, 1.0, -math.inf}


def foldable(node: torch.fx.Node, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Returns whether an operation has constants alone for arguments."""
    name = str(getattr(node.target, "_overloadpacket", "")).removeprefix("aten.")
    if name in _LIKE or name in _CREATES:
        return True
    values = list(_values([*args, *kwargs.values()]))
    return bool(values) and all(v.const is not None and not v.tokens for v in values)


def fold(node: torch.fx.Node, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Returns the constant that an operation of constants is."""
    name = str(getattr(node.target, "_overloadpacket", "")).removeprefix("aten.")
    shape = tuple(int(s) for s in getattr(node.meta.get("val"), "shape", ()))
    if name in _LIKE or name == "empty":
        dtype = node.meta["val"].dtype
        fill = {"zeros_like": 0, "new_zeros": 0, "ones_like": 1, "new_ones": 1}.get(name, 0)
        if name in ("full_like", "new_full"):
            fill = _plain(args[-1])
        return Value(num(0), (), const=torch.full(shape, fill, dtype=dtype), maker=node)
    target: Any = node.target
    result = target(*map(_plain, args), **{k: _plain(v) for k, v in kwargs.items()})
    if isinstance(result, torch.Tensor):
        return Value(num(0), (), const=result.clone(), maker=node)
    if isinstance(result, list | tuple):
        return [Value(num(0), (), const=r.clone(), maker=None) for r in result]
    return result


def _plain(value: Any) -> Any:
    if isinstance(value, Value):
        assert value.const is not None
        return value.const
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, torch.device):
        return torch.device("cpu")
    return value


def _values(args: Sequence[Any]) -> list[Value]:
    out: list[Value] = []
    for a in args:
        if isinstance(a, Value):
            out.append(a)
        elif isinstance(a, list):
            out += _values(a)
    return out


def named(tensor: torch.Tensor, length: int, batch: int) -> tuple[Node, Layout] | None:
    """Returns the node and the layout of a constant, None where no formula is known.

    Args:
        tensor: the constant.
        length: number of tokens of the trace: dimensions of that size are tokens.
        batch: number of sequences of the trace.
    """
    layout = _layout(tensor.shape, length, batch)
    values = tensor.detach()
    if values.is_complex():
        if bool(values.imag.any()):
            return None
        values = values.real
    values = values.double()
    for at, entry in enumerate(layout):
        if entry and isinstance(entry[0], Batch):
            if not torch.equal(values, values.narrow(at, 0, 1).expand_as(values)):
                return None
            values = values.narrow(at, 0, 1)
    plain = values.flatten()
    if plain.numel() and bool((plain == plain[0]).all()) and math.isfinite(float(plain[0])):
        own = tuple(f for e in layout for f in e if isinstance(f, Axis))
        return replace(num(float(plain[0])), axes=own), layout
    moving = [at for at in range(values.ndim)
              if not torch.equal(values, values.narrow(at, 0, 1).expand_as(values))]  # fmt: skip
    table = values
    for at in reversed(range(values.ndim)):
        if at not in moving:
            table = table.select(at, 0)
    factors = [layout[at][0] for at in moving]
    node: Node | None = None
    if len(factors) == 2 and all(isinstance(f, Time) for f in factors):
        node = _pairs(table)
    elif len(factors) == 1 and isinstance(factors[0], Time):
        line = _line(table)
        if line is not None:
            node = _affine(position(), *line)
    elif len(factors) == 1:
        assert isinstance(factors[0], Axis)
        node = along(table, factors[0])
    if node is None:
        return None
    return node, layout


def _layout(shape: Sequence[int], length: int, batch: int) -> Layout:
    out: list[tuple[Factor, ...]] = []
    variable = 0
    for s in shape:
        if s == length:
            out.append((Time(s, variable),))
            variable += 1
        elif s == batch:
            out.append((Batch(s),))
        else:
            out.append((Axis(s),) if s > 1 else ())
    return tuple(out)


def _line(values: torch.Tensor) -> tuple[float, float] | None:
    """The slope and the first of values on a line."""
    first = float(values[0])
    slope = (float(values[-1]) - first) / (len(values) - 1)
    wanted = first + slope * torch.arange(len(values), dtype=torch.float64)
    close = torch.allclose(values, wanted, rtol=_TOLERANCE, atol=_TOLERANCE)
    return (slope, first) if close else None


def _affine(base: Node, slope: float, first: float) -> Node:
    if slope == -1:
        return op("-", num(first), base) if first else op("neg", base)
    node = base if slope == 1 else op("*", num(slope), base)
    return node if first == 0 else op("+", node, num(first))


def along(values: torch.Tensor, axis: Axis) -> Node | None:
    """Returns the formula of values along an axis: a line, a power of a line, or 1 less one."""
    line = _line(values)
    if line is not None:
        return _affine(Iota(axis), *line)
    forms: list[tuple[Callable[[torch.Tensor], torch.Tensor], Callable[[Node], Node]]] = [
        (lambda v: v, lambda n: n),
        (lambda v: 1 - v, lambda n: op("-", num(1), n)),
        (lambda v: 1 / v, lambda n: op("/", num(1), n)),
        (lambda v: -v, lambda n: op("neg", n)),
    ]
    for undo, redo in forms:
        shown = undo(values)
        if bool((shown > 0).all()):
            powers = _line(torch.log2(shown))
            if powers is not None:
                slope, first = powers
                return redo(_geometric(axis, slope, first))
        if bool((values > 0).all()):
            inner = _line(torch.exp(values))
            if inner is not None:
                return op("log", _affine(Iota(axis), round(inner[0], 9), round(inner[1], 9)))
    return None


def _geometric(axis: Axis, slope: float, first: float) -> Node:
    """2^(first + slope * iota), with a base that makes the exponent simple."""
    rounded = (round(slope, 9), round(first, 9))
    if all(Fraction(v).limit_denominator(64) == Fraction(repr(v)) for v in rounded):
        return op("^", num(2), _affine(Iota(axis), *rounded))
    base = num(2.0**slope)
    scale = num(2.0**first)
    power = op("^", base, Iota(axis))
    return power if scale.value == 1 else op("*", scale, power)


def _pairs(table: torch.Tensor) -> Node | None:
    """A mask of pairs of tokens, or what is linear in the lag up to the present token."""
    size = table.shape[0]
    at = torch.arange(size)
    lag = (at[:, None] - at[None, :]).double()
    relations = {"le": lag >= 0, "lt": lag > 0, "ge": lag <= 0, "gt": lag < 0}
    for fill in (0.0, -math.inf):
        inside = 1.0 if fill == 0.0 else 0.0
        for relation, holds in relations.items():
            wanted = torch.where(holds, inside, fill)
            if torch.equal(table, wanted):
                return Masked(Num(Fraction(int(inside))), relation, fill)
    causal = lag >= 0
    slope = float(table[1, 0] - table[0, 0])
    first = float(table[0, 0])
    wanted = first + slope * lag
    if torch.allclose(table[causal], wanted[causal], rtol=_TOLERANCE, atol=_TOLERANCE):
        line = _affine(Lag(), slope, first)
        outside = table[~causal]
        if bool((outside == -math.inf).all()):
            return Masked(line, "le", -math.inf)
        return line
    for inner in (0.0,):
        if bool((table[~causal] == inner).all()) and bool((table[causal] > 0).all()):
            powers = torch.log(table)
            step = float(powers[1, 0] - powers[0, 0])
            wanted = float(powers[0, 0]) + step * lag
            if torch.allclose(powers[causal], wanted[causal], rtol=_TOLERANCE, atol=1e-12):
                base = op("^", num(float(table[1, 0] / table[0, 0])), Lag())
                return Masked(op("*", num(float(table[0, 0])), base), "le", 0.0)
    if bool((table > 0).all()):
        powers = torch.log(table)
        step = float(powers[1, 0] - powers[0, 0])
        if torch.allclose(powers, float(powers[0, 0]) + step * lag, rtol=_TOLERANCE, atol=1e-12):
            return op(
                "*", num(float(table[0, 0])), op("^", num(float(table[1, 0] / table[0, 0])), Lag())
            )
    return None
