"""States that are stepped together, one token after another."""

from __future__ import annotations

from collections.abc import Mapping

from dsfc.expr.tree import Expr
from dsfc.plan.flow import PlanError
from dsfc.plan.forms.row import FormRow
from dsfc.plan.forms.values import checked
from dsfc.plan.ir import Plan, Role
from dsfc.plan.recurrence_ir import Recurrence
from dsfc.plan.scan_ir import Form
from dsfc.plan.sizes import size


def _check(k: Recurrence, plan: Plan) -> None:
    """Checks that names are given before they are read, with their axes; states are carried on."""
    where = f"recurrence {k.name}"
    states = {s.name: s.axes for s in plan.states}
    arrays = {b.name: b for b in plan.arrays}
    for s in k.states:
        if states.get(s.state) != s.axes:
            raise PlanError(f"{where}: {s.state} is no state of the plan with its axes")
    known_axes = {name: arrays[name].axes for name in k.coefficients}
    if all(arrays[name].role is Role.CONSTANT for name in k.coefficients):
        raise PlanError(f"{where}: no coefficient has a time")
    if not set(k.transitions) <= set(k.coefficients):
        raise PlanError(f"{where}: a coefficient of its transition is none of its coefficients")
    forward = known_axes | {s.before: s.axes for s in k.states}
    for level in k.levels:
        # Values of one level are computed at once: none reads another.
        forward |= {a.name: checked(a.value, forward, a.axes, where) for a in level}
    last = {a.name for a in k.levels[-1]} if k.levels else set()
    if last != {s.after for s in k.states}:
        raise PlanError(f"{where}: its last level is not its states after a token")
    for r in k.reads:
        checked(r.value, forward, arrays[r.output].axes, where)
    bars = {r.bar: arrays[r.output].axes for r in k.reads} | {s.bar: s.axes for s in k.states}
    backward = known_axes | bars
    for a in k.adjoint.steps:
        backward[a.name] = checked(a.value, backward, a.axes, where)
    if not {s.bar_before for s in k.states} <= set(backward):
        raise PlanError(f"{where}: the gradient of a state does not reach the token before")
    known = known_axes | bars | {n: s.axes for s in k.states for n in (s.before, s.after)}
    for a in k.adjoint.values:
        known[a.name] = checked(a.value, known, a.axes, where)
    for g in k.adjoint.gradients:
        if g.coefficient not in known_axes:
            raise PlanError(f"{where}: {g.coefficient} has a gradient and is no coefficient")
        checked(g.value, known, known_axes[g.coefficient], where)


def _state(k: Recurrence) -> Mapping[str, Expr]:
    return {s.state: size(s.axes) for s in k.states}


ROW = FormRow(Form.STEPPED, Recurrence, frozenset({"recurrent"}), _check, _state)
