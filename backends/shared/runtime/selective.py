"""Scans that hold the states of one chunk of tokens at a time, `[C, B, ...]`."""

from __future__ import annotations

import torch
from torch import Tensor

from .chunks import _compose


def _scan_states(decay: Tensor, drive: Tensor, S: Tensor, mode: str) -> tuple[Tensor, Tensor]:
    """Returns the states h_i = decay_i h_{i-1} + drive_i, written over `drive`, and the last."""
    if mode == "scan":
        drive[0] += decay[0] * S
        drive = _compose(decay, drive)
        return drive, drive[-1].clone()
    for decay_i, drive_i in zip(decay.unbind(0), drive.unbind(0), strict=True):
        S = drive_i.addcmul_(decay_i, S)
    return drive, S.clone()


def _scan_states_back(decay: Tensor, drive: Tensor, S: Tensor, mode: str) -> tuple[Tensor, Tensor]:
    """Returns h_i = drive_i + decay_{i+1} h_{i+1}, written over `drive`, and decay_0 h_0."""
    if mode == "scan":
        drive[-1] += S
        drive = _compose(decay.roll(-1, 0).flip(0), drive.flip(0)).flip(0)
        return drive, decay[0] * drive[0]
    for decay_i, drive_i in zip(decay.unbind(0)[::-1], drive.unbind(0)[::-1], strict=True):
        S = decay_i * drive_i.add_(S)
    return drive, S


def _chunks_of(chunk: int, *tensors: Tensor) -> list[tuple[Tensor, ...]]:
    """Cuts tensors in time; nothing comes of an empty sequence."""
    return [x.split(chunk, 1) if x.shape[1] else () for x in tensors]


def _rejoined(chunks: list[Tensor], like: Tensor) -> Tensor:
    """Undoes `_chunks_of`, to the dtype of `like`."""
    return torch.cat(chunks, 1).to(like.dtype) if chunks else torch.zeros_like(like)
