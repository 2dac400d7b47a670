"""The linear parts of a System in Kronecker form: Λ_i, B_i, C_i and D_i as operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dsfc.expr.build import ONE, mul, num, prim, shift
from dsfc.expr.tree import Add, Axis, Div, Expr, LinearMap, Map, Now, Ref
from dsfc.matrices.entry_order import roles
from dsfc.matrices.inputs import Inputs, inputs_of
from dsfc.matrices.kronecker import After, Kron, Operator, kron, line_factors
from dsfc.matrices.linear import LinearPart, Normaliser, normalisers, scales, stages_read
from dsfc.system.formulas import States, states
from dsfc.system.ir import (
    Block,
    Cast,
    ComplexPart,
    Direct,
    Gate,
    MapOut,
    Ratio,
    Read,
    ReadOut,
    Sum,
    SumOver,
    System,
    Term,
)


@dataclass(frozen=True, slots=True)
class Drive:
    """B_i or D_i for one input: a product of operators.

    Attributes:
        operator: what is applied to the input first.
        input: what it multiplies.
        later: the factors of a chain that are applied after it, the last one first.
    """

    operator: Operator
    input: Expr
    later: tuple[Operator, ...] = ()

    @property
    def product(self) -> tuple[Operator, ...]:
        """All operators, the first applied standing last."""
        return (*self.later, self.operator)


@dataclass(frozen=True, slots=True)
class KronBlock:
    """One state: its transition as a product of factors, the first applied standing last.

    Attributes:
        block: the state.
        axes: of one head, in the order of the vector.
        chain: Λ_i = chain[0] · chain[1] ⋯.
        coupled: Λ_i from other states of the same stage, by name.
        drives: B_i, one per input.
        scale: factor of the gauge; None for the lowered one.
    """

    block: Block
    axes: tuple[Axis, ...]
    chain: tuple[Operator, ...]
    coupled: tuple[tuple[str, Operator], ...]
    drives: tuple[Drive, ...]
    scale: Expr | None


@dataclass(frozen=True, slots=True)
class KronRead:
    """C_i for one state at one lag; `real` when the output is the real part."""

    state: str
    lag: int
    operator: Operator
    real: bool


@dataclass(frozen=True, slots=True)
class KronPart:
    """A linear part of a System in Kronecker form.

    Attributes:
        part: the part.
        blocks: its states.
        reads: C_i, one per state and lag.
        direct: D_i, one per input; what is not an operator on an input stands with input 1.
        names: names of denominators.
    """

    part: LinearPart
    blocks: tuple[KronBlock, ...]
    reads: tuple[KronRead, ...]
    direct: tuple[Drive, ...]
    names: tuple[Normaliser, ...]


def kronecker_part(system: System, part: LinearPart, in_paper: bool) -> KronPart:
    """Returns a linear part in Kronecker form.

    Args:
        system: the System.
        part: one of its linear parts.
        in_paper: in the paper's gauge, not the lowered one.
    """
    names = normalisers(system, part)
    scale = scales(part, names) if in_paper else {}
    maker = _Maker(system, states(system), inputs_of(system, part), names, scale)
    stages = stages_read(system, part)
    blocks = tuple(maker.block(b, int(s.direction)) for s in stages for b in s.blocks)
    maker.visit(part.root, (), (), False)
    return KronPart(part, blocks, maker.reads(), tuple(maker.direct), names)


class _Maker:
    """Collects the operators of one part."""

    def __init__(
        self,
        system: System,
        blocks: States,
        inputs: Inputs,
        names: tuple[Normaliser, ...],
        scale: dict[str, Expr],
    ) -> None:
        self.system = system
        self.blocks = blocks
        self.inputs = inputs
        self.names = names
        self.scale = {s: line_factors(e)[0] for s, e in scale.items()}
        self.direct: list[Drive] = []
        self._reads: dict[tuple[str, int, bool], list[Kron]] = {}

    def axes(self, state: str) -> tuple[Axis, ...]:
        roles_of_state = roles(self.system, self.blocks[state])
        return (*roles_of_state.channels, *roles_of_state.keys)

    def block(self, b: Block, step: int) -> KronBlock:
        chain: list[Operator] = []
        coupled: dict[str, list[Kron]] = {}
        drives: list[tuple[int, Drive]] = []
        scale = self.scale.get(b.state, ())
        for k, factor in enumerate(b.chain):
            is_last = k == len(b.chain) - 1
            own: list[Kron] = []
            for t in factor.terms:
                # The scale of the token before enters where h_{i-1} is read, its own at the end.
                times = [shift(f, step) for f in self.scale.get(t.source, ())] if t.lag else []
                operator = self.term(t, b, times, scale if is_last else ())
                if t.source == b.state:
                    own.append(operator)
                else:
                    coupled.setdefault(t.source, []).append(operator)
            chain.insert(0, tuple(own))
            for d in factor.drives:
                divided = scale if is_last else ()
                drives.append((k, self.drive(d.key, d.stream, self.axes(b.state), divided)))
        together = tuple((n, tuple(k)) for n, k in coupled.items())
        over = mul(*scale) if scale else None
        driven = tuple(replace(d, later=tuple(chain[: len(chain) - 1 - k])) for k, d in drives)
        return KronBlock(b, self.axes(b.state), tuple(chain), together, driven, over)

    def term(self, t: Term, target: Block, times: Sequence[Expr], divided: Sequence[Expr]) -> Kron:
        argument = self.axes(t.source)
        if t.matrix is not None:
            argument = _mapped(argument, t.matrix)
        result = self.axes(target.state)
        if t.after is not None:
            inside = t.left.axes | (frozenset(argument) - t.over)
            result = tuple(sorted(a for a in inside if not a.heads))
        operator = kron(t.left, t.right, argument, result, t.over, times, divided)
        before = () if t.matrix is None else (t.matrix,)
        return replace(operator, before=before, after=() if t.after is None else (t.after,))

    def drive(
        self, key: Expr, stream: Expr, result: tuple[Axis, ...], divided: Sequence[Expr] = ()
    ) -> Drive:
        """B for one drive; maps from a raw input are shown as maps."""
        maps: list[LinearMap] = []
        value = self._opened(stream)
        shape = stream.axes
        while isinstance(value, Map):
            maps.append(value.map)
            value = self._opened(value.arg)
        argument = tuple(sorted(a for a in shape if not a.heads))
        operator = kron(key, ONE, argument, result, frozenset(), (), divided)
        return Drive((replace(operator, before=tuple(maps)),), value)

    def _opened(self, e: Expr) -> Expr:
        """A stream that is a linear map of an input or a stream, as that map."""
        if isinstance(e, Ref) and e.at == Now(0):
            for s in self.system.streams:
                if s.name == e.name and isinstance(s.value, Map):
                    return s.value if _leads_to_name(s.value) else e
        return e

    def visit(
        self, r: ReadOut, gates: tuple[Expr, ...], after: tuple[After, ...], real: bool
    ) -> None:
        """Collects C and D from a linear read-out.

        Args:
            r: the read-out.
            gates: factors between here and the next map above.
            after: what is applied from there on.
            real: whether a real part is taken above.
        """
        match r:
            case Read(terms, direct):
                for t in terms:
                    self._read(t, gates, after, real)
                if direct is not None:
                    self._token(direct, gates, after)
            case Direct(value):
                self._token(value, gates, after)
            case Gate(factor=f, arg=a):
                self.visit(a, (*gates, f), after, real)
            case Ratio(num=a):
                name = next(n.ref for n in self.names if n.ratio is r)
                self.visit(a, (*gates, Div(ONE, name)), after, real)
            case Cast(part=p, arg=a):
                turn = () if p is ComplexPart.RE else (prim("cplx", num(0), num(-1)),)
                self.visit(a, (*gates, *turn), after, True)
            case MapOut(map=m, arg=a):
                gate = (mul(*gates),) if gates else ()
                self.visit(a, (), (*after, *gate, m), real)
            case SumOver(axis=axis, arg=a):
                self.visit(a, gates, (*after, axis), real)
            case Sum(args):
                for a in args:
                    self.visit(a, gates, after, real)

    def _read(self, t: Term, gates: tuple[Expr, ...], after: tuple[After, ...], real: bool) -> None:
        argument = self.axes(t.source)
        if t.matrix is not None:
            argument = _mapped(argument, t.matrix)
        left = t.left if t.after is not None else mul(*gates, t.left)
        kept = [a for a in argument if a not in t.over]
        new = sorted(a for a in (left.axes | t.right.axes) - t.over if not a.heads)
        again = sorted(a for a in left.axes & t.over if not a.heads)
        result = tuple(dict.fromkeys((*kept, *new, *again)))
        scale = self.scale.get(t.source, ())
        if t.lag:
            scale = tuple(shift(f, t.lag) for f in scale)
        operator = kron(left, t.right, argument, result, t.over, scale)
        outer: tuple[After, ...] = after
        if t.after is not None:
            outer = (*after, *((mul(*gates),) if gates else ()), t.after)
        operator = replace(operator, before=() if t.matrix is None else (t.matrix,), after=outer)
        self._reads.setdefault((t.source, t.lag, real), []).append(operator)

    def reads(self) -> tuple[KronRead, ...]:
        return tuple(KronRead(s, lag, tuple(k), real) for (s, lag, real), k in self._reads.items())

    def _token(self, value: Expr, gates: tuple[Expr, ...], after: tuple[After, ...]) -> None:
        """One D per summand: the last factor that is an input or a map is what D multiplies."""
        for a in value.args if isinstance(value, Add) else (value,):
            whole = mul(*gates, a)
            up, down = line_factors(whole)
            inputs = [k for k, f in enumerate(up) if f in self.inputs.sources]
            maps = [k for k, f in enumerate(up) if isinstance(f, Map)]
            at = (inputs or maps or [len(up)])[-1]
            source = up[at] if at < len(up) else ONE
            key = mul(*up[:at], *up[at + 1 :])
            if down:
                key = Div(key, mul(*down))
            result = tuple(sorted(x for x in whole.axes if not x.heads))
            driven = self.drive(key, source, result)
            operator = tuple(replace(k, after=after) for k in driven.operator)
            self.direct.append(Drive(operator, driven.input))


def _mapped(axes: tuple[Axis, ...], map: LinearMap) -> tuple[Axis, ...]:
    kept = [a for a in axes if a not in map.source]
    return (*kept, *(a for a in map.target if not a.heads))


def _leads_to_name(e: Expr) -> bool:
    while isinstance(e, Map):
        e = e.arg
    return isinstance(e, Ref) and e.at == Now(0)
