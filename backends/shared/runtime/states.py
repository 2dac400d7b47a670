"""States: dictionaries that files keep, and what is checked of a state that is handed in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor


def _kept_by_name(state: Any) -> dict[str, Any]:
    """The tensors, gauge and spec of a state by name."""
    names = [x.name for x in fields(state)]
    tensors = {name: getattr(state, name) for name in names}
    return {"gauge": state.gauge, "spec": state.spec, **tensors}


def _restored(
    kind: Any,
    kept: Mapping[str, Any],
    columns: tuple[str, ...] = (),
    maxima: Mapping[str, tuple[str, tuple[int, ...]]] | None = None,
) -> Any:
    """Makes the state that `_kept_by_name` gave, or one in another gauge with its factors.

    Args:
        kind: the class of the state.
        kept: tensors, gauge and spec by name.
        columns: tensors that a gauge changes.
        maxima: running maxima that states are stored over, which no other gauge has: each with a
            state that it is one of, and where its axes are among those of the state.

    Raises:
        ValueError: of another mixer, without a tensor, or in another gauge without its factor.
    """
    if kept.get("spec") != kind.spec:
        raise ValueError(f"a state of spec {kept.get('spec')}, want {kind.spec}: another mixer's")
    own, maxima = kept.get("gauge") == kind.gauge, maxima or {}
    known = {*kept, *(() if own else maxima)}
    lacks = [x.name for x in fields(kind) if x.name not in known]
    if lacks:
        raise ValueError(f"a state needs {', '.join(lacks)} too, got {', '.join(kept)}")
    tensors = dict(kept)
    if columns and not own:
        for name in columns:
            factor, x = kept.get(f"{name}_factor"), tensors[name]
            if factor is None:
                where = f"gauge {kept.get('gauge')!r}, want {kind.gauge!r}"
                raise ValueError(f"a state in {where}: give {name}_factor to convert")
            tensors[name] = x * factor[(..., *(None,) * (x.ndim - factor.ndim))]
        for name, (state, axes) in maxima.items():
            x = tensors[state]
            tensors[name] = x.new_zeros(len(x), 1, *(x.shape[at] for at in axes))
    return kind(**{x.name: tensors[x.name] for x in fields(kind)})


def _refuse_gradients(*tensors: Tensor) -> None:
    """Raises a ValueError where a gradient may need a state that is to be overwritten."""
    if torch.is_grad_enabled() and any(x.requires_grad for x in tensors):
        raise ValueError("in_place overwrites what gradients need: call it under torch.no_grad()")


def _overwrite(state: Any, following: Sequence[Tensor]) -> Any:
    """Writes the tensors after a token where those of a state lie, unless a kernel did."""
    names = [x.name for x in fields(state)]
    tensors = [getattr(state, name) for name in names]
    for old, new in zip(tensors, following, strict=True):
        if new is not old:
            old.copy_(new)
    return state


def _of_spec(state: Any, spec: str) -> None:
    """Raises a ValueError for a state of another mixer, or what is no state."""
    found = getattr(state, "spec", type(state).__name__)
    if found != spec:
        raise ValueError(f"state must be a State of spec {spec}, got {found}")


def _state_fits(
    batch: int,
    device: torch.device,
    tensors: tuple[tuple[str, Tensor, tuple[int, ...]], ...],
) -> None:
    """Raises a ValueError for a tensor of a state that has another shape or device.

    Args:
        batch: how many sequences there are.
        device: of the inputs.
        tensors: name, value and axes behind the batch of each tensor.
    """
    for name, x, axes in tensors:
        if x.shape != (batch, *axes) or x.device != device:
            want, got = f"{[batch, *axes]} on {device}", f"{list(x.shape)} on {x.device}"
            raise ValueError(f"state.{name} must be {want}, got {got}")
