"""Fourier transforms of causal sequences."""

from __future__ import annotations

import torch
from torch import Tensor


def _spectrum(x: Tensor) -> Tensor:
    """The Fourier transform of x followed by as many zeros, so that nothing wraps around."""
    size = 2 * x.shape[-1]
    spectrum: Tensor = torch.fft.fft(x, size) if x.is_complex() else torch.fft.rfft(x, size)
    return spectrum


def _signal(x: Tensor, length: int, is_complex: bool) -> Tensor:
    """Undoes `_spectrum`."""
    signal: Tensor = torch.fft.ifft(x, 2 * length) if is_complex else torch.fft.irfft(x, 2 * length)
    return signal.narrow(-1, 0, length)
