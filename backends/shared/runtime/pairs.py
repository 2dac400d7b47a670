"""Sums over all pairs of tokens."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .numbers import _widened


@dataclass(frozen=True)
class _Pairs:
    """A sum over pairs of tokens: its summand, its gradients, and which pairs count.

    Attributes:
        summand: of what a pair has of token i, of token j and of no token, and of i - j.
        gradients: of the same and the gradient of the sum at token i.
        sizes: of the axes of the sum, from all that the summand reads.
        wanted: numbers of the arguments that have a gradient.
        queries, keys: how many arguments are of token i, and of token j.
        later: whether the sum is over tokens to come.
        bound: i - j at least, or at most where later.
        field: whether the sum is a complex number.
    """

    summand: Callable[..., tuple[Tensor, ...]]
    gradients: Callable[..., tuple[Tensor, ...]]
    sizes: Callable[..., tuple[int, ...]]
    wanted: tuple[int, ...]
    queries: int
    keys: int
    later: bool
    bound: int
    field: bool

    def empty(self, seen: Tensor, length: int, given: Sequence[Tensor]) -> Tensor:
        """The sum at `length` tokens, its values not set."""
        dtype = _widened(seen.dtype) if self.field else seen.dtype
        return seen.new_empty((seen.shape[0], length, *self.sizes(*given)), dtype=dtype)

    def tile(
        self,
        rows: slice,
        length: int,
        seen: Tensor,
        lengths: Tensor | None,
        given: Sequence[Tensor],
    ) -> tuple[list[Tensor], Tensor]:
        """Arguments of the summand for some queries, and whether a pair counts, `[B, I, J]`."""
        total = seen.shape[1]
        at = torch.arange(total, device=seen.device)
        i = at[total - length :][rows, None]
        lag = i - at
        counts = lag <= self.bound if self.later else lag >= self.bound
        # A power of the distance of a pair that does not count may overflow.
        lag = lag.clamp(max=self.bound) if self.later else lag.clamp(min=self.bound)
        counts = counts & (seen > 0.5)[:, None]
        if lengths is not None:
            stop = lengths[:, None, None] + (total - length)
            counts = counts & (at < stop) & (i < stop)
        ends = self.queries, self.queries + self.keys
        args = [x[:, rows, None] for x in given[: ends[0]]]
        args += [x[:, None] for x in given[ends[0] : ends[1]]]
        fixed = (x.repeat_interleave(seen.shape[0] // x.shape[0], 0) for x in given[ends[1] :])
        args += [x[:, None, None] for x in fixed]
        return [*args, lag.to(seen.dtype)[None]], counts


def _summed(
    run: _Pairs,
    seen: Tensor,
    lengths: Tensor | None,
    given: Sequence[Tensor],
    length: int,
    block: int,
) -> Tensor:
    """Returns Σ_j of a summand over the pairs (i, j) that count, in blocks of i.

    Args:
        run: the sum.
        seen: `[B, T]`, 1 where there is a token j; the last of them are the tokens i.
        lengths: `[B]`, how many tokens i of each sequence count; all if None.
        given: what the summand reads, `[B, L, ...]`, `[B, T, ...]` and `[G, ...]`, of G groups of
            sequences.
        length: L, how many tokens i there are.
        block: how many of them are computed at once.
    """
    out = run.empty(seen, length, given)
    for start in range(0, length, block):
        rows = slice(start, min(start + block, length))
        args, counts = run.tile(rows, length, seen, lengths, given)
        (x,) = run.summand(*args)
        out[:, rows] = _where(counts, x).sum(2)
    return out


def _spread_back(
    run: _Pairs,
    seen: Tensor,
    lengths: Tensor | None,
    bar: Tensor,
    given: Sequence[Tensor],
    length: int,
    block: int,
) -> list[Tensor]:
    """Returns the gradients of what the summand reads; each block is computed again.

    Args:
        run: the sum.
        seen: as of the sum, and so are the rest.
        lengths: as of the sum.
        bar: gradient of the sum.
        given: as of the sum.
        length: as of the sum.
        block: as of the sum.
    """
    ends = run.queries, run.queries + run.keys
    rows_of: list[list[Tensor]] = [[] for _ in given]
    whole = [torch.zeros_like(x) for x in given]
    for start in range(0, length, block):
        rows = slice(start, min(start + block, length))
        args, counts = run.tile(rows, length, seen, lengths, given)
        bars = run.gradients(*args, bar[:, rows, None])
        for at, x in zip(run.wanted, bars, strict=True):
            x = _where(counts, x)
            if at < ends[0]:
                rows_of[at].append(x.sum(2))
            elif at < ends[1]:
                whole[at] = whole[at] + x.sum(1)
            else:
                groups = given[at].shape[0]
                x = x.sum((1, 2)).unflatten(0, (groups, seen.shape[0] // groups)).sum(1)
                whole[at] = whole[at] + x
    pairs = zip(whole, rows_of, given, strict=True)
    return [(torch.cat(r, 1) if r else x).to(y.dtype).expand_as(y) for x, r, y in pairs]


def _where(counts: Tensor, x: Tensor) -> Tensor:
    """0 at pairs that do not count, whatever stands there."""
    return torch.where(counts.reshape(*counts.shape, *(1,) * (x.ndim - 3)), x, 0)


def _fake_sum(run: _Pairs) -> Callable[..., Tensor]:
    def fake(seen: Tensor, lengths: Tensor | None, *given: Any) -> Tensor:
        *tensors, length, _ = given
        return run.empty(seen, length, tensors)

    return fake


def _fake_spread(seen: Tensor, lengths: Tensor | None, bar: Tensor, *given: Any) -> Any:
    outs = tuple(x.new_empty(x.shape) for x in given[:-2])
    return outs if len(outs) > 1 else outs[0]


def _sum_flops(operations: int) -> Callable[..., int]:
    """Counts operations at every pair and number of the sum; arguments are shapes."""

    def count(seen: Any, *_: Any, out_shape: Any, **__: Any) -> int:
        return operations * int(seen[1]) * int(math.prod(out_shape))

    return count


def _spread_flops(operations: int) -> Callable[..., int]:
    def count(seen: Any, lengths: Any, bar: Any, *_: Any, **__: Any) -> int:
        return operations * int(seen[1]) * int(math.prod(bar))

    return count
