"""The adjoint of a System computes the float64 derivative of the System."""

from __future__ import annotations

from pathlib import Path

import hand_built
import pytest
import torch
from torch_system import run

from dsfc.primitives.declarations import Constraint, MapTensor
from dsfc.system.evaluate import evaluate
from dsfc.transform.adjoint import adjoint

SPECS = Path(__file__).parents[2] / "specs"
LEFT_OUT = {"qkv", "separable", "lstm"}
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


def derivative(system, length, sizes, values, initial, seeds):
    """Gradients by autograd: of values and initial states, for cotangents of outputs and states."""
    leaves = {n: v.clone().requires_grad_() for n, v in values.items()}
    starts = {n: v.clone().requires_grad_() for n, v in initial.items()}
    outputs, final = run(system, length, sizes, leaves, starts)
    loss = sum((seeds[n].conj() * v).sum().real for n, v in (outputs | final).items())
    names = [*leaves, *starts]
    tensors = [*leaves.values(), *starts.values()]
    grads = torch.autograd.grad(loss, tensors, allow_unused=True)
    zero = (torch.zeros_like(t) for t in tensors)
    return dict(
        zip(names, (z if g is None else g for g, z in zip(grads, zero, strict=True)), strict=True)
    )


def close(a, b):
    return (a - b).abs().max() <= 1e-11 * max(1.0, b.abs().max().item()) if b.numel() else True


def check(system, length, sizes, seed=0, evaluate=run):
    generator = torch.Generator().manual_seed(seed)
    values, initial = draw(system, length, sizes, generator)
    outputs, final = run(system, length, sizes, values, initial)
    seeds = {
        n: torch.randn(v.shape, dtype=v.dtype, generator=generator)
        for n, v in (outputs | final).items()
    }
    buffers = {t.name for t in system.buffers}
    expected = derivative(system, length, sizes, values, initial, seeds)
    back, record = adjoint(system)
    names = dict(record.names)
    sizes = sizes | {d.axis.name: sizes[d.axis.copy_of] for d in back.axes if d.axis.copy_of}
    given = values | {names[o]: seeds[o] for o in outputs}
    starts = initial | {names[s]: seeds[s] for s in final}
    got, ends = evaluate(back, length, sizes, given, starts)
    for name, gradient in expected.items():
        if name in buffers:
            continue
        found = ends[names[name]] if name in initial else got[names[name]]
        assert found.shape == gradient.shape, name
        assert close(found, gradient), (name, (found - gradient).abs().max())


def by_definition(system, length, sizes, values, initial):
    """`dsfc.system.evaluate` with the interface of `torch_system.run`."""
    arrays = {n: v.numpy() for n, v in values.items()}
    inputs = {t.name: arrays[t.name] for t in system.inputs}
    got = evaluate(system, inputs, arrays, sizes, {n: v.numpy() for n, v in initial.items()})
    return (
        {n: torch.tensor(v) for n, v in got.outputs.items()},
        {n: torch.tensor(v) for n, v in got.finals.items()},
    )


@pytest.mark.parametrize("judge", [run, by_definition])
@pytest.mark.parametrize("length", [0, 1, 2, 5])
@pytest.mark.parametrize("name", hand_built.ALL)
def test_adjoint_is_the_derivative(name, length, judge):
    check(hand_built.ALL[name], length, hand_built.SIZES, evaluate=judge)


@pytest.mark.parametrize("name", MIXERS)
def test_adjoint_of_every_spec(name, derived):
    system = derived(name)
    sizes = {d.axis.name: 2 for d in system.axes}
    check(system, 4, sizes, evaluate=by_definition)


@pytest.mark.parametrize("name", ["normalized_attn", "ssd", "s6", "gated_deltanet"])
def test_only_what_is_asked_for(name, derived):
    back, record = adjoint(derived(name), wrt=("u",))
    assert [o.name for o in back.outputs] == [record.renamed("u")]
