"""The causal convolution by FFT, plainly: the kernel given, or first made from S4D's parameters."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.contender import Contender, Tensors


def convolve(u: Tensor, kernel: Tensor) -> Tensor:
    """Returns the causal convolution of signals with a kernel, through zero-padded real FFTs.

    Args:
        u: `[B, d, L]`.
        kernel: `[d, L]`.
    """
    size = 2 * u.shape[-1]
    spectrum = torch.fft.rfft(u, n=size) * torch.fft.rfft(kernel, n=size)
    y: Tensor = torch.fft.irfft(spectrum, n=size)[..., : u.shape[-1]]
    return y


def s4d_kernel(parameters: Tensors, length: int) -> Tensor:
    """Returns the kernel of S4D by zero-order hold, `[d, L]`, term by term (Gu et al. 2022, eq. 3).

    Args:
        parameters: as the module of `specs/s4d.dsf` stores them, `a`, `omega` `[d, N]`, `parts_B`
            and `parts_C` `[d, N, 2]`, `log_Delta` `[d]`.
        length: L.
    """
    pole = torch.complex(-torch.exp(parameters["a"]), parameters["omega"])
    exponent = torch.exp(parameters["log_Delta"])[:, None] * pole
    B, C = (torch.view_as_complex(parameters[name]) for name in ("parts_B", "parts_C"))
    weight = C * B * (torch.exp(exponent) - 1) / pole
    lags = torch.arange(length, dtype=exponent.real.dtype)
    powers = torch.exp(exponent[..., None] * lags)
    return 2 * torch.einsum("dn,dnl->dl", weight, powers).real


def _given(x: Tensors) -> Tensor:
    return convolve(x["u"], x["kernel"]) + x["D"][:, None] * x["u"]


def _made(x: Tensors) -> Tensor:
    kernel = s4d_kernel(x, x["u"].shape[-1])
    return convolve(x["u"], kernel) + x["D"][:, None] * x["u"]


_TIME_LAST = frozenset({"u", "y"})

KERNEL_GIVEN = Contender(
    "torch.fft, kernel given",
    "plain torch.fft, written here; it is given the kernel that the others make",
    _given,
    arguments=("u", "kernel", "D"),
    time_last=_TIME_LAST,
)
KERNEL_MADE = Contender(
    "torch.fft, kernel made",
    "plain torch.fft, written here; makes the kernel from the parameters, all terms at once",
    _made,
    arguments=("u", "a", "omega", "parts_B", "parts_C", "log_Delta", "D"),
    time_last=_TIME_LAST,
    context=True,
)
