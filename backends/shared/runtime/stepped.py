"""Recurrences of any kind, one token after another."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from .numbers import _accumulate
from .operators import _Tensors

_Step = Callable[..., _Tensors]


@dataclass(frozen=True)
class _Stepped:
    """The functions of one recurrence at a token.

    Attributes:
        step: states before and coefficients → states after.
        step_back: gradients of the states after, coefficients, gradients of reads → those before.
        gradients: of coefficients, at any number of tokens.
        wanted: which coefficients have one, by number.
    """

    step: _Step
    step_back: _Step
    gradients: _Step
    wanted: tuple[int, ...]


def _walk(
    step: _Step,
    states: _Tensors,
    timed: _Tensors,
    fixed: _Tensors,
    lengths: Tensor | None,
    first: int,
) -> Iterator[_Tensors]:
    """Yields the states after each token of a chunk whose first has the number `first`."""
    rows = [x.unbind(1) for x in _accumulate(*timed)]
    for i in range(timed[0].shape[1]):
        made = step(*states, *(x[i] for x in rows), *fixed)
        states = _settled(made, states, lengths, first + i)
        yield states


def _settled(made: _Tensors, old: _Tensors, lengths: Tensor | None, i: int) -> _Tensors:
    """Returns the states after token i; those before it in rows where it does not count."""
    new = tuple(x.to(y.dtype).expand_as(y) for x, y in zip(made, old, strict=True))
    if lengths is None:
        return new
    counts = [(i < lengths).reshape(-1, *(1,) * (x.ndim - 1)) for x in old]
    return tuple(map(torch.where, counts, new, old))


def _spread_constants(fixed: _Tensors, batch: int) -> _Tensors:
    """Gives each sequence the constants of its group, in the dtype of states."""
    return tuple(x.repeat_interleave(batch // x.shape[0], 0) for x in _accumulate(*fixed))


def _read_steps(
    step: _Step,
    look: _Step,
    states: _Tensors,
    timed: _Tensors,
    fixed: _Tensors,
    lengths: Tensor | None,
    shapes: tuple[tuple[tuple[int, ...], torch.dtype], ...],
) -> _Tensors:
    """Returns what is read at all tokens, of the given shapes and dtypes, and the last states."""
    fixed = _spread_constants(fixed, states[0].shape[0])
    given = [x.unbind(1) for x in _accumulate(*timed)]
    rows: list[list[Tensor]] = [[] for _ in shapes]
    for i, after in enumerate(_walk(step, states, timed, fixed, lengths, 0)):
        seen = look(*states, *after, *(x[i] for x in given), *fixed)
        for row, x, (shape, dtype) in zip(rows, seen, shapes, strict=True):
            row.append(x.to(dtype).expand(shape[0], *shape[2:]))
        states = after
    outs = (
        torch.stack(row, 1) if row else states[0].new_zeros(shape, dtype=dtype)
        for row, (shape, dtype) in zip(rows, shapes, strict=True)
    )
    return *outs, *states


def _pulled_back(
    run: _Stepped,
    states: _Tensors,
    timed: _Tensors,
    fixed: _Tensors,
    lengths: Tensor | None,
    bars: _Tensors,
    last: _Tensors,
    chunk: int,
) -> _Tensors:
    """Returns the gradients of coefficients and of the first states.

    Args:
        run: what is computed at a token.
        states: before the first token.
        timed: coefficients `[B, L, ...]`.
        fixed: coefficients `[G, ...]`, of G groups of sequences.
        lengths: `[B]`, how many tokens of each sequence count; all if None.
        bars: gradients of what was read.
        last: gradients of the last states.
        chunk: tokens from one state that is kept to the next; at least √L.
    """
    states_given, (batch, length) = states, timed[0].shape[:2]
    given = _spread_constants(fixed, batch)
    step = max(min(chunk, length), math.isqrt(max(length - 1, 0)) + 1)
    spans = [slice(i, min(i + step, length)) for i in range(0, length, step)]
    starts = []
    for at in spans:
        starts.append(states)
        here = tuple(x[:, at] for x in timed)
        for after in _walk(run.step, states, here, given, lengths, at.start):
            states = after
    grads = [torch.zeros_like(x) for x in timed]
    sums = [torch.zeros_like(x) for x in given]
    for at in reversed(spans):
        here, seen = (_accumulate(*(x[:, at] for x in xs)) for xs in (timed, bars))
        past = [starts.pop()]
        past += _walk(run.step, past[0], here, given, lengths, at.start)
        rows = [[x.unbind(1) for x in xs] for xs in (here, seen)]
        coming = []
        for i in reversed(range(at.stop - at.start)):
            coming.append(last)
            made = run.step_back(*last, *(x[i] for x in rows[0]), *given, *(x[i] for x in rows[1]))
            last = _settled(made, last, lengths, at.start + i)
        values = (past[:-1], past[1:], coming[::-1])
        tokens = (torch.stack(x, 1) for xs in values for x in zip(*xs, strict=True))
        found = run.gradients(*tokens, *here, *(x.unsqueeze(1) for x in given), *seen)
        for k, x in zip(run.wanted, found, strict=True):
            tail = (*here, *given)[k].shape[2 if k < len(here) else 1 :]
            x = x.expand(batch, at.stop - at.start, *tail)
            if lengths is not None:
                counts = torch.arange(at.start, at.stop, device=x.device) < lengths[:, None]
                x = torch.where(counts.reshape(*counts.shape, *(1,) * (x.ndim - 2)), x, 0)
            if k < len(here):
                grads[k][:, at] = x
            else:
                sums[k - len(here)] += x.sum(1)
    whole = (x.unflatten(0, (y.shape[0], -1)).sum(1) for x, y in zip(sums, fixed, strict=True))
    constants = (x.to(y.dtype) for x, y in zip(whole, fixed, strict=True))
    pairs = zip(last, states_given, strict=True)
    firsts = (x.real if x.is_complex() and not y.is_complex() else x for x, y in pairs)
    return *grads, *constants, *firsts
