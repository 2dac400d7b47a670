"""The planned gradient of a scan is the derivative of the scan, and that of its System."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from dsfc.backends.torch.code import Code
from dsfc.backends.torch.nodes import Printer
from material import draw
from shipped_specs import PLANNED
from unusual_specs import COMPILED, thirds

from dsfc.expr.tree import Field
from dsfc.plan.evaluate import evaluate
from dsfc.plan.evaluate_adjoint import evaluate_adjoint
from dsfc.plan.ir import Role
from dsfc.plan.scan_ir import Factor, Scan
from dsfc.system.evaluate import evaluate as evaluate_system
from dsfc.transform.adjoint import adjoint

LENGTH = 5


def over(x: torch.Tensor, axes, tile) -> torch.Tensor:
    """A tensor over some of the axes of a tile, ready to be multiplied with one over all."""
    sizes = dict(zip(axes, x.shape, strict=True))
    return x.reshape([sizes.get(a, 1) for a in tile])


class Literal:
    """One scan, run token by token in torch."""

    def __init__(self, plan, scan: Scan, tensors: dict[str, torch.Tensor]) -> None:
        self.buffers = {b.name: b for b in plan.arrays}
        self.scan, self.tensors = scan, tensors

    def at(self, name: str | None, i: int, tile) -> torch.Tensor:
        if name is None:
            return torch.ones((), dtype=torch.float64)
        b = self.buffers[name]
        x = self.tensors[name]
        return over(x if b.role is Role.CONSTANT else x[i], b.axes, tile)

    def decay(self, i: int, tile) -> torch.Tensor:
        if self.scan.decay is None:
            return torch.ones((), dtype=torch.float64)
        names: dict[str, torch.Tensor] = {}

        def ref(e) -> Code:
            b = self.buffers[e.name]
            variable = f"leaf_{len(names)}"
            names[variable] = self.tensors[e.name][i if b.role is not Role.CONSTANT else ...]
            return Code(variable, b.axes, False)

        code = Printer(ref, {}, "").print(self.scan.decay.expr)
        space = {"torch": torch, "F": torch.nn.functional, **names}
        return torch.exp(over(eval(code.text, space), code.axes, tile))

    def mixed(self, h: torch.Tensor, tile) -> torch.Tensor:
        """A dense transition's Λ h; h where there is none."""
        dense = self.scan.transition
        if dense is None:
            return h
        letter = {a: chr(97 + k) for k, a in enumerate((*tile, *dense.columns))}
        into = {**letter, **{a: letter[b] for a, b in zip(dense.rows, dense.columns, strict=True)}}
        matrix = "".join(letter[a] for a in self.buffers[dense.matrix].axes)
        before, after = ("".join(table[a] for a in tile) for table in (into, letter))
        matrices = self.tensors[dense.matrix].to(h.dtype)
        return torch.einsum(f"{matrix},{before}->{after}", matrices, h)

    def run(self, initial: dict[str, torch.Tensor]):
        """Each column's output and last state."""
        scan, outs, finals = self.scan, {}, {}
        for c in scan.columns:
            tile = tuple(sorted((*scan.heads, *scan.keys, *c.channels)))
            summed = [k for k, a in enumerate(tile) if a in scan.keys]
            h, rows = initial[c.state], []
            for i in range(LENGTH):
                before = h
                h = self.decay(i, tile) * self.mixed(h, tile)
                written = self.at(c.value, i, tile)
                if scan.delta is not None:
                    found = (self.at(scan.key, i, tile) * h).sum(summed, True)
                    written = written + self.at(scan.delta.strength, i, tile) * found
                h = h + self.at(scan.key, i, tile) * written
                if scan.low_rank is not None:
                    wy = (self.at(scan.low_rank.right, i, tile) * before).sum(summed, True)
                    h = h + self.at(scan.low_rank.left, i, tile) * wy
                read = self.at(scan.read, i, tile) * (before if scan.before else h)
                row = read.sum(dim=summed) if summed else read
                rows.append(row.real if scan.real else row)
            outs[c.output], finals[c.state] = torch.stack(rows), h
        return outs, finals


def check(spec) -> None:
    plan, material = spec.plan, draw(spec, LENGTH)
    run = evaluate(plan, material.inputs, material.tensors, material.sizes, material.initial)
    rng = np.random.default_rng(7)
    scans = [k for k in plan.kernels if isinstance(k, Scan)]
    assert [a.scan for a in plan.adjoints] == [s.name for s in scans]
    for scan, back in zip(scans, plan.adjoints, strict=True):
        names = [n for n in (scan.key, scan.read, *(c.value for c in scan.columns)) if n]
        names += scan.decay.leaves if scan.decay is not None else ()
        names += sides(scan)
        names += [] if scan.transition is None else [scan.transition.matrix]
        # One array may play several roles (q = k): each role has a gradient of its own.
        if len(set(names)) < len(names):
            continue
        tensors = {n: torch.tensor(run.arrays[n]).requires_grad_() for n in names}
        initial = {c.state: like(scan, material.initial[c.state]) for c in scan.columns}
        starts = {n: torch.tensor(x).requires_grad_() for n, x in initial.items()}
        outs, finals = Literal(plan, scan, tensors).run(starts)
        for name, value in outs.items():
            np.testing.assert_allclose(value.detach(), run.arrays[name], atol=1e-12)
        cotangent = {n: drawn(rng, v) for n, v in outs.items()}
        final_bar = {n: drawn(rng, v) for n, v in finals.items()}
        loss = sum((torch.tensor(cotangent[n]) * v).sum().real for n, v in outs.items())
        loss = loss + sum((torch.tensor(final_bar[n]) * v).sum().real for n, v in finals.items())
        leaves = {**tensors, **starts}
        # dL = Re Σ x̄ dx; PyTorch's gradient is the conjugate of x̄.
        gradients = (g.conj() for g in torch.autograd.grad(loss, leaves.values()))
        want = dict(zip(leaves, gradients, strict=True))
        got = evaluate_adjoint(plan, scan, back, run, material.sizes, cotangent, initial, final_bar)
        roles = roles_of(scan)
        axes = {b.name: b.axes for b in plan.arrays}
        for name, gradient in want.items():
            found = got[roles.get(name, name)]
            if name in axes:
                found = summed_onto(found, scan, roles.get(name), axes[name], gradient.ndim)
            if not gradient.is_complex():
                found = found.real
            gradient = gradient.resolve_conj()
            np.testing.assert_allclose(found, gradient, atol=1e-11, err_msg=f"{scan.name} {name}")


def sides(scan: Scan) -> list[str]:
    """Buffers of a low-rank part or a delta rule."""
    if scan.delta is not None:
        return [scan.delta.strength]
    return [] if scan.low_rank is None else [scan.low_rank.left, scan.low_rank.right]


def roles_of(scan: Scan) -> dict[str | None, Factor]:
    """Buffer → role, of those whose gradients go by their role."""
    of = (Factor.STRENGTH,) if scan.delta is not None else (Factor.LEFT, Factor.RIGHT)
    both = dict(zip(sides(scan), of, strict=False))
    return {scan.key: Factor.KEY, scan.read: Factor.READ, **both}


def like(scan: Scan, state: np.ndarray) -> np.ndarray:
    """A state in the scan's field."""
    return state.astype(complex) if scan.field is Field.COMPLEX else state


def drawn(rng: np.random.Generator, like: torch.Tensor) -> np.ndarray:
    """Noise in a tensor's shape and field."""
    noise = rng.normal(size=like.shape)
    return noise + 1j * rng.normal(size=like.shape) if like.is_complex() else noise


def summed_onto(x: np.ndarray, scan: Scan, role: Factor | None, axes, ndim: int) -> np.ndarray:
    """A gradient over all axes of its role, summed onto those that the buffer has."""
    if x.ndim == ndim:
        return x
    inner = () if role is Factor.STRENGTH else scan.keys if role else scan.channels
    whole = sorted((*scan.heads, *inner))
    x = x.sum(axis=tuple(k + 1 for k, a in enumerate(whole) if a not in axes))
    return x if x.ndim == ndim else x.sum(axis=0)


@pytest.mark.share(5)
@pytest.mark.parametrize("name", PLANNED)
def test_shipped_adjoints_are_the_derivatives(name: str, shipped) -> None:
    check(shipped(name))


@pytest.mark.share(5, ci=20)
@pytest.mark.parametrize("name", thirds((), pytest.mark.ci))
def test_unusual_adjoints_are_the_derivatives(name: str, load) -> None:
    check(load(name, COMPILED[name]))


# Every argument of the scan is an input, so the System's gradients are the scan's.
BARE = {
    "matrix": """dims heads h = 2, n = 3, p = 2
      input q, k : h × n; v : h × p; g : h
      state S : h × n × p
      S = exp(g) * S[i-1] + k ⊗ v; y = q · S""",
    "matrix_without_decay": """dims heads h = 2, n = 3, p = 2
      input q, k : h × n; v : h × p
      state S : h × n × p
      S = S[i-1] + k ⊗ v; y = q · S""",
    "low_rank": """dims heads h = 2, n = 3, p = 2
      input q, k, a, b : h × n; v : h × p; g : h
      state S : h × n × p
      S = exp(g) * S[i-1] + a ⊗ (b · S[i-1]) + k ⊗ v; y = q · S""",
    "low_rank_without_decay": """dims heads h = 2, n = 3, p = 2
      input q, k, a, b : h × n; v : h × p
      state S : h × n × p
      S = S[i-1] + a ⊗ (b · S[i-1]) + k ⊗ v; y = q · S""",
    "low_rank_read_before": """dims heads h = 2, n = 3, p = 2
      input q, k, a, b : h × n; v : h × p; g : h
      state S : h × n × p
      S = exp(g) * S[i-1] + a ⊗ (b · S[i-1]) + k ⊗ v; y = q · S[i-1]""",
    "low_rank_by_key": """dims heads h = 2, n = 3, p = 2
      input q, k, a, b, g : h × n; v : h × p
      state S : h × n × p
      S = exp(g) * S[i-1] + a ⊗ (b · S[i-1]) + k ⊗ v; y = q · S""",
    "delta": """dims heads h = 2, n = 3, p = 2
      input q, k : h × n; v : h × p; g, r : h
      state S : h × n × p
      F = exp(g) * S[i-1]; S = F + k ⊗ (v + r * (k · F)); y = q · S""",
    "delta_without_decay": """dims heads h = 2, n = 3, p = 2
      input q, k : h × n; v : h × p; r : h
      state S : h × n × p
      S = S[i-1] + r * k ⊗ (k · S[i-1]) + k ⊗ v; y = q · S""",
    "delta_read_before": """dims heads h = 2, n = 3, p = 2
      input q, k : h × n; v : h × p; g, r : h
      state S : h × n × p
      F = exp(g) * S[i-1]; S = F + k ⊗ (v + r * (k · F)); y = q · S[i-1]""",
    "delta_by_key": """dims heads h = 2, n = 3, p = 2
      input q, k, g : h × n; v : h × p; r : h
      state S : h × n × p
      F = exp(g) * S[i-1]; S = F + k ⊗ (v + r * (k · F)); y = q · S""",
    "selective": """dims d = 2, n = 3
      input q, k : n; v, r : d
      param a : d × n
      state S : d × n
      S = exp(r * a) * S[i-1] + v ⊗ k; y = q · S""",
    "elementwise": """dims d = 3
      input v, g : d
      state S : d
      S = exp(g) * S[i-1] + v; y = S""",
}


@pytest.mark.parametrize("name", BARE)
def test_a_scan_has_the_gradients_of_its_system(name: str, load) -> None:
    spec = load(name, BARE[name])
    plan, material = spec.plan, draw(spec, LENGTH)
    (scan,) = (k for k in plan.kernels if isinstance(k, Scan))
    assert name.startswith(scan.form.value.removeprefix("keyed_"))
    run = evaluate(plan, material.inputs, material.tensors, material.sizes, material.initial)
    rng = np.random.default_rng(7)
    y_bar = rng.normal(size=run.arrays[plan.output].shape)
    S_bar = rng.normal(size=run.finals["S"].shape)
    back, record = adjoint(spec.system)
    called = dict(record.names)
    sizes = material.sizes | {
        d.axis.name: material.sizes[d.axis.copy_of] for d in back.axes if d.axis.copy_of
    }
    want = evaluate_system(
        back,
        material.inputs | {called["y"]: y_bar},
        material.tensors,
        sizes,
        material.initial | {called["S"]: S_bar},
    )
    (column,) = scan.columns
    got = evaluate_adjoint(
        plan,
        scan,
        plan.adjoints[0],
        run,
        sizes,
        {column.output: y_bar},
        material.initial,
        {"S": S_bar},
    )
    roles = roles_of(scan)
    for name in material.inputs:
        gradient = want.outputs[called[name]]
        np.testing.assert_allclose(got[roles.get(name, name)], gradient, atol=1e-12, err_msg=name)
    np.testing.assert_allclose(got["S"], want.finals[called["S"]], atol=1e-12)
    for t in plan.params:
        (leaf,) = (b.name for b in plan.arrays if b.role is Role.CONSTANT)
        np.testing.assert_allclose(got[leaf], want.outputs[called[t.name]], atol=1e-12)
