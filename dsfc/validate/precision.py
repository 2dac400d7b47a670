"""Promises about float32 and bfloat16: as accurate as plain torch, states kept wide.

The yardstick is the module's own definition, written as plain torch and run in the low precision
with autograd; the truth is the same definition in float64 on the same (rounded) parameters.
"""

from __future__ import annotations

import copy
import dataclasses

import torch
from torch import Tensor

from dsfc.validate.compare import (
    BACKWARD,
    FORWARD,
    NEGLIGIBLE,
    BrokenPromiseError,
    bar_share,
    largest,
)
from dsfc.validate.surface import Sample, Surface
from dsfc.validate.values import defined, outcome

PRECISIONS = (torch.float32, torch.bfloat16)

_LENGTH, _CHUNK = 100, 16


def low_precision(surface: Surface) -> str:
    """Errors are at most 2 times (gradients: 3 times) those of plain torch in the same dtype."""
    figures = []
    for dtype in PRECISIONS:
        sample = surface.sample(_LENGTH, dtype=dtype, state=False)
        wide = dataclasses.replace(
            sample,
            layer=copy.deepcopy(sample.layer).double(),
            inputs={k: v.double() for k, v in sample.inputs.items()},
        )
        truth = defined(surface, wide)
        plain = defined(surface, sample, dtype=dtype)
        share = 0.0
        for mode in surface.modes:
            got = outcome(surface, sample, mode, _CHUNK, output_only=True)
            where = f"{mode}, {dtype}"
            share = max(share, worst_share(got, plain, truth, dtype, where))
        figures.append(f"{str(dtype).removeprefix('torch.')} {share:.2f}")
    return f"{', '.join(figures)} of what is allowed"


def worst_share(
    got: dict[str, Tensor],
    plain: dict[str, Tensor],
    truth: dict[str, Tensor],
    dtype: torch.dtype,
    where: str,
) -> float:
    """Checks results in low precision and returns the largest share of what is allowed.

    Args:
        got: results by name; those named `gradient …` may be off by `BACKWARD` times.
        plain: the plain form's results, the same precision.
        truth: the results in float64.
        dtype: the precision.
        where: says in a message which case this is.

    Raises:
        BrokenPromiseError: an error is larger than allowed.
    """
    worst, floor = 0.0, NEGLIGIBLE * max(largest(x) for x in truth.values())
    for name, value in truth.items():
        factor = BACKWARD if name.startswith("gradient") else FORWARD
        share = bar_share(got[name], plain[name], value, factor, dtype, floor)
        if share > 1.0:
            raise BrokenPromiseError(
                f"{where}: {name} is off by {share * factor:.1f} times what plain torch is"
            )
        worst = max(worst, share)
    return worst


def dtypes(surface: Surface) -> str:
    """Outputs have the dtype of the inputs; states and gradients that of what they belong to."""
    for dtype in (torch.float64, *PRECISIONS, torch.float16):
        sample = surface.sample(5, dtype=dtype)
        inputs = {k: v.clone().requires_grad_() for k, v in sample.inputs.items()}
        y, after = sample.layer(**inputs, state=sample.state, return_state=True)
        if y.dtype != dtype:
            raise BrokenPromiseError(f"inputs of {dtype} give y of {y.dtype}")
        for name, x in surface.tensors(after).items():
            before = getattr(sample.state, name)
            fresh = getattr(sample.layer.initial_state(2, dtype=dtype), name)
            if not x.dtype == before.dtype == fresh.dtype:
                raise BrokenPromiseError(f"state {name} goes from {before.dtype} to {x.dtype}")
        y.sum().backward()
        for name, x in [*inputs.items(), *sample.layer.named_parameters()]:
            if x.grad is not None and x.grad.dtype != x.dtype:
                raise BrokenPromiseError(f"the gradient of {name} is {x.grad.dtype}")
    return ""


def autocast(surface: Surface) -> str:
    """Under autocast y is bfloat16, states stay wide, gradients float32, and nothing is NaN."""
    sample = surface.sample(20, dtype=torch.float32, state=False)
    want = _autocast_free(sample)
    inputs = {k: v.clone().requires_grad_() for k, v in sample.inputs.items()}
    with torch.autocast("cpu", torch.bfloat16):
        y, after = sample.layer(**inputs, return_state=True)
        y.sum().backward()
        again = {k: v.detach().bfloat16() for k, v in inputs.items()}
        sample.layer(**again, state=after)
    if y.dtype != torch.bfloat16:
        raise BrokenPromiseError(f"autocast to bfloat16 gives y of {y.dtype}")
    least = surface.tensors(sample.layer.initial_state(1, dtype=torch.bfloat16))
    for name, x in surface.tensors(after).items():
        if torch.promote_types(x.dtype, least[name].dtype) != x.dtype:
            raise BrokenPromiseError(f"state {name} is kept in {x.dtype}, not {least[name].dtype}")
    off = (y.double() - want).abs().max().item() / max(want.abs().max().item(), 1e-30)
    if not off < 0.1:
        raise BrokenPromiseError(f"y is off by {off:.1e} under autocast")
    return f"off by {off:.1e}"


def _autocast_free(sample: Sample) -> Tensor:
    with torch.no_grad():
        y: Tensor = sample.layer(**sample.inputs)
    return y.double()
