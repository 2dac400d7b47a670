"""Sums over all pairs of tokens: the derived gradient, what verifies and accounts for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from unusual_specs import PAIRS, REFUSED

from dsfc.api.pipeline import Compilation
from dsfc.diagnostics.report import DiagnosticError
from dsfc.expr.build import walk
from dsfc.expr.tree import Ref
from dsfc.mixer import sample
from dsfc.mixer import sizes as sizes_of
from dsfc.plan.accounting import settle
from dsfc.plan.evaluate import evaluate
from dsfc.plan.evaluate_adjoint import evaluate_pairs_adjoint
from dsfc.plan.flow import PlanError
from dsfc.plan.ir import Plan
from dsfc.plan.pairs_ir import AllPairs, Attention
from dsfc.plan.render import render
from dsfc.plan.sensitive import decay_buffers
from dsfc.plan.verify import verify

LENGTH = 4
STEP = 1e-6
"""Of central differences: an error of some STEP² in values near 1, and of 1e-16 / STEP."""


@pytest.fixture(params=PAIRS)
def spec(request: pytest.FixtureRequest, load: Callable[[str, str], Compilation]) -> Compilation:
    return load(request.param, PAIRS[request.param])


def sums(plan: Plan) -> list[AllPairs]:
    return [k for k in plan.kernels if isinstance(k, AllPairs)]


def test_the_gradient_of_a_sum_is_its_difference(spec: Compilation) -> None:
    plan = spec.plan
    known = sizes_of(spec.mixer, {"d": 2})
    drawn = sample(spec.mixer, known, 3, LENGTH)
    tensors = {**drawn.params}
    run = evaluate(plan, drawn.inputs, tensors, known)
    generator = np.random.default_rng(5)
    for k in sums(plan):
        shape = run.arrays[k.output].shape
        complex_ = np.iscomplexobj(run.arrays[k.output])
        bar = generator.normal(size=shape) + 1j * complex_ * generator.normal(size=shape)
        bar = bar if complex_ else bar.real
        got = evaluate_pairs_adjoint(plan, k, run, known, bar)
        buffers = {x.name: x.buffer for x in k.leaves}
        assert set(got) == set(buffers)
        for leaf, gradient in got.items():
            along = generator.normal(size=gradient.shape)
            ends = []
            for sign in (1, -1):
                moved = replace(run, arrays=dict(run.arrays))
                # A buffer that two leaves read is moved for one of them.
                lone = f"{leaf}_moved"
                moved.arrays[lone] = run.arrays[buffers[leaf]] + sign * STEP * along
                ends.append(value(plan, k, leaf, lone, moved.arrays, known))
            difference = (np.conj(bar) * (ends[0] - ends[1])).sum().real / (2 * STEP)
            np.testing.assert_allclose(
                (gradient * along).sum().real, difference, rtol=1e-6, atol=1e-7
            )


def value(plan: Plan, k: AllPairs, leaf: str, buffer: str, arrays, known) -> np.ndarray:
    """The sum with one leaf read from another buffer."""
    from dsfc.plan.evaluate import Runner

    (old,) = (x.buffer for x in k.leaves if x.name == leaf)
    sides = {
        side: tuple(replace(x, buffer=buffer) if x.name == leaf else x for x in getattr(k, side))
        for side in ("queries", "keys", "fixed")
    }
    r = Runner(plan, {"": np.zeros(LENGTH)}, {}, known)
    r.arrays = dict(arrays)
    r.buffers[buffer] = replace(plan.array(old), name=buffer)
    r.all_pairs(replace(k, **sides))
    return r.arrays[k.output]


def test_a_sum_that_is_missing_is_missed(spec: Compilation) -> None:
    plan = spec.plan
    assert sums(plan)
    for lost in sums(plan):
        rest = tuple(k for k in plan.kernels if k is not lost)
        with pytest.raises(PlanError, match="a sum without a finite state is not in the plan"):
            settle(replace(plan, kernels=rest), spec.system)


def test_spoiled_sums_are_refused(load: Callable[[str, str], Compilation]) -> None:
    plan = load("power_of_a_varying_base", PAIRS["power_of_a_varying_base"]).plan
    (k,) = sums(plan)
    spoiled = {
        "does not read all its leaves": replace(k, body=k.gradients[0].value.args[0]),
        "has a gradient and is no leaf": replace(
            k, gradients=(replace(k.gradients[0], leaf="other"),)
        ),
        "has the wrong axes": replace(k, axes=()),
        "without a register": replace(k, present=plan.inputs[0].name),
        "reads the future": replace(k, offset=-1),
        "two leaves have one name": replace(k, queries=(*k.queries, k.queries[0])),
    }
    for words, made in spoiled.items():
        kernels = tuple(made if x is k else x for x in plan.kernels)
        with pytest.raises(PlanError):
            verify(replace(plan, kernels=kernels))
        assert words


def test_all_pairs_are_said_to_be_the_only_form(load: Callable[[str, str], Compilation]) -> None:
    plan = load("sigmoid_attention", PAIRS["sigmoid_attention"]).plan
    why = "no finite state: `sigmoid(q · k[j])` does not separate"
    assert plan.pairs_only == why
    assert next(m.why for m in plan.modes if m.name == "parallel").endswith(why)
    assert [m.name for m in plan.modes if m.legal] == ["recurrent", "parallel"]
    assert why in render(plan)


def test_softmax_attention_stays_attention(load: Callable[[str, str], Compilation]) -> None:
    plan = load("pairs_with_attention", PAIRS["pairs_with_attention"]).plan
    assert len(sums(plan)) == 1
    assert sum(isinstance(k, Attention) for k in plan.kernels) == 1


def test_dependent_sums_are_refused(load: Callable[[str, str], Compilation]) -> None:
    body, words, _ = REFUSED["no_finite_state"]
    with pytest.raises(DiagnosticError, match="the sum holds another one") as caught:
        _ = load("nested", body).plan
    assert words.split(",")[0] in caught.value.diagnostics[0].message


def test_every_number_of_the_distance_reads_one_distance(
    load: Callable[[str, str], Compilation],
) -> None:
    body = "dims d\n input u : d\n y = sum[j ≤ i](exp(-(i - j)) * (i - j + 1) * tanh(u + u[j]))"
    (k,) = sums(load("two_distances", body).plan)
    names = {e.name for e in walk(k.body) if isinstance(e, Ref)}
    assert names == {x.name for x in k.leaves} | {k.lag}


def test_the_base_of_a_power_of_the_distance_is_a_decay(
    load: Callable[[str, str], Compilation],
) -> None:
    body = "dims d\n input u : d\n g = sigmoid(u); y = sum[j ≤ i](g^(i - j) * tanh(u[j] + u))"
    plan = load("powers", body).plan
    (k,) = sums(plan)
    assert [*decay_buffers(plan)] == ["g"] and "g" in {x.buffer for x in k.leaves}
