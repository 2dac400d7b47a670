"""Stages that no scan runs are stepped: their plan, its adjoint, and what its verifier sees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from material import draw
from unusual_specs import STEPPED

from dsfc.expr.build import mul, num
from dsfc.expr.json import decode, encode
from dsfc.expr.text import text
from dsfc.plan.evaluate import evaluate
from dsfc.plan.evaluate_adjoint import evaluate_recurrence_adjoint
from dsfc.plan.flow import PlanError
from dsfc.plan.flow_graph import to_networkx
from dsfc.plan.ir import Plan, Role
from dsfc.plan.recurrence_ir import Assignment, Recurrence
from dsfc.plan.render import render
from dsfc.plan.scan_ir import Form, Scan
from dsfc.plan.verify import verify

LENGTH = 4
FEEDBACK = STEPPED["feedback_of_gates"]


def recurrences(plan: Plan) -> list[Recurrence]:
    return [k for k in plan.kernels if isinstance(k, Recurrence)]


def test_states_that_read_each_other_are_one_recurrence(load) -> None:
    plan = load("feedback", FEEDBACK).plan
    (kernel,) = recurrences(plan)
    assert [s.state for s in kernel.states] == ["s", "t"]
    assert kernel.form is Form.STEPPED
    assert kernel.why == "`s` and `t` read another state"
    assert [(m.name, m.legal) for m in plan.modes][:2] == [("recurrent", True), ("chunked", False)]
    assert all(m.why == kernel.why for m in plan.modes if not m.legal)


def test_other_stages_keep_their_scans(load) -> None:
    plan = load("beside", STEPPED["feedback_beside_a_scan"]).plan
    kinds = [type(k) for k in plan.kernels if isinstance(k, Scan | Recurrence)]
    assert kinds == [Recurrence, Scan]
    assert [s.name for s in plan.states] == ["r", "s", "t"]


def test_a_stage_that_a_scan_runs_is_not_stepped(shipped) -> None:
    for name in ("retnet", "s6", "deltanet", "lru", "linear_rnn"):
        assert recurrences(shipped(name).plan) == []


def test_a_factor_of_a_chain_is_a_level_and_shorter_chains_wait(load) -> None:
    (kernel,) = recurrences(load("two_rewrites", STEPPED["two_rewrites"]).plan)
    assert len(kernel.levels) == 2
    (kernel,) = recurrences(load("uneven_chains", STEPPED["uneven_chains"]).plan)
    first, second = kernel.levels
    waiting = {a.name for a in first} & {text(a.value) for a in second}
    assert len(waiting) == 1


def test_equal_numbers_are_no_coefficients_and_one_coefficient_has_a_time(load) -> None:
    plan = load("fixed_numbers_only", STEPPED["fixed_numbers_only"]).plan
    (kernel,) = recurrences(plan)
    (only,) = kernel.coefficients
    assert plan.array(only).role is not Role.CONSTANT


@pytest.mark.share(5)
@pytest.mark.parametrize("name", STEPPED)
def test_its_text_json_and_graph_hold_all_of_it(name: str, load) -> None:
    plan = load(name, STEPPED[name]).plan
    assert decode(encode(plan), Plan) == plan
    words, graph = render(plan), to_networkx(plan)
    for k in recurrences(plan):
        for a in (*(a for level in k.levels for a in level), *k.adjoint.steps):
            assert f"{a.name} = " in words
        assert k.why in words
        node = f"recurrence {k.name}"
        assert {buffer for _, _, buffer in graph.in_edges(node, data="buffer")} == {
            *k.coefficients,
            *(s.state for s in k.states),
        }


# --- the adjoint is the derivative ----------------------------------------------------------------


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.ci] * bool(k % 2)) for k, n in enumerate(STEPPED)],
)
def test_the_adjoint_is_the_derivative_of_the_loop(name: str, load) -> None:
    """By central differences: the recurrence is affine in each of what it is given."""
    spec = load(name, STEPPED[name])
    plan, material = spec.plan, draw(spec, LENGTH)
    run = evaluate(plan, material.inputs, material.tensors, material.sizes, material.initial)
    rng = np.random.default_rng(5)
    for kernel in recurrences(plan):
        loss, bars, finals = _loss(plan, kernel, run.arrays, material, rng)
        found = evaluate_recurrence_adjoint(
            plan, kernel, run, material.sizes, bars, material.initial, finals
        )
        names = [g.coefficient for g in kernel.adjoint.gradients]
        values = {n: run.arrays[n] for n in names}
        values |= {s.state: material.initial[s.state] for s in kernel.states}
        for which, value in values.items():
            direction = rng.normal(size=value.shape)
            step = 1e-5
            ends = [loss(which, value + sign * step * direction) for sign in (1, -1)]
            want = (ends[0] - ends[1]) / (2 * step)
            got = np.sum(np.real(found[which]) * direction)
            np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7, err_msg=which)


def _loss(
    plan: Plan, kernel: Recurrence, arrays, material, rng
) -> tuple[Callable[[str, np.ndarray], float], dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Re Σ ȳ · y over reads and last states, as a function of one array; and the ȳ."""
    alone = replace(
        plan,
        kernels=(kernel,),
        states=tuple(s for s in plan.states if s.name in {x.state for x in kernel.states}),
    )

    def run(which: str, value: np.ndarray):
        given = dict(arrays) | {which: value}
        inputs = {n: given[n] for n in arrays if n not in {r.output for r in kernel.reads}}
        initial = dict(material.initial) | {which: value}
        return evaluate(alone, inputs, material.tensors, material.sizes, initial)

    def noise(like: np.ndarray) -> np.ndarray:
        out = rng.normal(size=like.shape)
        return out + 1j * rng.normal(size=like.shape) if np.iscomplexobj(like) else out

    first = run("", np.zeros(0))
    bars = {r.output: noise(first.arrays[r.output]) for r in kernel.reads}
    finals = {s.state: noise(first.finals[s.state]) for s in kernel.states}

    def loss(which: str, value: np.ndarray) -> float:
        out = run(which, value)
        total = sum(np.sum(np.conj(bars[n]) * out.arrays[n]) for n in bars)
        total += sum(np.sum(np.conj(finals[n]) * out.finals[n]) for n in finals)
        return float(np.real(total))

    return loss, bars, finals


# --- the verifier ---------------------------------------------------------------------------------


def _broken(plan: Plan, **changes: object) -> Plan:
    (kernel,) = recurrences(plan)
    made = replace(kernel, **changes)
    return replace(plan, kernels=tuple(made if k is kernel else k for k in plan.kernels))


def test_a_level_reads_what_is_below_it(load) -> None:
    plan = load("feedback", FEEDBACK).plan
    (kernel,) = recurrences(plan)
    ((s, t),) = kernel.levels
    later = Assignment(t.name, s.value, t.axes, t.field)
    verify(_broken(plan, levels=((s, later),)))
    early = Assignment(s.name, mul(num(2), kernel.reads[0].value), s.axes, s.field)
    with pytest.raises(PlanError, match="before it is given"):
        verify(_broken(plan, levels=((early, t),)))


def test_a_lost_state_coefficient_or_gradient_is_seen(load) -> None:
    plan = load("feedback", FEEDBACK).plan
    (kernel,) = recurrences(plan)
    ((s, _),) = kernel.levels
    with pytest.raises(PlanError, match="its last level is not its states"):
        verify(_broken(plan, levels=((s,),)))
    with pytest.raises(PlanError, match="before it is given"):
        verify(_broken(plan, coefficients=kernel.coefficients[1:], transitions=()))
    with pytest.raises(PlanError, match="does not reach the token before"):
        verify(_broken(plan, adjoint=replace(kernel.adjoint, steps=kernel.adjoint.steps[:-1])))
    with pytest.raises(PlanError, match="is no state of the plan"):
        verify(replace(plan, states=plan.states[1:]))
    with pytest.raises(PlanError, match="is no coefficient"):
        last = replace(kernel.adjoint.gradients[0], coefficient="y")
        verify(_broken(plan, adjoint=replace(kernel.adjoint, gradients=(last,))))
