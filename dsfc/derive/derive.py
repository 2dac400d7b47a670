"""The lowering of a mixer, step by step: L1 sums, L2 stages, L3 updates, L5 read-outs, L4 drives.

Every form of a mixer takes this one path; nothing here knows a mixer by name.
"""

from __future__ import annotations

from collections.abc import Iterable

from dsfc.derive.blocks import Blocks, over_streams, read_outs_of
from dsfc.derive.dependency_order import ordered
from dsfc.derive.drive import Splitter
from dsfc.derive.inline import Definitions
from dsfc.derive.model import Model
from dsfc.derive.pairing import pairs, with_pairs
from dsfc.derive.read_out import ReadOuts
from dsfc.derive.record import definitions_of
from dsfc.derive.stages import stages_of
from dsfc.derive.sums import separate
from dsfc.derive.update import Update, updates_of
from dsfc.diagnostics.catalogue import Arguments, Limit, Recursion
from dsfc.diagnostics.report import Diagnostic, DiagnosticError
from dsfc.expr.arithmetic import LONGEST
from dsfc.expr.tree import Expr, Now
from dsfc.limits import DEFAULT_LIMITS, Limits
from dsfc.mixer.ir import Mixer
from dsfc.system.ir import Output, Stage, Stream, System
from dsfc.system.traverse import parts


def derive(mixer: Mixer, limits: Limits = DEFAULT_LIMITS) -> System:
    """Returns the mixer in Dynamical Systems Form.

    Args:
        mixer: a typed mixer.
        limits: bounds on the expansion of sums and products.

    Raises:
        DiagnosticError: an update is not affine in the states of its stage (E-NONLINEAR-STATE), a
            rule does not fit its flow (E-FLOW), or an expansion is too large (E-LIMIT).
    """
    model = Model.of(mixer, limits)
    try:
        return _Lowering(model).system()
    except RecursionError:
        # Token-wise definitions may stand in chains of any length; values of states that are
        # taken through hundreds of definitions would be expressions of that height.
        raise DiagnosticError([_too_deep(model)]) from None
    except OverflowError as e:
        place = model.span_of(model.mixer.output)
        bound = f"{LONGEST} bits"
        raise DiagnosticError([Limit(place, what="a number", size=str(e), bound=bound)]) from None
    except ZeroDivisionError:
        problem = "divides by what is zero at every token"
        place = model.span_of(model.mixer.output)
        raise DiagnosticError([Arguments(place, function="/", problem=problem)]) from None


def refusals(mixer: Mixer, limits: Limits = DEFAULT_LIMITS) -> tuple[Diagnostic, ...]:
    """Returns what keeps a typed mixer from a Dynamical Systems Form, nothing if it has one."""
    try:
        derive(mixer, limits)
    except DiagnosticError as error:
        return error.diagnostics
    return ()


def _too_deep(model: Model) -> Diagnostic:
    return Limit(
        model.span_of(model.mixer.output),
        what="height of the expression that reads a state",
        size="too large",
        bound=str(model.limits.depth),
    )


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
        value = self._value()
        output = self._output(value, read_outs)
        used = model.upstream(model.sources(value))
        streams = read_outs.streams
        settled = {name: over_streams(u, streams) for name, u in updates.items() if name in used}
        order = ordered(model, output.value, streams.made, settled, stages)
        trees = [output.value, *read_outs_of(order.streams)]
        inliner = Definitions(model, (s.name for s in order.streams if s.name in model.definitions))
        blocks = Blocks(Splitter(model), inliner, trees, settled.values())
        built = [blocks.stage([settled[n] for n in names]) for names in order.stages]
        built = list(with_pairs(built, pairs(trees, built, inliner)))
        return self._assembled(output, order.streams, tuple(built), definition)

    # --- L2, L3 -----------------------------------------------------------------------------------

    def _updates(self, stages: Iterable[tuple[str, ...]]) -> dict[str, Update]:
        out: dict[str, Update] = {}
        problems: list[Diagnostic] = []
        for names in stages:
            directions = {self.model.states[n].backward for n in names}
            if len(directions) > 1:
                problems.append(self._two_ways(names))
                continue
            built, updates = updates_of(self.model, names)
            problems += updates
            out |= {u.state.name: u for u in built}
            self.model.note("L2 stage", ", ".join(names))
            for u in built:
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

    def _value(self) -> Expr:
        name = self.model.mixer.output
        d = self.model.definitions.get(name)
        return self.model.equation(name).ref(Now(0)) if d is None else d.value

    def _output(self, value: Expr, read_outs: ReadOuts) -> Output:
        model, name = self.model, self.model.mixer.output
        named = model.definitions.get(name) or model.equation(name)
        tree = read_outs.of(value)
        for node in parts(tree):
            model.note("L5 read-out", type(node).__name__)
        axes = tuple(sorted(value.axes))
        span = model.span_of(name)
        return Output(name, tree, axes, value.field, False, named.provenance, span)

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
