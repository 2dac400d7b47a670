"""Whether kernels are right: their error beside that of the torch form in the same precision."""

from __future__ import annotations

from math import isfinite
from typing import Any

import torch
from torch import Tensor

from benchmarks.gpu.material import Operator, Shape, Subject, in_torch, operators
from dsfc.validate.compare import BrokenPromiseError, Error, bar_share, errors

FLOAT32 = 1e-5
"""The error that a result may always have in float32, as a share of its largest entry."""

_DRAWS = 3


def check(
    of: Subject, shape: Shape, dtype: torch.dtype, device: torch.device, draws: int = _DRAWS
) -> dict[str, Any]:
    """Compares the results of all operators with float64, and says how near the bar they are.

    Outputs may be off by twice, gradients by three times what the torch form is off by. That form
    takes and gives numbers of the precision but has wider ones between, so a bar of this kind is
    lower than one made of a loop that rounds everything. In float32 both are mostly off by a few
    units in the last place, whose ratio is a lottery: what is off by less than `FLOAT32` is right.
    """
    kernels: list[dict[str, Error]] = []
    plain: list[dict[str, Error]] = []
    for seed in range(draws):
        kernels.append({})
        plain.append({})
        for number, op in enumerate(operators(of, shape, dtype, device, seed)):
            with in_torch(of.module):
                # What is kept for the gradient of kernels alone is empty in torch.
                some = [k for k, x in enumerate(op.outputs()) if x.numel()]
                truth = _named(op.widened(), number, some)
                plain[-1] |= errors(_named(op, number, some), truth)
            kernels[-1] |= errors(_named(op, number, some), truth)
    record: dict[str, Any] = {
        "spec": of.name,
        "shape": str(shape),
        "dtype": str(dtype).removeprefix("torch."),
        "largest error": max(e.size / e.scale if e.scale else e.size for e in _all(kernels)),
        "largest error of torch": max(e.size / e.scale if e.scale else e.size for e in _all(plain)),
    }
    if not all(isfinite(e.size) for e in _all(plain)):
        record["wrong"] = f"{shape}: plain torch is not finite, and nothing is learnt"
        return record
    least = record["largest error"] / FLOAT32
    try:
        record["share of what is allowed"] = bar_share(kernels, plain, dtype, str(shape))
    except BrokenPromiseError as error:
        if dtype == torch.float32 and least <= 1:
            record["share of what is allowed"] = least
        else:
            record["wrong"] = str(error)
    return record


def _named(op: Operator, number: int, some: list[int]) -> dict[str, Tensor]:
    outputs = op.outputs()
    found = {f"y{number} {k}": outputs[k] for k in some}
    return found | {f"gradient{number} {k}": x for k, x in enumerate(op.gradients())}


def _all(draws: list[dict[str, Error]]) -> list[Error]:
    return [e for draw in draws for e in draw.values()]
