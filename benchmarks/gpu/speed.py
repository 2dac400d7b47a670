"""How fast kernels are: beside the bytes that nothing can spare, and beside another library."""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.gpu import clock, peers
from benchmarks.gpu.material import Shape, Subject, operators
from dsfc.plan.scan_ir import Form


def measure(
    of: Subject, shape: Shape, dtype: torch.dtype, device: torch.device, copy_rate: float
) -> dict[str, Any]:
    """Times the operators of a mixer, forwards and both ways, in a graph and called one by one."""
    ops = operators(of, shape, dtype, device)
    works = {
        "forward": lambda: [op.outputs() for op in ops],
        "both": lambda: [op.both() for op in ops],
    }
    record: dict[str, Any] = {
        "spec": of.name,
        "forms": sorted(f.value for f in of.forms),
        "shape": str(shape),
        "length": shape.length,
        "rows": shape.batch * shape.heads,
        "dtype": str(dtype).removeprefix("torch."),
        "first call": clock.first(works["both"], device),
    }
    for name, work in works.items():
        floor = sum(op.floor(name == "both") for op in ops) / copy_rate
        found = _times(work, device)
        record[name] = {**found, "floor": floor, "times the floor": found["graph"] / floor}
    return record


def peer(form: Form, shape: Shape, dtype: torch.dtype, device: torch.device) -> dict[str, Any]:
    """Times what flash-linear-attention has for a form, on its own arguments."""
    record: dict[str, Any] = {
        "peer": peers.fla_version(),
        "form": form.value,
        "shape": str(shape),
        "length": shape.length,
        "rows": shape.batch * shape.heads,
    }
    try:
        for name, work in peers.works(form, shape, dtype, device).items():
            record[name] = _times(work, device)
    except LookupError as error:
        record["skipped"] = str(error)
    return record


def _times(work: clock.Work, device: torch.device) -> dict[str, Any]:
    return {
        "graph": clock.graphed(work, device),
        "eager": clock.eager(work, device),
        "host": clock.host(work, device),
        "peak bytes": clock.peak(work, device),
    }
