"""Compares the adjoint of a System with the derivative that autograd takes of it."""

from __future__ import annotations

import torch
from draws import close, draw
from torch_system import run

from dsfc.system.verify import verify
from dsfc.transform.adjoint import adjoint


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
    verify(back)
    names = dict(record.names)
    sizes = sizes | {d.axis.name: sizes[d.axis.copy_of] for d in back.axes if d.axis.copy_of}
    given = values | {names[o]: seeds[o] for o in outputs}
    starts = initial | {names[s]: seeds[s] for s in final}
    got, ends = evaluate(back, length, sizes, given, starts)
    for name, gradient in expected.items():
        if name in buffers:
            continue
        found = ends[names[name]] if name in initial else got[names[name]]
        if name in initial and not gradient.is_complex():
            found = found.real  # of a real state that feeds a complex one
        assert found.shape == gradient.shape, name
        if length and f"{name}_initial_bar" in got:
            assert close(got[f"{name}_initial_bar"], gradient), name
        assert close(found, gradient), (name, (found - gradient).abs().max())
