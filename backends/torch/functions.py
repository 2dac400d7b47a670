"""What an emitted module has as functions: what is too long for a line of its statements."""

from __future__ import annotations

import re

_EXPREL = '''\
def _exprel(x: Tensor) -> Tensor:
    """(e^x - 1) / x, and 1 at 0."""
    near = torch.abs(x) < torch.finfo(x.dtype).eps ** 0.25
    series = 1 + x * (1 / 2) * (1 + x * (1 / 3) * (1 + x * (1 / 4)))
    return torch.where(near, series, torch.expm1(x) / (x + near))'''

_LEGS_FREQUENCY = '''\
def _legs_frequency(size: int, count: int, like: Tensor) -> Tensor:
    """The last frequencies ω of HiPPO-LegS, ascending: -1/2 + iω is its normal part."""
    a = torch.arange(0.5, size, dtype=torch.float64, device="cpu")
    omega = torch.linalg.eigvalsh(1j * torch.outer(a, a).sqrt().tril(-1))
    return omega[-count:].to(like)'''

_LEGS_LOW_RANK = '''\
def _legs_low_rank(size: int, count: int, like: Tensor) -> Tensor:
    """P of HiPPO-LegS in the eigenvectors of its normal part, whose phases make it positive."""
    a = torch.arange(0.5, size, dtype=torch.float64, device="cpu")
    _, basis = torch.linalg.eigh(1j * torch.outer(a, a).sqrt().tril(-1))
    rank = (basis.mH @ a.sqrt().to(basis.dtype)).abs()
    return rank[-count:].to(like)'''

# transformers, for one, replaces the functions of `torch.nn.init` by such as skip loaded tensors.
_START_AT = '''\
def _start_at(x: Tensor, value: Tensor) -> None:
    """Writes an initial value where `nn.init` writes: what a loader guards keeps its value."""
    nn.init.constant_(x, torch.nan)
    x.copy_(torch.where(x.isnan(), value.to(x), x))'''

# The least that is divided by must be a number of the dtype, or gradients are infinite.
_L2NORM = '''\
def _l2norm(x: Tensor, dim: int) -> Tensor:
    """x / max(‖x‖, ε), in float32 at least; ε is 1e-12, in float16 its least normal number."""
    eps = max(1e-12, torch.finfo(x.dtype).tiny)
    return F.normalize(x.to(_accumulator(x.dtype)), dim=dim, eps=eps).to(x.dtype)'''

_RMSNORM = '''\
def _rmsnorm(x: Tensor, dim: int) -> Tensor:
    """√n x / max(‖x‖, ε), in float32 at least; ε is 1e-12, in float16 its least normal number."""
    eps = max(1e-12, torch.finfo(x.dtype).tiny)
    unit = F.normalize(x.to(_accumulator(x.dtype)), dim=dim, eps=eps)
    return (unit * x.shape[dim] ** 0.5).to(x.dtype)'''

FUNCTIONS = {
    "exprel": _EXPREL,
    "legs_frequency": _LEGS_FREQUENCY,
    "legs_low_rank": _LEGS_LOW_RANK,
    "l2norm": _L2NORM,
    "rmsnorm": _RMSNORM,
    "start_at": _START_AT,
}
"""Primitive, sequence or step of an initialiser → the text of its function."""


def called(name: str) -> str:
    """Returns the identifier of a function of the table."""
    return f"_{name}"


def functions_of(code: str) -> tuple[str, ...]:
    """Returns the texts of the functions that some code calls."""
    return tuple(
        text for name, text in FUNCTIONS.items() if re.search(rf"(?<!\w){called(name)}\(", code)
    )
