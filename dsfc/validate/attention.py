"""Promises of mixers that keep every token: what grows, by how much, and whose kernels run.

A state of constant size, and steps of constant cost, are not for these: no finite state gives what
they compute (docs/theory/lemmas/softmax_rank). What they promise in their place is held here.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from dsfc.validate.cases import CHUNK
from dsfc.validate.compare import EXACT, BrokenPromiseError, agree, worst_of
from dsfc.validate.dispatch import Allocations
from dsfc.validate.surface import Surface, loss
from dsfc.validate.surface import surface as read_surface
from dsfc.validate.values import defined, outcome

_EQUAL = 8
"""Size of every axis where PyTorch's kernels shall run: they want keys as wide as values."""


def growth(surface: Surface, tokens: int) -> str:
    """Checks that a state grows by the same with each token, and a step's work by no more.

    Steps of constant cost are not promised. What is: the state has as many tokens as it was given,
    each of as many bytes; a step calls as many operations at every length, and what they make
    grows linearly with what is kept.

    Args:
        surface: the module.
        tokens: how many steps to take.
    """
    sample = surface.sample(tokens, batch=1)
    layer, state = sample.layer, sample.state
    before = [x.shape[1] for x in _grown(surface, state)]
    each = sum(x.numel() * x.element_size() // x.shape[1] for x in _grown(surface, state))
    costs: dict[int, tuple[int, int]] = {}
    row = torch.empty(0)
    watched = {0, 1, tokens // 2, tokens - 2, tokens - 1}
    with torch.no_grad():
        for i in range(tokens):
            inputs = [x[:, i] for x in sample.inputs.values()]
            if i in watched:
                with Allocations(surface.namespace) as count:
                    row, state = layer.step(*inputs, state)
                costs[i] = count.operations, count.made
            else:
                row, state = layer.step(*inputs, state)
            _counted(surface, state, before, i + 1)
        y, last = layer(**sample.inputs, state=sample.state, return_state=True)
        _counted(surface, last, before, tokens)
    (first, (calls, start)), (end, (_, end_made)) = min(costs.items()), max(costs.items())
    slope = (end_made - start) // (end - first)
    for i, cost in costs.items():
        if cost != (calls, start + slope * (i - first)):
            want = f"{calls} operations and {start + slope * (i - first)} numbers"
            raise BrokenPromiseError(f"step {i} takes {cost}, not {want}")
    got = {"y": row, **surface.tensors(state)}
    agree(got, {"y": y[:, -1], **surface.tensors(last)}, 100 * EXACT, f"token {tokens}")
    return (
        f"not promised: it keeps every token, {each} bytes each; a step takes {calls} operations "
        f"and {slope} numbers more for each token kept"
    )


def _grown(surface: Surface, state: Any) -> list[Tensor]:  # noqa: ANN401 - a class of the module
    return [surface.tensors(state)[name] for name in surface.growing]


def _counted(surface: Surface, state: object, before: list[int], tokens: int) -> None:
    """Checks that a state holds the tokens it was given, and nothing besides."""
    for x, start in zip(_grown(surface, state), before, strict=True):
        if x.shape[1] != start + tokens:
            raise BrokenPromiseError(f"{start + tokens} tokens are kept as {x.shape[1]}")
        if x.untyped_storage().nbytes() != x.numel() * x.element_size():
            raise BrokenPromiseError(f"after {tokens} tokens the state keeps more than them")


def fused(surface: Surface) -> str:
    """Where keys are as wide as values, PyTorch's fused attention runs and is the definition."""
    if "fused" not in surface.modes:
        return "it is no softmax attention"
    wide = read_surface(surface.module, dict.fromkeys(surface.sizes, _EQUAL), surface.unit)
    worst, length = 0.0, 2 * CHUNK + 1
    sample = wide.sample(length, state=False)
    with _Kernels() as seen:
        got = outcome(wide, sample, "fused", CHUNK, output_only=True)
    if not any("_scaled_dot_product" in name for name in seen.names):
        raise BrokenPromiseError(f"no fused kernel ran, but {', '.join(sorted(seen.names))}")
    worst = max(worst, agree(got, defined(wide, sample), EXACT, "from nothing"))
    sample = wide.sample(length)
    want = outcome(wide, sample, "parallel", CHUNK)
    for mode in ("recurrent", "fused", "auto"):
        for cuts in ((), (3,)):
            got = outcome(wide, sample, mode, CHUNK, cuts=cuts)
            worst = max(worst, agree(got, want, EXACT, f"{mode}, cut at {cuts}"))
    return f"{worst_of(worst)}; {_second(wide)}"


def _second(surface: Surface) -> str:
    """Checks that second derivatives are right in mode parallel, and right or refused in fused."""
    sample = surface.sample(CHUNK, batch=1, state=False)

    def second(mode: str | None) -> dict[str, Tensor]:
        inputs = {k: x.detach().requires_grad_() for k, x in sample.inputs.items()}
        if mode is None:
            values = {**surface.values(sample), **inputs}
            y = surface.reference(values)
        else:
            y = sample.layer(**inputs, mode=mode)
        first = torch.autograd.grad(loss(y), list(inputs.values()), create_graph=True)
        grads = torch.autograd.grad(loss(*first), list(inputs.values()))
        return {k: g.detach() for k, g in zip(inputs, grads, strict=True)}

    want = second(None)
    agree(second("parallel"), want, 100 * EXACT, "second derivatives, parallel")
    try:
        agree(second("fused"), want, 100 * EXACT, "second derivatives, fused")
    except RuntimeError as e:
        if "not implemented" not in str(e):
            raise
        return "second derivatives are right, in mode parallel alone"
    return "second derivatives are right too"


class _Kernels(TorchDispatchMode):
    """Notes the names of the operators that run."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        self.names: set[str] = set()

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 - an operator overload
        types: Any,  # noqa: ANN401
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever the operator returns
        """Runs a call and notes its name."""
        self.names.add(func.name())
        return func(*args, **(kwargs or {}))
