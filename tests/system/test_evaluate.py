"""The interpreter of Systems against loops written out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dsfc.expr.build import ONE, mul, num, prim
from dsfc.expr.declarations import MapTensor
from dsfc.expr.over_time import Lag, Past, Relation
from dsfc.expr.tree import Axis, Bound, Expr, Field, Now, Pow, Ref, Time
from dsfc.system.evaluate import evaluate
from dsfc.system.ir import (
    Block,
    Cache,
    Cast,
    ComplexPart,
    Decay,
    Direct,
    Direction,
    Drive,
    Factor,
    Gate,
    LogForm,
    Output,
    Post,
    Product,
    Read,
    Stage,
    Sum,
    SumOver,
    Term,
)

SIZES = {"d": 5, "h": 2, "n": 3, "p": 4}
L = 6
NONE: frozenset[Axis] = frozenset()


def drawn(system, seed=0):
    generator = np.random.default_rng(seed)
    params = {
        t.name: generator.normal(
            0, 0.5, [SIZES[a.name] for a in (*t.map.each, *t.map.target, *t.map.source)]
        )
        for t in system.params
    }
    return {"u": generator.normal(0, 1, (L, SIZES["d"]))}, params


def projected(inputs, params, name):
    return np.tensordot(inputs["u"], params[name], axes=(1, params[name].ndim - 1))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def near(a, b):
    return a.shape == b.shape and np.allclose(a, b, rtol=1e-12, atol=1e-12)


def test_a_gate_over_a_read(systems):
    inputs, params = drawn(systems["normalized"])
    q, k, v = (projected(inputs, params, n) for n in ("W_Q", "W_K", "W_V"))
    eta = np.exp(projected(inputs, params, "w_eta"))
    start = np.random.default_rng(1).normal(size=(2, 3, 4))
    s, want = start, []
    for i in range(L):
        s = s + np.einsum("hn,hp->hnp", k[i], v[i])
        want.append(np.einsum("hn,hnp->hp", q[i], s) / eta[i][:, None])
    got = evaluate(systems["normalized"], inputs, params, SIZES, {"S": start})
    assert near(got.outputs["y"], np.stack(want))
    assert near(got.finals["S"], s)
    assert near(got.streams["eta"], eta)
    assert got.states["S"].shape == (L, 2, 3, 4)


def test_a_guarded_ratio_of_two_stages(systems):
    inputs, params = drawn(systems["ratio"])
    q, k, v = (projected(inputs, params, n) for n in ("W_Q", "W_K", "W_V"))
    w = sigmoid(-projected(inputs, params, "W_w"))
    s, z, want = np.zeros((2, 3, 4)), np.zeros((2, 3)), []
    for i in range(L):
        s = w[i][..., None] * s + np.einsum("hn,hp->hnp", k[i], v[i])
        z = w[i] * z + k[i]
        below = np.maximum(np.abs((q[i] * z).sum(-1)), 1)
        want.append(np.einsum("hn,hnp->hp", q[i], s) / below[:, None])
    got = evaluate(systems["ratio"], inputs, params, SIZES)
    assert near(got.outputs["y"], np.stack(want))


def test_a_chain_applies_its_factors_in_order(systems):
    inputs, params = drawn(systems["delta"])
    q, k, v = (projected(inputs, params, n) for n in ("W_Q", "W_K", "W_V"))
    beta, alpha = projected(inputs, params, "w_beta"), sigmoid(projected(inputs, params, "w_alpha"))
    s, want = np.zeros((2, 3, 4)), []
    for i in range(L):
        f = alpha[i][:, None, None] * s
        new = beta[i][:, None] * (v[i] - np.einsum("hn,hnp->hp", k[i], f))
        s = f + np.einsum("hn,hp->hnp", k[i], new)
        want.append(np.einsum("hn,hnp->hp", q[i], s))
    assert near(evaluate(systems["delta"], inputs, params, SIZES).outputs["y"], np.stack(want))


def test_a_read_before_the_update_sees_the_initial_state(systems):
    inputs, params = drawn(systems["before"])
    q, k, v = (projected(inputs, params, n) for n in ("W_Q", "W_K", "W_V"))
    alpha = projected(inputs, params, "w_alpha")
    start = np.random.default_rng(1).normal(size=(2, 3, 4))
    s, want = start, []
    for i in range(L):
        direct = (q[i] * k[i]).sum(-1)[:, None] * v[i]
        want.append(np.einsum("hn,hnp->hp", q[i], s) + direct)
        key = (1 - alpha[i])[:, None] * k[i]
        s = alpha[i][:, None, None] * s + np.einsum("hn,hp->hnp", key, v[i])
    got = evaluate(systems["before"], inputs, params, SIZES, {"S": start})
    assert near(got.outputs["y"], np.stack(want))


def test_a_backward_stage_runs_from_the_end(systems):
    inputs, params = drawn(systems["both_ways"])
    q, k, v = (projected(inputs, params, n) for n in ("W_Q", "W_K", "W_V"))
    alpha = projected(inputs, params, "w_alpha")[..., None, None]
    outer = np.einsum("lhn,lhp->lhnp", k, v)
    ahead, back = np.zeros((L + 1, 2, 3, 4)), np.zeros((L + 1, 2, 3, 4))
    for i in range(L):
        ahead[i] = alpha[i] * ahead[i - 1] + outer[i]
    for i in reversed(range(L)):
        back[i] = alpha[i] * back[i + 1] + outer[i]
    want = np.einsum("lhn,lhnp->lhp", q, ahead[:L] + back[1:])
    got = evaluate(systems["both_ways"], inputs, params, SIZES)
    assert near(got.outputs["y"], want)
    assert near(got.finals["R"], back[0])


def test_dense_maps(systems):
    system = systems["dense"]
    generator = np.random.default_rng(0)
    params = {
        "A": generator.normal(0, 0.5, (3, 3)),
        "B": generator.normal(size=(3, 5)),
        "C": generator.normal(size=(5, 3)),
    }
    maps = [t.matrix for t in system.blocks[0].chain[0].terms]
    maps += [system.blocks[0].chain[0].drives[0].stream.map, system.read_out.terms[0].matrix]
    system = replace(system, params=tuple(MapTensor(m) for m in maps))
    u = generator.normal(size=(L, 5))
    x, want = np.zeros(3), []
    for i in range(L):
        x = params["A"] @ x + params["B"] @ u[i]
        want.append(params["C"] @ x)
    assert near(evaluate(system, {"u": u}, params, SIZES).outputs["y"], np.stack(want))


def test_no_tokens_leave_the_initial_state(systems):
    system = systems["normalized"]
    _, params = drawn(system)
    start = np.ones((2, 3, 4))
    got = evaluate(system, {"u": np.zeros((0, 5))}, params, SIZES, {"S": start})
    assert got.outputs["y"].shape == (0, 2, 4)
    assert near(got.finals["S"], start)


def test_several_outputs_and_sums_over_time(systems):
    system = systems["normalized"]
    value = system.read_out
    outputs = (
        *system.outputs,
        replace(system.outputs[0], name="total", over_time=True),
        Output("twice", Sum((value, value)), system.outputs[0].axes),
    )
    inputs, params = drawn(system)
    got = evaluate(replace(system, outputs=outputs), inputs, params, SIZES).outputs
    assert near(got["total"], got["y"].sum(0))
    assert near(got["twice"], 2 * got["y"])


N_ = Axis(2, "n")


def complex_state(systems):
    """x = e^i x[i-1] + k over the heads and keys of the hand-written Systems."""
    system = systems["normalized"]
    k = Ref("k", frozenset(system.streams[1].axes), Field.REAL, Time.TOKEN, Now())
    turn = prim("exp", prim("cplx", num(0), ONE))
    block = Block(
        "S", system.streams[1].axes, Field.COMPLEX,
        (Factor((Term("S", 1, turn, NONE, ONE),), (Drive(k, ONE),)),),
        Decay(turn, num(0), ONE, LogForm.EXACT),
    )  # fmt: skip
    read = Read((Term("S", 0, ONE, NONE, ONE),))
    return replace(system, stages=(Stage(Direction.FORWARD, (block,)),)), read, system.streams[1]


@pytest.mark.parametrize(
    ("node", "meaning"),
    [
        (lambda r: Cast(ComplexPart.RE, r), lambda x: x.real),
        (lambda r: Cast(ComplexPart.IM, r), lambda x: x.imag),
        (lambda r: Post("abs", (r,)), np.abs),
        (lambda r: Cast(ComplexPart.RE, Product((r, r))), lambda x: (x * x).real),
        (lambda r: Gate(num(3), Cast(ComplexPart.RE, r)), lambda x: 3 * x.real),
        (lambda r: SumOver(N_, Post("abs", (r,))), lambda x: np.abs(x).sum(-1)),
        (
            lambda r: Post("rmsnorm", (Cast(ComplexPart.RE, r),), N_),
            lambda x: x.real / np.sqrt((x.real**2).mean(-1, keepdims=True)),
        ),
    ],
)
def test_nodes_over_a_complex_state(node, meaning, systems):
    system, read, like = complex_state(systems)
    axes = like.axes[:1] if isinstance(node(read), SumOver) else like.axes
    system = replace(system, outputs=(Output("y", node(read), axes),))
    inputs, params = drawn(system)
    k = projected(inputs, params, "W_K")
    x, states = np.zeros(k.shape[1:], complex), []
    for i in range(L):
        x = np.exp(1j) * x + k[i]
        states.append(x)
    assert near(evaluate(system, inputs, params, SIZES).outputs["y"], meaning(np.stack(states)))


def test_a_cache_runs_over_all_tokens(systems):
    system = systems["normalized"]
    k = system.streams[1]

    def at(s, index) -> Expr:
        return Ref(s.name, frozenset(s.axes), Field.REAL, Time.TOKEN, index)

    lag = Pow(num(2), Lag((("i", -1), ("j", 1)), 0))
    body = prim("exp", at(k, Bound("j")))
    past = Past("j", Relation.BEFORE, mul(body, lag))
    system = replace(system, stages=(), outputs=(Output("y", Cache(past, "a test"), k.axes),))
    inputs, params = drawn(system)
    keys = projected(inputs, params, "W_K")
    want = [
        sum((np.exp(keys[j]) * 2.0 ** (j - i) for j in range(i)), np.zeros(keys.shape[1:]))
        for i in range(L)
    ]
    assert near(evaluate(system, inputs, params, SIZES).outputs["y"], np.stack(want))


def test_values_before_the_sequence_are_zero(systems):
    system = systems["normalized"]
    v = system.streams[2]
    late = Ref("v", frozenset(v.axes), Field.REAL, Time.TOKEN, Now(2))
    first = Ref("first", frozenset(), Field.REAL, Time.TOKEN, Now())
    outputs = (
        Output("y", Direct(prim("exp", late)), v.axes),
        Output("start", Direct(first), ()),
    )
    system = replace(system, stages=(), outputs=outputs)
    inputs, params = drawn(system)
    got = evaluate(system, inputs, params, SIZES).outputs
    values = projected(inputs, params, "W_V")
    assert near(got["y"], np.exp(np.concatenate([np.zeros_like(values[:2]), values[:-2]])))
    assert near(got["start"], np.eye(1, L)[0])
