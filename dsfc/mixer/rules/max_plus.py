"""A state whose update is a maximum of its own past: m = max(m[i-1] + a, w), and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dsfc.diagnostics.catalogue import MaxPlus
from dsfc.diagnostics.report import Reporter
from dsfc.expr.build import walk
from dsfc.expr.graph import components, shortest_path
from dsfc.expr.max_plus import NotMaxPlus, running_maximum
from dsfc.expr.tree import Axis, Bound, Expr, Fir, Now, Ref
from dsfc.mixer.ir import Mixer, StateDecl
from dsfc.mixer.merge import Program
from dsfc.mixer.reads import mixer_reads
from dsfc.mixer.rules.places import place


def is_maximum(
    name: str, update: Expr, axes: tuple[Axis, ...], values: Callable[[str], Expr | None]
) -> bool:
    """Returns whether an update is that of a running maximum.

    Args:
        name: the state.
        update: its value at i.
        axes: of the state.
        values: what definitions stand for.
    """
    try:
        return running_maximum(name, update, frozenset(axes), values) is not None
    except NotMaxPlus:
        return False


def check_maxima(mixer: Mixer, program: Program, reporter: Reporter) -> None:
    """Reports maxima of their own past that are not of this form, and where they are misread."""
    graph = mixer_reads(mixer)
    edges = {name: sorted({r.name for r in readings}) for name, readings in graph.items()}
    parts = {name: part for part in components(edges) for name in part}
    states = {s.name for s in mixer.states}
    for s in mixer.states:
        form = f"write `{s.name} = max({s.name}[i-1] + …, …)`"
        span = program.updates[s.name].name.span
        why = _problem(s, mixer)
        if why is not None:
            reporter.add(MaxPlus(span, state=s.name, why=why, repair=form))
            continue
        others = [n for n in parts[s.name] if n in states and n != s.name]
        if s.maximum and others:
            there = shortest_path(edges, s.name, others[0])
            path = " → ".join((*there, *shortest_path(edges, others[0], s.name)[1:]))
            why, repair = f"it reads what depends on it ({path})", "let it read inputs"
            reporter.add(MaxPlus(span, state=s.name, why=why, repair=repair))
    maxima = frozenset(s.name for s in mixer.states if s.maximum)
    for owner, value in _values(mixer) if maxima else ():
        for name, why in _misread(value, maxima):
            readings = place(program, owner, name, indexed=True)
            repair = "name the value that is read, and read the past of that name"
            reporter.add(MaxPlus(readings, state=name, why=why, repair=repair))


def _problem(s: StateDecl, mixer: Mixer) -> str | None:
    """What an update has that is not of the form; None also where it is no maximum of its past."""
    if s.update is None:
        return None

    def value(name: str) -> Expr | None:
        definition = mixer.definition(name)
        return None if definition is None else definition.value

    try:
        definition = running_maximum(s.name, s.update, frozenset(s.axes), value)
    except NotMaxPlus as problem:
        return "it runs backward" if s.backward else problem.why
    return "it runs backward" if definition is not None and s.backward else None


def _values(mixer: Mixer) -> Iterator[tuple[str, Expr]]:
    for d in mixer.definitions:
        yield d.name, d.value
    for s in mixer.states:
        parts = (s.update,) if s.flow is None else (s.flow.drift, s.flow.step)
        yield from ((s.name, part) for part in parts if part is not None)


def _misread(value: Expr, maxima: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Reads of maxima at other tokens than i, i-1 or a summed one, and by filters, each once."""
    misread: dict[tuple[str, str], None] = {}
    for e in walk(value):
        match e:
            case Ref(name=name, at=Now(lag)) if name in maxima and lag not in (0, 1):
                misread[name, "it is read at another token than `i` and `i-1`"] = None
            case Ref(name=name, at=Bound(_, lag)) if name in maxima and lag:
                misread[name, "it is read beside a summed token"] = None
            case Fir(arg=Ref(name=name)) if name in maxima:
                misread[name, "a filter reads it"] = None
    yield from misread
