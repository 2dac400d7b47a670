"""W5: an update reads the states it depends on one step back, not further."""

from __future__ import annotations

from dsfc.diagnostics.catalogue import Lag
from dsfc.diagnostics.report import Reporter
from dsfc.mixer.graph import components
from dsfc.mixer.ir import Mixer
from dsfc.mixer.merge import Program
from dsfc.mixer.reads import Read, mixer_reads
from dsfc.mixer.rules.places import place


def check_one_step(mixer: Mixer, program: Program, reporter: Reporter) -> None:
    """Reports updates that read a state of their own stage two steps back or more.

    States that do not depend on this one are streams to it, and may be read at any lag.
    """
    graph = mixer_reads(mixer)
    edges = {name: sorted({r.name for r in found}) for name, found in graph.items()}
    backward = {s.name: s.backward for s in mixer.states}
    for part in components(edges):
        turn = any(backward.get(name, False) for name in part)
        for name in part:
            if name in backward:
                _check(name, frozenset(part), graph, turn, backward, program, reporter)


def _check(
    state: str,
    part: frozenset[str],
    graph: dict[str, frozenset[Read]],
    turn: bool,
    states: dict[str, bool],
    program: Program,
    reporter: Reporter,
) -> None:
    memo: dict[str, float] = {}

    def furthest(name: str) -> float:
        """Largest lag at which a definition of this stage reads one of its states."""
        if name not in memo:
            memo[name] = 0
            memo[name] = max((through(r) for r in graph[name] if r.name in part), default=0)
        return memo[name]

    def through(read: Read) -> float:
        lags = read.lags.turned() if turn else read.lags
        return lags.most + (0 if read.name in states else furthest(read.name))

    for read in sorted(graph[state], key=lambda r: (r.name, r.lags.most)):
        if read.name in part and through(read) > 1:
            span = place(program, state, read.name, indexed=True)
            reference = "".join(span.text.split()) or read.name
            reporter.add(Lag(span, reference=reference))
