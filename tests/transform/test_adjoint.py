"""The adjoint of a System computes the float64 derivative of the System."""

from __future__ import annotations

import hand_built
import pytest
import torch
from draws import MIXERS, by_definition, close, draw
from gradients import check
from torch_system import run

from dsfc.expr.build import num, prim
from dsfc.expr.declarations import MapTensor, Tensor
from dsfc.expr.tree import Field, Fir, Map
from dsfc.system.ir import Block, Direction, Stage, Stream, Sum
from dsfc.transform.adjoint import adjoint


@pytest.mark.share(5)
@pytest.mark.parametrize("judge", [run, by_definition])
@pytest.mark.parametrize("length", [0, 1, 2, 5])
@pytest.mark.parametrize("name", hand_built.ALL)
def test_adjoint_is_the_derivative(name, length, judge):
    check(hand_built.ALL[name], length, hand_built.SIZES, evaluate=judge)


@pytest.mark.share(5)
@pytest.mark.parametrize("name", MIXERS)
def test_adjoint_of_every_spec(name, derived):
    system = derived(name)
    sizes = {d.axis.name: 2 for d in system.axes}
    check(system, 4, sizes, evaluate=by_definition)


@pytest.mark.share(5)
@pytest.mark.parametrize("name", MIXERS)
def test_adjoint_is_the_derivative_of_the_oracle(name, derived, oracle):
    system, module = derived(name), oracle(name)
    sizes = {d.axis.name: module.DIMS.get(d.axis.name, 0) for d in system.axes}
    sizes |= {d.axis.name: sizes[d.axis.copy_of] for d in system.axes if d.axis.copy_of}
    values, _ = draw(system, 5, sizes, torch.Generator().manual_seed(1))
    inputs = {t.name for t in system.inputs}
    leaves = {n: v.clone().requires_grad_() for n, v in values.items()}
    given = {n: v[None] if n in inputs else v for n, v in leaves.items()}
    y, _ = module.forward(given, module.DIMS)
    seed = torch.randn(y.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    wanted = [t.name for t in (*system.inputs, *system.params)]
    loss = (seed * y).sum()
    expected = torch.autograd.grad(loss, [leaves[n] for n in wanted], allow_unused=True)
    back, record = adjoint(system)
    got, _ = by_definition(back, 5, sizes, values | {record.renamed("y"): seed[0]}, {})
    for n, gradient in zip(wanted, expected, strict=True):
        found = got[record.renamed(n)]
        assert close(found, torch.zeros_like(found) if gradient is None else gradient), n


def test_the_adjoint_of_the_adjoint_of_a_linear_system_is_the_system():
    # y = F(u) is linear: the adjoint with respect to u is Fᴴ, and its adjoint is F again.
    system = linear_system()
    back, record = adjoint(system, wrt=("u",))
    again, twice = adjoint(back, wrt=(record.renamed("y"),))
    values, _ = draw(system, 6, hand_built.SIZES, torch.Generator().manual_seed(0))
    y_bar, u_bar = record.renamed("y"), back.outputs[0].name
    given = {y_bar: torch.zeros(6, 3, dtype=torch.float64), twice.renamed(u_bar): values["u"]}
    got, _ = by_definition(again, 6, hand_built.SIZES, values | given, {})
    want, _ = by_definition(system, 6, hand_built.SIZES, values, {})
    assert close(got[twice.renamed(y_bar)], want["y"])


def linear_system():
    d, n, t = hand_built.D, hand_built.N, hand_built.T
    lam = prim("tanh", hand_built.param("a", d, n))
    drive = (hand_built.param("B", d, n), hand_built.ref("f", d))
    forward = hand_built.block("x", (d, n), hand_built.diagonal("x", lam, drive))
    step = hand_built.diagonal("z", num(1), (num(2), hand_built.U), lag=-1)
    backward = Block("z", (d,), Field.REAL, (step,), None)
    y = Sum(
        (
            hand_built.read("x", hand_built.param("C", d, n), (n,), direct=hand_built.U),
            hand_built.read("z", num(1), (), lag=-1),
        )
    )
    filtered = Stream("f", Fir(t, hand_built.param("taps", d, t), hand_built.U), (d,), Field.REAL)
    params = (*(Tensor(name, (d, n)) for name in ("a", "B", "C")), Tensor("taps", (d, t)))
    stages = (hand_built.forward(forward), Stage(Direction.BACKWARD, (backward,)))
    return hand_built.system("linear", (filtered,), stages, y, (d,), params)


def test_a_group_of_queries_shares_its_keys():
    # Σ_n q[g, n] S[n, p]: the right side of a read may have axes that the state lacks
    g, n, p, d = hand_built.H, hand_built.N, hand_built.P, hand_built.D
    w_q, w_k, w_v = (
        hand_built.linear(name, (d,), axes)
        for name, axes in (("W_Q", (g, n)), ("W_K", (n,)), ("W_V", (p,)))
    )
    q, k, v = (Map(m, hand_built.U) for m in (w_q, w_k, w_v))
    block = hand_built.block("S", (n, p), hand_built.diagonal("S", prim("sigmoid", k), (k, v)))
    params = tuple(MapTensor(m) for m in (w_q, w_k, w_v))
    y = hand_built.read("S", q, (n,))
    system = hand_built.system("group", (), (hand_built.forward(block),), y, (g, p), params)
    check(system, 4, hand_built.SIZES, evaluate=by_definition)


def test_outputs_over_time_have_no_adjoint():
    back, _ = adjoint(hand_built.ALL["attention"])
    with pytest.raises(ValueError, match="summed over time"):
        adjoint(back)


def test_uninterpreted_maps_have_no_derivative(derived):
    with pytest.raises(TypeError, match="uninterpreted"):
        adjoint(derived("separable"))


@pytest.mark.parametrize("name", ["normalized_attn", "ssd", "s6", "gated_deltanet"])
def test_only_what_is_asked_for(name, derived):
    back, record = adjoint(derived(name), wrt=("u",))
    assert [o.name for o in back.outputs] == [record.renamed("u")]
