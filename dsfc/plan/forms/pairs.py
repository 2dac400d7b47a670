"""Sums over all pairs of tokens, which have no state of finite size."""

from __future__ import annotations

from collections.abc import Mapping

from dsfc.expr.build import ONE, add, mul, walk
from dsfc.expr.derivative import pull
from dsfc.expr.tree import Expr, Now, Ref, Time
from dsfc.plan.flow import PlanError
from dsfc.plan.forms.row import FormRow
from dsfc.plan.forms.values import checked
from dsfc.plan.ir import Plan, Role
from dsfc.plan.pairs_ir import AllPairs
from dsfc.plan.scan_ir import Form
from dsfc.plan.sizes import LENGTH, size


def _check(k: AllPairs, plan: Plan) -> None:
    where = f"the sum {k.output}"
    if plan.array(k.output).axes != k.axes:
        raise PlanError(f"{where} has the wrong axes")
    known_axes = {x.name: plan.array(x.buffer).axes for x in k.leaves}
    if len(known_axes) != len(k.leaves):
        raise PlanError(f"{where}: two leaves have one name")
    if any(x.axes != known_axes[x.name] for x in k.leaves):
        raise PlanError(f"{where}: a leaf has other axes than its buffer")
    for x in k.queries + k.keys:
        if plan.array(x.buffer).role is Role.CONSTANT:
            raise PlanError(f"{where}: {x.buffer} has no time")
    for x in k.fixed:
        if plan.array(x.buffer).role is not Role.CONSTANT:
            raise PlanError(f"{where}: {x.buffer} has a time")
    if missing := set(k.kept) - {r.buffer for r in plan.registers}:
        raise PlanError(f"{where} reads {', '.join(sorted(missing))} without a register")
    if k.bound < 0 and not k.later:
        raise PlanError(f"{where} reads the future")
    known = known_axes | ({} if k.lag is None else {k.lag: ()})
    checked(k.body, known, k.axes, where)
    if not {e.name for e in walk(k.body) if isinstance(e, Ref)} >= set(known_axes):
        raise PlanError(f"{where} does not read all its leaves")
    bar = Ref(k.bar, frozenset(k.axes), plan.array(k.output).field, Time.TOKEN, Now(0))
    due = {r.name for r in pull([(k.body, bar)]).refs} & set(known_axes)
    if missing := due - {g.leaf for g in k.gradients}:
        raise PlanError(f"{where}: {', '.join(sorted(missing))} has no gradient")
    for g in k.gradients:
        if g.leaf not in known_axes:
            raise PlanError(f"{where}: {g.leaf} has a gradient and is no leaf")
        checked(g.value, known | {k.bar: k.axes}, known_axes[g.leaf], where)


def _state(k: AllPairs) -> Mapping[str, Expr]:
    kept = () if k.later else (ONE, *(size(x.axes) for x in k.keys))
    return {k.output: mul(LENGTH, add(*kept))}


ROW = FormRow(Form.PAIRS, AllPairs, frozenset({"recurrent", "parallel"}), _check, _state)
