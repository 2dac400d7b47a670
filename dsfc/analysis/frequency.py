"""The frequency response of a mixer, and whether it is low-pass.

    H(e^{iθ}) = D + Σ_lag C_lag e^{-iθ lag} (1 - Λ e^{-iθ})^{-1} B,    gain |H| = σ_max(H)

of a mixer that does not vary in time, for the real part of what a complex state gives: half the sum
of H and of the H of the conjugate system. It is low-pass in the sense of the papers if no gain is
above that at θ = 0. That holds if no entry of its kernel is below 0, and not whenever Λ is real
and in (0, 1): two modes with weights of unlike signs may cancel at θ = 0.

What is measured is a transform of Φ itself: Σ_τ Φ_{t,t-τ} e^{-iθτ}, at the last tokens t. Of a
mixer that varies in time it is that of the coefficients at these tokens, and there is no other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsfc.analysis.kernel import Kernel, TokenMatrices

Array = NDArray[Any]

CLOSE = 1e-8
"""Largest relative difference of two kernels that are one up to rounding."""


@dataclass(frozen=True)
class Response:
    """Gains over frequencies.

    Attributes:
        angles: θ in [0, π].
        gains: σ_max of H at each θ.
        exact: whether from Λ, B, C, D; else from Φ, which ends with the sequence.
    """

    angles: Array
    gains: Array
    exact: bool

    @property
    def low_pass(self) -> bool:
        """Whether no computed gain is above that at θ = 0."""
        return bool((self.gains <= self.gains[0] * (1 + CLOSE)).all())

    @property
    def peak(self) -> float:
        """θ of the largest gain."""
        return float(self.angles[int(np.argmax(self.gains))])


def frequencies(count: int = 129) -> Array:
    """Returns angles evenly spread over [0, π]."""
    return np.linspace(0.0, np.pi, count)


def response(matrices: TokenMatrices, angles: Array) -> Response:
    """Returns the response of Λ, B, C, D that do not vary in time.

    Args:
        matrices: those of any token.
        angles: θ.
    """
    gains = []
    for theta in angles:
        z = np.exp(-1j * theta)
        try:
            sides = [_resolved(matrices, z), np.conj(_resolved(matrices, np.conj(z)))]
        except np.linalg.LinAlgError:  # a mode that forgets nothing, at its own frequency
            gains.append(float("inf"))
            continue
        gains.append(_gain(matrices.D + (sides[0] + sides[1]) / 2))
    return Response(angles, np.array(gains), True)


def _resolved(m: TokenMatrices, z: complex) -> Array:
    """Σ C z^lag (1 - Λ z)^{-1} B."""
    states = np.linalg.solve(np.eye(len(m.Lambda)) - z * m.Lambda, m.B.astype(complex))
    parts = [c @ states * z**lag for lag, c in m.C.items()]
    return np.asarray(sum(parts, np.zeros(m.D.shape, complex)))


def measured(kernel: Kernel, angles: Array, rows: int = 1) -> Response:
    """Returns the response of Φ at the last tokens, the mean of their gains.

    Args:
        kernel: Φ, of all tokens.
        angles: θ.
        rows: how many tokens.
    """
    length = len(kernel.values)
    gains = np.zeros(len(angles))
    for t in range(length - rows, length):
        lags = kernel.values[t, t::-1]
        turns = np.exp(-1j * np.outer(angles, np.arange(t + 1)))
        gains += [_gain(h) for h in np.tensordot(turns, lags, axes=1)]
    return Response(angles, gains / rows, False)


def time_invariant(kernel: Kernel) -> bool:
    """Returns whether Φ_{ij} of these tokens depends on i - j alone, up to rounding."""
    values = kernel.values
    scale = float(np.abs(values).max())
    return bool(np.allclose(values[1:, 1:], values[:-1, :-1], rtol=CLOSE, atol=CLOSE * scale))


def agrees(matrices: TokenMatrices, kernel: Kernel) -> bool:
    """Returns whether Λ, B, C, D give the first column of Φ: no token is read beside the state."""
    states = matrices.B.astype(complex)
    history = [np.zeros_like(states)]
    scale = float(np.abs(kernel.values).max())
    for k in range(len(kernel.values)):
        history.append(states)
        column = sum(
            (c @ history[k + 1 - lag] for lag, c in matrices.C.items() if k + 1 - lag >= 0),
            np.zeros(matrices.D.shape, complex),
        ).real + (matrices.D if k == 0 else 0)
        if not np.allclose(column, kernel.values[k, 0], rtol=CLOSE, atol=CLOSE * scale):
            return False
        states = matrices.Lambda @ states
    return True


def non_negative(kernel: Kernel) -> bool:
    """Returns whether no entry of Φ at these tokens is below 0, up to rounding."""
    return bool((kernel.values >= -CLOSE * np.abs(kernel.values).max()).all())


def _gain(h: Array) -> float:
    return float(np.linalg.norm(h, 2)) if h.size else 0.0
