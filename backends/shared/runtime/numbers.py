"""Dtypes of sums and outputs, and casts between them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def _accumulator(dtype: torch.dtype) -> torch.dtype:
    """States and sums are kept in float32 at least."""
    return torch.promote_types(dtype, torch.float32)


def _as(x: Tensor, dtype: torch.dtype) -> Tensor:
    """A tensor in a dtype; one that has it costs no call of torch."""
    return x if x.dtype is dtype else x.to(dtype)


_WIDE = (torch.float32, torch.float64, torch.complex64, torch.complex128)


def _accumulate(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Casts tensors to the dtype of sums."""
    return tuple([x if x.dtype in _WIDE else x.to(_accumulator(x.dtype)) for x in tensors])


def _doubled(*tensors: Tensor) -> tuple[Tensor, ...]:
    """In double precision, where a sum loses digits that the definition keeps."""
    return tuple(_double(x) for x in tensors)


def _double(x: Tensor) -> Tensor:
    """In double precision, complex where it is complex."""
    return x.to(torch.promote_types(x.dtype, torch.float64))


def _conjugates(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The complex conjugates of tensors."""
    return tuple(x.conj_physical() for x in tensors)


def _widened(dtype: torch.dtype) -> torch.dtype:
    """The complex dtype of the same width."""
    return torch.promote_types(dtype, torch.complex64)


def _complex(parts: Tensor) -> Tensor:
    """A number from its two parts, at least in the accumulation dtype."""
    return torch.view_as_complex(parts.to(_accumulator(parts.dtype)))


def _but(kept: list[Tensor], fn: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A cast that leaves some tensors and their gradients in float32 at least."""
    kept = [*kept, *(x.grad for x in kept if x.grad is not None)]

    def cast(x: Tensor) -> Tensor:
        y = fn(x)
        wide = _accumulator(y.dtype)
        keep = y.dtype != wide and any(x is other for other in kept)
        return x.to(y.device, wide) if keep else y

    return cast


def _dtype(x: Tensor) -> torch.dtype:
    """The dtype of outputs: autocast's where it is on, else the input's."""
    return torch.get_autocast_dtype(x.device.type) if _autocast(x) else x.dtype


def _autocast(x: Tensor) -> bool:
    """Whether autocast is on where a tensor lives."""
    device = x.device.type
    return torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)
