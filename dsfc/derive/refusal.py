"""Why an update is refused: the culprit, how it depends on the state, and what repairs it."""

from __future__ import annotations

from collections.abc import Iterable

from dsfc.derive.affine import NotAffine
from dsfc.derive.model import Equation, Model
from dsfc.diagnostics.catalogue import FlowRule, Lag, NonlinearState, Unsupported
from dsfc.diagnostics.report import Diagnostic
from dsfc.expr.build import walk
from dsfc.expr.over_time import Past
from dsfc.expr.table import row
from dsfc.expr.text import text
from dsfc.expr.tree import Div, Expr, Map, Prim, Ref, children
from dsfc.source import Span


def refused(model: Model, stage: Iterable[str], state: Equation, problem: NotAffine) -> Diagnostic:
    """Returns the diagnostic of an update that is not affine in the states of its stage."""
    names = frozenset(stage)
    span = model.span_of(state.name)
    if problem.why == "lag":
        return Lag(span, reference=text(problem.node))
    if problem.why == "axes":
        return _no_term(span, state, problem.node)
    if problem.why == "end":
        return _after_the_end(span, state, problem.node)
    if problem.why == "product":
        why, repair = _product(model, names, problem)
    else:
        why, repair = _function(model, names, problem.node)
    return NonlinearState(
        span, state=state.name, why=why, repair=repair, hint=_repairs(model, names)
    )


def _no_term(span: Span, state: Equation, node: Expr) -> Diagnostic:
    """Linear, but no single term holds it."""
    shown = text(node)
    if isinstance(node, Map):
        what = f"in the update of `{state.name}`, the map of a scaled or mapped state `{shown}`"
        hint = "name what the map is applied to; the update is then a chain of factors"
    else:
        what = f"the update of `{state.name}` mixes two axes of the state at once in `{shown}`"
        hint = "name the inner contraction, or write the mixing as a linear map"
    return Unsupported(span, what=what, hint=hint)


def _after_the_end(span: Span, state: Equation, node: Expr) -> Diagnostic:
    """Linear, but for the last token, where a name read one token later is 0."""
    what = f"in the update of `{state.name}`, `{text(node)}`, which is 0 at the last token"
    hint = "write in its place what it reads of the state, which has an initial value there"
    return Unsupported(span, what=what, hint=hint)


def flow_refused(model: Model, state: Equation, problem: str) -> Diagnostic:
    """Returns the diagnostic of a flow that its rule cannot discretise."""
    return FlowRule(model.span_of(state.name), state=state.name, problem=problem)


def _product(model: Model, stage: frozenset[str], problem: NotAffine) -> tuple[str, str]:
    """Two factors depend on the stage: the one that is no plain read of a state is the culprit."""
    plain = [f for f in problem.factors if isinstance(f, Ref) and f.name in stage]
    others = [f for f in problem.factors if f not in plain]
    culprit = (others or list(problem.factors))[0]
    # Equal expressions are one object, so a square has its culprit twice.
    kept = next((f for f in problem.factors if f is not culprit), culprit)
    why = (
        f"the factor `{text(culprit)}` of `{text(kept)}` depends on the state through "
        f"{_path(model, stage, culprit)}"
    )
    read = plain[0].name if plain else sorted(stage)[0]
    repair = (
        f"a coefficient may read inputs (and states that do not depend on `{read}`) only; drop "
        "the recurrent term to bring it in"
    )
    return why, repair


def _function(model: Model, stage: frozenset[str], node: Expr) -> tuple[str, str]:
    repair = "move the nonlinearity to the input or to the read-out"
    if isinstance(node, Past):
        return f"a sum over time is taken of it in `{text(node)}`", repair
    shown = text(node)
    what = f"`{row(node.name).spelling}`" if isinstance(node, Prim) else f"`{shown}`"
    if isinstance(node, Div):
        return f"`{shown}` divides by it", repair
    if not isinstance(node, Prim):
        return f"{what} is not linear in it", repair
    reached = _path(model, stage, node)
    direct = any(isinstance(c, Ref) and c.name in stage for c in walk(node))
    way = "" if direct else f", through {reached}"
    return f"{what} is applied to it in `{shown}`{way}", repair


def _path(model: Model, stage: frozenset[str], expr: Expr) -> str:
    """How an expression reaches a state of the stage: f → y[i-1]."""
    steps: list[str] = []
    current = expr
    while True:
        refs = [e for e in walk(current) if isinstance(e, Ref) and model.reach(e) & stage]
        direct = next((e for e in refs if e.name in stage), None)
        if direct is not None:
            steps.append(text(direct))
            return " → ".join(steps)
        steps.append(text(refs[0]))
        current = model.definitions[refs[0].name].value


def _repairs(model: Model, stage: frozenset[str]) -> str | None:
    """What would make the whole stage affine, in words: for gates that read the state's past."""
    bodies = [e for name in sorted(stage) for e in model.states[name].body]
    seen: list[Expr] = []
    for b in bodies:
        seen += [e for e in _reached(model, b, stage) if e not in seen]
    maps = sorted(
        {
            e.map.name
            for e in seen
            if isinstance(e, Map)
            and any(isinstance(c, Ref) and c.name in stage for c in children(e))
        }
    )
    functions = sorted(
        {
            row(e.name).spelling
            for e in seen
            if isinstance(e, Prim) and any(model.reach(a) & stage for a in e.args)
        }
    )
    parts = []
    if maps:
        parts.append(f"drop the recurrent terms ({' = '.join(maps)} = 0)")
    others = [f for f in functions if f != "sigmoid"] or functions
    if others:
        shown = " and ".join(f"`{f}`" for f in others)
        parts.append(f"apply {shown} to the input map and at the read-out instead of to the state")
    return "; ".join(parts) or None


def _reached(model: Model, e: Expr, stage: frozenset[str]) -> list[Expr]:
    out = []
    for x in walk(e):
        out.append(x)
        if isinstance(x, Ref) and x.name in model.definitions and model.reach(x) & stage:
            out += _reached(model, model.definitions[x.name].value, stage)
    return out
