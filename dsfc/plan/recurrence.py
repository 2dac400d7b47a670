"""Turns a whole stage into a `Recurrence`: its states stepped together, token by token.

What runs is the *kernel stage*: the stage and its reads, with a coefficient of its own in place of
every token-wise expression. `dsfc.transform` reverses it once, so that the gradient of any stage is
derived as that of a scan is: states that read each other, several drives, chains and linear maps
are terms of it as any other. A linear map stands in it as a sum over its stored matrix.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dsfc.expr.adjoints import conj, real
from dsfc.expr.build import ONE, add, mul, ones, prim, remake, total, walk
from dsfc.expr.derivative import MapGradient
from dsfc.expr.derivative import adjoint as adjoint_map
from dsfc.expr.tree import (
    Axis,
    Expr,
    Field,
    LinearMap,
    Map,
    Mul,
    Now,
    Num,
    Ones,
    Ref,
    Rename,
    Time,
    children,
)
from dsfc.plan.graph import REVERSED, Graph
from dsfc.plan.recurrence_ir import (
    Assignment,
    CoefficientGradient,
    Recurrence,
    SteppedAdjoint,
    SteppedRead,
    SteppedState,
)
from dsfc.system.formulas import apply_term
from dsfc.system.ir import Block, Cast, Direction, Drive, Factor, Read, Stage, Term
from dsfc.transform.stage_adjoint import StageAdjoint, StateValue, adjoint_stage
from dsfc.transform.terms import Names, apply_factor, result_axes

COLUMNS = 1 << 20
"""What is added to an axis' place among the others: columns stand behind all of them."""


@dataclass(frozen=True, slots=True)
class StageRead:
    """What a stage is asked for, Σ_over(right · matrix(state)): a term without its left side."""

    term: Term

    @classmethod
    def of(cls, term: Term) -> StageRead:
        """Returns the part of a read that the kernel computes."""
        return cls(replace(term, left=ONE, after=None))


def columns_of(rows: Iterable[Axis]) -> tuple[Axis, ...]:
    """Returns copies of axes for the columns of a matrix, in their order."""
    return tuple(
        Axis(COLUMNS + a.index, f"{a.name}_from", a.heads, a.copy_of or a.name) for a in rows
    )


def build(
    graph: Graph, name: str, stage: Stage, reads: Sequence[StageRead], why: str
) -> tuple[Recurrence, dict[StageRead, Ref]]:
    """Plans the recurrence of a stage, after all it needs.

    Args:
        graph: the graph under construction.
        name: of the recurrence.
        stage: the stage.
        reads: what is asked of it, each once; their right sides depend on no state of the stage.
        why: the reason why no scan runs it.

    Returns:
        The recurrence, and for each read the value it gives, in the order of time.
    """
    return _Builder(graph, name, stage, why).build(reads)


class _Builder:
    def __init__(self, graph: Graph, name: str, stage: Stage, why: str) -> None:
        self.graph = graph
        self.name = name
        self.stage = stage
        self.why = why
        self.backward = stage.direction is Direction.BACKWARD
        self.blocks = {b.state: b for b in stage.blocks}
        self.sized = frozenset(a for b in stage.blocks for a in b.axes)
        self.coefficients: dict[str, None] = {}
        self.transitions: dict[str, None] = {}
        self.weights: dict[str, Ref] = {}
        self.maps: dict[str, LinearMap] = {}

    def build(self, reads: Sequence[StageRead]) -> tuple[Recurrence, dict[StageRead, Ref]]:
        kernel = Stage(Direction.FORWARD, tuple(map(self._block, self.stage.blocks)))
        terms = [self._read_term(r.term) for r in reads]
        if all(self._is_constant(c) for c in self.coefficients):
            # The time of at least one coefficient says how many tokens there are.
            self.coefficients[self.graph.ones()] = None
        outputs = [self._output(t) for t in terms]
        names = Names([*self.coefficients, *self.blocks, *outputs])
        bars = [names.fresh(f"{o}_bar") for o in outputs]
        asked = [
            (Read((t,)), self._ref(bar, *self._type_of(t)))
            for t, bar in zip(terms, bars, strict=True)
        ]
        back = adjoint_stage(kernel, asked, names.fresh)
        states = tuple(self._state(b, back, names) for b in kernel.blocks)
        by_name = {s.state: s for s in states}
        levels = _levels(kernel, back, by_name)
        recurrence = Recurrence(
            name=self.name,
            states=states,
            levels=tuple(tuple(map(self._plain, level)) for level in levels),
            coefficients=tuple(self.coefficients),
            transitions=tuple(self.transitions),
            reads=tuple(
                SteppedRead(o, self._sums(_read_value(t, by_name)), bar)
                for o, t, bar in zip(outputs, terms, bars, strict=True)
            ),
            adjoint=self._adjoint(back, by_name, names),
            backward=self.backward,
            why=self.why,
        )
        self.graph.kernels.append(recurrence)
        values = {r: self._value(o, t) for r, o, t in zip(reads, outputs, terms, strict=True)}
        return recurrence, values

    # --- coefficients -----------------------------------------------------------------------------

    def _coefficient(self, wish: str, value: Expr, transition: bool = False) -> Expr:
        """A value as a coefficient; numbers over axes of states stand in the kernel as they are.

        The size of any other axis is told by the coefficient alone.
        """
        plain = all(isinstance(e, Num | Ones | Mul) for e in walk(value))
        if plain and value.axes <= self.sized:
            return value
        name = self.graph.define(wish, value)
        name = self.graph.in_reverse(name) if self.backward else name
        self.coefficients[name] = None
        if transition:
            self.transitions[name] = None
        b = self.graph.arrays[name]
        constant = self._is_constant(name)
        time, at = (Time.CONST, None) if constant else (Time.TOKEN, Now(0))
        return Ref(name, frozenset(b.axes), b.field, time, at)

    def _is_constant(self, name: str) -> bool:
        return self.graph.arrays[name].role.value == "constant"

    def _weight(self, linear: LinearMap, transition: bool) -> None:
        """Plans the matrix of a linear map, as what it makes of unit vectors."""
        base = adjoint_map(linear) if linear.adjoint else linear
        if base.name in self.maps:
            return
        self.maps[base.name] = base
        columns = columns_of(base.source)
        units = (self.graph.unit(a, c) for a, c in zip(base.source, columns, strict=True))
        matrix = self._coefficient(f"{base.name}_matrix", Map(base, mul(*units)), transition)
        assert isinstance(matrix, Ref)
        self.weights[base.name] = matrix

    def _block(self, block: Block) -> Block:
        chain = tuple(self._factor(block, f) for f in block.chain)
        return replace(block, chain=chain, decay=None, flow=None)

    def _factor(self, block: Block, factor: Factor) -> Factor:
        return Factor(
            tuple(self._term(block.state, t) for t in factor.terms),
            tuple(self._drive(block.state, d) for d in factor.drives),
        )

    def _drive(self, state: str, drive: Drive) -> Drive:
        key = self._coefficient(f"{state}_key", drive.key)
        return Drive(key, self._coefficient(f"{state}_value", drive.stream))

    def _term(self, state: str, term: Term) -> Term:
        own = term.source == state and not term.over
        wish = f"{state}_decay" if own else f"{state}_left"
        for linear in (term.matrix, term.after):
            if linear is not None:
                self._weight(linear, True)
        return replace(
            term,
            lag=abs(term.lag),
            left=self._coefficient(wish, term.left, True),
            right=self._coefficient(f"{state}_right", term.right, True),
        )

    def _read_term(self, term: Term) -> Term:
        if term.matrix is not None:
            self._weight(term.matrix, False)
        right = self._coefficient(f"{term.source}_query", term.right)
        return replace(term, lag=abs(term.lag), right=right)

    # --- outputs ----------------------------------------------------------------------------------

    def _type_of(self, term: Term) -> tuple[tuple[Axis, ...], Field]:
        block = self.blocks[term.source]
        axes = result_axes(term, frozenset(block.axes))
        kind = max(block.field, term.right.field)
        if term.matrix is not None:
            kind = max(kind, term.matrix.field)
        return tuple(sorted(axes)), kind

    def _output(self, term: Term) -> str:
        axes, kind = self._type_of(term)
        return self.graph.scan_output(f"{term.source}_read{REVERSED * self.backward}", axes, kind)

    def _value(self, output: str, term: Term) -> Ref:
        name = self.graph.in_reverse(output) if self.backward else output
        return self._ref(name, *self._type_of(term))

    def _ref(self, name: str, axes: Sequence[Axis], kind: Field) -> Ref:
        return Ref(name, frozenset(axes), kind, Time.TOKEN, Now(0))

    # --- the adjoint ------------------------------------------------------------------------------

    def _state(self, block: Block, back: StageAdjoint, names: Names) -> SteppedState:
        depth = max(len(b.chain) for b in self.stage.blocks)
        counterpart = dict(back.reversed_state)[block.state]
        (kind,) = (b.field for b in back.stage.blocks if b.state == counterpart)
        return SteppedState(
            state=block.state,
            axes=block.axes,
            before=back.value(block.state, 0, False).name,
            after=back.value(block.state, depth, False).name,
            bar=counterpart,
            bar_before=names.fresh(f"{block.state}_bar_before"),
            field=block.field,
            bar_field=kind,
        )

    def _adjoint(
        self, back: StageAdjoint, states: Mapping[str, SteppedState], names: Names
    ) -> SteppedAdjoint:
        by_bar = {s.bar: s for s in states.values()}
        steps = [self._plain(a) for level in _reversed_levels(back, by_bar, names) for a in level]
        depth = max(len(b.chain) for b in self.stage.blocks)
        inside = [v for v in back.values if v.cotangent or 0 < v.level < depth]
        values = [self._plain(_assigned(v, states, by_bar)) for v in inside]
        parts: dict[str, list[Expr]] = {}
        for g in back.gradients:
            if isinstance(g.leaf, Ref):
                parts.setdefault(g.leaf.name, []).append(self._sums(g.value))
        for m in back.maps:
            weight = self.weights[m.map.name]
            parts.setdefault(weight.name, []).append(self._outer(m, weight))
        gradients = tuple(CoefficientGradient(name, add(*terms)) for name, terms in parts.items())
        return SteppedAdjoint(tuple(steps), _used(values, gradients), gradients)

    def _outer(self, gradient: MapGradient, weight: Ref) -> Expr:
        """Σ over other axes of cotangent ⊗ conj(argument), with the axes of the matrix."""
        argument = self._sums(gradient.argument)
        source = self.maps[gradient.map.name].source
        for a, c in zip(source, columns_of(source), strict=True):
            argument = Rename(a, c, argument)
        product = mul(self._sums(gradient.cotangent), conj(argument))
        product = total(product.axes - weight.axes, product)
        missing = weight.axes - product.axes
        product = mul(product, ones(missing)) if missing else product
        return real(product) if weight.field is Field.REAL else product

    def _plain(self, a: Assignment) -> Assignment:
        return replace(a, value=self._sums(a.value))

    def _sums(self, e: Expr) -> Expr:
        """The value with every linear map as a sum over the entries of its matrix."""
        e = remake(e, tuple(map(self._sums, children(e))))
        if not isinstance(e, Map):
            return e
        base = self.maps[e.map.name]
        weight, columns = self.weights[base.name], columns_of(base.source)
        pairs = tuple(zip(base.source, columns, strict=True))
        if e.map.adjoint == base.adjoint:
            argument = e.arg
            for a, c in pairs:
                argument = Rename(a, c, argument)
            return total(columns, mul(weight, argument))
        out = total(base.target, mul(conj(weight), e.arg))
        for a, c in pairs:
            out = Rename(c, a, out)
        return out


def _levels(
    stage: Stage, back: StageAdjoint, states: Mapping[str, SteppedState]
) -> list[list[Assignment]]:
    """From the states before a token to those after it, a level for each place in the chains."""
    depth = max(len(b.chain) for b in stage.blocks)
    below: dict[str, Expr] = {s.state: _now(s.before, s.axes, s.field) for s in states.values()}
    out = []
    for level in range(depth):
        here = []
        for b in stage.blocks:
            value = below[b.state]
            if level < len(b.chain):
                value = _broadcast(apply_factor(b.chain[level], below), b.axes)
            name = back.value(b.state, level + 1, False).name
            here.append(Assignment(name, value, b.axes, b.field))
        below = {
            b.state: _now(a.name, a.axes, a.field) for b, a in zip(stage.blocks, here, strict=True)
        }
        out.append(here)
    return out


def _reversed_levels(
    back: StageAdjoint, by_bar: Mapping[str, SteppedState], names: Names
) -> list[list[Assignment]]:
    """The same of the reversed stage: from the gradient after a token to that before it."""
    blocks = back.stage.blocks
    depth = len(blocks[0].chain)
    below: dict[str, Expr] = {b.state: _now(b.state, b.axes, b.field) for b in blocks}
    out = []
    for level in range(depth):
        here = []
        for b in blocks:
            s = by_bar[b.state]
            last = level == depth - 1
            name = s.bar_before if last else names.fresh(f"{s.state}_bar_step_{level + 1}")
            value = _broadcast(apply_factor(b.chain[level], below), b.axes)
            here.append(Assignment(name, value, b.axes, b.field))
        below = {b.state: _now(a.name, a.axes, a.field) for b, a in zip(blocks, here, strict=True)}
        out.append(here)
    return out


def _assigned(
    value: StateValue, states: Mapping[str, SteppedState], by_bar: Mapping[str, SteppedState]
) -> Assignment:
    """A value of a state inside its chain, or its gradient, as an expression over names."""
    stream = value.stream

    def read(r: Read) -> Expr:
        parts = []
        for t in r.terms:
            if t.source in by_bar:
                s = by_bar[t.source]
                parts.append(apply_term(t, _now(s.bar, s.axes, s.bar_field)))
            else:
                parts.append(_read_value(t, states))
        return add(*parts, *(() if r.direct is None else (r.direct,)))

    match stream.value:
        case Expr():
            assigned = stream.value
        case Cast(_, Read() as inside):
            assigned = prim("re", read(inside))
        case Read():
            assigned = read(stream.value)
        case _:
            raise TypeError(f"{value.name} is no value of a state")
    return Assignment(value.name, assigned, tuple(sorted(stream.axes)), stream.field)


def _read_value(term: Term, states: Mapping[str, SteppedState]) -> Expr:
    s = states[term.source]
    return apply_term(term, _now(s.before if term.lag else s.after, s.axes, s.field))


def _now(name: str, axes: Sequence[Axis], kind: Field) -> Ref:
    return Ref(name, frozenset(axes), kind, Time.TOKEN, Now(0))


def _broadcast(value: Expr, axes: Sequence[Axis]) -> Expr:
    missing = frozenset(axes) - value.axes
    return mul(value, ones(missing)) if missing else value


def _used(
    values: Sequence[Assignment], gradients: Sequence[CoefficientGradient]
) -> tuple[Assignment, ...]:
    """Those values that gradients need, in order."""
    needed = {e.name for g in gradients for e in walk(g.value) if isinstance(e, Ref)}
    by_name = {a.name: a for a in values}
    pending = [n for n in needed if n in by_name]
    seen: set[str] = set()
    while pending:
        name = pending.pop()
        if name not in seen:
            seen.add(name)
            pending += [
                e.name
                for e in walk(by_name[name].value)
                if isinstance(e, Ref) and e.name in by_name
            ]
    return tuple(a for a in values if a.name in seen)
