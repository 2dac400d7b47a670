"""How fast kernels are: beside the bytes that nothing can spare, and beside another library."""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.gpu import clock, peers
from benchmarks.gpu.material import Shape, Subject, operators


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
        **_about(shape),
        "dtype": str(dtype).removeprefix("torch."),
        "first call": clock.first(works["both"], device),
    }
    for name, work in works.items():
        floor = sum(op.floor(name == "both") for op in ops) / copy_rate
        found = _times(work, device)
        record[name] = {**found, "floor": floor, "times the floor": found["best"] / floor}
    return record


def peer(spec: str, shape: Shape, dtype: torch.dtype, device: torch.device) -> dict[str, Any]:
    """Times what flash-linear-attention has for a mixer, on its own arguments."""
    record: dict[str, Any] = {"peer": peers.fla_version(), "beside": spec, **_about(shape)}
    try:
        for name, work in peers.works(spec, shape, dtype, device).items():
            record[name] = _times(work, device)
    except LookupError as error:
        record["skipped"] = str(error)
    return record


def compiled(of: Subject, shape: Shape, dtype: torch.dtype, device: torch.device) -> dict[str, Any]:
    """Compiles what `measure` and `peer` start, which leaves it in Triton's cache."""
    record: dict[str, Any] = {"spec": of.name, **_about(shape)}
    record["first call"] = sum(
        clock.first(op.both, device) for op in operators(of, shape, dtype, device)
    )
    try:
        for name, work in peers.works(of.name, shape, dtype, device).items():
            record[f"first call of the peer, {name}"] = clock.first(work, device)
    except LookupError as error:
        record["no peer"] = str(error)
    return record


def _about(shape: Shape) -> dict[str, Any]:
    return {"shape": str(shape), "length": shape.length, "rows": shape.batch * shape.heads}


def _times(work: clock.Work, device: torch.device) -> dict[str, Any]:
    record: dict[str, Any] = {}
    # A library may do more while a graph is captured than the graph can hold.
    try:
        record["graph"] = clock.graphed(work, device)
    except RuntimeError as error:
        record["no graph"] = str(error)[:300]
    record["eager"] = clock.eager(work, device)
    record["best"] = min(record.get("graph", record["eager"]), record["eager"])
    return record | {"host": clock.host(work, device), "peak bytes": clock.peak(work, device)}
