"""Functions of tensors that torch lacks: primitives, sequences and steps of initialisers."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .numbers import _accumulator


def _linear(x: Tensor, weight: Tensor) -> Tensor:
    """Maps the last axis of x to all axes of a weight but its last."""
    rows = F.linear(x, weight.flatten(0, -2))
    return rows.view(*x.shape[:-1], *weight.shape[:-1])


def _exprel(x: Tensor) -> Tensor:
    """(e^x - 1) / x, and 1 at 0."""
    near = torch.abs(x) < torch.finfo(x.dtype).eps ** 0.25
    series: Tensor = 1 + x * (1 / 2) * (1 + x * (1 / 3) * (1 + x * (1 / 4)))
    return torch.where(near, series, torch.expm1(x) / (x + near))


def _legs_frequency(size: int, count: int, like: Tensor) -> Tensor:
    """The last frequencies ω of HiPPO-LegS, ascending: -1/2 + iω is its normal part."""
    a = torch.arange(0.5, size, dtype=torch.float64, device="cpu")
    omega: Tensor = torch.linalg.eigvalsh(1j * torch.outer(a, a).sqrt().tril(-1))
    return omega[-count:].to(like)


def _legs_low_rank(size: int, count: int, like: Tensor) -> Tensor:
    """P of HiPPO-LegS in the eigenvectors of its normal part, whose phases make it positive."""
    a = torch.arange(0.5, size, dtype=torch.float64, device="cpu")
    _, basis = torch.linalg.eigh(1j * torch.outer(a, a).sqrt().tril(-1))
    rank: Tensor = (basis.mH @ a.sqrt().to(basis.dtype)).abs()
    return rank[-count:].to(like)


def _l2norm(x: Tensor, dim: int) -> Tensor:
    """Divides x by max(‖x‖, ε), in float32 at least; ε is 1e-12, or the least normal number."""
    eps = max(1e-12, torch.finfo(x.dtype).tiny)
    return F.normalize(x.to(_accumulator(x.dtype)), dim=dim, eps=eps).to(x.dtype)


def _rmsnorm(x: Tensor, dim: int) -> Tensor:
    """√n x / max(‖x‖, ε), in float32 at least; ε is 1e-12, in float16 its least normal number."""
    eps = max(1e-12, torch.finfo(x.dtype).tiny)
    unit = F.normalize(x.to(_accumulator(x.dtype)), dim=dim, eps=eps)
    root: float = x.shape[dim] ** 0.5
    return (unit * root).to(x.dtype)


def _start_at(x: Tensor, value: Tensor) -> None:
    """Writes an initial value where `nn.init` writes: what a loader guards keeps its value."""
    nn.init.constant_(x, torch.nan)
    x.copy_(torch.where(x.isnan(), value.to(x), x))
