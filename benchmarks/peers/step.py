"""One token of a mixer with matrix states, written by hand in plain PyTorch."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.contender import Contender, Tensors


def _token(decay: Tensor, q: Tensor, k: Tensor, v: Tensor, S: Tensor) -> tuple[Tensor, Tensor]:
    """The output `[B, H, V]` of one token, and the state `[B, H, K, V]` after it."""
    S = torch.addcmul(decay[..., None, None] * S, k.unsqueeze(-1), v.unsqueeze(-2))
    return (q.unsqueeze(-2) @ S).squeeze(-2) * q.shape[-1] ** -0.5, S


def _recurrence(x: Tensors) -> Tensor:
    """Arguments of one token, `[B, 1, ...]`, and the state before it, to the output."""
    q, k, v, g = (x[name].squeeze(1) for name in "qkvg")
    return _token(torch.exp(g), q, k, v, x["S"])[0].unsqueeze(1)


def _layer(x: Tensors) -> Tensor:
    """A token `[B, d]`, weights `[H, K, d]`, decays `[H]` and the state before, to the output."""
    q, k, v = (
        F.linear(x["u"], W.flatten(0, 1)).unflatten(-1, W.shape[:2])
        for W in (x["W_Q"], x["W_K"], x["W_V"])
    )
    return _token(x["gamma"], q, k, v, x["S"])[0]


_SOURCE = "plain torch, written here"
RECURRENCE = Contender("by hand", _SOURCE, _recurrence)
LAYER = Contender("by hand", _SOURCE, _layer)
