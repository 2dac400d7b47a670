"""Random values for Systems, and `dsfc.system.evaluate` on tensors."""

from __future__ import annotations

from pathlib import Path

import torch

from dsfc.expr.declarations import Constraint, MapTensor
from dsfc.system.evaluate import evaluate
from dsfc.system.verify import verify

SPECS = Path(__file__).parents[2] / "specs"
LEFT_OUT = {"qkv", "separable", "lstm", "slstm"}
MIXERS = sorted(
    p.stem
    for p in SPECS.glob("*.dsf")
    if "\nmixer " in f"\n{p.read_text()}" and p.stem not in LEFT_OUT
)
"""Every shipped mixer but those without an output, with uninterpreted maps, or refused."""


def draw(system, length, sizes, generator):
    """Random values of all inputs, parameters and initial states."""

    def normal(shape, field):
        kind = torch.complex128 if field else torch.float64
        return torch.randn(shape, dtype=kind, generator=generator)

    def promised(value, constraint):
        """Values that keep a declaration's promise."""
        match constraint:
            case Constraint.POSITIVE | Constraint.NONNEG:
                return value.abs() + 0.3
            case Constraint.UNIT:
                return torch.sigmoid(value)
            case Constraint.NONZERO:
                return value + 0.4 * torch.sgn(value)
        return value

    values, initial = {}, {}
    for t in system.inputs:
        drawn = normal([length, *(sizes[a.name] for a in t.axes)], t.field)
        values[t.name] = promised(drawn, t.constraint)
    for t in (*system.params, *system.buffers):
        if isinstance(t, MapTensor):
            axes, field, constraint = (*t.map.each, *t.map.target, *t.map.source), t.map.field, None
        else:
            axes, field, constraint = t.axes, t.field, t.constraint
        drawn = normal([sizes[a.name] for a in axes], field) * 0.7
        values[t.name] = promised(drawn, constraint)
    for b in system.blocks:
        initial[b.state] = normal([sizes[a.name] for a in b.axes], b.field)
    return values, initial


def close(a, b):
    return (a - b).abs().max() <= 1e-11 * max(1.0, b.abs().max().item()) if b.numel() else True


def by_definition(system, length, sizes, values, initial):
    """`dsfc.system.evaluate` with the interface of `torch_system.run`; the System is verified."""
    verify(system)
    arrays = {n: v.numpy() for n, v in values.items()}
    inputs = {t.name: arrays[t.name] for t in system.inputs}
    got = evaluate(system, inputs, arrays, sizes, {n: v.numpy() for n, v in initial.items()})
    return (
        {n: torch.tensor(v) for n, v in got.outputs.items()},
        {n: torch.tensor(v) for n, v in got.finals.items()},
    )


def outputs(system, length, sizes, values, initial=None):
    """The outputs of a System by its definition."""
    return by_definition(system, length, sizes, values, initial or {})[0]
