"""Promises about memory and work, counted, not timed.

Counts come from PyTorch's dispatch: every tensor that an operation makes, also inside the module's
own operators. They do not depend on the machine or on what else runs on it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from dsfc.validate.attention import growth
from dsfc.validate.compare import EXACT, BrokenPromiseError, agree
from dsfc.validate.dispatch import Allocations
from dsfc.validate.surface import Surface, ends, loss, pull_back
from dsfc.validate.surface import surface as read_surface
from dsfc.validate.values import refused

_LONG, _CHUNK = 256, 16


def streaming(surface: Surface, tokens: int = 200) -> str:
    """A step costs the same work and memory however many tokens came before, and is right."""
    if not surface.causal:
        return refused(surface)
    if surface.growing:
        return growth(surface, tokens)
    sample = surface.sample(tokens, batch=1)
    layer, state = sample.layer, sample.state
    size = sum(x.numel() * x.element_size() for x in surface.tensors(state).values())
    costs, row = [], torch.empty(0)
    watched = {0, 1, tokens // 2, tokens - 2, tokens - 1}
    with torch.no_grad():
        for i in range(tokens):
            inputs = [x[:, i] for x in sample.inputs.values()]
            if i in watched:
                with Allocations(surface.namespace) as count:
                    row, state = layer.step(*inputs, state)
                costs.append((count.operations, count.made, count.largest))
            else:
                row, state = layer.step(*inputs, state)
            _holds(surface, state, size, f"token {i}")
        y, last = layer(**sample.inputs, state=sample.state, return_state=True)
        _holds(surface, last, size, f"{tokens} tokens at once")
    if len(set(costs)) != 1:
        raise BrokenPromiseError(f"the cost of a step changes: {costs[0]} becomes {costs[-1]}")
    got = {"y": row, **surface.tensors(state)}
    agree(got, {"y": y[:, -1], **surface.tensors(last)}, 100 * EXACT, f"token {tokens}")
    operations, allocated, _ = costs[0]
    return (
        f"each of {tokens} tokens took {operations} operations and {allocated} new numbers; "
        f"the state has {size} bytes"
    )


def memory(surface: Surface) -> str:
    """No operator takes or makes a tensor of the size of all states of the sequence.

    The parallel mode is for short sequences: it holds all pairs of tokens, and is not asked.
    """
    if surface.growing:
        return "no operator: PyTorch's own holds what it holds"
    large = {axis: 8 * size for axis, size in surface.sizes.items()}
    wide = read_surface(surface.module, large, surface.unit)
    sample = wide.sample(_LONG, batch=1, dtype=torch.float32)
    kept = sample.state if wide.causal else sample.layer.initial_state(1)
    state = sum(x.numel() for x in wide.tensors(kept).values())
    # What a recurrence gives back is a stream; where each channel is its own state it is as large
    # as all of them.
    outs = [c.outs[0].numel() for c in wide.calls(sample) if "::forward" in c.op.name()]
    scores = 4 * _LONG * _CHUNK  # inside the chunks, of a few heads
    allowed = max(3 * _LONG * state // 4, 4 * max(outs, default=0), scores)
    worst = 0
    for mode in (m for m in wide.modes if m != "parallel"):
        inputs = {k: v.clone().requires_grad_() for k, v in sample.inputs.items()}
        with Allocations(wide.namespace) as count:
            how: dict[str, Any] = {"mode": mode, "chunk": _CHUNK, **wide.carried}
            y, after = ends(sample.layer(**inputs, state=sample.state, **how))
            pull_back(loss(y, *wide.tensors(after).values()))
        if count.largest > allowed:
            problem = f"a tensor of {count.largest} numbers, {_LONG} tokens of {state} state each"
            raise BrokenPromiseError(f"{mode}: {problem}")
        worst = max(worst, count.largest)
    share = worst / (_LONG * state) if state else 0.0
    return (
        f"the largest tensor has {share:.3f} times the size of all states"
        if state
        else "it has no state"
    )


def flops(surface: Surface) -> str:
    """The operators have a formula for PyTorch's counter of floating-point operations."""
    sample = surface.sample(64, dtype=torch.float32, state=False)
    inputs = {k: v.clone().requires_grad_() for k, v in sample.inputs.items()}
    names = {call.op.name() for call in surface.calls(sample)}
    if not names:
        return "no operator"
    surface.module.register_flops()
    with FlopCounterMode(display=False) as counter:
        pull_back(sample.layer(**inputs).sum())
    counts = {str(op): n for op, n in counter.get_flop_counts()["Global"].items()}
    mine = {op: n for op, n in counts.items() if surface.namespace in op}
    if len(mine) != len(names) or any(n <= 0 for n in mine.values()):
        raise BrokenPromiseError(f"{len(names)} operators, counted: {mine}")
    counted = ", ".join(f"{op.rpartition('.')[2]} {n}" for op, n in mine.items())
    return f"operations of 64 tokens: {counted}"


def _holds(surface: Surface, state: object, size: int, where: str) -> None:
    """Checks how many bytes a state keeps alive: its own numbers and nothing of the sequence."""
    storages = [x.untyped_storage() for x in surface.tensors(state).values()]
    held = sum({s.data_ptr(): s.nbytes() for s in storages}.values())
    if held != size:
        raise BrokenPromiseError(f"after {where} the state keeps {held} bytes, not {size}")
