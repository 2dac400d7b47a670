"""The definition that a System carries: the mixer as expression trees, as it was written.

The float64 reference of an emitted module is printed from it, not from the derived form. Flows are
given by their discretised update, since that is what they mean.
"""

from __future__ import annotations

from collections.abc import Iterator

from dsfc.derive.affine import Affine, Analysis, NotAffine
from dsfc.derive.flow import FlowProblem, discretised, kept_flow
from dsfc.derive.model import Equation, Model
from dsfc.derive.separated import sum_over
from dsfc.expr.build import ONE, add, mul, walk
from dsfc.expr.tree import Expr, Map, Now, Ref
from dsfc.system.ir import Definition


def definitions_of(model: Model) -> tuple[Definition, ...]:
    """Returns what the output depends on, in the mixer's order; call before separation."""
    needed = _needed(model)
    out = []
    for name, d in model.definitions.items():
        if name in needed:
            axes = tuple(sorted(d.value.axes))
            out.append(Definition(name, d.value, axes, d.value.field))
    for name, s in (*model.states.items(), *model.maxima.items()):
        if name in needed:
            value = s.update if s.update is not None else _flow_update(model, s)
            if value is not None:
                maximum = s.maximum is not None
                out.append(Definition(name, value, s.axes, s.field, True, s.backward, maximum))
    return tuple(out)


def _needed(model: Model) -> set[str]:
    seen: set[str] = set()
    waiting = [model.mixer.output]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for e in _bodies(model, name):
            waiting += [x.name for x in walk(e) if isinstance(x, Ref)]
    return seen


def _bodies(model: Model, name: str) -> Iterator[Expr]:
    if name in model.definitions:
        yield model.definitions[name].value
    elif name in model.states:
        yield from model.states[name].body
    elif name in model.maxima:
        update = model.maxima[name].update
        yield from () if update is None else (update,)


def _flow_update(model: Model, s: Equation) -> Expr | None:
    """The update that a flow stands for; None where it is refused (reported by the lowering)."""
    assert s.flow is not None
    try:
        drift = Analysis(model, (s.name,), shifts=False).of(s.flow.drift)
        flow = kept_flow(s.name, drift, s.flow.rule, s.flow.step)
    except (NotAffine, FlowProblem):
        return None
    return as_expression(discretised(s.name, frozenset(s.axes), s.step, flow), {s.name: s})


def as_expression(form: Affine, states: dict[str, Equation]) -> Expr:
    """Returns an affine form as an expression over the states."""
    parts = []
    for t in form.terms:
        value: Expr = states[t.source].ref(Now(t.lag))
        if t.matrix is not None:
            value = Map(t.matrix, value)
        value = mul(t.right, value) if t.right is not ONE else value
        for axis in sorted(t.over):
            value = sum_over(axis, value)
        parts.append(mul(t.left, value))
    return add(*parts, *([] if form.rest is None else [form.rest]))
