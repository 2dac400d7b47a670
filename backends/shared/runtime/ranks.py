"""A sequence that several processes share: each has a segment, and states go from one to the next.

What crosses from one process to another has the size of the state. A segment takes the state before
it to that after it, h → Λ̄ h + b̄, and these compose: (Λ₂Λ₁, Λ₂b₁ + b₂), the law of scans. Where no
such summary is known, states go from each process to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .numbers import _accumulator
from .rows import _by_rows
from .sequences import _last
from .summaries import _Summary


@dataclass(frozen=True)
class _Ranks:
    """The processes that share a sequence.

    Attributes:
        group: of processes, in the order of their segments.
        empty: `[B]`, whether no token of a row counts; None where all have some.
        pack: None where each row is one sequence in all segments. Of a pack there are two rows: the
            first is of a sequence that an earlier segment may have begun, the second of one that
            goes on in the next. Which segment begins the first, or None where this one does, and
            whether it goes on in the next one.
    """

    group: Any
    empty: Tensor | None = None
    pack: tuple[int | None, bool] | None = None

    @property
    def rank(self) -> int:
        """Number of this process in the group."""
        return torch.distributed.get_rank(self.group)

    @property
    def begins(self) -> bool:
        """Whether the rows that leave this segment begin in it."""
        return self.rank == 0 if self.pack is None else not self.pack[1]

    def neighbour(self, step: int) -> int | None:
        """Returns the process so many segments later; None where there is none."""
        at = self.rank + step
        if not 0 <= at < torch.distributed.get_world_size(self.group):
            return None
        return torch.distributed.get_global_rank(self.group, at)

    def start(self, S: Tensor) -> Tensor:
        """Returns the values before the first segment of the rows that cross."""
        return S if self.pack is None else S[:1]

    def folded(self, parts: Tensor, step: Callable[[Tensor, Tensor | None], Tensor]) -> Any:
        """Returns the value that arrives here; None where the first row starts here.

        Args:
            parts: what each process gave.
            step: part and what is before its segment → what is after it; None is before one that
                begins the row.
        """
        first = 0 if self.pack is None else self.pack[0]
        state = None
        for at in range(self.rank if first is None else first, self.rank):
            state = step(parts[at], state)
        return state

    def entering(self, arrived: Tensor | None, S: Tensor) -> Tensor:
        """Returns the start of each row: the value that arrived, or S where the row starts here."""
        if arrived is None:
            return S
        return arrived if self.pack is None else torch.cat((arrived, S[1:]))

    def leaving(self, new: Tensor) -> Tensor:
        """Returns the rows that cross at the end of this segment."""
        if self.pack is None:
            return new
        return new[:1] if self.pack[1] else new[1:]

    def kept(self, new: Tensor, old: Tensor) -> Tensor:
        """Returns the new values, and the old ones in rows without a token."""
        if self.empty is None:
            return new
        return torch.where(self.empty.reshape(-1, *(1,) * (new.ndim - 1)), old, new)


class _Gathered(torch.autograd.Function):
    """All-gather: each process gives a part, and its gradient goes back to it.

    `kept` comes out as it is: what uses it makes every process take part in the way back.
    """

    @staticmethod
    def forward(ctx: Any, group: Any, part: Tensor, kept: Tensor) -> tuple[Tensor, Tensor]:
        ctx.group = group
        parts = [torch.empty_like(part) for _ in range(torch.distributed.get_world_size(group))]
        torch.distributed.all_gather(parts, part, group)
        return torch.stack(parts), kept.view_as(kept)

    @staticmethod
    def backward(ctx: Any, parts: Tensor, kept: Tensor) -> tuple[Tensor | None, ...]:
        own = torch.empty_like(parts[0])
        torch.distributed.reduce_scatter(own, [*parts.contiguous()], group=ctx.group)
        return None, own, kept


class _Received(torch.autograd.Function):
    """Receive: the process before sends the value; the first process keeps its own."""

    @staticmethod
    def forward(ctx: Any, source: int | None, group: Any, initial: Tensor, *_: Tensor) -> Tensor:
        ctx.source, ctx.group, ctx.others = source, group, len(_)
        if source is None:
            return initial.view_as(initial)
        arrived = torch.empty_like(initial)
        torch.distributed.recv(arrived, source, group)
        return arrived

    @staticmethod
    def backward(ctx: Any, bar: Tensor) -> tuple[Tensor | None, ...]:
        if ctx.source is not None:
            torch.distributed.send(bar.contiguous(), ctx.source, ctx.group)
            bar = torch.zeros_like(bar)
        return None, None, bar, *(None,) * ctx.others


class _Sent(torch.autograd.Function):
    """Send: the next process receives the value; all other tensors go out as they came in."""

    @staticmethod
    def forward(ctx: Any, target: int | None, group: Any, last: Tensor, *outs: Tensor) -> Any:
        ctx.target, ctx.group, ctx.like = target, group, last
        if target is not None:
            torch.distributed.send(last, target, group)
        return tuple(x.view_as(x) for x in outs)

    @staticmethod
    def backward(ctx: Any, *bars: Tensor) -> tuple[Tensor | None, ...]:
        bar = torch.zeros_like(ctx.like)
        if ctx.target is not None:
            torch.distributed.recv(bar, ctx.target, ctx.group)
        return None, None, bar, *bars


def _as_numbers(*tensors: Tensor) -> Tensor:
    """The numbers of some tensors, one after the other."""
    real = (torch.view_as_real(x.resolve_conj()) if x.is_complex() else x for x in tensors)
    flat = [x.flatten() for x in real]
    dtype = flat[0].dtype
    for x in flat:
        dtype = torch.promote_types(dtype, x.dtype)
    return torch.cat([x.to(dtype) for x in flat])


def _apart(flat: Tensor, *likes: Tensor) -> tuple[Tensor, ...]:
    """Undoes `_as_numbers`."""
    sizes = [x.numel() * (2 if x.is_complex() else 1) for x in likes]
    parts = []
    for part, like in zip(flat.split(sizes), likes, strict=True):
        if like.is_complex():
            part = torch.complex(part[::2], part[1::2])
        parts.append(part.reshape(like.shape).to(like.dtype))
    return tuple(parts)


def _arrived(ranks: _Ranks | None, summary: _Summary, S: Tensor) -> Tensor:
    """The state before this segment, from the summaries of those before it.

    Args:
        ranks: who shares the sequence; None where nobody does.
        summary: of this segment.
        S: `[B, ...]`, the state before the first segment, or of a row that starts in this one.
    """
    if ranks is None:
        return S
    law, through = summary
    whole, last = through(torch.full_like(S, law.zero))
    whole = whole.expand(S.shape[0], *whole.shape[1:])
    whole = ranks.kept(whole, law.one(whole))
    last = ranks.kept(last, torch.full_like(last, law.zero))
    if ranks.begins:
        last = law.total(law.product(whole, S), last)
    whole, last = ranks.leaving(whole), ranks.leaving(last)
    # PyTorch leaves `apply` untyped.
    parts, S = _Gathered.apply(ranks.group, _as_numbers(whole, last), S)  # type: ignore[no-untyped-call]

    def step(part: Tensor, state: Tensor | None) -> Tensor:
        moved, added = _apart(part, whole, last)
        return added if state is None else law.total(law.product(moved, state), added)

    return ranks.entering(ranks.folded(parts, step), S)


def _tokens_before(ranks: _Ranks | None, x: Tensor, past: Tensor, lengths: Tensor | None) -> Tensor:
    """The values of a buffer before this segment, as many as the register `past` has.

    Args:
        ranks: who shares the sequence; None where nobody does.
        x: `[B, L, ...]`, the values of this segment.
        past: `[B, K, ...]`, those before the first segment, or of a row that starts in this one.
        lengths: `[B]`, how many tokens of each row count; all if None.
    """
    if ranks is None:
        return past
    size = past.shape[1]
    own = _last(torch.cat((past.to(x.dtype), x), 1), past, lengths, "")
    count = past.new_full(past.shape[:1], x.shape[1], dtype=torch.long)
    count = ranks.kept(count if lengths is None else lengths, torch.zeros_like(count))
    own = ranks.kept(own, past)
    own, moved = ranks.leaving(own), ranks.leaving(count.clamp(max=size))
    moved = moved.to(_accumulator(own.real.dtype))
    # PyTorch leaves `apply` untyped.
    parts, past = _Gathered.apply(  # type: ignore[no-untyped-call]
        ranks.group, _as_numbers(own, moved), past
    )

    def step(part: Tensor, tail: Tensor | None) -> Tensor:
        one, shift = _apart(part, own, moved)
        if tail is None:
            return one
        at = torch.arange(size, device=one.device) + shift.long()[:, None]
        at = torch.where(at < size, at, torch.arange(size, 2 * size, device=one.device))
        both = torch.cat((tail, one), 1)
        return both.gather(1, at.reshape(*at.shape, *(1,) * (one.ndim - 2)).expand_as(one))

    return ranks.entering(ranks.folded(parts, step), past)


def _received(
    ranks: _Ranks | None, states: tuple[Tensor, ...], others: Iterable[Tensor]
) -> tuple[Tensor, ...]:
    """The states before this segment, from the process before.

    Args:
        ranks: who shares the sequence; None where nobody does.
        states: before the first segment, or of rows that start in this one.
        others: what the states after this segment are made of besides.
    """
    if ranks is None:
        return states
    starts = tuple(map(ranks.start, states))
    some = (x for x in others if x.requires_grad)
    # PyTorch leaves `apply` untyped.
    flat = _Received.apply(  # type: ignore[no-untyped-call]
        ranks.neighbour(-1), ranks.group, _as_numbers(*starts), *some
    )
    arrived = _apart(flat, *starts)
    if ranks.pack is not None and ranks.pack[0] is None:
        # All take part in the way back.
        arrived = tuple(
            torch.where(torch.ones_like(x, dtype=torch.bool), x, y)
            for x, y in zip(starts, arrived, strict=True)
        )
    return tuple(map(ranks.entering, arrived, states))


def _sent(
    ranks: _Ranks | None,
    before: tuple[Tensor, ...],
    states: tuple[Tensor, ...],
    outs: tuple[Tensor, ...],
) -> tuple[Tensor, ...]:
    """Sends the states after this segment to the next process; returns what was read, and them.

    Args:
        ranks: who shares the sequence; None where nobody does.
        before: the states before this segment.
        states: those after it.
        outs: what was read.
    """
    if ranks is None:
        return *outs, *states
    states = tuple(map(ranks.kept, states, before))
    leaving = map(ranks.leaving, states)
    # PyTorch leaves `apply` untyped.
    whole: tuple[Tensor, ...] = _Sent.apply(  # type: ignore[no-untyped-call]
        ranks.neighbour(1), ranks.group, _as_numbers(*leaving), *outs, *states
    )
    return whole


def _by_ranks(
    by: Callable[..., tuple[Tensor, ...]],
    mix: Callable[..., tuple[Tensor, ...]],
    group: Any,
    inputs: tuple[Tensor, ...],
    states: tuple[Tensor, ...],
    mask: Tensor | None,
    cu_seqlens: Tensor | None,
) -> tuple[Tensor, ...]:
    """Mixes a segment of each sequence, or of a pack; nothing is shared without a group.

    Args:
        by: what mixes where nothing is shared.
        mix: of a batch of sequences.
        group: the processes, in the order of their segments.
        inputs: `[B, L, ...]`.
        states: `[N, ...]`, before the first token.
        mask: as in `forward`.
        cu_seqlens: as in `forward`.

    Raises:
        ValueError: of a mode that goes token by token.
    """
    if group is None:
        return by(mix, inputs, states, mask, cu_seqlens)
    if by is not _by_rows:
        raise ValueError("mode exact goes from token to token: no group shares a sequence in it")
    if cu_seqlens is None:
        ranks = _Ranks(group, None if mask is None else ~mask.any(1))
        return _by_rows(partial(mix, ranks=ranks), inputs, states, mask, None)
    if mask is not None:
        raise ValueError("give mask or cu_seqlens, not both: take masked tokens out of a pack")
    ends, starts = cu_seqlens.tolist(), _starts(inputs[0], cu_seqlens, group)
    start, stop = starts[(rank := torch.distributed.get_rank(group))], starts[rank + 1]
    length, numbers = stop - start, range(len(ends) - 1)
    begun = next((n for n in numbers if ends[n] < start < ends[n + 1]), None)
    goes_on = next((n for n in numbers if ends[n] < stop < ends[n + 1]), None)
    through = begun is not None and begun == goes_on
    head = 0 if begun is None else min(ends[begun + 1], stop) - start
    tail = 0 if goes_on is None or through else stop - ends[goes_on]
    # Two rows take part in what crosses, whatever the pack.
    width, device = max(head, tail, 1), inputs[0].device
    sides = [(x[:, :head], x[:, length - tail :]) for x in inputs]
    rows = tuple(
        torch.cat([F.pad(x, (0, 0) * (x.ndim - 2) + (0, width - x.shape[1])) for x in pair])
        for pair in sides
    )
    mask = torch.arange(width, device=device) < torch.tensor([[head], [tail]], device=device)
    which = torch.tensor([begun or 0, goes_on or 0], device=device)
    first = None if begun is None else max(r for r in range(rank) if starts[r] <= ends[begun])
    ranks = _Ranks(group, ~mask.any(1), (first, through))
    crossing = partial(mix, ranks=ranks)
    y, *last = _by_rows(crossing, rows, tuple(x[which] for x in states), mask, None)
    outs = [y[:1, :head], y[1:, :tail]]
    used = [k for k, count in enumerate((head, tail)) if count]
    states = tuple(
        x.to(new.dtype).index_copy(0, which[used], new[used])
        for x, new in zip(states, last, strict=True)
    )
    inside = [n for n in numbers if start <= ends[n] and ends[n + 1] <= stop]
    if inside:
        span, own = slice(head, length - tail), slice(inside[0], inside[-1] + 1)
        within = cu_seqlens[own.start : own.stop + 1] - (start + head)
        y, *last = _by_rows(
            mix, tuple(x[:, span] for x in inputs), tuple(x[own] for x in states), None, within
        )
        outs.insert(1, y)
        at = torch.arange(own.start, own.stop, device=device)
        states = tuple(x.index_copy(0, at, new) for x, new in zip(states, last, strict=True))
    return torch.cat(outs, 1), *states


def _starts(x: Tensor, cu_seqlens: Tensor, group: Any) -> list[int]:
    """Where in the pack each process's segment starts, and where the last one ends."""
    length = torch.tensor([x.shape[1]], device=x.device)
    parts = [torch.empty_like(length) for _ in range(torch.distributed.get_world_size(group))]
    torch.distributed.all_gather(parts, length, group)
    starts = [0, *torch.cat(parts).cumsum(0).tolist()]
    ends = cu_seqlens.tolist()
    rises = len(ends) > 1 and ends == sorted(ends)
    if len(x) != 1 or not rises or (ends[0], ends[-1]) != (0, starts[-1]):
        want = f"rise from 0 to {starts[-1]}, the tokens of all processes, with a batch of 1"
        raise ValueError(f"cu_seqlens must {want}, got {ends} and a batch of {len(x)}")
    return starts
