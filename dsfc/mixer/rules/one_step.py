"""W5: an update reads the states it depends on one step back, not further."""

from __future__ import annotations

from dsfc.diagnostics.catalogue import Lag
from dsfc.diagnostics.report import Reporter
from dsfc.expr.graph import components
from dsfc.mixer.ir import Mixer
from dsfc.mixer.merge import Program
from dsfc.mixer.reads import Read, mixer_reads
from dsfc.mixer.rules.places import place


def check_one_step(mixer: Mixer, program: Program, reporter: Reporter) -> None:
    """Reports updates that read a state of their own stage two steps back or more.

    States that do not depend on this one are streams to it, and may be read at any lag.
    """
    graph = mixer_reads(mixer)
    edges = {name: sorted({r.name for r in readings}) for name, readings in graph.items()}
    backward = {s.name: s.backward for s in mixer.states}
    for names in components(edges):
        turn = any(backward.get(name, False) for name in names)
        part = frozenset(names)
        # Definitions stand in dependency order: what one reads was looked at before.
        furthest = dict.fromkeys(backward, 0.0)
        for definition in mixer.definitions:
            if definition.name in part:
                reached = _reached(graph[definition.name], part, turn, furthest)
                furthest[definition.name] = max((steps for _, steps in reached), default=0.0)
        for state in sorted(part & backward.keys()):
            for read, steps in _reached(graph[state], part, turn, furthest):
                if steps > 1:
                    span = place(program, state, read.name, indexed=True)
                    reference = "".join(span.text.split()) or read.name
                    reporter.add(Lag(span, reference=reference))


def _reached(
    reads: frozenset[Read], part: frozenset[str], turn: bool, furthest: dict[str, float]
) -> list[tuple[Read, float]]:
    """What is read within the stage, with how far back a state is reached through it."""
    inside = sorted((r for r in reads if r.name in part), key=lambda r: (r.name, r.lags.most))
    return [
        (r, (r.lags.turned() if turn else r.lags).most + furthest.get(r.name, 0.0)) for r in inside
    ]
