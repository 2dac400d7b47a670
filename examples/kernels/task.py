"""SHIFT, CUMSUM and CUMMAX: two of them are convolutions, the third is not.

Regression on a sequence of L numbers, drawn from N(0, 1) and divided by the largest of them in
absolute value. Gupta et al. 2022 (DLR), section 3.1.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

SHIFTS = 8
"""C, the outputs of SHIFT."""

NAMES = ("shift", "cumsum", "cummax")


@dataclass(frozen=True, slots=True)
class Task:
    """One of the three, for one length.

    Attributes:
        name: `shift`, y_ij = x_{i - jL/8} for j = 0 … 7, and 0 before the start; `cumsum`,
            y_i = (i + 1)^(-1/2) Σ_{j≤i} x_j; `cummax`, y_i = max_{j≤i} x_j.
        length: L.
    """

    name: str
    length: int

    def __post_init__(self) -> None:
        """Refuses what is not defined.

        Raises:
            ValueError: an unknown name, or a length that the eight shifts do not divide.
        """
        if self.name not in NAMES:
            raise ValueError(f"task must be one of {', '.join(NAMES)}, got {self.name!r}")
        if self.length < 1 or self.length % SHIFTS:
            raise ValueError(f"length must be a multiple of {SHIFTS}, got {self.length}")

    @property
    def outputs(self) -> int:
        """C, numbers per position."""
        return SHIFTS if self.name == "shift" else 1

    def batch(self, size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Draws fresh sequences.

        Args:
            size: B, how many.
            generator: where the randomness comes from.

        Returns:
            x `[B, L]` and y `[B, L, C]`.
        """
        x = torch.randn(size, self.length, generator=generator)
        x = x / x.abs().amax(1, keepdim=True)
        return x, self.target(x)

    def target(self, x: Tensor) -> Tensor:
        """Returns y `[B, L, C]` of x `[B, L]`."""
        if self.name == "shift":
            return torch.stack([F.pad(x, (lag, 0))[:, : self.length] for lag in self._lags], -1)
        if self.name == "cumsum":
            return (x.cumsum(1) * self.scale)[..., None]
        return x.cummax(1).values[..., None]

    @property
    def scale(self) -> Tensor:
        """What the readout is multiplied by at each position, `[L]`: (i + 1)^(-1/2) for CUMSUM.

        The sum is a convolution, the factor is not. The paper leaves it to GELU and LayerNorm
        after the layer; a linear layer needs it given. For the other tasks it is 1.
        """
        positions = torch.arange(1, self.length + 1)
        return positions**-0.5 if self.name == "cumsum" else torch.ones(self.length)

    @property
    def kernel(self) -> Tensor | None:
        """The kernel `[L, C]` that is exact together with `scale`; None where there is none."""
        if self.name == "cummax":
            return None
        if self.name == "cumsum":
            return torch.ones(self.length, 1)
        return F.one_hot(torch.tensor(self._lags), self.length).T.float()

    @property
    def _lags(self) -> list[int]:
        return [j * self.length // SHIFTS for j in range(SHIFTS)]


def r_squared(prediction: Tensor, target: Tensor) -> float:
    """Returns 1 - MSE / variance, about the mean of the whole target; 1 is perfect, 0 the mean."""
    error = (prediction - target).square().mean()
    return 1 - float(error / (target - target.mean()).square().mean())


def best_convolution(x: Tensor, y: Tensor, scale: Tensor) -> tuple[float, Tensor]:
    """Fits y_i ≈ s_i Σ_l K_l x_{i-l} + m_i; no linear layer between two linear maps can do better.

    Signs of x are fair coins, so its elements are uncorrelated, and each K_l has its own formula:
    Σ_i s_i E[y_i x_{i-l}] / (E[x²] Σ_{i≥l} s_i²). The offset m_i is the mean at position i.

    Args:
        x: `[B, L]`; many more sequences than L.
        y: `[B, L, C]`.
        scale: s `[L]`.

    Returns:
        R² on these sequences, and K `[L, C]`.
    """
    size, length = x.shape
    x, y, scale = x.double(), y.double(), scale.double()
    offset = y.mean(0)
    weighted = (y - offset) * scale[:, None]
    past, out = torch.fft.rfft(x, 2 * length, dim=1), torch.fft.rfft(weighted, 2 * length, dim=1)
    agreement = torch.fft.irfft((out * past.conj()[..., None]).sum(0), dim=0)[:length]
    weight = size * scale.square().flip(0).cumsum(0).flip(0)
    kernel = agreement / (x.square().mean() * weight)[:, None]
    spectrum = torch.fft.rfft(kernel, 2 * length, dim=0)
    sums = torch.fft.irfft(past[..., None] * spectrum, dim=1)[:, :length]
    return r_squared(sums * scale[:, None] + offset, y), kernel.float()
