"""Promises about float32 and bfloat16: as accurate as plain torch, states kept wide.

The yardstick is the module's own definition, written as plain torch and run in the low precision
with autograd; the truth is the same definition in float64 on the same (rounded) parameters.
"""

from __future__ import annotations

import copy
import dataclasses

import torch
from torch import Tensor

from dsfc.validate.compare import BrokenPromiseError, Error, bar_share, errors
from dsfc.validate.surface import Sample, Surface
from dsfc.validate.values import defined, outcome

PRECISIONS = (torch.float32, torch.bfloat16)

_LENGTH, _CHUNK, _DRAWS = 50, 8, 8


def low_precision(surface: Surface) -> str:
    """Errors are at most 2 times (gradients: 3 times) those of plain torch in the same dtype."""
    figures = []
    for dtype in PRECISIONS:
        plain: list[dict[str, Error]] = []
        got: dict[str, list[dict[str, Error]]] = {mode: [] for mode in surface.modes}
        for seed in range(_DRAWS):
            sample = surface.sample(_LENGTH, dtype=dtype, state=False, seed=seed)
            wide = dataclasses.replace(
                sample,
                layer=copy.deepcopy(sample.layer).double(),
                inputs={k: v.double() for k, v in sample.inputs.items()},
            )
            truth = defined(surface, wide)
            plain.append(errors(defined(surface, sample, dtype=dtype), truth))
            for mode, found in got.items():
                found.append(
                    errors(outcome(surface, sample, mode, _CHUNK, output_only=True), truth)
                )
        share = max(
            bar_share(found, plain, dtype, f"{mode}, {dtype}") for mode, found in got.items()
        )
        figures.append(f"{str(dtype).removeprefix('torch.')} {share:.2f}")
    return f"{', '.join(figures)} of what is allowed"


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
