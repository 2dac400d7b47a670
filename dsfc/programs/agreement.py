"""Runs a program beside its layer: a file is written only where both give the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from dsfc.programs.program import Program
from dsfc.programs.token_loop import NoProgram
from dsfc.validate.compare import BrokenPromiseError, agree

Run = Callable[[Mapping[str, Tensor]], tuple[Tensor, ...]]
"""A loaded program: named tensors to results in order."""

CASES = ((1, 1, 0), (2, 9, 3), (4, 70, 0))
"""B, L and tokens before, other than those that a program is traced with; a step takes L = 1."""

_ROUNDINGS = 200
"""Units of rounding by which sums in another order may differ, relative to the largest number."""


@torch.no_grad()
def agreed(program: Program, run: Run, target: str) -> float:
    """Runs a program beside its layer and returns the largest relative difference.

    Args:
        program: the program.
        run: runs it, as it was written and loaded.
        target: what it was written for, for messages.

    Raises:
        NoProgram: it fails to run, or gives other numbers than the layer.
    """
    worst = 0.0
    for batch, length, earlier in CASES:
        tensors = program.example(batch, 1 if program.step else length, earlier, seed=length)
        want = program.eager({name: x.clone() for name, x in tensors.items()})
        try:
            got = run(tensors)
        except Exception as e:  # what a foreign runtime raises
            reason = str(e).strip().splitlines() or [type(e).__name__]
            raise NoProgram(f"{target} fails to run it at B = {batch}: {reason[0]}") from e
        named = [dict(zip(program.outputs, outs, strict=True)) for outs in (got, want)]
        dtype = torch.promote_types(want[0].dtype, torch.bfloat16)
        bound = _ROUNDINGS * torch.finfo(dtype).eps
        try:
            worst = max(worst, agree(named[0], named[1], bound, f"B = {batch}, L = {length}"))
        except BrokenPromiseError as e:
            raise NoProgram(f"what {target} runs gives other numbers: {e}") from e
    return worst
