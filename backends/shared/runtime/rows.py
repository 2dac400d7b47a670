"""Masks and packs: sequences of several lengths in one batch."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor


def _by_rows(
    mix: Callable[..., tuple[Tensor, ...]],
    inputs: tuple[Tensor, ...],
    states: tuple[Tensor, ...],
    mask: Tensor | None,
    cu_seqlens: Tensor | None,
) -> tuple[Tensor, ...]:
    """Mixes each sequence by itself, and puts outputs where tokens stand: 0 where none counts."""
    if mask is None and cu_seqlens is None:
        return mix(*inputs, *states)
    lead = inputs[0].shape[:2]
    total = lead[0] * lead[1]  # an exported program would fix a `numel` or `len`
    parts, places = [], []
    given = states
    for which, tokens, lengths in _rows(inputs[0], mask, cu_seqlens):
        taken = [x.flatten(0, 1).index_select(0, tokens.flatten()) for x in inputs]
        # Where no token counts in any row, none may be looked at, not even by a gradient.
        taken = [torch.where(lengths.any(), x.unflatten(0, tokens.shape), 0.5) for x in taken]
        # Fully masked rows compute on a filler token, whose outputs are zeroed: 0 / 0 would have
        # no gradient.
        some = lengths.clamp(min=min(1, tokens.shape[1]))
        y, *last = mix(*taken, *(x.index_select(0, which) for x in given), lengths=some)
        pairs = zip(states, last, strict=True)
        states = tuple(_replaced(x, which, new, lengths > 0) for x, new in pairs)
        parts.append(y.flatten(0, 1))
        places.append(torch.where(_counts(lengths, tokens), tokens, total).flatten())
    found, at = torch.cat((*parts, parts[0].new_zeros(1, *parts[0].shape[1:]))), torch.cat(places)
    source = at.new_full((total + 1,), at.shape[0])
    source = source.scatter(0, at, torch.arange(at.shape[0], device=at.device))[:total]
    return found.index_select(0, source).unflatten(0, lead), *states


def _rows(x: Tensor, mask: Tensor | None, cu_seqlens: Tensor | None) -> list[tuple[Tensor, ...]]:
    """Returns batches to mix: numbers of sequences `[R]`, tokens `[R, T]`, how many count `[R]`."""
    if mask is None:
        assert cu_seqlens is not None
        whole = cu_seqlens.ndim == 1 and not cu_seqlens.is_floating_point()
        ends = cu_seqlens.tolist() if whole else []
        rises = len(ends) > 1 and ends == sorted(ends)
        if len(x) != 1 or not rises or (ends[0], ends[-1]) != (0, x.shape[1]):
            want = f"rise in whole numbers from 0 to L = {x.shape[1]}, with a batch of 1"
            got = f"{cu_seqlens.tolist()} and a batch of {len(x)}"
            raise ValueError(f"cu_seqlens must {want}, got {got}")
        return _packed(ends, x.device)
    if cu_seqlens is not None:
        raise ValueError("give mask or cu_seqlens, not both: take masked tokens out of a pack")
    if mask.is_floating_point():
        raise ValueError("mask has fractions: give mask.bool(), or mask == 0 of one that is added")
    if mask.is_complex() or mask.shape != x.shape[:2] or mask.device != x.device:
        want = f"torch.bool, or 0 and 1, {list(x.shape[:2])} on {x.device}"
        got = f"{mask.dtype} {list(mask.shape)} on {mask.device}"
        raise ValueError(f"mask must be {want}, got {got}")
    mask = _truths(mask)
    # Tokens that count come to the front of their row, whose first fills the rest. A row of nothing
    # takes one of another row.
    lengths, numbers = mask.sum(1), torch.arange(mask.shape[0], device=mask.device)
    tokens = mask.int().argsort(dim=1, descending=True, stable=True)
    tokens = tokens + numbers[:, None] * mask.shape[1]
    filler = mask.flatten().int().argmax() if mask.numel() else lengths.new_zeros(())
    filler = torch.where(lengths[:, None] > 0, tokens[:, :1], filler)
    return [(numbers, torch.where(_counts(lengths, tokens), tokens, filler), lengths)]


def _truths(mask: Tensor) -> Tensor:
    """A mask of 0 and 1 as truth values; other numbers may be those of sequences: refused."""
    if mask.dtype == torch.bool:
        return mask
    fits = ((mask == 0) | (mask == 1)).all()
    if torch.compiler.is_compiling():  # a graph does not wait for the answer
        torch._assert_async(fits, "mask must hold 0 and 1")
    elif not fits:
        raise ValueError("mask must hold 0 and 1, got other numbers: a pack has cu_seqlens")
    return mask == 1


def _packed(ends: list[int], device: torch.device) -> list[tuple[Tensor, ...]]:
    """Sequences of like lengths side by side; the first token of each fills its row."""
    alike: dict[int, list[int]] = {}
    for n in range(len(ends) - 1):
        alike.setdefault((ends[n + 1] - ends[n]).bit_length(), []).append(n)
    rows: list[tuple[Tensor, ...]] = []
    for numbers in alike.values():
        which = torch.tensor(numbers, device=device)
        start, end = (torch.tensor(ends, device=device)[which + k] for k in (0, 1))
        longest = max(ends[n + 1] - ends[n] for n in numbers)
        tokens = start[:, None] + torch.arange(longest, device=device)
        tokens = torch.where(tokens < end[:, None], tokens, start[:, None])
        rows.append((which, tokens, end - start))
    return rows


def _sequences(x: Tensor, cu_seqlens: Tensor | None) -> int:
    """The number of sequences of a batch or of a pack."""
    return x.shape[0] if cu_seqlens is None else max(cu_seqlens.numel() - 1, 0)


def _replaced(x: Tensor, which: Tensor, new: Tensor, some: Tensor) -> Tensor:
    """Puts new states of some sequences among those of all; what is shorter gets 0 in front."""
    if x.shape[1:] != new.shape[1:]:
        longest = max(x.shape[1], new.shape[1])
        x, new = (F.pad(t, (0, 0) * (t.ndim - 2) + (longest - t.shape[1], 0)) for t in (x, new))
    x, some = x.to(new.dtype), some.reshape(-1, *(1,) * (x.ndim - 1))
    return x.index_copy(0, which, torch.where(some, new, x.index_select(0, which)))


def _counts(lengths: Tensor, x: Tensor) -> Tensor:
    """Whether a token of `[B, L, ...]` is one of the first, as many as `lengths` says."""
    return torch.arange(x.shape[1], device=x.device) < lengths[:, None]


def _kept(x: Tensor, counts: Tensor | None) -> Tensor:
    """0 at tokens that do not count: Λ = I where log Λ is 0, and B = 0."""
    if counts is None:
        return x
    return torch.where(counts.reshape(*counts.shape, *(1,) * (x.ndim - 2)), x, 0)
