"""Calls cut into pieces: one token of one sequence at a time, and segments with their states."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from .caches import _roles_of, _rows_of_all, _tensors_of
from .rows import _by_rows, _rows

_EXACT = "exact"
"""The mode of one order of operations, however a sequence is cut and whatever is beside it."""


_ORDER = (
    "exact, one token of one sequence after another: on CPUs the bits of outputs and states depend "
    "on neither cuts, nor the batch, nor what else is in it"
)


def _is_exact(mode: str) -> bool:
    """Whether tokens are stepped through in the mode `exact`.

    Raises:
        ValueError: a mode that steps have not.
    """
    if mode not in ("recurrent", _EXACT):
        raise ValueError(f"mode of a step must be recurrent or {_EXACT}, got {mode!r}")
    return mode == _EXACT


def _tokens_by(kind: Any, modes: tuple[str, ...], mode: str) -> tuple[Callable[..., Any], str]:
    """Returns what gives a mixer its tokens, and the mode that it then runs.

    Args:
        kind: the class of states.
        modes: of the mixer.
        mode: as in `forward`, or of a step.
    """
    if mode != _EXACT:
        return _by_rows, mode
    # Which kernel PyTorch's fused attention takes depends on more than shapes.
    return partial(_exactly, kind), "parallel" if "fused" in modes else "recurrent"


def _exactly(
    kind: Any,
    mix: Callable[..., tuple[Tensor, ...]],
    inputs: tuple[Tensor, ...],
    states: tuple[Tensor, ...],
    mask: Tensor | None,
    cu_seqlens: Tensor | None,
) -> tuple[Tensor, ...]:
    """Mixes each token of each sequence by itself: as `_by_rows`, in one order of operations.

    Every call of torch sees one token of one sequence, in memory laid out the same, whatever else
    is in the batch and however the sequence is cut: so the same numbers come out, bit for bit.

    Args:
        kind: the class of states.
        mix: of a token of a sequence.
        inputs: `[B, L, ...]`.
        states: `[N, ...]`, before the first token.
        mask: as in `forward`.
        cu_seqlens: as in `forward`.
    """
    lead = inputs[0].shape[:2]
    flat = [x.flatten(0, 1) for x in inputs]
    rows: dict[int, list[Tensor]] = {}
    outputs, places = [], []
    for n, tokens in _places_of(inputs[0], mask, cu_seqlens):
        state = _row_of(kind, states, n)
        for at in tokens:
            token = (_afresh(x[at : at + 1].unsqueeze(1)) for x in flat)
            y, *after = mix(*token, *state)
            state = [*map(_afresh, after)]
            outputs.append(y.flatten(0, 1))
            places.append(at)
        rows[n] = state
    if not outputs:
        y, *_ = mix(*(x[:1, :0] for x in inputs), *(x[:1] for x in states))
        outputs.append(y.flatten(0, 1))
    out = outputs[0].new_zeros(lead[0] * lead[1], *outputs[0].shape[1:])
    out = out.index_copy(0, torch.tensor(places, device=out.device).long(), torch.cat(outputs))
    columns = [*zip(*(rows[n] for n in sorted(rows)), strict=True)]
    if not columns:
        return out.unflatten(0, lead), *states
    # Where all tokens count, caches are as long as they are in any other mode.
    longest = lead[1] if mask is None and cu_seqlens is None else 0
    caches = (x for x, role in zip(states, _roles_of(kind), strict=True) if role != "whole")
    length = max((x.shape[1] + longest for x in caches), default=0)
    return out.unflatten(0, lead), *_rows_of_all(kind, columns, length)


def _places_of(
    x: Tensor, mask: Tensor | None, cu_seqlens: Tensor | None
) -> Iterator[tuple[int, Sequence[int]]]:
    """Yields the number of each sequence, and where its tokens stand in the batch laid flat."""
    if mask is None and cu_seqlens is None:
        for n in range(x.shape[0]):
            yield n, range(n * x.shape[1], (n + 1) * x.shape[1])
        return
    for which, tokens, lengths in _rows(x, mask, cu_seqlens):
        for n, places, count in zip(*(t.tolist() for t in (which, tokens, lengths)), strict=True):
            yield n, places[:count]


def _row_of(kind: Any, states: Sequence[Tensor], n: int) -> list[Tensor]:
    """The state of one sequence, of a cache the tokens that are there."""
    roles = _roles_of(kind)
    kept = states[roles.index("seen")][n] > 0.5 if "seen" in roles else slice(None)
    pairs = zip(states, roles, strict=True)
    return [_afresh(x[n : n + 1] if r == "whole" else x[n][kept].unsqueeze(0)) for x, r in pairs]


def _afresh(x: Tensor) -> Tensor:
    """A tensor in memory of its own, row after row, from where an allocation starts."""
    return x.clone(memory_format=torch.contiguous_format)


def _checkpoints(
    run: Callable[..., tuple[Tensor, Any]],
    inputs: tuple[Tensor, ...],
    state: Any,
    mask: Tensor | None,
    every: int,
) -> tuple[Tensor, tuple[Any, ...]]:
    """Returns the outputs of a sequence and its states every so many tokens, segment by segment.

    Args:
        run: of the inputs, state and mask of a segment, gives its outputs and last state.
        inputs: `[B, L, ...]`.
        state: before the first token; None for nothing.
        mask: as in `forward`.
        every: how many tokens a segment has.
    """
    if not isinstance(every, int) or every < 1:
        raise ValueError(f"every must be a whole number from 1 on, got {every}")
    length, ys, states = inputs[0].shape[1], [], []
    if mask is not None and mask.shape != inputs[0].shape[:2]:
        raise ValueError(f"mask must be {list(inputs[0].shape[:2])}, got {list(mask.shape)}")
    for start in range(0, max(length, 1), every):
        at = slice(start, start + every)
        y, state = run(
            *(x[:, at] for x in inputs), state, mask=None if mask is None else mask[:, at]
        )
        ys.append(y)
        states.append(state)
    states = states[: -(-length // every)]
    if states and mask is None:  # caches are lengths of the last one, and share its memory
        states = [_front_of(s, states[-1]) for s in states]
    return torch.cat(ys, 1), tuple(states)


def _front_of(state: Any, last: Any) -> Any:
    """A state whose caches are the front of those of a later one."""
    pairs = zip(_tensors_of(state), _tensors_of(last), _roles_of(state), strict=True)
    return type(state)(*(x if r == "whole" else y[:, : x.shape[1]] for x, y, r in pairs))
