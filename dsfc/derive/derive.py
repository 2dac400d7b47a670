"""The lowering of a mixer, step by step: L1 sums, L2 stages, L3 updates, L5 read-outs, L4 drives.

Every form of a mixer takes this one path; nothing here knows a mixer by name.
"""

from __future__ import annotations

from collections.abc import Iterable

from dsfc.derive.blocks import Blocks, over_streams, read_outs_of
from dsfc.derive.drive import Splitter
from dsfc.derive.inline import Inliner
from dsfc.derive.model import Model
from dsfc.derive.pairing import pairs, with_pairs
from dsfc.derive.read_out import ReadOuts
from dsfc.derive.record import definitions_of
from dsfc.derive.stages import stages_of
from dsfc.derive.streams import Streams
from dsfc.derive.sums import separate
from dsfc.derive.update import Update, updates_of
from dsfc.diagnostics.catalogue import Recursion
from dsfc.diagnostics.report import Diagnostic, DiagnosticError
from dsfc.limits import DEFAULT_LIMITS, Limits
from dsfc.mixer.ir import Mixer
from dsfc.primitives.build import walk
from dsfc.primitives.expr import Expr, Now, Ref
from dsfc.system.ir import (
    Output,
    ReadOut,
    Stage,
    Stream,
    System,
)
from dsfc.system.traverse import expressions, parts, terms


def derive(mixer: Mixer, limits: Limits = DEFAULT_LIMITS) -> System:
    """Returns the mixer in Dynamical Systems Form.

    Args:
        mixer: a typed mixer.
        limits: bounds on the expansion of sums and products.

    Raises:
        DiagnosticError: an update is not affine in the states of its stage (E-NONLINEAR-STATE), a
            rule does not fit its flow (E-FLOW), or an expansion is too large (E-LIMIT).
    """
    return _Lowering(Model.of(mixer, limits)).system()


class _Lowering:
    def __init__(self, model: Model) -> None:
        self.model = model

    def system(self) -> System:
        model = self.model
        definition = definitions_of(model)
        separate(model)
        stages = stages_of(model)
        updates = self._updates(stages)
        read_outs = ReadOuts(model)
        output = self._output(read_outs)
        used = self._reachable(output, updates, read_outs.streams)
        streams = read_outs.streams
        settled = {name: over_streams(u, streams) for name, u in updates.items() if name in used}
        order = _ordered(model, output.value, streams, settled, stages)
        trees = [output.value, *read_outs_of(order.streams)]
        inliner = Inliner(model, (s.name for s in order.streams))
        blocks = Blocks(Splitter(model), inliner, trees, settled.values())
        made = [blocks.stage([settled[n] for n in names]) for names in order.stages]
        made = list(with_pairs(made, pairs(trees, made, inliner)))
        return self._assembled(output, tuple(order.streams), tuple(made), definition)

    # --- L2, L3 -----------------------------------------------------------------------------------

    def _updates(self, stages: Iterable[tuple[str, ...]]) -> dict[str, Update]:
        out: dict[str, Update] = {}
        problems: list[Diagnostic] = []
        for names in stages:
            directions = {self.model.states[n].backward for n in names}
            if len(directions) > 1:
                problems.append(self._two_ways(names))
                continue
            made, found = updates_of(self.model, names)
            problems += found
            out |= {u.state.name: u for u in made}
            self.model.note("L2 stage", ", ".join(names))
            for u in made:
                form = "flow" if u.flow else f"{len(u.chain)} factor(s)"
                self.model.note("L3 affine", f"{u.state.name}: {form}", u.state.span)
        if problems:
            raise DiagnosticError(problems)
        return out

    def _two_ways(self, names: tuple[str, ...]) -> Diagnostic:
        states = self.model.states
        ahead = next(n for n in names if not states[n].backward)
        back = next(n for n in names if states[n].backward)
        return Recursion(
            self.model.span_of(ahead),
            name=ahead,
            what=f"the state `{back}`, which runs the other way and reads it",
            path=" → ".join((ahead, back, ahead)),
            repair="let one of the two read inputs only",
        )

    # --- L5 ---------------------------------------------------------------------------------------

    def _output(self, read_outs: ReadOuts) -> Output:
        model, name = self.model, self.model.mixer.output
        d = model.definitions.get(name)
        if d is not None:
            value, provenance = d.value, d.provenance
        else:
            s = model.states[name]
            value, provenance = s.ref(Now(0)), s.provenance
        tree = read_outs.of(value)
        for node in parts(tree):
            model.note("L5 read-out", type(node).__name__)
        return Output(name, tree, tuple(sorted(value.axes)), value.field, False, provenance)

    def _reachable(
        self, output: Output, updates: dict[str, Update], streams: Streams
    ) -> frozenset[str]:
        """Names of the states that the output depends on; makes their streams on the way."""
        seen: set[str] = set()
        visited: set[str] = set()
        waiting = [t.source for t in terms(output.value)]
        while True:
            for s in list(streams.made.values()):
                if s.name not in visited:
                    visited.add(s.name)
                    if not isinstance(s.value, Expr):
                        waiting += [t.source for t in terms(s.value)]
            if not waiting:
                return frozenset(seen)
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            u = over_streams(updates[name], streams)
            waiting += [t.source for f in u.chain for t in f.terms]

    # --- assembly ---------------------------------------------------------------------------------

    def _assembled(
        self,
        output: Output,
        streams: tuple[Stream, ...],
        stages: tuple[Stage, ...],
        definition: tuple[object, ...],
    ) -> System:
        model, mixer = self.model, self.model.mixer
        return System(
            name=mixer.name,
            doc=mixer.doc,
            axes=tuple(model.axes),
            inputs=mixer.inputs,
            params=mixer.params,
            buffers=mixer.buffers,
            abstracts=mixer.abstracts,
            streams=streams,
            stages=stages,
            outputs=(output,),
            definition=definition,  # type: ignore[arg-type]
            claims=tuple(c.text for c in mixer.claims),
            derivation=tuple(model.steps),
        )


def _ordered(
    model: Model,
    tree: ReadOut,
    made: Streams,
    updates: dict[str, Update],
    stages: tuple[tuple[str, ...], ...],
) -> _Order:
    """What the output depends on, streams in the order of the mixer as far as that goes."""
    found = _Order(model, made, updates, stages)
    found.visit_read_out(tree)
    needed = {s.name for s in found.streams}
    out = _Order(model, made, updates, stages)
    for name in model.definitions:
        if name in needed:
            out.visit_name(name)
    out.visit_read_out(tree)
    return out


class _Order:
    """Streams and stages in the order in which they can be computed, found from the output."""

    def __init__(
        self,
        model: Model,
        made: Streams,
        updates: dict[str, Update],
        stages: Iterable[tuple[str, ...]],
    ) -> None:
        self.model = model
        self.made = made.made
        self.updates = updates
        self.stage_of = {n: names for names in stages for n in names}
        self.streams: list[Stream] = []
        self.stages: list[tuple[str, ...]] = []
        self._seen: set[object] = set()

    def visit_read_out(self, r: ReadOut) -> None:
        for e in expressions(r):
            self.visit(e)
        for t in terms(r):
            self.visit_stage(self.stage_of[t.source])

    def visit(self, e: Expr) -> None:
        for x in walk(e):
            if isinstance(x, Ref) and x.name in self.made:
                self.visit_name(x.name)

    def visit_name(self, name: str) -> None:
        if name in self._seen:
            return
        self._seen.add(name)
        s = self.made[name]
        if isinstance(s.value, Expr):
            self.visit(s.value)
        else:
            self.visit_read_out(s.value)
        self.streams.append(s)

    def visit_stage(self, names: tuple[str, ...]) -> None:
        if names in self._seen:
            return
        self._seen.add(names)
        for n in names:
            for other in sorted(self.model.behind.get(n, ())):
                self.visit_stage(self.stage_of[other])
            u = self.updates[n]
            for f in u.chain:
                for t in f.terms:
                    self.visit(t.left)
                    self.visit(t.right)
                if f.rest is not None:
                    self.visit(f.rest)
            if u.flow is not None:
                for e in (u.flow.step, u.flow.diagonal, u.flow.drive):
                    self.visit(e)
                for left, _, right in u.flow.low_rank:
                    self.visit(left)
                    self.visit(right)
        self.stages.append(names)
