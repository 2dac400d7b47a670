"""A plan that breaks an invariant is refused, and says what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from unusual_specs import COMPILED

from dsfc.expr.build import num
from dsfc.expr.over_time import Lag
from dsfc.expr.tree import Field, Fir, Now, Param, Ref, Time
from dsfc.plan.flow import PlanError
from dsfc.plan.ir import Plan, Pointwise, Reverse, Role
from dsfc.plan.scan_ir import Form, Scan, Transition
from dsfc.plan.verify import verify

Damage = Callable[[Plan], Plan]


def first(plan: Plan, kind: type) -> int:
    return next(k for k, kernel in enumerate(plan.kernels) if isinstance(kernel, kind))


def with_kernel(plan: Plan, at: int, **changes: object) -> Plan:
    kernels = list(plan.kernels)
    kernels[at] = replace(kernels[at], **changes)
    return replace(plan, kernels=tuple(kernels))


def with_scan(**changes: object) -> Damage:
    return lambda plan: with_kernel(plan, first(plan, Scan), **changes)


def with_value(make: Callable[[Plan], object]) -> Damage:
    return lambda plan: with_kernel(plan, first(plan, Pointwise), value=make(plan))


def with_column(**changes: object) -> Damage:
    def damage(plan: Plan) -> Plan:
        at = first(plan, Scan)
        column, *rest = plan.kernels[at].columns
        return with_kernel(plan, at, columns=(replace(column, **changes), *rest))

    return damage


def input_at(plan: Plan, lag: int) -> Ref:
    t = plan.inputs[0]
    return Ref(t.name, frozenset(t.axes), Field.REAL, Time.TOKEN, Now(lag))


def reordered(plan: Plan) -> Plan:
    return replace(plan, kernels=plan.kernels[::-1])


def named_alike(plan: Plan) -> Plan:
    return replace(plan, arrays=(*plan.arrays, plan.arrays[-1]))


def written_twice(plan: Plan) -> Plan:
    at = first(plan, Pointwise)
    return replace(
        plan, kernels=(*plan.kernels[: at + 1], plan.kernels[at], *plan.kernels[at + 1 :])
    )


def never_written(plan: Plan) -> Plan:
    return replace(plan, arrays=(*plan.arrays, replace(plan.arrays[-1], name="idle")))


def no_buffer(plan: Plan) -> Plan:
    out = plan.kernels[-1].output
    return replace(plan, arrays=tuple(b for b in plan.arrays if b.name != out))


def state_of_other_axes(plan: Plan) -> Plan:
    state, *rest = plan.states
    return replace(plan, states=(replace(state, axes=state.axes[:-1]), *rest))


def buffer_of_other_axes(name: str) -> Damage:
    def damage(plan: Plan) -> Plan:
        scan = plan.kernels[first(plan, Scan)]
        wanted = {"key": scan.key, "value": scan.columns[0].value, "out": scan.columns[0].output}
        every = tuple(d.axis for d in plan.axes)
        return replace(
            plan,
            arrays=tuple(
                replace(b, axes=every) if b.name == wanted[name] else b for b in plan.arrays
            ),
        )

    return damage


def leaves_that_nothing_reads(plan: Plan) -> Plan:
    scan = plan.kernels[first(plan, Scan)]
    return with_scan(decay=replace(scan.decay, leaves=(*scan.decay.leaves, scan.key)))(plan)


DAMAGED: dict[str, tuple[Damage, str]] = {
    "two buffers of one name": (named_alike, "two buffers have one name"),
    "read before written": (reordered, "before it is written"),
    "written twice": (written_twice, "is written twice"),
    "never written": (never_written, "idle is never written"),
    "no buffer": (no_buffer, "is no buffer"),
    "no output": (lambda p: replace(p, output="nothing"), "the output is never written"),
    "a lag without a register": (with_value(lambda p: input_at(p, 2)), "without a register"),
    "the future": (with_value(lambda p: input_at(p, -1)), "reads the future"),
    "an undeclared parameter": (
        with_value(lambda p: Param("unknown", frozenset())),
        "the undeclared parameter unknown",
    ),
    "a sum over time": (with_value(lambda p: Lag((("i", 1),), 0)), "holds a sum over time"),
    "a filter of a value": (
        with_value(lambda p: Fir(p.axes[0].axis, Param("w", frozenset({p.axes[0].axis})), num(1))),
        "filters a value that is not a buffer",
    ),
    "a filter without a register": (
        with_value(
            lambda p: Fir(p.axes[0].axis, Param("W_v", frozenset({p.axes[0].axis})), input_at(p, 0))
        ),
        "filters u without a register",
    ),
    "axes that the buffer lacks": (
        with_value(lambda p: Param("w_f", frozenset(d.axis for d in p.axes))),
        "lacks axes of its value",
    ),
    "a form that does not fit": (with_scan(form=Form.ELEMENTWISE), "has form elementwise"),
    "no key": (with_scan(key=None), "key and read go with key axes"),
    "no read": (with_scan(read=None), "key and read go with key axes"),
    "a key with channels": (buffer_of_other_axes("key"), "has axes outside heads and keys"),
    "a value with keys": (buffer_of_other_axes("value"), "has axes outside heads and channels"),
    "an output with keys": (buffer_of_other_axes("out"), "has the wrong axes"),
    "an unknown state": (with_column(state="T"), "T is not a state of the plan"),
    "a state of other axes": (state_of_other_axes, "the state S has the wrong axes"),
    "leaves": (leaves_that_nothing_reads, "its decay does not read its leaves"),
    "a transition without its form": (with_scan(transition=Transition("u", (), ())), "dense"),
    "no adjoint": (lambda p: replace(p, adjoints=()), "scans and adjoints do not match"),
}


@pytest.mark.share(2)
@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_plans_are_refused(name: str, load) -> None:
    plan = load("token_shift", COMPILED["token_shift"]).plan
    if "without a register" in name:
        plan = load("decay_number", COMPILED["decay_number"]).plan
    verify(plan)
    damage, words = DAMAGED[name]
    with pytest.raises(PlanError, match=words):
        verify(damage(plan))


@pytest.mark.parametrize("form", [Form.MATRIX, Form.KEYED, Form.SELECTIVE])
def test_a_decay_has_the_axes_of_its_form(form: Form, load) -> None:
    """A constant decay per value in a ratio, which no convolution may run."""
    body = """dims d, heads h = 2, n = 3, p = 2
  input u : d
  param W : d -> p × h
  param c : p unit
  state S : h × n × p
  S = c * S[i-1] + ones[h, n, p]
  y = W u / (1 + abs(mean[n](S)))"""
    plan = load("decay_by_value_in_a_ratio", body).plan
    assert plan.kernels[first(plan, Scan)].form is Form.SELECTIVE
    if form is Form.SELECTIVE:
        verify(plan)
        return
    with pytest.raises(PlanError, match=f"its decay has axes that {form.value} lacks"):
        verify(with_scan(form=form)(plan))


def test_a_transition_mixes_the_rows_of_its_state(load) -> None:
    plan = load("dense_read_before", COMPILED["dense_read_before"]).plan
    verify(plan)
    dense = plan.kernels[first(plan, Scan)].transition
    for changes, words in (
        ({"rows": ()}, "does not mix what it says"),
        ({"matrix": plan.inputs[0].name}, "is no constant over its rows and columns"),
    ):
        with pytest.raises(PlanError, match=words):
            verify(with_scan(transition=replace(dense, **changes))(plan))


def test_what_is_reversed_keeps_its_axes_and_has_a_time(load) -> None:
    plan = load("runs_backward", COMPILED["runs_backward"]).plan
    verify(plan)
    at = first(plan, Reverse)
    wrong = replace(plan.kernels[at], source="W")
    made = tuple(b for b in plan.arrays if b.name == plan.kernels[at].output)
    constant = replace(made[0], name="W", role=Role.CONSTANT)
    kernels = (Pointwise("W", num(1)), *plan.kernels[:at], wrong, *plan.kernels[at + 1 :])
    with pytest.raises(PlanError, match="is not W reversed"):
        verify(replace(plan, arrays=(*plan.arrays, constant), kernels=kernels))


def test_registers_fit_what_they_keep(load) -> None:
    plan = load("several_lags", COMPILED["several_lags"]).plan
    register, *rest = plan.registers
    for changes, words in (
        ({"buffer": "nothing"}, "which is no buffer"),
        ({"axes": ()}, "does not fit"),
        ({"lengths": ()}, "does not fit"),
    ):
        with pytest.raises(PlanError, match=words):
            verify(replace(plan, registers=(replace(register, **changes), *rest)))
    deepest = next(r for r in plan.registers if any(n.value == 3 for n in r.lengths))
    short = tuple(replace(r, lengths=(num(1),)) if r is deepest else r for r in plan.registers)
    with pytest.raises(PlanError, match="3 tokens back without a register"):
        verify(replace(plan, registers=short))
