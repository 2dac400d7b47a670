"""Whether kernels are right: their error beside that of the torch form in the same precision."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from benchmarks.gpu.material import Operator, Shape, Subject, in_torch, operators
from dsfc.plan.ir import Form, Scan
from dsfc.primitives.expr import Field
from dsfc.validate.compare import BrokenPromiseError, Error, bar_share, errors

_DRAWS = 3


def check(
    of: Subject, shape: Shape, dtype: torch.dtype, device: torch.device, draws: int = _DRAWS
) -> dict[str, Any]:
    """Compares the results of all operators with float64, and says how near the bar they are.

    Outputs may be off by twice, gradients by three times what the torch form is off by.
    """
    kernels: list[dict[str, Error]] = []
    plain: list[dict[str, Error]] = []
    for seed in range(draws):
        made = operators(of, shape, dtype, device, seed)
        for number, (op, count) in enumerate(zip(made, _outputs(of), strict=True)):
            with in_torch(of.module):
                truth = _named(op.widened(), number, count)
                plain.append(errors(_named(op, number, count), truth))
            kernels.append(errors(_named(op, number, count), truth))
    record: dict[str, Any] = {
        "spec": of.name,
        "shape": str(shape),
        "dtype": str(dtype).removeprefix("torch."),
        "largest error": max(e.size / e.scale if e.scale else e.size for e in _all(kernels)),
        "largest error of torch": max(e.size / e.scale if e.scale else e.size for e in _all(plain)),
    }
    try:
        record["share of what is allowed"] = bar_share(kernels, plain, dtype, str(shape))
    except BrokenPromiseError as error:
        record["wrong"] = str(error)
    return record


def _outputs(of: Subject) -> list[int]:
    """How many outputs of each operator mean something: others are kept for its gradient.

    They are the read of a scan and its last state; the read of a complex elementwise one is two.
    """
    scans = [k for k in of.plan.kernels if isinstance(k, Scan)]
    pairs = ((k.form is Form.ELEMENTWISE and k.field is Field.COMPLEX) for k in scans)
    return [3 if pair else 2 for pair in pairs]


def _named(op: Operator, number: int, count: int) -> dict[str, Tensor]:
    found = {f"y{number} {k}": x for k, x in enumerate(op.outputs()[:count])}
    return found | {f"gradient{number} {k}": x for k, x in enumerate(op.gradients())}


def _all(draws: list[dict[str, Error]]) -> list[Error]:
    return [e for draw in draws for e in draw.values()]
