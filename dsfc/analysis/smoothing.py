"""Over-smoothing: how alike a state makes its tokens, and the bound on that.

Write h_t = A_t h_{t-1} + Δ_t b_t for a channel, with the input factor Δ that its coupling to the
decay says. The bound, as corrected, is, of T tokens,

    max_{t,s} |h_t - h_s| ≤ (1 - A_min^{T-1}) (max_t b_t - min_t b_t),

if A ∈ [0, 1], Δ ≥ 0, A + Δ ≤ 1 and b takes no sign alone (min b ≤ 0 ≤ max b). A mixer with
another Δ is not covered; the report says how often that is.

Sharpness, for x of T tokens: E(x) = (T Σ‖x_i‖² - ‖Σ x_i‖²) / ((T - 1) Σ‖x_i‖²). It is 0 where
all tokens are equal, 1 where they are orthogonal, T / (T - 1) where their mean is 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsfc.analysis.point import Point
from dsfc.expr.build import ONE, add, div, mul, neg, num, power, prim, sub
from dsfc.expr.evaluate import canonical
from dsfc.expr.tree import Axis, Expr, Field
from dsfc.structure.ir import BlockStructure, Structure
from dsfc.system.evaluate import evaluate
from dsfc.system.ir import Block, CouplingKind, Direct, Output, System

Array = NDArray[Any]

ROUNDING = 1e-9
"""By how much a sum of two numbers may pass 1."""


@dataclass(frozen=True)
class Smoothing:
    """The measurements of one state.

    Attributes:
        state: its name.
        coupling: Δ as a function of the decay λ, as text.
        violations: the part of (token, channel) pairs at which A ∈ [0, 1], Δ ≥ 0, A + Δ ≤ 1 fails.
        one_sided: the part of channels whose b has one sign.
        attained: the largest part of the bound that a channel it holds for attains; None where it
            holds for none.
        covered: the part of channels that the bound holds for.
        sharpness: E of the state's tokens, and of the state less its mean.
    """

    state: str
    coupling: str
    violations: float
    one_sided: float
    attained: float | None
    covered: float
    sharpness: tuple[float, float]


def smoothing(system: System, structure: Structure, point: Point) -> tuple[Smoothing, ...]:
    """Returns what is measured of every state with a real diagonal transition.

    Args:
        system: the System.
        structure: what `classify` gave of it.
        point: sizes, parameters and tokens.
    """
    return tuple(
        _of(system, block, kind, point)
        for block, kind in zip(system.blocks, structure.blocks, strict=True)
        if kind.decay is not None and kind.cell.diagonal and block.field is Field.REAL
    )


def input_factor(kind: BlockStructure) -> Expr:
    """Returns Δ: the factor of a drive's key that is a function of the decay λ; 1 where free."""
    assert kind.decay is not None
    value, scale = kind.decay.value, kind.coupling.scale or ONE
    match kind.coupling.kind:
        case CouplingKind.EULER:
            return div(neg(kind.decay.log), scale)
        case CouplingKind.ZOH:
            return div(sub(value, ONE), scale)
        case CouplingKind.ONE_MINUS:
            return sub(ONE, value)
        case CouplingKind.SQRT_ONE_MINUS_SQ:
            return prim("sqrt", sub(ONE, power(value, num(2))))
        case CouplingKind.BILINEAR:
            return div(mul(add(ONE, value), scale), num(2))
    return ONE


def sharpness(values: Array) -> float:
    """Returns E of tokens `[T, …]`; 0 of tokens that are all 0.

    Raises:
        ValueError: there is one token alone.
    """
    rows = values.reshape(len(values), -1)
    count = len(rows)
    if count < 2:
        raise ValueError("sharpness compares two tokens at least")
    whole = float((np.abs(rows) ** 2).sum())
    if whole == 0:
        return 0.0
    shared = float((np.abs(rows.sum(axis=0)) ** 2).sum())
    return (count * whole - shared) / ((count - 1) * whole)


def bound(decays: Array, inputs: Array) -> Array:
    """Returns (1 - A_min^{T-1}) (max b - min b) of channels.

    Args:
        decays: A in [0, 1], `[T, channels]`.
        inputs: b, `[T, channels]`.
    """
    reach = inputs.max(axis=0) - inputs.min(axis=0)
    return np.asarray((1 - decays.min(axis=0) ** (len(decays) - 1)) * reach)


def _of(system: System, block: Block, kind: BlockStructure, point: Point) -> Smoothing:
    assert kind.decay is not None
    values = evaluate(system, point.inputs, point.params, point.sizes).states[block.state]
    states = values.reshape(point.tokens, -1)
    tokens = (point.tokens, *(point.sizes[a.name] for a in block.axes))
    decays, factors = (
        _expanded(_direct(system, e, point), canonical(e.axes), block.axes, tokens)
        for e in (kind.decay.value, input_factor(kind))
    )
    drives = _drives(system, block, point).reshape(point.tokens, -1)
    with np.errstate(divide="ignore", invalid="ignore"):
        inputs = np.where(drives == 0, 0.0, drives / factors)
    fits = (decays >= 0) & (decays <= 1) & (factors >= 0) & (decays + factors <= 1 + ROUNDING)
    both = (inputs.min(axis=0) <= 0) & (inputs.max(axis=0) >= 0) & np.isfinite(inputs).all(axis=0)
    held = fits.all(axis=0) & both
    attained = None
    if held.any():
        reach = states[:, held].max(axis=0) - states[:, held].min(axis=0)
        most = bound(decays[:, held], inputs[:, held])
        attained = float(np.divide(reach, most, out=np.zeros_like(most), where=most > 0).max())
    coupling = kind.coupling.kind
    return Smoothing(
        block.state,
        "1" if coupling is CouplingKind.FREE else coupling.value,
        float(1 - fits.mean()),
        float(1 - both.mean()),
        attained,
        float(held.mean()),
        (sharpness(states), sharpness(states - states.mean(axis=0))),
    )


def _direct(system: System, e: Expr, point: Point) -> Array:
    wanted = Output("value", Direct(e), canonical(e.axes), e.field)
    asked = replace(system, outputs=(wanted,))
    return evaluate(asked, point.inputs, point.params, point.sizes).outputs["value"]


def _expanded(
    values: Array, own: tuple[Axis, ...], axes: tuple[Axis, ...], shape: tuple[int, ...]
) -> Array:
    """Values of a state's axes, or of some of them, as `[T, channels]`."""
    kept = iter(values.shape[1:])
    spread = [next(kept) if a in own else 1 for a in axes]
    return np.broadcast_to(values.reshape(len(values), *spread), shape).reshape(len(values), -1)


def _drives(system: System, block: Block, point: Point) -> Array:
    """The drives of a state at each token, `[T, *axes]`."""
    asked = replace(
        system,
        stages=tuple(
            replace(s, blocks=tuple(_without_past(b) if b.state == block.state else b
                                    for b in s.blocks))
            for s in system.stages
        ),
    )  # fmt: skip
    return evaluate(asked, point.inputs, point.params, point.sizes).states[block.state]


def _without_past(block: Block) -> Block:
    return replace(block, chain=tuple(replace(f, terms=()) for f in block.chain))
