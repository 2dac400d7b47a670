"""Softmax attention over all tokens."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .numbers import _accumulate


def _attention(q: Tensor, k: Tensor, v: Tensor, seen: Tensor, scale: float, mode: str) -> Tensor:
    """Σ_j w_j v_j / Σ_j w_j over the tokens seen up to each one, w_j = exp(scale · q · k_j).

    Args:
        q: `[B, L, h, n]`.
        k: `[B, T + L, h, n]`, the tokens before the first of q in front.
        v: `[B, T + L, h, p]`, so too.
        seen: `[B, T + L]`, 0 where no token is; of the last L, tokens that do not count are behind.
        scale: of scores.
        mode: `recurrent`, `parallel`, or `fused` and `auto`: PyTorch's fused attention.
    """
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    length, past = q.shape[2], k.shape[2] - q.shape[2]
    if mode == "recurrent" and length > 1:
        rows = []
        for i, q_i in enumerate(q.split(1, 2), past + 1):
            rows.append(_weighed(q_i, k[:, :, :i], v[:, :, :i], seen[:, :i], scale))
        out = torch.cat(rows, 2)
    elif mode == "parallel":
        queries, keys, values = _accumulate(q, k, v)
        scores = (scale * queries) @ keys.mT
        scores = scores.masked_fill(~_visible(seen, length), -torch.inf)
        out = (scores.softmax(-1) @ values).to(v.dtype)
    else:
        out = _weighed(q, k, v, seen, scale)
    return out.transpose(1, 2).contiguous()


def _weighed(q: Tensor, k: Tensor, v: Tensor, seen: Tensor, scale: float) -> Tensor:
    """PyTorch's fused attention; from an empty past without a mask, which is fastest."""
    if q.shape[2] == k.shape[2]:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale)
    visible = _visible(seen, q.shape[2])
    return F.scaled_dot_product_attention(q, k, v, attn_mask=visible, scale=scale)


def _visible(seen: Tensor, length: int) -> Tensor:
    """Whether each of the last tokens sees each of all, `[B, 1, L, T + L]`: itself always."""
    places = torch.arange(seen.shape[1], device=seen.device)
    before = places <= places[seen.shape[1] - length :, None]
    return (seen > 0.5)[:, None, None] & before
