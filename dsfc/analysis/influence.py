"""The influence of a token on an output, and what bounds it.

    I(t, s) = ‖∂y_t / ∂u_s‖, the Frobenius norm of a block of the Jacobian

It is the derivative of all there is: of coefficients that depend on tokens too, unlike Φ, which
holds them fixed. It comes from the adjoint of the System, run once for all cotangents.

The bound is that of the recency of state space models, as corrected. Of a mixer whose coefficients
at a token are functions of that token alone, |Λ| ≤ a < 1, for s < t,

    I(t, s) ≤ C_c a^{t-s} (C_{f'} + C_{Λ'} C_f / (1 - a)),

with a and the constants their largest values at the tokens looked at; so the logarithm of I falls
by at least log(1/a) a token, in the long run. a is given for those tokens, not for all parameters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsfc.analysis.point import Point
from dsfc.analysis.spectrum import Spectrum
from dsfc.analysis.widen import BASIS, widened
from dsfc.expr.tree import Expr
from dsfc.structure.ir import Structure
from dsfc.system.evaluate import evaluate
from dsfc.system.ir import System
from dsfc.transform.adjoint import adjoint

Array = NDArray[Any]

LARGEST = 20_000_000
"""Most numbers that the reversed states of all tokens may hold, for all cotangents together."""

FAINT = 1e-250
"""Influence below this is no number to take a logarithm of."""


@dataclass(frozen=True)
class Influence:
    """The influence of tokens on outputs.

    Attributes:
        rows: the tokens t of the outputs.
        values: I(t, s) as `[rows, s]`.
    """

    rows: tuple[int, ...]
    values: Array

    @property
    def by_distance(self) -> Array:
        """I(t, t - τ) of the last token t, by τ."""
        last = self.rows[-1]
        return np.asarray(self.values[-1, last::-1])


def rate(by_distance: Array) -> float | None:
    """Returns by how much log I falls a token: the slope of the line through log I(τ), τ ≥ 1.

    Args:
        by_distance: I by τ, from τ = 0 on.

    Returns:
        The rate; None where fewer than two tokens of the past have influence.
    """
    lags = np.flatnonzero(by_distance[1:] > FAINT) + 1
    if len(lags) < 2:
        return None
    return float(-np.polyfit(lags, np.log(by_distance[lags]), 1)[0])


class NoDerivative(ValueError):
    """The influence of a mixer has no numbers; the text says why, as a clause."""


def influence(system: System, point: Point, rows: tuple[int, ...]) -> Influence:
    """Returns the influence of every token on the outputs at some tokens.

    Args:
        system: the System.
        point: sizes, parameters and tokens.
        rows: the tokens of the outputs.

    Raises:
        NoDerivative: the System has no adjoint, or it needs too much room.
    """
    try:
        backward, record = adjoint(system, [t.name for t in system.inputs])
    except (TypeError, ValueError) as e:
        raise NoDerivative(f"its derivative is not known: {e}") from None
    names = dict(record.names)
    output = system.outputs[0]
    shape = [point.sizes[a.name] for a in output.axes]
    count = math.prod(shape)
    columns = count * len(rows)
    held = [math.prod(point.sizes[a.name] for a in b.axes) for b in system.blocks]
    room = point.tokens * columns * max((count, *held))
    if room > LARGEST:
        raise NoDerivative(f"it needs {room:,} numbers at these sizes, more than {LARGEST:,}")
    cotangents = np.zeros((point.tokens, count, columns))
    for row, t in enumerate(rows):
        cotangents[t, :, row * count : (row + 1) * count] = np.eye(count)
    seed = names[output.name]
    wide = widened(backward, (seed,))
    wide = replace(wide, outputs=tuple(o for o in wide.outputs if BASIS in o.axes))
    values = evaluate(
        wide,
        {**point.inputs, seed: cotangents.reshape(point.tokens, *shape, columns)},
        point.params,
        {**point.sizes, BASIS.name: columns},
    )
    squares = np.zeros((point.tokens, len(rows)))
    for declared in system.inputs:
        gradient = values.outputs.get(names[declared.name])
        if gradient is None:
            continue  # nothing reads it
        by_row = gradient.reshape(point.tokens, -1, len(rows), count)
        squares += (np.abs(by_row) ** 2).sum(axis=(1, 3))
    return Influence(rows, np.sqrt(squares).T)


def unbounded(system: System, structure: Structure, spectra: tuple[Spectrum, ...]) -> str | None:
    """Returns why the bound says nothing of a mixer, as a clause; None where it holds.

    Args:
        system: the System.
        structure: what `classify` gave of it.
        spectra: of its states, at the tokens looked at.
    """
    a = slowest(spectra)
    if a is None:
        return "it has no state"
    if not structure.causal:
        return "it reads tokens to come"
    if not all(b.cell.diagonal for b in structure.blocks):
        return "its Λ is not diagonal, and the bound takes |λ| for the norm of Λ"
    if structure.filters:
        return "it reads earlier tokens beside its state"
    if any(not isinstance(s.value, Expr) for s in system.streams):
        return "its coefficients read states, and so earlier tokens"
    if a >= 1:
        return "its largest |λ| is not below 1, so it need not forget"
    return None


def slowest(spectra: tuple[Spectrum, ...]) -> float | None:
    """Returns a of the bound: the largest |λ| of the lowered spectra; None without a state."""
    sizes = [float(np.abs(s.values).max()) for s in spectra if not s.paper]
    return max(sizes) if sizes else None
