"""Chunks of tokens: cutting time, carrying states from chunk to chunk, decays inside a chunk."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from .numbers import _accumulator


def _compose(decay: Tensor, drive: Tensor) -> Tensor:
    """Returns h_i = decay_i h_{i-1} + drive_i along the first axis, from 0, in log L rounds.

    Neighbours compose to one step, (decay₂ decay₁, decay₂ drive₁ + drive₂); the steps of pairs give
    every other state, and one more step of each the rest.
    """
    if len(drive) < 2:
        return drive
    even = len(drive) // 2 * 2
    pairs = drive[1:even:2] + decay[1:even:2] * drive[0:even:2]
    states = torch.empty_like(drive)
    states[0] = drive[0]
    states[1::2] = _compose(decay[1:even:2] * decay[0:even:2], pairs)
    states[2::2] = drive[2::2] + decay[2::2] * states[1:-1:2]
    return states


def _carry(
    drive: Tensor, S: Tensor, decay: Tensor | None, mode: str, *, reverse: bool = False
) -> tuple[Tensor, Tensor]:
    """Returns the states that enter the N chunks, stacked along axis 2, and the one that leaves.

    Args:
        drive: what each chunk adds to the state, N along axis 2; overwritten.
        S: the state that enters the first chunk (in reverse, the last).
        decay: over a whole chunk, N along axis 2; broadcasts against `drive`; None where all is
            kept.
        mode: `scan` composes all chunks in log N rounds, any other takes one after the other.
        reverse: whether to go from the last chunk to the first.
    """
    states, order = [S], slice(None, None, -1 if reverse else None)
    if decay is None:
        for drive_n in drive.unbind(2)[order]:
            states.append(drive_n.add_(states[-1]))
        return _entering(states, reverse)
    steps = list(zip(decay.unbind(2), drive.unbind(2), strict=True))[order]
    if mode == "scan":
        decays, drives = (torch.stack(x) for x in zip(*steps, strict=True))
        drives[0] += decays[0] * S
        states += _compose(decays, drives).unbind()
    else:
        for decay_n, drive_n in steps:
            states.append(drive_n.addcmul_(decay_n, states[-1]))
    return _entering(states, reverse)


def _entering(states: list[Tensor], reverse: bool) -> tuple[Tensor, Tensor]:
    """Returns all states but the last one in the order of time, stacked along axis 2, and it."""
    *past, S = states
    past = past[::-1] if reverse else past
    return torch.stack(past, 2) if len(past) > 1 else past[0].unsqueeze(2), S


def _pull_back(
    advance: Callable[[Tensor, slice], tuple[Tensor, Tensor]],
    retreat: Callable[[Tensor, Tensor, slice], Tensor],
    blocks: list[slice],
    S: Tensor,
    dS: Tensor,
) -> Tensor:
    """Goes back over blocks of time and returns the gradient of the first state.

    Few of the states between blocks are kept; those of one span of blocks are computed again.

    Args:
        advance: the state before a block → the states that enter its chunks, and the one behind it.
        retreat: the gradient of the state behind a block, the states that enter its chunks → the
            gradient of the state before the block.
        blocks: in the order of time.
        S: the first state.
        dS: the gradient of the last one.
    """
    starts, span = [S], max(int(len(blocks) ** 0.5), 1)
    for first in range(0, len(blocks) - span, span):
        for at in blocks[first : first + span]:
            _, S = advance(S, at)
        starts.append(S.clone())
    for first in reversed(range(0, len(blocks), span)):
        S, pasts = starts.pop(), []
        for at in blocks[first : first + span]:
            past, S = advance(S, at)
            pasts.append(past)
        for at in reversed(blocks[first : first + span]):
            dS = retreat(dS, pasts.pop(), at)
    return dS


def _blocks(v: Tensor, S: Tensor, chunk: int, mode: str, block: int) -> list[slice]:
    """Cuts time into blocks of chunks, small enough for the cache; `scan` takes all at once."""
    length, numbers = v.shape[1], S.shape[:2].numel() * max(S.shape[2:].numel(), chunk * chunk)
    size = max(length, 1) if mode == "scan" else chunk * max(block // max(numbers, 1), 1)
    return [slice(i, i + size) for i in range(0, length, size)]


def _split(x: Tensor, chunk: int) -> Tensor:
    """Cuts a block into N chunks of C, the rest filled with zeros: `[B, h, N, C, ...]`."""
    count = -(-x.shape[1] // chunk)
    if count * chunk != x.shape[1]:
        x = F.pad(x, (0, 0) * (x.ndim - 2) + (0, count * chunk - x.shape[1]))
    x = x.unflatten(1, (count, chunk)).movedim(3, 1)
    return x.to(_accumulator(x.dtype)).contiguous()


def _join(x: Tensor, out: Tensor) -> None:
    """Undoes `_split`, into a block of the output."""
    out.copy_(x.movedim(1, 3).flatten(1, 2)[:, : out.shape[1]])


def _turns(g: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Returns e^(iφ) and its conjugate, φ the phase from the chunk's start through each token.

    In double precision, since φ grows with the chunk and so does what rounding it costs. The phase
    from J to I is the difference of two: nothing is lost there, as nothing decays to zero.
    """
    if not g.is_complex():
        one = torch.ones_like(g)
        return one, one
    phase = g.imag.cumsum(dim, dtype=torch.float64)
    turn = torch.polar(torch.ones_like(phase), phase).to(g.dtype)
    return turn, turn.conj_physical()


def _decays_between(g: Tensor) -> Tensor:
    """Returns the decay from J to I of a chunk: `[..., I, J]`, 0 for J > I.

    It is the exponential of a sum of the steps in between, never of a difference of sums, so a
    step that forgets everything (minus infinity) is exact.
    """
    rates = g.real if g.is_complex() else g
    steps = rates.unsqueeze(-1).expand(*g.shape, g.shape[-1])
    pair = steps.tril(-1).cumsum_(-2).exp_().tril_()
    if not g.is_complex():
        return pair
    turn, back = (x.unsqueeze(-1) for x in _turns(g, -1))
    return pair * (turn * back.mT)


def _decays_around(g: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the decay from a chunk's start through I, and from I, left out, to its end."""
    rates = g.real if g.is_complex() else g
    after = F.pad(rates[..., 1:], (0, 1)).flip(-1).cumsum(-1).flip(-1)
    head, tail = rates.cumsum(-1).exp().unsqueeze(-1), after.exp().unsqueeze(-1)
    if not g.is_complex():
        return head, tail
    turn, back = (x.unsqueeze(-1) for x in _turns(g, -1))
    return head * turn, tail * turn[..., -1:, :] * back


def _straddle(pairs: Tensor, left: Tensor, right: Tensor, across: Tensor) -> Tensor:
    """Sums at each position what passes over it: what came before it and is read from it on.

    Args:
        pairs: `[..., I, J]`, from J to I inside the chunk.
        left: `[..., I]`, from before the chunk to I.
        right: `[..., I]`, from I to after the chunk.
        across: `[...]`, from before the chunk to after it.
    """
    size = pairs.shape[-1]
    later = pairs.new_ones(size, size).triu()
    inside = (later @ pairs).mul_(later.mT.tril(-1)).sum(-1)
    left = left.flip(-1).cumsum(-1).flip(-1)
    right = F.pad(right, (1, -1)).cumsum(-1)
    return inside + left + right + across.unsqueeze(-1)
