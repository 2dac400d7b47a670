"""Softmax attention: all tokens so far are kept, and no state of finite size replaces them."""

from __future__ import annotations

from collections.abc import Mapping

from dsfc.expr.build import ONE, add, mul
from dsfc.expr.tree import Expr
from dsfc.plan.flow import PlanError
from dsfc.plan.forms.row import FormRow
from dsfc.plan.ir import Plan
from dsfc.plan.pairs_ir import Attention
from dsfc.plan.scan_ir import Form
from dsfc.plan.sizes import LENGTH, size


def _check(k: Attention, plan: Plan) -> None:
    heads, keys, channels = set(k.heads), set(k.keys), set(k.channels)
    if heads & (keys | channels):
        raise PlanError(f"{k.output}: a head axis is a key or a channel")
    sides = {
        k.query: heads | keys,
        k.key: heads | keys,
        k.value: heads | channels,
        k.present: set(),
    }
    for name, axes in sides.items():
        if not set(plan.array(name).axes) <= axes:
            raise PlanError(f"{k.output}: {name} has axes outside its own")
    if set(plan.array(k.output).axes) != heads | channels:
        raise PlanError(f"{k.output} has the wrong axes")
    if missing := set(k.kept) - {r.buffer for r in plan.registers}:
        raise PlanError(f"{k.output} reads {', '.join(sorted(missing))} without a register")


def _state(k: Attention) -> Mapping[str, Expr]:
    vectors = add(size(k.keys), size(k.channels))
    return {k.output: mul(LENGTH, add(mul(size(k.heads), vectors), ONE))}


ROW = FormRow(
    Form.ATTENTION, Attention, frozenset({"recurrent", "parallel", "fused"}), _check, _state
)
