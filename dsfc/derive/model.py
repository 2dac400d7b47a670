"""What a derivation works on: definitions, states and axes as plain expressions.

The separation of sums over the past adds states, tensor powers add axes, delays add definitions.
The model collects them; it lives for one derivation and never leaves this package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field, replace

from dsfc.diagnostics.catalogue import MaxPlus
from dsfc.diagnostics.report import DiagnosticError
from dsfc.expr.build import rewrite, walk
from dsfc.expr.declarations import Dimension, Provenance
from dsfc.expr.max_plus import NotMaxPlus, RunningMaximum, running_maximum
from dsfc.expr.over_time import Past
from dsfc.expr.reserved_names import FIRST, TIME
from dsfc.expr.tree import Axis, Bound, Expr, Field, Now, Ref, Size, Time
from dsfc.limits import DEFAULT_LIMITS, Limits
from dsfc.mixer.ir import Definition, Flow, Mixer, StateDecl
from dsfc.source import NOWHERE, Span
from dsfc.system.ir import Step

SUM_MARK = "Σ"
"""Stands in `Model.reach` for a sum over the past that stayed a sum; no name can be spelled so."""


@dataclass(frozen=True, slots=True)
class Equation:
    """A state with its update, declared or found by separating a sum over the past.

    Attributes:
        name: name of the state.
        axes: canonical order.
        field: real or complex.
        backward: whether it runs from the end to the start.
        update: value at i, reading states at `Now(1)` (`Now(-1)` backward); None for a flow.
        flow: continuous form.
        declared: whether the spec declares it.
        maximum: what the update of a running maximum says; None for others.
    """

    name: str
    axes: tuple[Axis, ...]
    field: Field
    backward: bool
    update: Expr | None
    flow: Flow | None = None
    declared: bool = True
    provenance: Provenance | None = None
    span: Span | None = None
    maximum: RunningMaximum | None = None

    @property
    def step(self) -> int:
        """The lag at which the recurrence reads its states."""
        return -1 if self.backward else 1

    @property
    def body(self) -> tuple[Expr, ...]:
        """Everything the update is made of."""
        if self.flow is not None:
            return (self.flow.drift, self.flow.step)
        if self.maximum is not None:
            return (self.maximum.log_decay, self.maximum.log_weight)
        return () if self.update is None else (self.update,)

    def ref(self, at: Now | Bound) -> Ref:
        """Returns the value of the state at a time index."""
        return Ref(self.name, frozenset(self.axes), self.field, Time.STATE, at)


@dataclass(slots=True)
class Model:
    """The working state of one derivation; see the module docstring.

    Attributes:
        mixer: what is being derived.
        definitions: name → definition, in dependency order of the mixer, then those added.
        states: name → equation of an affine state.
        maxima: name → equation of a running maximum. It is no state of a stage: it is a value per
            token wherever it is read.
        axes: dimensions, copies of axes at the end.
        why: sums that do not separate → the reason.
        steps: record of the derivation.
        cuts: definitions that are read as streams wherever they stand, although they depend on
            states: `reach` ends at them.
        version: grows when `reach` may have changed.
        behind: state → states whose stages must stand before its own because a coefficient of one
            of its reads comes from them.
    """

    mixer: Mixer
    limits: Limits = DEFAULT_LIMITS
    definitions: dict[str, Definition] = field(default_factory=dict)
    states: dict[str, Equation] = field(default_factory=dict)
    maxima: dict[str, Equation] = field(default_factory=dict)
    axes: list[Dimension] = field(default_factory=list)
    why: dict[Expr, str] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    cuts: set[str] = field(default_factory=set)
    version: int = 0
    behind: dict[str, set[str]] = field(default_factory=dict)
    _names: set[str] = field(default_factory=set)
    _reach: dict[Expr, frozenset[str]] = field(default_factory=dict)
    _sources: dict[Expr, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, mixer: Mixer, limits: Limits = DEFAULT_LIMITS) -> Model:
        """Returns the model of a mixer, before any separation."""
        model = cls(mixer, limits, axes=list(mixer.axes))
        model.definitions = {d.name: d for d in mixer.definitions}
        for s in mixer.states:
            maximum = _maximum(s, mixer) if s.maximum else None
            (model.states if maximum is None else model.maxima)[s.name] = Equation(
                s.name, s.axes, s.field, s.backward, s.update, s.flow, True, s.provenance, s.span,
                maximum,
            )  # fmt: skip
        model._read_maxima_per_token()
        tensors = (*mixer.inputs, *mixer.params, *mixer.buffers, *mixer.abstracts)
        model._names = {t.name for t in tensors} | set(model.definitions) | set(model.states)
        model._names |= set(model.maxima)
        model._names |= {d.axis.name for d in mixer.axes} | {FIRST, TIME, mixer.name}
        model.forget()
        return model

    def _read_maxima_per_token(self) -> None:
        """Lets maxima, and definitions that depend on the past through them alone, be per token."""
        times = dict.fromkeys(self.maxima, Time.TOKEN)

        def rule(e: Expr) -> Expr | None:
            if isinstance(e, Ref) and e.name in times and e.when is not times[e.name]:
                return Ref(e.name, e.over, e.kind, times[e.name], e.at)
            return None

        def read(e: Expr) -> Expr:
            return rewrite(e, rule)

        if not self.maxima:
            return
        for name, d in self.definitions.items():
            value = read(d.value)
            self.definitions[name] = replace(d, value=value)
            times[name] = value.time
        for held in (self.states, self.maxima):
            for name, s in held.items():
                flow, maximum = s.flow, s.maximum
                if flow is not None:
                    flow = Flow(read(flow.drift), flow.rule, read(flow.step))
                if maximum is not None:
                    decay, weight = read(maximum.log_decay), read(maximum.log_weight)
                    maximum = RunningMaximum(decay, weight)
                update = None if s.update is None else read(s.update)
                held[name] = replace(s, update=update, flow=flow, maximum=maximum)

    # --- names and axes ---------------------------------------------------------------------------

    def fresh(self, wish: str) -> str:
        """Returns an unused name: the wish itself, or with the next number."""
        name, k = wish, 1
        while name in self._names:
            k += 1
            name = f"{wish}_{k}"
        self._names.add(name)
        return name

    def copy_of(self, axis: Axis, taken: Iterable[Axis]) -> Axis:
        """Returns a copy of an axis that is not among those taken; copies are reused.

        This is what a tensor power is: the second contraction of `n` runs over a copy of `n`.
        """
        root = axis.copy_of or axis.name
        used = set(taken)
        for d in self.axes:
            if d.axis.copy_of == root and d.axis not in used:
                return d.axis
        origin = next(d.axis for d in self.axes if d.axis.name == root)
        index = 1 + max(d.axis.index for d in self.axes)
        new = Axis(index, self.fresh(f"{root}_2"), origin.heads, root)
        self.axes.append(Dimension(new, Size(origin), False))
        self.note("copy axis", f"{new.name} is a copy of {root}: it is contracted once more")
        return new

    def define(self, wish: str, value: Expr) -> str:
        """Adds a definition and returns its name."""
        name = self.fresh(wish)
        self.definitions[name] = Definition(name, value)
        return name

    def note(self, rule: str, detail: str, span: Span | None = None) -> None:
        """Records a step."""
        self.steps.append(Step(rule, detail, span))

    def span_of(self, name: str) -> Span:
        """Returns where a definition or state stands in the text, as well as it is known."""
        d, s = self.definitions.get(name), self.states.get(name) or self.maxima.get(name)
        span = d.span if d else s.span if s else None
        return span or self.mixer.span or NOWHERE

    # --- dependence -------------------------------------------------------------------------------

    def equation(self, name: str) -> Equation:
        """Returns the equation of a state or running maximum."""
        return self.states[name] if name in self.states else self.maxima[name]

    def value(self, name: str) -> Expr | None:
        """Returns the value of a definition, None for other names."""
        d = self.definitions.get(name)
        return None if d is None else d.value

    def reach(self, expr: Expr) -> frozenset[str]:
        """Returns the states that a value depends on through definitions, not through updates.

        Contains `SUM_MARK` when the value holds a sum over the past. Ends at cuts and maxima.
        """
        states = self._reach.get(expr)
        if states is None:
            ends = self.cuts | self.maxima.keys()
            states = self._reach[expr] = self._find(expr, self.reach, ends)
        return states

    def sources(self, expr: Expr) -> frozenset[str]:
        """Returns what `reach` would without cuts: every state whose read-out a value needs."""
        known = self._sources.get(expr)
        if known is None:
            known = self._sources[expr] = self._find(expr, self.sources, frozenset())
        return known

    def _find(
        self, expr: Expr, inner: Callable[[Expr], frozenset[str]], ends: AbstractSet[str]
    ) -> frozenset[str]:
        out: set[str] = set()
        for e in walk(expr):
            if isinstance(e, Past):
                out.add(SUM_MARK)
            elif isinstance(e, Ref):
                if e.name in self.states:
                    out.add(e.name)
                elif e.name in self.definitions and e.name not in ends:
                    out |= inner(self.definitions[e.name].value)
                elif e.name in self.maxima and e.name not in ends:
                    out = out.union(*map(inner, self.maxima[e.name].body))
        return frozenset(out)

    def upstream(self, states: Iterable[str]) -> frozenset[str]:
        """Returns the states whose values these states need, themselves included."""
        seen: set[str] = set()
        waiting = [s for s in states if s in self.states]
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting += self.behind.get(name, ())
                for e in self.states[name].body:
                    waiting += self.sources(e) - {SUM_MARK}
        return frozenset(seen)

    def forget(self) -> None:
        """Drops what was remembered about dependence; call after definitions are replaced."""
        self._reach.clear()
        self._sources.clear()
        # In their order, so that no chain of definitions is followed by recursion.
        for d in self.definitions.values():
            self.reach(d.value)
            self.sources(d.value)
        self.version += 1

    def cut(self, name: str) -> None:
        """Makes a definition a stream wherever it is read from now on."""
        if name not in self.cuts:
            self.cuts.add(name)
            self.forget()


def _maximum(s: StateDecl, mixer: Mixer) -> RunningMaximum:
    """What the update of a state that is declared to be a running maximum says."""
    values = {d.name: d.value for d in mixer.definitions}
    maximum = None
    with suppress(NotMaxPlus):
        if s.update is not None and not s.backward:
            maximum = running_maximum(s.name, s.update, frozenset(s.axes), values.get)
    if maximum is None or _depends(maximum, s.name, mixer):
        # A text is refused before; this is a value that was made or read from elsewhere.
        why = "its update has another form"
        repair = f"write `{s.name} = max({s.name}[i-1] + …, …)`"
        raise DiagnosticError([MaxPlus(s.span or NOWHERE, state=s.name, why=why, repair=repair)])
    return maximum


def _depends(maximum: RunningMaximum, name: str, mixer: Mixer) -> bool:
    """Whether what a running maximum is of depends on it."""
    bodies: dict[str, tuple[Expr, ...]] = {d.name: (d.value,) for d in mixer.definitions}
    for s in mixer.states:
        own = () if s.update is None else (s.update,)
        bodies[s.name] = own if s.flow is None else (s.flow.drift, s.flow.step)
    seen: set[str] = set()
    waiting = [maximum.log_decay, maximum.log_weight]
    while waiting:
        for e in walk(waiting.pop()):
            if isinstance(e, Ref) and e.name not in seen:
                seen.add(e.name)
                waiting += bodies.get(e.name, ())
    return name in seen
