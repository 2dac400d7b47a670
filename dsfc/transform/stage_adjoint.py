"""The adjoint of one stage: the reversed recurrence, and a contraction for each of its roles.

Forward, h_i = F_k(… F_1(h_{i-1})). Let h̃_i be the gradient with respect to h_i. Then

    h̃_i = g_{i+1} + Σ reads (transposed) ȳ_i          post-reads
    g_i = F_1ᴴ(… F_kᴴ(h̃_i)) + Σ reads (transposed) ȳ_i  pre-reads

is a stage that runs the other way: its state g has the axes of h, its chain is the forward chain
reversed and transposed, its drives are the reads. All its coefficients are those of token i. Its
initial state is the gradient of the final state h_{L-1}, its final state the gradient of the
initial state h_{-1}. For a chain of length one and post-reads this is h̃_i = Λ_{i+1}ᴴ h̃_{i+1} +
C_iᴴ ȳ_i.

The gradient of every vector of the recurrence is a contraction of h̃ with h or with another vector:
of a drive's stream Σ key · h̃, of its key Σ stream · h̃, of a read's right vector Σ ȳ · h, and of a
decay the pairing Σ h̃_i · h_{i-1}. Complex values follow PyTorch (∂L/∂re + i ∂L/∂im).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from dsfc.primitives.adjoints import conj, real
from dsfc.primitives.build import ONE, add, is_one, mul, neg, ones, prim, total, walk
from dsfc.primitives.derivative import MapGradient
from dsfc.primitives.derivative import adjoint as adjoint_map
from dsfc.primitives.expr import (
    Axis,
    Expr,
    Field,
    LinearMap,
    Map,
    Mul,
    Param,
    Reduce,
    Reduction,
    Ref,
)
from dsfc.system.ir import Block, Decay, Direction, Drive, Factor, Read, Stage, Stream, Term
from dsfc.transform.roles import Gradient, Place, Role, StageAdjoint, StateValue
from dsfc.transform.terms import apply_factor, expansion, mapped_axes, transposed

__all__ = [
    "Gradient",
    "Place",
    "Role",
    "StageAdjoint",
    "StateValue",
    "adjoint_stage",
    "fitted",
    "varies",
]


def adjoint_stage(
    stage: Stage,
    reads: Sequence[tuple[Read, Expr]],
    fresh: Callable[[str], str] = lambda wish: wish,
) -> StageAdjoint:
    """Returns the adjoint of a stage.

    Args:
        stage: the forward stage.
        reads: every read that has a term of this stage, with the cotangent of its value: a
            token-wise expression (usually a `Ref`) over the read's axes. Terms that read other
            stages are left alone.
        fresh: makes a name unused; called once per new state and state value.

    Raises:
        ValueError: a read has a lag other than 0 and the stage's own.
    """
    return _Builder(stage, reads, fresh).build()


def fitted(value: Expr, leaf: Expr) -> Expr:
    """Returns a gradient summed over the axes its leaf lacks, real when the leaf is real."""
    out = total(value.axes - leaf.axes, value)
    missing = leaf.axes - out.axes
    if missing:
        out = mul(out, ones(missing))
    return real(out) if leaf.field is Field.REAL else out


def varies(expr: Expr) -> bool:
    """Returns whether an expression has a leaf that a gradient can reach."""
    return any(isinstance(e, Ref | Param | Map) for e in walk(expr))


class _Builder:
    def __init__(
        self, stage: Stage, reads: Sequence[tuple[Read, Expr]], fresh: Callable[[str], str]
    ) -> None:
        self.stage = stage
        self.reads = reads
        self.blocks = {b.state: b for b in stage.blocks}
        self.depth = max(len(b.chain) for b in stage.blocks)
        self.lag = -int(stage.direction)
        self.back = {s: fresh(f"{s}_back") for s in self.blocks}
        self.values: dict[tuple[str, int, bool], StateValue] = {}
        self.fresh = fresh
        self.gradients: list[Gradient] = []
        self.maps: list[MapGradient] = []

    def build(self) -> StageAdjoint:
        post, pre = self._read_drives(0), self._read_drives(int(self.stage.direction))
        complex_states = self._complex_states(post, pre)
        blocks = tuple(
            self._reversed_block(b, post, pre, complex_states) for b in self.stage.blocks
        )
        direction = Direction(self.lag)
        self._state_values(post, complex_states)
        for position, (read, cotangent) in enumerate(self.reads):
            self._read_gradients(position, read, cotangent)
        for block in self.stage.blocks:
            for k, factor in enumerate(block.chain):
                self._factor_gradients(block, k, factor)
        return StageAdjoint(
            Stage(direction, blocks),
            tuple(self.back.items()),
            tuple(self.values.values()),
            tuple(self.gradients),
            tuple(self.maps),
        )

    # --- the reversed recurrence ------------------------------------------------------------------

    def _axes(self, state: str) -> frozenset[Axis]:
        return frozenset(self.blocks[state].axes)

    def _read_drives(self, lag: int) -> dict[str, tuple[Drive, ...]]:
        """Cᴴ ȳ of the reads at this lag, for each state."""
        out: dict[str, list[Drive]] = {s: [] for s in self.blocks}
        for read, cotangent in self.reads:
            for term in read.terms:
                if term.source not in self.blocks:
                    continue
                if term.lag not in (0, int(self.stage.direction)):
                    raise ValueError(f"a read of {term.source} at lag {term.lag} has no adjoint")
                if term.lag == lag:
                    out[term.source].append(self._drive(term, cotangent))
        return {s: tuple(d) for s, d in out.items()}

    def _drive(self, term: Term, cotangent: Expr) -> Drive:
        source = self._axes(term.source)
        inner = mapped_axes(source, term.matrix)
        kept = inner - term.over
        read = cotangent if term.after is None else Map(adjoint_map(term.after), cotangent)
        key, left = conj(term.right), conj(term.left)
        summed = (read.axes | left.axes) - kept
        if expansion(term, inner):
            key, left = ONE, mul(left, key)
        stream = total(summed, mul(left, read))
        missing = inner - key.axes - stream.axes
        if missing:
            key = mul(key, ones(missing))
        if term.matrix is not None:
            stream, key = Map(adjoint_map(term.matrix), mul(key, stream)), ONE
        if self.blocks[term.source].field is Field.REAL and Field.COMPLEX in (
            key.field,
            stream.field,
        ):
            stream, key = real(mul(key, stream)), ones(())
        return Drive(key, stream)

    def _complex_states(
        self, post: dict[str, tuple[Drive, ...]], pre: dict[str, tuple[Drive, ...]]
    ) -> frozenset[str]:
        """States whose counterpart is complex: complex ones, and real ones that feed them."""
        found = {s for s, b in self.blocks.items() if b.field is Field.COMPLEX}
        while True:
            more = {
                t.source
                for b in self.stage.blocks
                if b.state in found
                for f in b.chain
                for t in f.terms
            }
            if more <= found:
                return frozenset(found)
            found |= more

    def _reversed_block(
        self,
        block: Block,
        post: dict[str, tuple[Drive, ...]],
        pre: dict[str, tuple[Drive, ...]],
        complex_states: frozenset[str],
    ) -> Block:
        """F_1ᴴ ⋯ F_kᴴ with the post-reads before it and the pre-reads behind."""
        state = block.state
        chain: list[Factor] = []
        if any(post.values()):
            chain.append(Factor((self._identity(state, self.lag),), post[state]))
        for k in reversed(range(self.depth)):
            chain.append(self._transposed_factor(state, k, 0 if chain else self.lag))
        chain[-1] = replace(chain[-1], drives=chain[-1].drives + pre[state])
        kind = Field.COMPLEX if state in complex_states else Field.REAL
        return Block(
            state=self.back[state],
            axes=block.axes,
            field=kind,
            chain=tuple(chain),
            decay=None if block.decay is None else _conjugated(block.decay),
            declared=False,
        )

    def _identity(self, state: str, lag: int) -> Term:
        return Term(self.back[state], lag, ONE, frozenset(), ONE)

    def _transposed_factor(self, state: str, k: int, lag: int) -> Factor:
        """The part of F_kᴴ that gives the counterpart of one state."""
        terms: list[Term] = []
        for b in self.stage.blocks:
            if k >= len(b.chain):
                if b.state == state:
                    terms.append(self._identity(state, lag))
                continue
            for t in b.chain[k].terms:
                if t.source == state:
                    terms.append(
                        transposed(
                            t, self._axes(state), self._axes(b.state), self.back[b.state], lag
                        )
                    )
        return Factor(tuple(terms), ())

    # --- values of the states ---------------------------------------------------------------------

    def _state_values(
        self, post: dict[str, tuple[Drive, ...]], complex_states: frozenset[str]
    ) -> None:
        for level in range(self.depth + 1):
            for state in self.blocks:
                self._add_value(state, level, False, self._forward(state, level))
        for level in range(self.depth, 0, -1):
            for state in self.blocks:
                value = self._cotangent(state, level, post, complex_states)
                self._add_value(state, level, True, value)

    def _add_value(self, state: str, level: int, cotangent: bool, value: Expr | Read) -> None:
        wish = {
            (0, False): f"{state}_before",
            (self.depth, False): f"{state}_after",
            (self.depth, True): f"{state}_bar",
        }.get((level, cotangent), f"{state}_{'bar' if cotangent else 'mid'}_{level}")
        block = self.blocks[state]
        name = self.fresh(wish)
        stream = Stream(name, value, block.axes, block.field)
        self.values[state, level, cotangent] = StateValue(name, state, level, cotangent, stream)

    def _forward(self, state: str, level: int) -> Expr | Read:
        if level == 0:
            return Read((Term(state, int(self.stage.direction), ONE, frozenset(), ONE),))
        if level == self.depth:
            return Read((Term(state, 0, ONE, frozenset(), ONE),))
        block = self.blocks[state]
        below = {s: self._ref(s, level - 1, False) for s in self.blocks}
        if level > len(block.chain):
            return below[state]
        return self._broadcast(apply_factor(block.chain[level - 1], below), block)

    def _cotangent(
        self,
        state: str,
        level: int,
        post: dict[str, tuple[Drive, ...]],
        complex_states: frozenset[str],
    ) -> Expr | Read:
        block = self.blocks[state]
        if level == self.depth:
            drives = [mul(d.key, d.stream) for d in post[state]]
            direct = self._broadcast(add(*drives), block) if drives else None
            return Read((self._identity(state, self.lag),), direct)
        factor = self._transposed_factor(state, level, 0)
        above = {self.back[s]: self._ref(s, level + 1, True) for s in self.blocks}
        value = self._broadcast(apply_factor(factor, above), block)
        return real(value) if block.field is Field.REAL else value

    def _broadcast(self, value: Expr, block: Block) -> Expr:
        missing = frozenset(block.axes) - value.axes
        return mul(value, ones(missing)) if missing else value

    def _ref(self, state: str, level: int, cotangent: bool) -> Ref:
        return self.values[state, level, cotangent].ref

    # --- gradients --------------------------------------------------------------------------------

    def _read_gradients(self, position: int, read: Read, cotangent: Expr) -> None:
        for index, term in enumerate(read.terms):
            if term.source in self.blocks:
                state = self._ref(term.source, self.depth if term.lag == 0 else 0, False)
                place = Place(term.source, position, index)
                self._term_gradients(
                    place, term, state, cotangent, (Role.READ_LEFT, Role.READ_RIGHT)
                )

    def _factor_gradients(self, block: Block, k: int, factor: Factor) -> None:
        cotangent = self._ref(block.state, k + 1, True)
        for index, drive in enumerate(factor.drives):
            place = Place(block.state, k, index)
            for role, leaf, other in (
                (Role.DRIVE_KEY, drive.key, drive.stream),
                (Role.DRIVE_STREAM, drive.stream, drive.key),
            ):
                self._add(role, place, leaf, mul(conj(other), cotangent))
        for index, term in enumerate(factor.terms):
            place = Place(block.state, k, index)
            state = self._ref(term.source, k, False)
            if not term.over and term.matrix is None and term.after is None:
                if is_one(term.right) and term.source == block.state:
                    self._decay_gradient(place, term.left, cotangent, state)
                    continue
            roles = (Role.TERM_LEFT, Role.TERM_RIGHT)
            self._term_gradients(place, term, state, cotangent, roles)

    def _decay_gradient(self, place: Place, left: Expr, cotangent: Expr, state: Expr) -> None:
        if not varies(left):
            return
        scaled = mul(cotangent, conj(mul(left, state)))
        log = total(scaled.axes - left.axes, real(scaled))
        phase = None
        if left.field is Field.COMPLEX:
            phase = total(scaled.axes - left.axes, prim("im", scaled))
        value = fitted(mul(cotangent, conj(state)), left)
        self.gradients.append(Gradient(Role.DECAY, place, left, value, None, log, phase))

    def _term_gradients(
        self, place: Place, term: Term, state: Expr, cotangent: Expr, roles: tuple[Role, Role]
    ) -> None:
        """Gradients of left, right and the matrices of after(left · Σ_over(right · matrix(h)))."""
        h = state if term.matrix is None else Map(term.matrix, state)
        inner = total(term.over, mul(term.right, h))
        back = cotangent if term.after is None else Map(adjoint_map(term.after), cotangent)
        kept = h.axes - term.over
        wide = expansion(term, h.axes)
        stream = total((back.axes | term.left.axes) - kept - wide, mul(conj(term.left), back))
        self._add(roles[0], place, term.left, mul(back, conj(inner)))
        self._add(roles[1], place, term.right, mul(stream, conj(h)))
        if term.matrix is not None:
            right = total(wide, mul(conj(term.right), stream))
            missing = h.axes - right.axes
            right = mul(right, ones(missing)) if missing else right
            self.maps.append(_map_gradient(term.matrix, right, state))
        if term.after is not None:
            self.maps.append(_map_gradient(term.after, cotangent, mul(term.left, inner)))

    def _add(self, role: Role, place: Place, leaf: Expr, product: Expr) -> None:
        if varies(leaf):
            value = fitted(product, leaf)
            states = frozenset(v.name for v in self.values.values())
            self.gradients.append(Gradient(role, place, leaf, value, _as_read(value, states)))


def _conjugated(decay: Decay) -> Decay:
    phase = None if decay.phase is None else neg(decay.phase)
    return Decay(conj(decay.value), conj(decay.log), phase, decay.form)


def _map_gradient(map: LinearMap, cotangent: Expr, argument: Expr) -> MapGradient:
    if map.adjoint:
        return MapGradient(adjoint_map(map), argument, cotangent)
    return MapGradient(map, cotangent, argument)


def _as_read(value: Expr, states: frozenset[str]) -> Term | None:
    """A gradient Σ_over(weight · state) as a read of that state; None when it has another form."""
    over: set[Axis] = set()
    while isinstance(value, Reduce) and value.how is Reduction.SUM:
        over.add(value.axis)
        value = value.arg
    parts = value.args if isinstance(value, Mul) else (value,)
    hits = [p for p in parts if isinstance(p, Ref) and p.name in states]
    others = [p for p in parts if p not in hits]
    reached = any(isinstance(e, Ref) and e.name in states for p in others for e in walk(p))
    if len(hits) != 1 or reached:
        return None
    (state,) = hits
    weight = mul(*others) if others else ONE
    if not weight.axes <= state.axes or not over <= state.axes:
        return None
    return Term(state.name, 0, ONE, frozenset(over), weight)
