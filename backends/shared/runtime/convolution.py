"""Convolutions: the kernel of a diagonal Λ that is the same at every token."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from .chunks import _carry
from .fourier import _signal, _spectrum
from .numbers import _accumulator

_Powers = tuple[Tensor, Tensor]


def _series(weight: Tensor, powers: _Powers, length: int, *, real: bool = False) -> Tensor:
    """Returns Σ_n weight_n λ_n^l, or its real part, for l < T: `[..., C, N]` to `[..., C, T]`."""
    near, far = powers
    weight = weight.unsqueeze(-1) * far
    if real:
        weight = torch.cat((weight.real, -weight.imag), -2)
        near = torch.cat((near.real, near.imag), -2)
    rows = torch.einsum("GBACNF,GBACNR->GBACFR", weight, near)
    return rows.flatten(-2)[..., :length]


def _moments(x: Tensor, powers: _Powers) -> Tensor:
    """Returns Σ_l x_l λ_n^l: `[..., C, T]` to `[..., C, N]`."""
    near, far = powers
    size = near.shape[-1]
    x = F.pad(x, (0, far.shape[-1] * size - x.shape[-1])).unflatten(-1, (-1, size))
    sums = "GBACFR,GBACNR->GBACNF"
    if near.is_complex() and not x.is_complex():
        rows = torch.complex(torch.einsum(sums, x, near.real), torch.einsum(sums, x, near.imag))
    else:
        rows = torch.einsum(sums, x, near)
    return (rows * far).sum(-1)


def _stopped(
    run: Callable[..., tuple[Tensor, Tensor]],
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    S: Tensor,
    lengths: Tensor,
    chunk: int,
    modes: tuple[str, ...],
) -> Tensor:
    """The state after as many tokens as count.

    Those go to the end of their rows: zeros in front of them leave a state of 0 as it is.
    """
    at = torch.arange(v.shape[1], device=v.device) - v.shape[1] + lengths[:, None]
    moved = v.gather(1, at.clamp_min(0)[..., None].expand_as(v))
    moved = torch.where((at >= 0)[..., None], moved, 0)
    mode = "chunked" if "chunked" in modes else "recurrent"
    _, last = run(q, k, moved, g, torch.zeros_like(S), mode, chunk, True)
    return _power(g, lengths[:, None, None]) * S + last


def _powers(g: Tensor, length: int) -> _Powers:
    """Returns λ^r for r < R, and λ^(R f) for R f < length: l = R f + r takes two short tables."""
    size = max(min(length, 64), 1 << (math.isqrt(length) - 1).bit_length())
    return _table(g, size), _table(g * size, -(-length // size))


def _table(g: Tensor, count: int) -> Tensor:
    """Returns λ^i for i < count along a new last axis, twice as many with each product.

    In double precision, since a power errs by as many roundings as it has factors.
    """
    step = torch.exp(g.to(torch.promote_types(g.dtype, torch.float64))).unsqueeze(-1)
    table = torch.ones_like(step)
    while table.shape[-1] < count:
        table, step = torch.cat((table, table * step), -1), step * step
    return table[..., :count].to(g.dtype)


def _power(g: Tensor, steps: Tensor) -> Tensor:
    """Returns λ^steps; 1 for no step, also where λ is 0 and log λ minus infinity.

    In double precision, since the phase grows with the steps and so does what rounding it costs.
    """
    wide = g.to(torch.promote_types(g.dtype, torch.float64))
    log = torch.complex(wide.real * steps, wide.imag * steps) if g.is_complex() else wide * steps
    return torch.exp(torch.where(steps == 0, 0, log)).to(g.dtype)


# Inside an operator conjugates are made, not marked: compiled code runs it without the marks.
def _multiplier(kernel: Tensor, mode: str, *, back: bool = False) -> Tensor:
    """Returns the spectrum of a kernel, or its matrix; to go back, the adjoint."""
    if mode == "fft":
        if back:
            return _spectrum(kernel.conj_physical()).conj_physical_()
        return _spectrum(kernel)
    length = kernel.shape[-1]
    matrix = F.pad(kernel, (length - 1, 0)).unfold(-1, length, 1).flip(-1)
    return matrix.mT if back else matrix


def _convolve(kernel: Tensor, x: Tensor, mode: str) -> Tensor:
    """Returns Σ_j kernel_{i-j} x_j along the last axis."""
    if mode == "fft":
        return _signal(_spectrum(x).mul_(kernel), x.shape[-1], x.is_complex())
    return torch.einsum("GBACIJ,GBACJ->GBACI", kernel, x)


def _correlate(kernel: Tensor, later: Tensor, earlier: Tensor, mode: str) -> tuple[Tensor, Tensor]:
    """Returns Σ_i kernel_{i-j} later_i, and what `_lags` takes of later_i earlier_{i-l}."""
    if mode == "fft":
        pairs, spectrum = _spectrum(earlier.conj_physical()).conj_physical_(), _spectrum(later)
        pairs = pairs.mul_(spectrum).sum((1, 2), keepdim=True)
        return _signal(spectrum.mul_(kernel), later.shape[-1], later.is_complex()), pairs
    pairs = torch.einsum("GBACI,GBACJ->GCIJ", later, earlier)
    return torch.einsum("GBACIJ,GBACJ->GBACI", kernel, later), pairs


def _lags(pairs: Tensor, length: int, mode: str, is_complex: bool) -> Tensor:
    """Returns Σ_i later_i earlier_{i-l}, over the batch and all chunks too: `[G, 1, 1, C, T]`."""
    if mode == "fft":
        return _signal(pairs, length, is_complex)
    # Rows that are one entry longer each put the pairs of one lag below one another.
    skewed = F.pad(pairs.flip(-1), (0, length)).flatten(-2)[..., : length * (2 * length - 1)]
    sums: Tensor = skewed.unflatten(-1, (length, -1)).sum(-2)[..., length - 1 :]
    return sums[:, None, None]


def _shared_gradient(x: Tensor, shape: torch.Size) -> Tensor:
    """The gradient of what all channels share is the sum over them."""
    return x.sum(1, keepdim=True) if shape[1] == 1 else x


def _spread(x: Tensor, like: Tensor) -> Tensor:
    """Gives each sequence the constants of its group."""
    return x.repeat_interleave(like.shape[0] // x.shape[0], 0)


def _as_pairs(x: Tensor) -> Tensor:
    """Shows complex numbers as pairs of real ones, in the same memory."""
    return torch.view_as_real(x.resolve_conj()) if x.is_complex() else x


def _pairs_of_rows(x: Tensor, v: Tensor) -> Tensor:
    """Gives each row of the batch, and each channel, the constants that they share."""
    shared = x.shape[0] == 1
    x = x.expand(v.shape[0] if shared else -1, v.shape[-1], -1)
    return _as_pairs(x if shared else _spread(x, v))


def _pieces(v: Tensor, chunk: int) -> list[tuple[slice, int]]:
    """Cuts time into whole chunks and what is left, each with the length of its chunks."""
    length, whole = v.shape[1], v.shape[1] // chunk * chunk
    found = [(slice(0, whole), chunk), (slice(whole, length), length - whole)]
    return [(at, size) for at, size in found if at.start < at.stop and v.numel()]


def _batches(v: Tensor, block: int) -> list[slice]:
    """Cuts the batch into what is computed at once: arrays that are not mapped afresh each time."""
    step = max(block // v[0, 0].numel(), 1)
    return [slice(b, b + step) for b in range(0, v.shape[1], step)]


def _advance(
    drive: Tensor, S: Tensor, g: Tensor, length: int, mode: str, *, reverse: bool = False
) -> tuple[Tensor, Tensor]:
    """`_carry` over chunks of one length."""
    whole = _power(g, torch.tensor(length)).expand_as(drive)
    return _carry(drive, S, whole, mode, reverse=reverse)


def _cut(x: Tensor, chunk: int) -> Tensor:
    """Cuts time into A chunks of T: `[G, B, L, C]` to `[G, B, A, C, T]`."""
    x = x.unflatten(2, (-1, chunk)).mT
    return x.to(_accumulator(x.dtype), memory_format=torch.contiguous_format, copy=True)


def _paste(x: Tensor, out: Tensor) -> None:
    """Undoes `_cut`, into a piece of the output."""
    out.unflatten(2, (-1, x.shape[-1])).copy_(x.mT)
