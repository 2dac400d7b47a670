"""States: dictionaries that files keep, and what is checked of a state that is handed in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from .sequences import _every


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
        what = f"a state of spec {kept.get('spec')}, want {kind.spec} of {kind.mixer}"
        raise ValueError(f"{what}: another mixer's")
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


def _overwrite(state: Any, following: Sequence[Tensor], grows: Sequence[str] = ()) -> Any:
    """Writes the tensors after a token where those of a state lie, unless a kernel did.

    What `grows` names was written behind what the state keeps, and is returned with the rest.
    """
    names = [x.name for x in fields(state)]
    for name, new in zip(names, following, strict=True):
        old = getattr(state, name)
        if name not in grows and new is not old:
            old.copy_(new)
    after = zip(names, following, strict=True)
    return (
        type(state)(*(x if n in grows else getattr(state, n) for n, x in after)) if grows else state
    )


def _state_at(states: Any, tokens: int, grows: Sequence[str] = ()) -> Any:
    """Returns one state of several, for `States.at`; `grows` names tensors that keep all tokens."""
    if not 0 <= tokens <= states.count:
        raise ValueError(f"tokens must be from 0 to {states.count}, got {tokens}")
    if tokens == 0:
        return states.before
    names = [x.name for x in fields(states.before)]
    left_out = states.count - tokens
    pairs = zip(names, states.after, strict=True)
    after = (x[:, : x.shape[1] - left_out] if n in grows else x[tokens - 1] for n, x in pairs)
    return type(states.before)(*after)


def _state_of_rows(states: Any, tokens: Tensor, grows: Sequence[str] = ()) -> Any:
    """Returns a state by rows, for `States.select`; `grows` names tensors that keep all tokens."""
    if tokens.is_floating_point() or tokens.is_complex() or tokens.dtype == torch.bool:
        raise TypeError(f"tokens are {tokens.dtype}, want whole numbers")
    names = [x.name for x in fields(states.before)]
    pairs = [(getattr(states.before, n), x) for n, x in zip(names, states.after, strict=True)]
    if tokens.ndim != 1 or any(old.shape[:1] != tokens.shape for old, _ in pairs):
        raise ValueError(f"tokens must be [B], a number for each row, got {list(tokens.shape)}")
    some = tokens.tolist()
    if some and not 0 <= min(some) <= max(some) <= states.count:
        raise ValueError(f"tokens must be from 0 to {states.count}, got {some}")
    left_out = states.count - max(some, default=0)
    chosen = []
    for name, (old, x) in zip(names, pairs, strict=True):
        here = tokens.to(x.device)
        if name in grows:
            chosen.append(_every(x[:, : x.shape[1] - left_out], old, here))
            continue
        new = x[here.clamp(min=1) - 1, torch.arange(len(some), device=x.device)]
        none = (here == 0).reshape(-1, *(1,) * (new.ndim - 1))
        chosen.append(torch.where(none, old.to(new.dtype), new))
    return type(states.before)(*chosen)


def _each_state(
    kind: Any, state: Any, tensors: Sequence[Tensor], count: int, grows: Sequence[str] = ()
) -> Any:
    """Returns the states before and after each of some tokens.

    Args:
        kind: the class of all the states.
        state: before the first token.
        tensors: of the states after each token, `[L · B, ...]`; of one that keeps every token, all.
        count: how many tokens.
        grows: names of tensors that keep every token.
    """
    names = [x.name for x in fields(state)]
    pairs = zip(names, tensors, strict=True)
    after = (x if n in grows else x.unflatten(0, (count, x.shape[0] // count)) for n, x in pairs)
    return kind(state, tuple(after), count)


def _one_by_one(
    step: Any, inputs: Sequence[Tensor], state: Any, grows: Sequence[str] = ()
) -> Sequence[Tensor]:
    """Returns the outputs of inputs `[B, L, ...]`, and what `_each_state` takes, by L steps."""
    names, ys, passed = [x.name for x in fields(state)], [], []
    for token in zip(*(x.unbind(1) for x in inputs), strict=True):
        y, state = step(*token, state)
        ys.append(y)
        passed.append([getattr(state, name) for name in names])
    columns = zip(names, zip(*passed, strict=True), strict=True)
    return torch.stack(ys, 1), *(x[-1] if n in grows else torch.cat(x) for n, x in columns)


def _of_spec(state: Any, kind: Any) -> None:
    """Raises a ValueError for a state of another mixer than a class of states, or no state."""
    spec = getattr(state, "spec", None)
    if spec == kind.spec:
        return
    other = getattr(state, "mixer", None)
    got = f"one of {other}" if spec and other else type(state).__name__
    if other == kind.mixer:
        got = f"one of another {other}: of spec {spec}, want {kind.spec}"
    raise ValueError(f"state must be a State of {kind.mixer}, got {got}")


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
