"""Decays of keys: blocks of 1, 2, 4, … tokens of a chunk, whose halves meet in the middle."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from .chunks import _turns


def _early(x: Tensor, size: int) -> Tensor:
    """The first halves of blocks of 2 · size tokens: a view `[..., M, size, n]`."""
    out: Tensor = x.unflatten(-2, (-1, 2, size))[..., 0, :, :]
    return out


def _late(x: Tensor, size: int) -> Tensor:
    """The second halves."""
    out: Tensor = x.unflatten(-2, (-1, 2, size))[..., 1, :, :]
    return out


def _corners(x: Tensor, size: int) -> Tensor:
    """The pairs (I of a block's second half, J of its first): a view `[..., size, size, M]`."""
    blocks = x.unflatten(-1, (-1, 2, size)).unflatten(-4, (-1, 2, size))
    out: Tensor = blocks[..., 1, :, :, 0, :].diagonal(dim1=-4, dim2=-2)
    return out


def _until(x: Tensor) -> Tensor:
    """Sums what is read at or after each position."""
    return x.flip(-2).cumsum(-2).flip(-2)


def _since(x: Tensor) -> Tensor:
    """Sums what was written before each position."""
    return F.pad(x, (0, 0, 1, -1)).cumsum(-2)


def _width(chunk: int, length: int) -> int:
    """Tokens per chunk: a power of two, so that it has halves."""
    return 1 << (min(chunk, max(length, 1)) - 1).bit_length()


def _levels(x: Tensor, y: Tensor, g: Tensor, whole: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Decays x from the start of each block through I, y from J, left out, to its end; in place.

    Blocks have 1, 2, 4, … C tokens: two that meet differ by one factor, the decay over the other.

    Args:
        x: decayed over the token I itself.
        y: not decayed yet.
        g: log of the decay.
        whole: the decay.

    Yields:
        The halves that meet, x of the later and y of the earlier one, views `[..., M, size, n]`.
    """
    while g.shape[-2] > 1:
        size = x.shape[-2] // g.shape[-2]
        late, early = _late(x, size), _early(y, size)
        yield late, early
        late *= whole[..., 0::2, None, :]
        early *= whole[..., 1::2, None, :]
        g = g[..., 0::2, :] + g[..., 1::2, :]
        whole = g.exp()


def _halves(g: Tensor) -> tuple[list[tuple[Tensor, Tensor]], Tensor, Tensor]:
    """Returns the decays from and to the middles of blocks, and those over the chunk, per key.

    Returns:
        halves: for blocks of 2, 4, … C tokens, the decay from the middle through I, for each I of
            the second half, and from J, left out, to the middle, for each J of the first; phases
            through I from the start, and from J back to it.
        head: `[..., C, n]`, from the start of the chunk through I.
        tail: `[..., C, n]`, from I, left out, to its end.
    """
    turned = g.is_complex()
    turn, back = _turns(g, -2) if turned else (g, g)
    rates = g.real if turned else g
    decay = rates.exp()
    head = turn * decay if turned else decay.clone()
    tail = back.clone() if turned else torch.ones_like(g)
    halves = [(late.clone(), early.clone()) for late, early in _levels(head, tail, rates, decay)]
    return halves, head, tail * turn[..., -1:, :] if turned else tail


def _tail(g: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the decay from I, left out, to the end of its chunk, and `[..., n, 1]` over it."""
    rates = g.real if g.is_complex() else g
    tail = _until(F.pad(rates[..., 1:, :], (0, 0, 0, 1))).exp()
    whole = rates.sum(-2).exp()
    if g.is_complex():
        turn, back = _turns(g, -2)
        last = turn[..., -1, :]
        tail, whole = tail * back * last.unsqueeze(-2), whole * last
    return tail, whole.unsqueeze(-1)


def _scores(q: Tensor, k: Tensor, g: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns Σ_n q_I k_J · decay from J to I inside each chunk, `[..., I, J]`, 0 for J > I.

    Returns:
        scores: those.
        q_head: `[..., C, n]`, q times the decay from the start of the chunk through I.
        k_tail: `[..., C, n]`, k times that from I, left out, to its end.
        whole: `[..., n, 1]`, the decay over the chunk.
    """
    turned = g.is_complex()
    turn, back = _turns(g, -2) if turned else (g, g)
    rates = g.real if turned else g
    decay = rates.exp()
    q_head = q * turn * decay if turned else q * decay
    k_tail = k * back if turned else k.clone()
    scores = q.new_zeros(*q.shape[:-1], q.shape[-2])
    scores.diagonal(dim1=-2, dim2=-1).copy_((q * k).sum(-1))
    for late, early in _levels(q_head, k_tail, rates, decay):
        pairs = late @ early.mT
        _corners(scores, late.shape[-2]).copy_(pairs.movedim(-3, -1))
    whole = rates.sum(-2).exp()
    if turned:
        k_tail, whole = k_tail * turn[..., -1:, :], whole * turn[..., -1, :]
    return scores, q_head, k_tail, whole.unsqueeze(-1)
