"""Which names of a program read which, before anything is typed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dsfc.expr.graph import components, reachable
from dsfc.mixer.merge import Program
from dsfc.mixer.reserved_names import OUTPUT
from dsfc.mixer.rules.recursion import Reading, Readings, readings
from dsfc.syntax import ast


def mixer_readings(program: Program) -> Readings:
    """Returns what each definition and each state's update mentions, functions expanded."""
    inside = {name: _body(function) for name, function in program.functions.items()}
    calls = {
        name: [r.name for r in readings if r.name in inside] for name, readings in inside.items()
    }

    def expanded(node: ast.Expr) -> Iterator[Reading]:
        own = tuple(readings(node))
        yield from own
        for name in sorted(reachable(calls, (r.name for r in own if r.name in inside))):
            yield from inside[name]

    out: dict[str, tuple[Reading, ...]] = {}
    for name, update in program.updates.items():
        nodes = (update.expr,) if isinstance(update, ast.Def) else (update.drift, update.step)
        read_names = [r for node in nodes for r in expanded(node)]
        declared = (program.declared.get(r.name) for r in read_names)
        shapes = (d.alias.definition for d in declared if d is not None and d.alias is not None)
        out[name] = tuple(dict.fromkeys((*read_names, *(Reading(s, s, False) for s in shapes))))
    return out


def _body(function: ast.FunDef) -> tuple[Reading, ...]:
    """What the body of a function mentions, its arguments left out."""
    params = {param.text for param in function.params}
    return tuple(r for r in readings(function.expr) if r.name not in params)


def wanted_names(program: Program, graph: Readings) -> tuple[str, ...]:
    """Returns the names to type: what the output reaches, and what the mixer's own text says.

    Definitions that only a base mentions and that nothing reads any more are left alone: an
    override may have made them meaningless.
    """
    edges = {name: [r.name for r in readings] for name, readings in graph.items()}
    roots = [OUTPUT, *program.own] if OUTPUT in program.updates else [*program.declared, *edges]
    seen = reachable(edges, roots)
    order = (*program.declared, *program.consts, *program.updates)
    return tuple(dict.fromkeys(name for name in order if name in seen))


def typing_order(graph: Readings, is_state: Callable[[str], bool]) -> Iterator[str]:
    """Yields definitions and states so that each stands after the definitions it reads.

    The type of a state is declared, so reading one asks for no order.
    """
    edges = {n: [r.name for r in readings if not is_state(r.name)] for n, readings in graph.items()}
    for part in components(edges):
        yield from part
