"""Tokens of a sequence: filters, reversal, stacks."""

from __future__ import annotations

import torch
from torch import Tensor

from .numbers import _as

_EACH = "recurrent, each state"
"""The mode that gives the state after every token, `[L · B, ...]`: the rows of the first first."""


def _fir(x: Tensor, weight: Tensor, dim: int, start: int) -> Tensor:
    """Σ over r of weight[r] · x[i - r], r along `dim` of the weight; token 0 stands at `start`."""
    length = x.shape[1] - start
    first, *others = weight.unbind(dim)
    total = first * x.narrow(1, start, length)
    for r, w in enumerate(others, 1):
        total = total + w * x.narrow(1, start - r, length)
    return total


def _reversed(x: Tensor, lengths: Tensor | None) -> Tensor:
    """The tokens that count, the last one first; the others stay behind them."""
    if lengths is None:
        return x.flip(1)
    at = torch.arange(x.shape[1], device=x.device)
    at = torch.where(at < lengths[:, None], lengths[:, None] - 1 - at, at)
    return x.gather(1, at.reshape(*at.shape, *(1,) * (x.ndim - 2)).expand_as(x))


def _last(x: Tensor, like: Tensor, lengths: Tensor | None, mode: str) -> Tensor:
    """The last that count, as many as `like` has: a copy, a view would keep all of x alive."""
    if mode == _EACH:
        size = like.shape[1]
        windows = [x[:, i : i + size] for i in range(1, x.shape[1] - size + 1)]
        return torch.cat(windows).to(like.dtype)
    if lengths is None:
        return x[:, x.shape[1] - like.shape[1] :].to(like.dtype, copy=True)
    at = lengths[:, None] + torch.arange(like.shape[1], device=x.device)
    at = at.reshape(*at.shape, *(1,) * (x.ndim - 2)).expand(-1, -1, *x.shape[2:])
    return x.gather(1, at).to(like.dtype)


def _every(x: Tensor, like: Tensor, lengths: Tensor | None) -> Tensor:
    """All that count, the last one at the end, and 0 in front where none is."""
    if lengths is None:
        return x.to(like.dtype)
    left_out = x.shape[1] - like.shape[1] - lengths
    at = torch.arange(x.shape[1], device=x.device) - left_out[:, None]
    at = at.reshape(*at.shape, *(1,) * (x.ndim - 2))
    kept = x.gather(1, at.clamp(min=0).expand_as(x)).to(like.dtype)
    return torch.where(at >= 0, kept, 0)


def _stack(rows: list[Tensor], like: Tensor) -> Tensor:
    """The rows over time, in the dtype of a tensor; zeros like it where there are none."""
    if len(rows) == 1:
        return _as(rows[0].unsqueeze(1), like.dtype)
    return torch.stack(rows, 1).to(like.dtype) if rows else torch.zeros_like(like)


def _in_time(rows: list[Tensor], like: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The rows over time; an empty sequence for none."""
    return torch.stack(rows, 1) if rows else like.new_zeros(like.shape[0], 0, *axes)
