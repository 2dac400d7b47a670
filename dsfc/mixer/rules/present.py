"""W3: no instantaneous circle. An update reads states at the step before, never at its own."""

from __future__ import annotations

from dsfc.diagnostics.catalogue import Declaration, FlowRule, Recursion, StateNow
from dsfc.diagnostics.report import Reporter
from dsfc.expr.graph import components, shortest_path
from dsfc.mixer.ir import Mixer
from dsfc.mixer.merge import Program
from dsfc.mixer.reads import Read, mixer_reads
from dsfc.mixer.rules.names import spelled
from dsfc.mixer.rules.places import place
from dsfc.syntax import ast


def check_present(mixer: Mixer, program: Program, reporter: Reporter) -> None:
    """Reports states that read their own present or future value, through definitions or not."""
    graph = mixer_reads(mixer)
    edges = {name: sorted({r.name for r in readings}) for name, readings in graph.items()}
    backward = {s.name: s.backward for s in mixer.states}
    for part in components(edges):
        states = [name for name in part if name in backward]
        if not states or (len(part) == 1 and part[0] not in edges[part[0]]):
            continue
        if len({backward[name] for name in states}) > 1:
            _report_both_ways(states, program, reporter)
            continue
        turn = backward[states[0]]
        inside = {n: [_counted(r, turn) for r in graph[n] if r.name in part] for n in part}
        if not _report_ahead(inside, turn, program, reporter):
            _report_now(inside, states, program, reporter)


def _counted(read: Read, turn: bool) -> Read:
    return Read(read.name, read.lags.turned()) if turn else read


def _report_both_ways(states: list[str], program: Program, reporter: Reporter) -> None:
    path = " → ".join((*states, states[0]))
    span = program.updates[states[0]].name.span
    what, repair = "a state that runs the other way", "states that read each other run one way"
    reporter.add(Recursion(span, name=states[0], what=what, path=path, repair=repair))


def _report_ahead(
    inside: dict[str, list[Read]], turn: bool, program: Program, reporter: Reporter
) -> bool:
    """Reports readings against the direction of the states; returns whether there were any."""
    reported = False
    for owner in sorted(inside):
        for read in sorted(inside[owner], key=lambda r: r.name):
            if read.lags.least < 0:
                reported = True
                span = place(program, owner, read.name, indexed=True)
                way, sign = ("backward", "+") if turn else ("forward", "-")
                problem = f"it runs {way}, so its update reads `{read.name}[i{sign}1]`"
                reporter.add(Declaration(span, name=read.name, problem=problem))
    return reported


def _report_now(
    inside: dict[str, list[Read]], states: list[str], program: Program, reporter: Reporter
) -> None:
    now = {n: [r.name for r in readings if r.lags.least <= 0] for n, readings in inside.items()}
    for part in components(now):
        if len(part) == 1 and part[0] not in now[part[0]]:
            continue
        flow = next((n for n in part if isinstance(program.updates.get(n), ast.Flow)), None)
        if flow is not None:
            _report_flow(flow, part, now, program, reporter)
            continue
        state = next(name for name in part if name in states)
        following = next(n for n in now[state] if n in part)
        path = (state, *shortest_path(now, following, state))
        span = place(program, state, following)
        name = spelled(program.updates[state].name)
        hint = f"the path is {' → '.join(path)}" if len(path) > 2 else None
        reporter.add(StateNow(span, state=name, hint=hint))


def _report_flow(
    state: str,
    part: tuple[str, ...],
    now: dict[str, list[str]],
    program: Program,
    reporter: Reporter,
) -> None:
    """A drift may read its own state, but nothing else that depends on it at the same token."""
    update = program.updates[state]
    assert isinstance(update, ast.Flow)
    name = spelled(update.name)
    if state in now[state]:
        span = next(p.span for p in ast.walk(update.step) if _reads(p, state))
        problem = f"the step reads `{name}` itself; it may depend on other values only"
        reporter.add(FlowRule(span, state=name, problem=problem))
        return
    following = next(n for n in now[state] if n in part)
    path = (state, *shortest_path(now, following, state))
    problem = (
        f"it reads what depends on it at the same token ({' → '.join(path)}); states that drive "
        "each other are one state, with an axis more"
    )
    reporter.add(FlowRule(place(program, state, following), state=name, problem=problem))


def _reads(node: ast.Condition, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
