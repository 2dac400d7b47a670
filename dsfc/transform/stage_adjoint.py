"""The adjoint of one stage: the reversed recurrence, and a contraction for each of its roles.

Forward, h_i = F_k(… F_1(h_{i-1})). Let h̃_i be the gradient with respect to h_i. Then

    h̃_i = g_{i+1} + Σ reads (transposed) ȳ_i          post-reads
    g_i = F_1ᴴ(… F_kᴴ(h̃_i)) + Σ reads (transposed) ȳ_i  pre-reads

is a stage that runs the other way: its state g has the axes of h, its chain is the forward chain
reversed and transposed, its drives are the reads. All its coefficients are those of token i. Its
initial state is the gradient of the final state h_{L-1}, its final state the gradient of the
initial state h_{-1} (its real part, when h is real and feeds a complex state of its stage). For a
chain of length one and post-reads this is h̃_i = Λ_{i+1}ᴴ h̃_{i+1} + C_iᴴ ȳ_i.

The gradient of every vector of the recurrence is a contraction of h̃ with h or with another vector:
of a drive's stream Σ key · h̃, of its key Σ stream · h̃, of a read's right vector Σ ȳ · h, and of a
decay the pairing Σ h̃_i · h_{i-1}. Complex values follow PyTorch (∂L/∂re + i ∂L/∂im).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from dsfc.expr.adjoints import conj, real
from dsfc.expr.build import ONE, add, is_one, mul, neg, ones, prim, total
from dsfc.expr.derivative import MapGradient, varies
from dsfc.expr.derivative import adjoint as adjoint_map
from dsfc.expr.tree import Axis, Expr, Field, LinearMap, Map, Ref
from dsfc.system.ir import (
    Block,
    Cast,
    ComplexPart,
    Decay,
    Direction,
    Drive,
    Factor,
    Read,
    Stage,
    Stream,
    Term,
)
from dsfc.transform.roles import (
    Gradient,
    Place,
    Role,
    StageAdjoint,
    StageGradients,
    StateValue,
    as_read,
    fitted,
)
from dsfc.transform.terms import apply_factor, expansion, mapped_axes, transposed

__all__ = [
    "Gradient",
    "Place",
    "Role",
    "StageAdjoint",
    "StageGradients",
    "StageReverser",
    "StateValue",
    "adjoint_stage",
    "fitted",
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
    reverser = StageReverser(stage, fresh)
    for read, cotangent in reads:
        reverser.add_read(read, cotangent)
    return reverser.finish()


class StageReverser:
    """Reverses a stage, read by read.

    A read's own vectors may depend on another read of the same stage, so their gradients are wanted
    before all reads are known; the reversed recurrence is there once they are.

    Attributes:
        stage: the forward stage.
        forward: the state values of the forward stage, in dependency order.
    """

    def __init__(self, stage: Stage, fresh: Callable[[str], str]) -> None:
        """Names the counterparts of the states, and the values of the states.

        Args:
            stage: the forward stage.
            fresh: makes a name unused.
        """
        self.stage = stage
        self._reads: list[tuple[Read, Expr]] = []
        self._blocks = {b.state: b for b in stage.blocks}
        self._depth = max(len(b.chain) for b in stage.blocks)
        self._lag = -int(stage.direction)
        self._back = {s: fresh(f"{s}_back") for s in self._blocks}
        self._values: dict[tuple[str, int, bool], StateValue] = {}
        self._fresh = fresh
        self._gradients: list[Gradient] = []
        self._maps: list[MapGradient] = []
        for level in range(self._depth + 1):
            for state in self._blocks:
                self._add_value(state, level, False, self._forward(state, level))
        self.forward = tuple(self._values.values())

    def add_read(self, read: Read, cotangent: Expr) -> StageGradients:
        """Adds a read of the stage; returns the gradients of its vectors and matrices.

        Args:
            read: the read; terms of other stages are left alone.
            cotangent: cotangent of its value.

        Raises:
            ValueError: it has a lag other than 0 and the stage's own.
        """
        start = len(self._gradients), len(self._maps)
        position = len(self._reads)
        self._reads.append((read, cotangent))
        for index, term in enumerate(read.terms):
            if term.source not in self._blocks:
                continue
            if term.lag not in (0, int(self.stage.direction)):
                raise ValueError(f"a read of {term.source} at lag {term.lag} has no adjoint")
            state = self._ref(term.source, self._depth if term.lag == 0 else 0, False)
            place = Place(term.source, position, index)
            roles = (Role.READ_LEFT, Role.READ_RIGHT)
            self._term_gradients(place, term, state, cotangent, roles)
        return StageGradients(tuple(self._gradients[start[0] :]), tuple(self._maps[start[1] :]))

    def finish(self) -> StageAdjoint:
        """Returns the adjoint of the stage, for all reads added."""
        post, pre = self._read_drives(0), self._read_drives(int(self.stage.direction))
        complex_states = self._complex_states(post, pre)
        blocks = tuple(
            self._reversed_block(b, post, pre, complex_states) for b in self.stage.blocks
        )
        for level in range(self._depth, 0, -1):
            for state in self._blocks:
                value = self._cotangent(state, level, post, complex_states)
                self._add_value(state, level, True, value)
        start = len(self._gradients), len(self._maps)
        for block in self.stage.blocks:
            for k, factor in enumerate(block.chain):
                self._factor_gradients(block, k, factor)
        of_update = StageGradients(
            tuple(self._gradients[start[0] :]), tuple(self._maps[start[1] :])
        )
        return StageAdjoint(
            stage=Stage(Direction(self._lag), blocks),
            reversed_state=tuple(self._back.items()),
            values=tuple(self._values.values()),
            gradients=tuple(self._gradients),
            maps=tuple(self._maps),
            of_update=of_update,
        )

    # --- the reversed recurrence ------------------------------------------------------------------

    def _axes(self, state: str) -> frozenset[Axis]:
        return frozenset(self._blocks[state].axes)

    def _read_drives(self, lag: int) -> dict[str, tuple[Drive, ...]]:
        """Cᴴ ȳ of the reads at this lag, for each state."""
        out: dict[str, list[Drive]] = {s: [] for s in self._blocks}
        for read, cotangent in self._reads:
            for term in read.terms:
                if term.source in self._blocks and term.lag == lag:
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
        if self._blocks[term.source].field is Field.REAL and Field.COMPLEX in (
            key.field,
            stream.field,
        ):
            stream, key = real(mul(key, stream)), ones(())
        return Drive(key, stream)

    def _complex_states(
        self, post: dict[str, tuple[Drive, ...]], pre: dict[str, tuple[Drive, ...]]
    ) -> frozenset[str]:
        """States whose counterpart is complex: complex ones, and real ones that feed them."""
        complex_states = {s for s, b in self._blocks.items() if b.field is Field.COMPLEX}
        while True:
            more = {
                t.source
                for b in self.stage.blocks
                if b.state in complex_states
                for f in b.chain
                for t in f.terms
            }
            if more <= complex_states:
                return frozenset(complex_states)
            complex_states |= more

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
            chain.append(Factor((self._identity(state, self._lag),), post[state]))
        for k in reversed(range(self._depth)):
            chain.append(self._transposed_factor(state, k, 0 if chain else self._lag))
        chain[-1] = replace(chain[-1], drives=chain[-1].drives + pre[state])
        kind = Field.COMPLEX if state in complex_states else Field.REAL
        return Block(
            state=self._back[state],
            axes=block.axes,
            field=kind,
            chain=tuple(chain),
            decay=None if block.decay is None else _conjugated(block.decay),
            declared=False,
        )

    def _identity(self, state: str, lag: int) -> Term:
        return Term(self._back[state], lag, ONE, frozenset(), ONE)

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
                            t, self._axes(state), self._axes(b.state), self._back[b.state], lag
                        )
                    )
        return Factor(tuple(terms), ())

    # --- values of the states ---------------------------------------------------------------------

    def _add_value(
        self, state: str, level: int, cotangent: bool, value: Expr | Read | Cast
    ) -> None:
        wish = {
            (0, False): f"{state}_before",
            (self._depth, False): f"{state}_after",
            (self._depth, True): f"{state}_bar",
        }.get((level, cotangent), f"{state}_{'bar' if cotangent else 'mid'}_{level}")
        block = self._blocks[state]
        name = self._fresh(wish)
        stream = Stream(name, value, block.axes, block.field)
        self._values[state, level, cotangent] = StateValue(name, state, level, cotangent, stream)

    def _forward(self, state: str, level: int) -> Expr | Read:
        if level == 0:
            return Read((Term(state, int(self.stage.direction), ONE, frozenset(), ONE),))
        if level == self._depth:
            return Read((Term(state, 0, ONE, frozenset(), ONE),))
        block = self._blocks[state]
        below = {s: self._ref(s, level - 1, False) for s in self._blocks}
        if level > len(block.chain):
            return below[state]
        return self._broadcast(apply_factor(block.chain[level - 1], below), block)

    def _cotangent(
        self,
        state: str,
        level: int,
        post: dict[str, tuple[Drive, ...]],
        complex_states: frozenset[str],
    ) -> Expr | Read | Cast:
        block = self._blocks[state]
        if level == self._depth:
            drives = [mul(d.key, d.stream) for d in post[state]]
            direct = self._broadcast(add(*drives), block) if drives else None
            read = Read((self._identity(state, self._lag),), direct)
            widened = block.field is Field.REAL and state in complex_states
            return Cast(ComplexPart.RE, read) if widened else read
        factor = self._transposed_factor(state, level, 0)
        above = {self._back[s]: self._ref(s, level + 1, True) for s in self._blocks}
        value = self._broadcast(apply_factor(factor, above), block)
        return real(value) if block.field is Field.REAL else value

    def _broadcast(self, value: Expr, block: Block) -> Expr:
        missing = frozenset(block.axes) - value.axes
        return mul(value, ones(missing)) if missing else value

    def _ref(self, state: str, level: int, cotangent: bool) -> Ref:
        return self._values[state, level, cotangent].ref

    # --- gradients --------------------------------------------------------------------------------

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
        self._gradients.append(Gradient(Role.DECAY, place, left, value, None, log, phase))

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
            self._maps.append(_map_gradient(term.matrix, right, state))
        if term.after is not None:
            self._maps.append(_map_gradient(term.after, cotangent, mul(term.left, inner)))

    def _add(self, role: Role, place: Place, leaf: Expr, product: Expr) -> None:
        if varies(leaf):
            value = fitted(product, leaf)
            states = frozenset(v.name for v in self._values.values())
            self._gradients.append(Gradient(role, place, leaf, value, as_read(value, states)))


def _conjugated(decay: Decay) -> Decay:
    phase = None if decay.phase is None else neg(decay.phase)
    return Decay(conj(decay.value), conj(decay.log), phase, decay.form)


def _map_gradient(map: LinearMap, cotangent: Expr, argument: Expr) -> MapGradient:
    if map.adjoint:
        return MapGradient(adjoint_map(map), argument, cotangent)
    return MapGradient(map, cotangent, argument)
