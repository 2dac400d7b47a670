"""From syntax tree to typed mixer: bases merged, modifiers applied, names bound, shapes inferred.

The order of definitions in a text means nothing. What the output does not reach is dropped: its
parameters, buffers, inputs, definitions and axes are not part of the mixer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from dsfc.diagnostics.catalogue import (
    ComplexValue,
    FlowRule,
    Limit,
    NoOutput,
    Recursion,
    ShapeState,
    UnknownAxis,
    UnknownName,
    WhichMixer,
)
from dsfc.diagnostics.report import Diagnostic, DiagnosticError, Label, Reporter, nearest
from dsfc.expr.build import walk
from dsfc.expr.declarations import Provenance
from dsfc.expr.graph import components
from dsfc.expr.reserved_names import FIRST
from dsfc.expr.statements import ClaimStatement
from dsfc.expr.tree import Axis, Expr, Field, Ref
from dsfc.mixer.axes import dimensions
from dsfc.mixer.claims import text_of, typed_claim
from dsfc.mixer.context import Context
from dsfc.mixer.declarations import Declarations
from dsfc.mixer.dependencies import mixer_readings, typing_order, wanted_names
from dsfc.mixer.expressions import Expressions
from dsfc.mixer.flows import continuous
from dsfc.mixer.guess import guessed_axes
from dsfc.mixer.ir import ClaimText, Definition, Flow, Mixer, StateDecl
from dsfc.mixer.library import Found, Library
from dsfc.mixer.merge import merge, report_axis_clashes
from dsfc.mixer.modifiers import apply_modifiers
from dsfc.mixer.reach import reached
from dsfc.mixer.reserved_names import OUTPUT
from dsfc.mixer.rules.flow_rule import check_diagonal, flow_rule
from dsfc.mixer.rules.function_scope import check_functions
from dsfc.mixer.rules.has_update import check_updates
from dsfc.mixer.rules.initial_values import check_initial_values
from dsfc.mixer.rules.lag_power import check_lags
from dsfc.mixer.rules.max_plus import check_maxima, is_maximum
from dsfc.mixer.rules.one_step import check_one_step
from dsfc.mixer.rules.paper_letters import check_letters
from dsfc.mixer.rules.present import check_present
from dsfc.mixer.rules.recursion import Readings, circles, recurring, report
from dsfc.mixer.scope import Scope
from dsfc.mixer.shapes import named, product_of
from dsfc.mixer.times import normalize_times
from dsfc.mixer.undeclared import UndeclaredStates, with_states
from dsfc.source import Span
from dsfc.syntax import ast

_RULES = (check_present, check_one_step, check_diagonal, check_maxima, check_initial_values)
"""Conditions on the typed mixer; W7 and W8, on linearity, are found by the derivation."""


def resolve(spec: ast.Spec, name: str | None = None, library: Library | None = None) -> Mixer:
    """Returns the typed mixer a spec means.

    Args:
        spec: the syntax tree of the text.
        name: which mixer of the text; its last one by default.
        library: where bases and modifiers are looked up; the shipped library by default.

    Raises:
        DiagnosticError: with everything that is wrong, each located, none following from another.
        UndeclaredStates: all that is wrong is that definitions read their own past.
    """
    books = Library() if library is None else library
    unit = _unit(spec, name)
    resolver = _Resolver(Found(unit, books.home(spec)), books)
    try:
        return resolver.mixer()
    except DiagnosticError as error:
        diagnostics = error.diagnostics[: books.limits.diagnostics]
        problems = [resolver.with_uses(problem) for problem in diagnostics]
        mixer = None
        if all(isinstance(problem, Recursion) for problem in problems):
            mixer = resolver.with_states()
        if mixer is None:
            raise DiagnosticError(problems) from None
        raise UndeclaredStates(problems, mixer) from None


def resolve_claims(
    spec: ast.Spec, name: str, library: Library, decays: Mapping[str, Expr | None]
) -> tuple[ClaimStatement, ...]:
    """Returns the claims of a mixer that resolves, its bases' claims included, with names bound.

    Args:
        spec: the syntax tree of the text.
        name: which mixer of the text.
        library: where bases and modifiers are looked up.
        decays: state → diagonal of its transition, None where there is none.

    Raises:
        DiagnosticError: with everything that is wrong in the claims.
    """
    return _Resolver(Found(_unit(spec, name), library.home(spec)), library).claims(decays)


def _unit(spec: ast.Spec, name: str | None) -> ast.MixerUnit:
    units = [unit for unit in spec.units if isinstance(unit, ast.MixerUnit)]
    chosen = [unit for unit in units if name is None or unit.name.text == name]
    if chosen:
        return chosen[-1]
    names = [unit.name.text for unit in units]
    problem = "there is no mixer" + ("" if name is None else f" `{name}`")
    close = None if name is None else nearest(name, names)
    known = ", ".join(names) or "none"
    span = spec.span.source.span(0, 0)
    raise DiagnosticError([WhichMixer(span, problem=problem, known=known, nearest=close)])


class _WithoutBase(Reporter):
    """Drops what only follows from a base that was not found: its names and axes are unknown."""

    def __init__(self, before: Reporter) -> None:
        super().__init__()
        super().add(*before)

    def add(self, *diagnostics: Diagnostic) -> None:
        """Takes note of problems that stand on their own."""
        super().add(*(d for d in diagnostics if not isinstance(d, UnknownName | UnknownAxis)))


class _Resolver:
    """One run over one mixer."""

    def __init__(self, unit: Found, library: Library) -> None:
        self._found = unit
        self._library = library
        self._undeclared: list[str] = []
        reporter = Reporter()
        self._program = merge(unit, library, reporter)
        if not self._program.complete:
            reporter = _WithoutBase(reporter)
        self._reporter = reporter
        check_letters(unit.unit, self._program.names, reporter)
        apply_modifiers(self._program, library, reporter)
        report_axis_clashes(self._program, reporter)
        dims = dimensions(self._program.dims, self._program.consts, reporter)
        self._scope = Scope(self._program, dims, reporter)
        self._typer = Expressions(
            self._scope,
            reporter,
            library.limits,
            self._value,
            lambda name: self._declarations.typed(name),
            self._lift,
        )
        self._declarations = Declarations(self._scope, self._typer, self._axes_of)
        self._values: dict[str, Expr | None] = {}
        self._lifted: dict[str, Definition] = {}
        self._flows: dict[str, Flow | None] = {}

    def mixer(self) -> Mixer:
        """The mixer, or everything that is wrong with it."""
        program, reporter = self._program, self._reporter
        graph = mixer_readings(program)
        wanted = wanted_names(program, graph)
        if len(wanted) > self._library.limits.names:
            reporter.add(_too_many(program.unit.name.span, len(wanted), self._library.limits.names))
            reporter.raise_errors()
        self._report_circles(graph, wanted)
        for name in (*wanted, *self._lead(wanted)):
            if name in program.declared:
                self._declarations.typed(name)
        for name in typing_order(graph, self._scope.is_state):
            if name in wanted:
                self._value(name)
        for name in wanted:
            if name in program.consts:
                self._typer.constant(name)
        check_updates(program, wanted, reporter)
        check_functions(self._typer, program)
        reporter.raise_errors()
        mixer = self._assembled()
        for rule in _RULES:
            rule(mixer, program, reporter)
        reporter.raise_errors()
        if OUTPUT not in program.updates:
            unit = program.unit
            reporter.add(NoOutput(unit.name.span, mixer=unit.name.text))
        reporter.raise_errors()
        return reached(mixer)

    def _lead(self, wanted: Iterable[str]) -> list[str]:
        """The inherited input that says how long a sequence is, where no other one is wanted."""
        declared = self._program.declared
        inputs = [name for name, d in declared.items() if d.kind is ast.DeclKind.INPUT]
        return [] if set(inputs) & set(wanted) else inputs[:1]

    def claims(self, decays: Mapping[str, Expr | None]) -> tuple[ClaimStatement, ...]:
        """The claims with their names bound, or everything that is wrong with them."""
        mixer = self.mixer()
        held = (*mixer.inputs, *mixer.params, *mixer.buffers, *mixer.abstracts)
        items = (*held, *mixer.definitions, *mixer.states)
        reached = frozenset({FIRST, *decays, *(item.name for item in items)})
        claims = self._program.claims
        typed = [typed_claim(claim, self._typer, decays, reached) for claim in claims]
        self._reporter.raise_errors()
        return tuple(dict.fromkeys(claim for claim in typed if claim is not None))

    def with_uses(self, problem: Diagnostic) -> Diagnostic:
        """The same problem; one in a modifier's text shows where the mixer uses the modifier."""
        labels = tuple(
            Label(use.span, "used here")
            for use, modifier in self._program.modified
            if modifier.span.source is problem.span.source
            and modifier.span.start <= problem.span.start < modifier.span.end
        )
        return replace(problem, labels=(*problem.labels, *labels)) if labels else problem

    def with_states(self) -> Mixer | None:
        """The mixer with the definitions that read their own past as states, if that is one."""
        if not self._undeclared:
            return None
        unit = with_states(self._program, self._undeclared)
        if unit is None:
            return None
        try:
            return _Resolver(Found(unit, self._found.home), self._library).mixer()
        except DiagnosticError:
            return None

    def _report_circles(self, graph: Readings, wanted: tuple[str, ...]) -> None:
        """W2, W3 on definitions; those on a circle have no value."""
        program, updates = self._program, self._program.updates
        defined = [
            n for n in wanted if self._scope.is_definition(n) and isinstance(updates[n], ast.Def)
        ]
        inner = {n: tuple(r for r in graph[n] if r.name in defined) for n in defined}
        places = {n: updates[n].name for n in defined}
        for names in circles(inner):
            states = recurring(inner, names)
            axes = guessed_axes(program, states)
            shapes = {n: [a for a in program.dims if a in axes[n]] for n in axes}
            self._reporter.add(*report(inner, names, places, shapes))
            self._undeclared += states
            self._values.update(dict.fromkeys(names))

    # Values

    def _value(self, name: str) -> Expr | None:
        """The typed value of a definition or the typed update of a state."""
        if name not in self._values:
            self._values[name] = None  # until it is typed, a reader gets nothing
            self._values[name] = self._typed(name)
        return self._values[name]

    def _typed(self, name: str) -> Expr | None:
        update = self._program.updates[name]
        state = self._scope.is_state(name)
        if state and not self._declarations.typed(name):
            return None
        # A typed state is there.
        backward = state and self._scope.states[name].backward  # type: ignore[union-attr]
        ctx = Context(name, backward=backward)
        if isinstance(update, ast.Flow):
            if not state:
                problem = f"`{name}` is not a state; declare `state {name} : …`"
                self._reporter.add(FlowRule(update.name.span, state=name, problem=problem))
                return None
            return self._typed_flow(name, update, ctx)
        value = self._typer.type(update.expr, ctx)
        if value is None or not check_lags(value, update.expr, self._reporter):
            return None
        value = normalize_times(value)
        return (
            self._checked_state(name, value, update.expr.span) if state else self._real(name, value)
        )

    def _real(self, name: str, value: Expr) -> Expr | None:
        """The output is real."""
        if name == OUTPUT and value.field is Field.COMPLEX:
            self._complex(self._program.updates[name].name.span, "the output `y`")
            return None
        return value

    def _complex(self, span: Span, what: str, repair: str = "take `Re(…)`") -> None:
        problem = f"{what} is complex where a real value is needed; {repair}"
        self._reporter.add(ComplexValue(span, problem=problem))

    def _checked_state(self, name: str, value: Expr, span: Span) -> Expr | None:
        """T10, and the field of a state."""
        state = self._scope.states[name]
        assert state is not None
        if value.axes != frozenset(state.axes):
            got, has = named(value.axes), named(state.axes)
            way = f"; declare `state {name} : {product_of(value.axes)}`" if value.axes else ""
            self._reporter.add(ShapeState(span, state=name, got=got, has=has, instead=way))
            return None
        if value.field > state.field:
            whole = f"declare `state {name} : {product_of(state.axes)} complex`"
            whole = whole if state.axes else f"declare `state {name} complex`"
            self._complex(span, f"the update of `{name}`", whole)
            return None
        if name == OUTPUT and state.field is Field.COMPLEX:
            self._complex(span, "the output `y`")
            return None
        return value

    def _typed_flow(self, name: str, update: ast.Flow, ctx: Context) -> Expr | None:
        drift = self._typer.type(update.drift, ctx)
        step = self._typer.operand(update.step, ctx)
        rule = flow_rule(update, self._scope, step, self._reporter)
        if drift is None or step is None or rule is None:
            return None
        if not check_lags(drift, update.drift, self._reporter):
            return None
        if not check_lags(step.value, update.step, self._reporter):
            return None
        if self._checked_state(name, drift, update.drift.span) is None:
            return None
        drift = continuous(normalize_times(drift), name, self._defined)
        self._typer.check_height(drift, update.drift.span)
        self._flows[name] = Flow(drift, rule, step.value)
        return drift

    def _defined(self, name: str) -> Expr | None:
        return self._value(name) if self._scope.is_definition(name) else None

    def _axes_of(self, name: str) -> Iterable[Axis] | None:
        """Axes of a definition, for the shapes of a modifier's parameters."""
        if self._scope.kind(name) is not None:
            if not self._declarations.typed(name):
                return None
            state = self._scope.states.get(name)
            tensor = self._scope.inputs.get(name)
            return state.axes if state is not None else tensor.axes if tensor is not None else None
        value = self._value(name)
        return None if value is None else sorted(value.axes)

    def _lift(self, owner: str, value: Expr, span: Span) -> str:
        """Names an expression at the present token, so that its past values are 0 before it."""
        value = normalize_times(value)
        for name, definition in self._lifted.items():
            if definition.value is value:
                return name
        name = self._program.fresh(f"{owner}_filtered", self._lifted)
        self._lifted[name] = Definition(name, value, None, span)
        return name

    # The mixer

    def _assembled(self) -> Mixer:
        """The mixer with everything that is typed."""
        program, scope = self._program, self._scope
        held = [t for t in scope.tensors.values() if t is not None]
        kinds = {name: d.kind for name, d in program.declared.items()}
        position = {name: k for k, name in enumerate(program.declared)}
        held.sort(key=lambda t: position[t.name])
        unit = program.unit
        inputs = [t for t in scope.inputs.values() if t is not None]
        return Mixer(
            name=unit.name.text,
            doc=unit.provenance.text if unit.provenance is not None else None,
            axes=scope.dimensions,
            inputs=tuple(sorted(inputs, key=lambda t: position[t.name])),
            params=tuple(t for t in held if kinds[t.name] is ast.DeclKind.PARAM),
            buffers=tuple(t for t in held if kinds[t.name] is ast.DeclKind.BUFFER),
            abstracts=tuple(a for a in scope.abstracts.values() if a is not None),
            definitions=tuple(self._definitions()),
            states=tuple(self._states()),
            output=OUTPUT,
            claims=tuple(_claim(claim) for claim in program.claims),
            rewrites=tuple(program.rewrites),
            papers=ast.papers(unit),
            layer=ast.layer_parts(unit),
            span=unit.name.span,
        )

    def _definitions(self) -> Iterator[Definition]:
        """Definitions in dependency order."""
        definitions = dict(self._lifted)
        for name, update in self._program.updates.items():
            value = self._values.get(name)
            if self._scope.is_definition(name) and value is not None:
                assert isinstance(update, ast.Def)
                definitions[name] = Definition(name, value, _provenance(update), update.name.span)
        edges = {
            name: sorted({n.name for n in walk(d.value) if isinstance(n, Ref)})
            for name, d in definitions.items()
        }
        for part in components(edges):
            yield definitions[part[0]]

    def _states(self) -> Iterator[StateDecl]:
        for name in self._program.declared:
            state = self._scope.states.get(name)
            value = self._values.get(name)
            if state is None or value is None:
                continue
            update = self._program.updates[name]
            flow = self._flows.get(name)
            yield StateDecl(
                name,
                state.axes,
                state.field,
                state.backward,
                None if flow is not None else value,
                flow,
                _provenance(update),
                update.name.span,
                flow is None and is_maximum(name, value, state.axes, self._defined),
            )


def _provenance(update: ast.Def | ast.Flow) -> Provenance | None:
    return None if update.provenance is None else Provenance(update.provenance.text)


def _claim(claim: ast.Claim) -> ClaimText:
    return ClaimText(text_of(claim), claim.span)


def _too_many(place: Span, names: int, bound: int) -> Limit:
    return Limit(place, what="number of names in a mixer", size=str(names), bound=str(bound))
