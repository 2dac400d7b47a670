"""Scans whose transition is a full matrix that is the same at every token."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from .fourier import _signal, _spectrum
from .numbers import _double


def _dense_tokens(x: Tensor, groups: int) -> Tensor:
    """Puts time in front and the batch behind: `[B, L, C, I]` to `[L, G, C, I, B / G]`."""
    out: Tensor = x.unflatten(0, (groups, -1)).permute(2, 0, 3, 4, 1)
    return out


def _dense_batch(x: Tensor) -> Tensor:
    """Undoes `_dense_tokens`."""
    return x.permute(1, 4, 0, 2, 3).flatten(0, 1)


def _dense_columns(x: Tensor, groups: int) -> Tensor:
    """Puts the batch of states behind: `[B, C, N]` to `[G, C, N, B / G]`."""
    out: Tensor = x.unflatten(0, (groups, -1)).permute(0, 2, 3, 1)
    return out


def _dense_states(x: Tensor) -> Tensor:
    """Undoes `_dense_columns`."""
    return x.permute(0, 3, 1, 2).flatten(0, 1)


def _dense_powers(a: Tensor, length: int) -> list[Tensor]:
    """Returns Λ^(2^j) for 2^j < length, and at least Λ."""
    step, powers = _double(a), [a]
    while len(powers) < (length - 1).bit_length():
        step = step @ step
        powers.append(step.to(a.dtype))
    return powers


def _dense_run(drive: Tensor, S: Tensor | None, powers: list[Tensor]) -> Tensor:
    """Returns h_i = Λ h_{i-1} + drive_i along the first axis, from S or 0, in log T rounds.

    After each round h_i has what the last 2^j tokens give: those before gave it to h_{i - 2^j}.
    """
    if S is not None:
        drive = torch.cat((drive[:1] + powers[0] @ S, drive[1:]))
    for j, power in enumerate(powers):
        shift = 1 << j
        if shift < len(drive):
            drive = torch.cat((drive[:shift], drive[shift:] + power @ drive[:-shift]))
    return drive


def _dense_stopped(
    run: Callable[..., tuple[Tensor, Tensor]],
    given: tuple[Tensor, ...],
    lengths: Tensor,
    chunk: int,
    modes: tuple[str, ...],
) -> Tensor:
    """The state after as many tokens as count.

    Those go to the end of their rows: zeros in front of them leave a state of 0 as it is.
    """
    *fixed, v, a, S = given
    at = torch.arange(v.shape[1], device=v.device) - v.shape[1] + lengths[:, None]
    moved = v.gather(1, at.clamp_min(0)[..., None, None].expand_as(v))
    moved = torch.where((at >= 0)[..., None, None], moved, 0)
    mode = "chunked" if "chunked" in modes else "recurrent"
    _, last = run(*fixed, moved, a, torch.zeros_like(S), mode, chunk)
    step, kept = _double(a), _double(S).unsqueeze(-1)
    for bit in range(v.shape[1].bit_length()):
        odd = ((lengths >> bit) & 1).bool()[:, None, None, None]
        kept, step = torch.where(odd, step @ kept, kept), step @ step
    return kept.squeeze(-1).to(S.dtype) + last


def _dense_power(a: Tensor, count: int) -> Tensor:
    """Returns Λ^count."""
    power: Tensor = torch.linalg.matrix_power(_double(a), count)
    return power.to(a.dtype)


def _dense_reach(k: Tensor, a: Tensor, count: int) -> Tensor:
    """Returns Λ^l k for l < count, side by side: twice as many with each product."""
    lead = torch.broadcast_shapes(k.shape[:2], a.shape[:2])
    table, step = _double(k).expand(*lead, *k.shape[2:]), _double(a)
    while table.shape[-1] < count * k.shape[-1]:
        table, step = torch.cat((table, step @ table), -1), step @ step
    return table[..., : count * k.shape[-1]].to(k.dtype)


def _dense_transformed(
    q: Tensor, k: Tensor, x: Tensor, a: Tensor, S: Tensor
) -> tuple[Tensor, Tensor]:
    """Returns outputs and last state by Fourier transforms: l = R f + r takes two short tables."""
    length = len(x)
    size = max(min(length, 64), 1 << (math.isqrt(length) - 1).bit_length())
    count, jump = -(-length // size), _dense_power(a, size)
    near = _dense_reach(q.mT, a.mT, size).mT
    kernel = (near @ _dense_reach(k, jump, count)).mT.flatten(-2)[..., :length]
    y = x.squeeze(-2).permute(1, 2, 3, 0)
    spectrum = _spectrum(y) * _spectrum(kernel.contiguous()).unsqueeze(-2)
    out = _signal(spectrum, length, y.is_complex())
    carried = (near @ _dense_reach(a @ S, jump, count)).unflatten(-1, (count, -1))
    out = out + carried.permute(0, 1, 4, 3, 2).flatten(-2)[..., :length]
    back = F.pad(y.flip(-1), (0, count * size - length)).unflatten(-1, (count, size))
    parts = torch.einsum("GCNR,GCBFR->FGCNB", _dense_reach(k, a, size), back)
    while len(parts) > 1:
        parts = torch.cat((parts, torch.zeros_like(parts[: len(parts) % 2])))
        parts, jump = parts[::2] + jump @ parts[1::2], jump @ jump
    return out.permute(3, 0, 1, 2).unsqueeze(-2), _dense_power(a, length) @ S + parts[0]
