"""Scans without keys: the state is the output."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .chunks import _compose


def _scan(
    drive: Tensor,
    S: Tensor,
    decay: Tensor,
    chunk: int,
    mode: str,
    block: int,
    *,
    reverse: bool = False,
) -> tuple[Tensor, Tensor]:
    """Returns the states `[B, L, ...]` and what leaves the last.

    Forwards h_i = decay_i h_{i-1} + drive_i; backwards h_i = drive_i + decay_{i+1} h_{i+1}, so that
    what enters a step is not yet decayed, and what leaves it is.
    """
    length, order = drive.shape[1], slice(None, None, -1 if reverse else 1)
    if mode == "scan" and length:  # all tokens compose in log L rounds
        drive, decay = drive.transpose(0, 1), decay.transpose(0, 1)
        if reverse:
            drive = drive.flip(0)
            drive[0] += S
            states = _compose(decay.roll(-1, 0).flip(0), drive).flip(0)
            return states.transpose(0, 1), decay[0] * states[0]
        drive = drive.clone()
        drive[0] += decay[0] * S
        states = _compose(decay, drive)
        return states.transpose(0, 1), states[-1]
    states = drive.new_empty(drive.shape)
    whole, step = length - length % chunk, chunk * max(block // max(S.numel(), 1), 1)
    spans = [(slice(i, min(i + step, whole)), chunk) for i in range(0, whole, step)]
    if whole < length:
        spans.append((slice(whole, length), length - whole))
    for at, size in spans[order]:
        parts = (x[:, at].unflatten(1, (-1, size)).movedim(2, 0) for x in (drive, decay, states))
        drives, decays, rows = parts
        S = _scan_span(drives, decays, rows, S, order)
    return states, S


def _scan_span(drive: Tensor, decay: Tensor, states: Tensor, S: Tensor, order: slice) -> Tensor:
    """Fills in the states of chunks side by side, `[C, B, N, ...]`; returns what leaves them."""
    drives, decays, rows = (x.unbind(0)[order] for x in (drive, decay, states))
    reverse = order.step < 0
    weights = (torch.ones_like(decays[0]), *decays[:-1]) if reverse else decays
    end = torch.zeros_like(drives[0])
    for weight_i, drive_i in zip(weights, drives, strict=True):
        end = torch.addcmul(drive_i, weight_i, end)
    end = decays[-1] * end if reverse else end
    starts = []
    for decay_n, end_n in list(zip(decay.prod(0).unbind(1), end.unbind(1), strict=True))[order]:
        starts.append(S)
        S = torch.addcmul(end_n, decay_n, S)
    x = torch.stack(starts[order], 1)
    for weight_i, drive_i, row in zip(weights, drives, rows, strict=True):
        x = torch.addcmul(drive_i, weight_i, x, out=row)
    return S


def _running_sum(drive: Tensor, S: Tensor, *, reverse: bool = False) -> tuple[Tensor, Tensor]:
    """Returns the running sums from the state on, and the last."""
    sums = drive.flip(0).cumsum(0).flip(0) if reverse else drive.cumsum(0)
    ends = (sums[0] if reverse else sums[-1]).unbind(1)
    starts = []
    for end in reversed(ends) if reverse else ends:
        starts.append(S)
        S = S + end
    entering = torch.stack(starts[::-1] if reverse else starts, 1)
    return sums + entering, S


def _side_by_side(x: Tensor, chunk: int) -> Tensor:
    """Cuts time into N chunks of C, the rest filled with zeros: a copy `[C, B, N, ...]`."""
    length = x.shape[1]
    count = max(-(-length // chunk), 1)
    padded = F.pad(x, (0, 0) * (x.ndim - 2) + (0, count * chunk - length))
    x = padded.unflatten(1, (count, chunk)).movedim(2, 0)
    return x.clone(memory_format=torch.contiguous_format)


def _in_line(x: Tensor, like: Tensor) -> Tensor:
    """Undoes `_side_by_side`, to the shape and dtype of `like`."""
    return x.movedim(0, 2).flatten(1, 2)[:, : like.shape[1]].to(like.dtype)
