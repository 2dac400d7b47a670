"""Watches and spoils kernels where Triton's interpreter starts them, and widens samples."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from dsfc.validate.surface import Sample, Surface

Run = Callable[[], None]


def around_kernels(
    monkeypatch: pytest.MonkeyPatch, around: Callable[[str, tuple[Any, ...], Run], None]
) -> None:
    """Runs every kernel of the interpreter inside a function.

    Args:
        around: takes the name of the kernel, its arguments, and what runs it.
    """
    from triton.runtime.interpreter import GridExecutor

    call = GridExecutor.__call__

    def surrounded(self: Any, *args: Any, **kwargs: Any) -> None:
        around(self.fn.__name__, args, lambda: call(self, *args, **kwargs))

    monkeypatch.setattr(GridExecutor, "__call__", surrounded)


def spoil_kernels(
    monkeypatch: pytest.MonkeyPatch, direction: str, factor: float = 1.1, which: int | None = None
) -> None:
    """Scales what the kernels of a direction write.

    Args:
        direction: `forward` or `backward`.
        factor: of the numbers that a kernel changed.
        which: the place among the tensors that a kernel changes; all of them if None.
    """

    def spoiled(name: str, args: tuple[Any, ...], run: Run) -> None:
        before = [(x, x.clone()) for x in args if isinstance(x, Tensor)]
        run()
        if direction in name:
            changed = [x for x, old in before if not x.equal(old)]
            for x in changed if which is None else [changed[which]]:
                x.mul_(factor)

    around_kernels(monkeypatch, spoiled)


def widened(sample: Sample, found: Surface) -> Sample:
    """Returns a sample in float64; kernels decline that dtype, so that the torch form runs."""
    state = sample.state
    if state is not None:
        held = {
            n: x.to(torch.promote_types(x.dtype, torch.float64))
            for n, x in found.tensors(state).items()
        }
        state = found.module.State(**held)
    layer = copy.deepcopy(sample.layer).double()
    return Sample(layer, {n: x.double() for n, x in sample.inputs.items()}, state)
