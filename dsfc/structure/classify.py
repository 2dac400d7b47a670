"""Classification: ordered tests on each block, then what the blocks say together.

Roles of axes are those of the stage, not of one block, and come from use: an axis is a key when a
read or a term of the stage contracts it. The class of a transition is a function of which axes its
diagonal λ has and of its dependence on time; `ones` have no say.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from dsfc.derive.coupling import coupling_of, coupling_of_flow
from dsfc.derive.decay import decay_of
from dsfc.expr.build import ONE, add, effective_axes, is_one, mul, walk
from dsfc.expr.normal import normalise
from dsfc.expr.over_time import Past, Relation
from dsfc.expr.tree import Axis, Expr, Field, Fir, Now, Ref, Size, Time
from dsfc.structure.attention import NotAttention, attention_of
from dsfc.structure.bounds import diagonal_bound, is_positive, ranges_of
from dsfc.structure.classes import BY_CELL, GENERALITY
from dsfc.structure.ir import (
    Attention,
    BlockStructure,
    Bound,
    BoundKind,
    Cell,
    ClassName,
    RatioStructure,
    ReadKind,
    Structure,
)
from dsfc.structure.linear import is_fixed_linear
from dsfc.system.inline import inliner_of
from dsfc.system.ir import (
    FREE,
    Block,
    Cache,
    Coupling,
    Decay,
    Direction,
    KeptFlow,
    LogForm,
    Ratio,
    Read,
    ReadOut,
    Stage,
    System,
    Term,
)
from dsfc.system.traverse import parts, system_expressions, trees


def classify(system: System) -> Structure:
    """Returns the structure of a System.

    Args:
        system: in any gauge; what is read of Λ is said of the gauge that it is in.
    """
    return _Classifier(system).structure()


def _is_diagonal(term: Term, state: str, axes: frozenset[Axis]) -> bool:
    return (
        term.source == state
        and not term.over
        and term.matrix is None
        and term.after is None
        and term.left.axes <= axes
    )


@dataclass(frozen=True, slots=True)
class _Transition:
    """What the chain of a block is made of, definitions inlined."""

    diagonal: Expr | None
    sides: tuple[Expr, ...]
    lefts: tuple[Expr, ...]
    dense: bool
    mixes: bool


class _Classifier:
    def __init__(self, system: System) -> None:
        self.system = system
        self.streams = inliner_of(system)
        self.inline = self.streams.of
        self.ranges = ranges_of(system)
        self.reads = [p for t in trees(system) for p in parts(t) if isinstance(p, Read)]
        self.blocks = {b.state: b for b in system.blocks}
        self.ratios = tuple(
            self._ratio(p) for t in trees(system) for p in parts(t) if isinstance(p, Ratio)
        )

    def structure(self) -> Structure:
        blocks = tuple(self._block(b, s) for s in self.system.stages for b in s.blocks)
        sums = tuple(p.why for t in trees(self.system) for p in parts(t) if isinstance(p, Cache))
        cells = list(dict.fromkeys(b.label for b in blocks))
        if sums:
            cells.insert(0, Cell.NONE.value)
        names = [b.name for b in blocks] + [ClassName.SOFTMAX] * bool(sums)
        return Structure(
            system=self.system.name,
            cells=tuple(cells) or (Cell.NIL.value,),
            name=max(names, key=GENERALITY.index) if names else ClassName.FIR,
            blocks=blocks,
            ratios=self.ratios,
            sums=sums,
            attentions=self._attentions(),
            causal=self._causal(),
            filters=any(_lagged(e) for e in system_expressions(self.system)),
            state_size=add(*(b.size for b in blocks)),
            exact=all(b.decay is None or b.decay.form is LogForm.EXACT for b in blocks),
        )

    # --- one block --------------------------------------------------------------------------------

    def _block(self, block: Block, stage: Stage) -> BlockStructure:
        contracted = self._contracted(stage)
        heads = tuple(a for a in block.axes if a.heads)
        keys = tuple(a for a in block.axes if a in contracted and not a.heads)
        channels = tuple(a for a in block.axes if a not in contracted and not a.heads)
        move = self._transition(block)
        decay = None if move.diagonal is None else decay_of(move.diagonal)
        flow = self._inlined_flow(block.flow)
        varies = any(e.time is not Time.CONST for e in (*move.sides, move.diagonal or ONE))
        cell = self._cell(move, varies, frozenset(heads), frozenset(keys), frozenset(channels))
        drive_fixed, read_fixed = self._drive_fixed(block), self._read_fixed(block)
        return BlockStructure(
            state=block.state,
            heads=heads,
            keys=keys,
            channels=channels,
            field=block.field,
            cell=cell,
            name=self._name(cell, move, keys, channels, drive_fixed and read_fixed),
            complex_decay=move.diagonal is not None and move.diagonal.field is Field.COMPLEX,
            transition_fixed=not varies,
            drive_fixed=drive_fixed,
            read_fixed=read_fixed,
            decay=decay,
            positive=decay is not None and is_positive(decay, self.ranges),
            coupling=self._coupling(block, move, decay, flow),
            bound=self._bound(move, decay, flow),
            read=self._read_kind(block, stage),
            backward=stage.direction is Direction.BACKWARD,
            numerator_of=self._denominators(block),
            pair=self._partner(block),
            size=mul(*(Size(a) for a in block.axes)),
        )

    def _contracted(self, stage: Stage) -> frozenset[Axis]:
        """Axes that a read of the stage's states or a term of the stage contracts."""
        states = {b.state for b in stage.blocks}
        terms = [t for r in self.reads for t in r.terms if t.source in states]
        terms += [t for b in stage.blocks for f in b.chain for t in f.terms]
        return frozenset().union(*(t.over for t in terms))

    def _transition(self, block: Block) -> _Transition:
        """The diagonal λ of the whole chain, the other operators' vectors, and their kinds."""
        axes = frozenset(block.axes)
        diagonal: Expr = ONE
        sides: list[Expr] = []
        lefts: list[Expr] = []
        dense = mixes = False
        for factor in block.chain:
            here: list[Expr] = []
            for t in factor.terms:
                left, right = self.inline(t.left), self.inline(t.right)
                if _is_diagonal(t, block.state, axes):
                    here.append(mul(left, right))
                    continue
                sides += [left, right]
                lefts.append(left)
                dense = dense or t.matrix is not None or t.after is not None
                mixes = True
            diagonal = mul(diagonal, add(*here))
        empty = all(not f.terms for f in block.chain)
        nothing = empty or (mixes and normalise(diagonal).is_zero)
        return _Transition(None if nothing else diagonal, tuple(sides), tuple(lefts), dense, mixes)

    def _cell(
        self,
        move: _Transition,
        varies: bool,
        heads: frozenset[Axis],
        keys: frozenset[Axis],
        channels: frozenset[Axis],
    ) -> Cell:
        """The ordered tests."""
        if move.dense:
            return Cell.TV_X if varies else Cell.LTI_X
        if move.mixes:
            return Cell.TV_DPLR if varies else Cell.LTI_X
        if move.diagonal is None or normalise(move.diagonal).is_zero:
            return Cell.NIL
        if normalise(move.diagonal).constant == 1:
            return Cell.ID
        axes = effective_axes(move.diagonal)
        if not varies:
            if move.diagonal.field is Field.COMPLEX:
                return Cell.LTI_C
            return Cell.LTI_S if axes <= heads else Cell.LTI_R
        return self._varying_cell(axes, heads, keys, channels)

    def _varying_cell(
        self,
        axes: frozenset[Axis],
        heads: frozenset[Axis],
        keys: frozenset[Axis],
        channels: frozenset[Axis],
    ) -> Cell:
        if axes <= heads:
            return Cell.TV_H
        if axes <= heads | keys:
            return Cell.TV_K
        if not keys:
            return Cell.TV_1
        return Cell.TV_V if axes <= heads | channels else Cell.TV_CK

    def _name(
        self,
        cell: Cell,
        move: _Transition,
        keys: tuple[Axis, ...],
        channels: tuple[Axis, ...],
        fixed: bool,
    ) -> ClassName:
        if cell not in (Cell.LTI_R, Cell.LTI_C):
            return BY_CELL[cell]
        if fixed or move.diagonal is None:
            return ClassName.LTI
        axes = effective_axes(move.diagonal)
        heads = frozenset(a for a in axes if a.heads)
        return BY_CELL[self._varying_cell(axes, heads, frozenset(keys), frozenset(channels))]

    def _drive_fixed(self, block: Block) -> bool:
        drives = [d for f in block.chain for d in f.drives]
        values = [self.inline(mul(d.key, d.stream)) for d in drives]
        return all(is_fixed_linear(v, self.streams.value) for v in values)

    def _read_fixed(self, block: Block) -> bool:
        terms = [t for r in self.reads for t in r.terms if t.source == block.state]
        vectors = [self.inline(x) for t in terms for x in (t.left, t.right)]
        return all(v.time is Time.CONST for v in vectors)

    def _inlined_flow(self, flow: KeptFlow | None) -> KeptFlow | None:
        if flow is None:
            return None
        low_rank = tuple((self.inline(a), over, self.inline(b)) for a, over, b in flow.low_rank)
        step, diagonal, drive = (self.inline(x) for x in (flow.step, flow.diagonal, flow.drive))
        return KeptFlow(flow.rule, step, diagonal, low_rank, drive)

    def _coupling(
        self, block: Block, move: _Transition, decay: Decay | None, flow: KeptFlow | None
    ) -> Coupling:
        """What all drives agree on; a flow's coupling is known from its rule."""
        if flow is not None:
            return coupling_of_flow(flow)
        keys = [self.inline(d.key) for f in block.chain for d in f.drives]
        couplings = [coupling_of(k, decay, move.lefts) for k in keys]
        kinds = {c.kind for c in couplings}
        return couplings[0] if len(kinds) == 1 else FREE

    def _bound(self, move: _Transition, decay: Decay | None, flow: KeptFlow | None) -> Bound:
        if decay is None:
            if move.mixes:
                return Bound(BoundKind.NORM_NEEDED, "Λ is not diagonal")
            return Bound(BoundKind.LESS_THAN_ONE, "Λ = 0")
        diagonal = diagonal_bound(decay, None if move.mixes else flow, self.ranges)
        if not move.mixes:
            return diagonal
        what = "a matrix" if move.dense else "a low-rank part"
        reason = f"Λ has {what} beside its diagonal ({diagonal.reason})"
        return Bound(BoundKind.NORM_NEEDED, reason, diagonal.kind)

    def _read_kind(self, block: Block, stage: Stage) -> ReadKind:
        lags = {t.lag for r in self.reads for t in r.terms if t.source == block.state}
        pre, post = int(stage.direction) in lags, 0 in lags
        if pre:
            return ReadKind.BOTH if post else ReadKind.PRE
        return ReadKind.POST if post else ReadKind.NONE

    # --- sums without a finite state --------------------------------------------------------------

    def _attentions(self) -> tuple[Attention, ...]:
        attentions = []
        for p in (p for t in trees(self.system) for p in parts(t)):
            if isinstance(p, Ratio) and isinstance(p.den, Cache):
                with suppress(NotAttention):
                    attentions.append(attention_of(p))
        return tuple(attentions)

    # --- ratios -----------------------------------------------------------------------------------

    def _ratio(self, ratio: Ratio) -> RatioStructure:
        above, below = _states(ratio.num), _states(ratio.den)
        pairs: list[tuple[str, str]] = []
        free = list(below)
        for state in above:
            for other in free:
                if self._pairs(self.blocks[state], self.blocks[other]):
                    pairs.append((state, other))
                    free.remove(other)
                    break
        return RatioStructure(above, below, tuple(pairs), ratio.guard)

    def _pairs(self, numerator: Block, denominator: Block) -> bool:
        """Equal decay, and drives that differ by the numerator's stream alone."""
        if not frozenset(denominator.axes) <= frozenset(numerator.axes):
            return False
        a, b = self._transition(numerator), self._transition(denominator)
        if a.diagonal is None or b.diagonal is None or a.mixes or b.mixes:
            return False
        if normalise(a.diagonal) != normalise(b.diagonal):
            return False
        return self._keys(numerator, False) == self._keys(denominator, True)

    def _keys(self, block: Block, whole: bool) -> list[object]:
        drives = [d for f in block.chain for d in f.drives]
        keys = [d.key if is_one(d.stream) or not whole else mul(d.key, d.stream) for d in drives]
        return [normalise(self.inline(k)) for k in keys]

    def _denominators(self, block: Block) -> tuple[str, ...]:
        denominators = [
            d for r in self.ratios if block.state in r.numerators for d in r.denominators
        ]
        return tuple(dict.fromkeys(denominators))

    def _partner(self, block: Block) -> str | None:
        for ratio in self.ratios:
            for a, b in ratio.pairs:
                if block.state in (a, b):
                    return b if block.state == a else a
        return None

    # --- the whole --------------------------------------------------------------------------------

    def _causal(self) -> bool:
        if any(s.direction is Direction.BACKWARD for s in self.system.stages):
            return False
        return not any(_looks_ahead(e) for e in system_expressions(self.system))


def _states(tree: ReadOut) -> tuple[str, ...]:
    sources = [t.source for p in parts(tree) if isinstance(p, Read) for t in p.terms]
    return tuple(dict.fromkeys(sources))


def _lagged(expr: Expr) -> bool:
    return any(
        isinstance(e, Fir) or (isinstance(e, Ref) and isinstance(e.at, Now) and e.at.lag != 0)
        for e in walk(expr)
    )


def _looks_ahead(expr: Expr) -> bool:
    for e in walk(expr):
        match e:
            case Fir(reverse=True) | Past(relation=Relation.FROM | Relation.AFTER):
                return True
            case Ref(at=Now(lag)) if lag < 0:
                return True
    return False
