"""Batches of states: rows chosen and joined, casts, and room for tokens to come."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .numbers import _accumulator


def _tensors_of(state: Any) -> list[Tensor]:
    """The tensors of a state, in the order of its layout."""
    return [getattr(state, name) for name in state.layout]


def _roles_of(kind: Any) -> list[str]:
    """The role of each tensor: `whole`, or in a cache `tokens` or `seen`."""
    return [role for _, _, role in kind.layout.values()]


def _state_of_changed(state: Any, change: Any) -> Any:
    """Returns the state of changed tensors."""
    return type(state)(*map(change, _tensors_of(state)))


def _state_at_rows(state: Any, rows: Any) -> Any:
    """Returns some rows of a state, for `State.index`: copies, without tokens that none has."""
    if isinstance(rows, bool) or not isinstance(rows, Tensor | slice | Sequence):
        raise TypeError(f"rows must be a tensor, slice or list, got {type(rows).__name__}")
    if isinstance(rows, slice):
        chosen = [x[rows].clone() for x in _tensors_of(state)]
    else:
        at = torch.as_tensor(rows)
        at = at.long() if not isinstance(rows, Tensor) and at.numel() == 0 else at
        if at.is_floating_point() or at.is_complex():
            raise TypeError(f"rows are {at.dtype}, want whole numbers or truth values")
        if at.ndim != 1:
            raise ValueError(f"rows must be one list of numbers, got {list(at.shape)}")
        chosen = [x[at.to(x.device)] for x in _tensors_of(state)]
    return type(state)(*_without_front(type(state), chosen))


def _without_front(kind: Any, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Tensors of a state without the front of a cache in which no row has a token."""
    roles = _roles_of(kind)
    if "seen" not in roles:
        return [*tensors]
    seen = (tensors[roles.index("seen")] > 0.5).any(0)
    # Only the front is cut: a cache grows at its end.
    first = int(seen.int().argmax()) if bool(seen.any()) else len(seen)
    return [x if r == "whole" else x[:, first:] for x, r in zip(tensors, roles, strict=True)]


def _state_of_all(kind: Any, states: Iterable[Any]) -> Any:
    """Returns the rows of several states as one, for `State.cat`: shorter caches get 0 in front."""
    some = [*states]
    if not some:
        raise ValueError("no state: give one at least")
    for state in some:
        spec = getattr(state, "spec", type(state).__name__)
        if spec != kind.spec:
            raise ValueError(f"states must be of spec {kind.spec}, got {spec}")
    columns = [*zip(*map(_tensors_of, some), strict=True)]
    for name, role, xs in zip(kind.layout, _roles_of(kind), columns, strict=True):
        kinds = {(*x.shape[2 - (role == "whole") :], x.dtype, x.device) for x in xs}
        if len(kinds) > 1:
            each = ", ".join(f"{list(x.shape)} {x.dtype} on {x.device}" for x in xs)
            raise ValueError(f"states differ in {name} in more than rows: {each}")
    return kind(*_rows_of_all(kind, columns))


def _rows_of_all(kind: Any, columns: Iterable[Sequence[Tensor]], tokens: int = 0) -> list[Tensor]:
    """The rows of each tensor of several states behind one another.

    Args:
        kind: the class of states.
        columns: of each tensor, those of the states.
        tokens: of caches, at least: 0 stands in front.
    """
    joined = []
    for xs, role in zip(columns, _roles_of(kind), strict=True):
        if role != "whole":
            longest = max(tokens, *(x.shape[1] for x in xs))
            pads = [(0, 0) * (x.ndim - 2) + (longest - x.shape[1], 0) for x in xs]
            xs = [F.pad(x, pad) if any(pad) else x for x, pad in zip(xs, pads, strict=True)]
        joined.append(torch.cat([*xs]))
    return joined


def _state_to(state: Any, device: Any, dtype: torch.dtype | None) -> Any:
    """Returns a state elsewhere, for inputs of another dtype, for `State.to`."""
    if dtype is not None and not dtype.is_floating_point:
        raise TypeError(f"dtype is that of inputs, want a floating-point one, got {dtype}")
    moved = []
    for x, (_, rule, _) in zip(_tensors_of(state), state.layout.values(), strict=True):
        if dtype is None:
            to = x.dtype
        else:
            wide = dtype if rule == "input" else _accumulator(dtype)
            to = torch.promote_types(wide, torch.complex64) if rule == "complex" else wide
        moved.append(x.to(device=device, dtype=to))
    return type(state)(*moved)


def _state_with_room(state: Any, tokens: int) -> Any:
    """Returns a state with room for tokens behind those that it keeps, for `State.reserve`."""
    if not isinstance(tokens, int) or tokens < 0:
        raise ValueError(f"tokens must be a whole number from 0 on, got {tokens}")
    kept = []
    for x, role in zip(_tensors_of(state), _roles_of(state), strict=True):
        if role != "whole":
            length = x.shape[1]
            room = x.new_zeros(x.shape[0], length + tokens, *x.shape[2:])
            room[:, :length] = x
            x = room[:, :length]
            _ROOM[x] = room
        kept.append(x)
    return type(state)(*kept)


# By the front of a cache that is kept, the whole. One state alone may write behind its tokens.
_ROOM = torch.utils.weak.WeakTensorKeyDictionary()


def _appended(past: Tensor, x: Tensor, write: bool) -> Tensor:
    """All tokens of a cache and those behind it, which are written into its room or copied.

    Args:
        past: `[B, T, ...]`.
        x: `[B, L, ...]`.
        write: whether to write into the room, which then is that of the result alone.

    Raises:
        ValueError: there is no room.
    """
    if not write:
        return torch.cat((past.to(x.dtype), x), 1)
    room: Tensor | None = _ROOM.get(past)
    length = past.shape[1] + x.shape[1]
    if room is None or length > room.shape[1]:
        raise ValueError("in_place: no room behind the tokens of this state: give it by reserve")
    whole = room[:, :length]
    whole[:, past.shape[1] :] = x
    del _ROOM[past]
    _ROOM[whole] = room
    return whole
