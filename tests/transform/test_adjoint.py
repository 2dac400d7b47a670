"""The adjoint of a System computes the float64 derivative of the System."""

from __future__ import annotations

import hand_built
import pytest
import torch
from torch_system import run

from dsfc.transform.adjoint import adjoint


def draw(system, length, sizes, generator):
    """Random values of all inputs, parameters and initial states."""

    def normal(shape, field):
        kind = torch.complex128 if field else torch.float64
        return torch.randn(shape, dtype=kind, generator=generator)

    values, initial = {}, {}
    for t in system.inputs:
        values[t.name] = normal([length, *(sizes[a.name] for a in t.axes)], t.field)
    for t in (*system.params, *system.buffers):
        axes = (*t.map.each, *t.map.target, *t.map.source) if hasattr(t, "map") else t.axes
        field = t.map.field if hasattr(t, "map") else t.field
        values[t.name] = normal([sizes[a.name] for a in axes], field) * 0.7
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
    expected = derivative(system, length, sizes, values, initial, seeds)
    back, record = adjoint(system)
    names = dict(record.names)
    sizes = sizes | {d.axis.name: sizes[d.axis.copy_of] for d in back.axes if d.axis.copy_of}
    given = values | {names[o]: seeds[o] for o in outputs}
    starts = initial | {names[s]: seeds[s] for s in final}
    got, ends = evaluate(back, length, sizes, given, starts)
    for name, gradient in expected.items():
        found = ends[names[name]] if name in initial else got[names[name]]
        assert found.shape == gradient.shape, name
        assert close(found, gradient), (name, (found - gradient).abs().max())


@pytest.mark.parametrize("length", [0, 1, 2, 5])
@pytest.mark.parametrize("name", hand_built.ALL)
def test_adjoint_is_the_derivative(name, length):
    check(hand_built.ALL[name], length, hand_built.SIZES)
