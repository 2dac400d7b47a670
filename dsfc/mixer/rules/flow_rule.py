"""W12: the rule of a flow exists, and fits its drift and step."""

from __future__ import annotations

from dsfc.diagnostics.catalogue import FlowRule as FlowRuleProblem
from dsfc.diagnostics.report import Reporter, nearest
from dsfc.expr.build import walk
from dsfc.expr.declarations import FlowRule
from dsfc.expr.tree import Expr, Field, Map, Now, Reduce, Ref
from dsfc.mixer.ir import Flow, Mixer
from dsfc.mixer.merge import Program
from dsfc.mixer.scope import Scope
from dsfc.mixer.shapes import Operand, named
from dsfc.syntax import ast


def flow_rule(
    update: ast.Flow, scope: Scope, step: Operand | None, reporter: Reporter
) -> FlowRule | None:
    """Returns the rule a flow names, None after a report.

    Args:
        update: the flow as written.
        scope: names of the mixer.
        step: its step, if that is well typed.
        reporter: takes `E-FLOW`.
    """
    name, word = update.name.text, update.rule.text
    rule = next((r for r in FlowRule if r.value == word), None)
    if rule is None:
        problem = f"there is no rule `{word}`; rules are zoh, euler, bilinear"
        close = nearest(word, (r.value for r in FlowRule))
        span = update.rule.span
        reporter.add(FlowRuleProblem(span, state=name, problem=problem, nearest=close))
        return None
    state = scope.states.get(name)
    if step is None or state is None:
        return rule
    problem = ""
    if not step.axes <= frozenset(state.axes):
        problem = f"the step has axes {step.shown}, but `{name}` has {named(state.axes)}"
    elif step.value.field is Field.COMPLEX:
        problem = "the step must be real"
    if problem:
        reporter.add(FlowRuleProblem(update.step.span, state=name, problem=problem))
        return None
    return rule


def check_diagonal(mixer: Mixer, program: Program, reporter: Reporter) -> None:
    """Reports flows by zoh or euler whose drift mixes entries of the state."""
    for state in mixer.states:
        flow = state.flow
        if flow is None or flow.rule is FlowRule.BILINEAR:
            continue
        if mixes(flow, state.name):
            update = program.updates[state.name]
            assert isinstance(update, ast.Flow)
            rule = flow.rule.value
            part = f"`{state.name}` has a low-rank part"
            problem = f"{rule} needs a diagonal flow; {part}, use bilinear"
            span = update.drift.span
            reporter.add(FlowRuleProblem(span, state=state.name, problem=problem))


def mixes(flow: Flow, state: str) -> bool:
    """Whether the drift sums over, or maps, something that holds the state itself."""
    return any(
        isinstance(node, Reduce | Map) and _holds(node.arg, state) for node in walk(flow.drift)
    )


def _holds(value: Expr, state: str) -> bool:
    return any(isinstance(n, Ref) and n.name == state and n.at == Now(0) for n in walk(value))
