"""Plans with one field changed, of every kind of node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from dsfc.expr.build import mul, ones
from dsfc.expr.tree import Axis, Expr, Field, Now, Ref, Time
from dsfc.plan.ir import Plan
from dsfc.plan.scan_ir import DeltaRule, Form, LogDecay, LowRank, Transition

_READ = ("kernels", "arrays", "registers", "states", "adjoints", "output")
"""The fields of a plan that `verify` speaks of."""
_OPTIONAL = ("decay", "key", "read", "value", "low_rank", "delta", "transition")
_WORDS = ("why", "provenance", "scale", "result")


def damages(plan: Plan) -> Iterator[tuple[str, Plan]]:
    """Yields what was changed and the plan with it."""
    every = tuple(d.axis for d in plan.axes)
    other = plan.inputs[0].name
    for name in _READ:
        for words, value in _changed(getattr(plan, name), every, other):
            yield f"{name}{words}", replace(plan, **{name: value})


def _changed(value: Any, every: tuple[Axis, ...], other: str) -> Iterator[tuple[str, Any]]:
    """Yields values that differ in one place, and where: another name, axis, form, or none."""
    if isinstance(value, Form):
        yield from ((f" → {form.value}", form) for form in Form if form is not value)
    elif isinstance(value, str):
        yield " → nothing", "nothing"
        if value != other:
            yield f" → {other}", other
    elif isinstance(value, Expr):
        yield " of a new name", Ref("nothing", value.axes, value.field, Time.TOKEN, Now(0))
        more = [a for a in every if a not in value.axes]
        if more:
            yield f" over {more[0].name} too", mul(value, ones({more[0]}))
    elif isinstance(value, bool):
        yield f" → {not value}", not value
    elif isinstance(value, tuple) and value:
        yield " without the last", value[:-1]
        if isinstance(value[0], Axis):
            yield from ((f" and {a.name}", (*value, a)) for a in every if a not in value)
            return
        for k, each in enumerate(value):
            for words, part in _changed(each, every, other):
                title = getattr(each, "name", getattr(each, "output", k))
                yield f"[{title}]{words}", (*value[:k], part, *value[k + 1 :])
    elif is_dataclass(value) and not isinstance(value, Field | Axis):
        for f in fields(value):
            held = getattr(value, f.name)
            if f.name in _WORDS:
                continue
            if (
                isinstance(held, str | LogDecay | LowRank | DeltaRule | Transition)
                and f.name in _OPTIONAL
            ):
                yield f".{f.name} → None", replace(value, **{f.name: None})
            for words, part in _changed(held, every, other):
                yield f".{f.name}{words}", replace(value, **{f.name: part})
