"""The parts of a System as expressions over its states: what renderings print."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import singledispatch

from dsfc.expr.build import ZERO, add, div, is_one, mul, ones, prim, total
from dsfc.expr.tree import Axis, Div, Expr, Field, Map, Now, Ref, Time
from dsfc.system.ir import (
    Block,
    Cache,
    Cast,
    ComplexPart,
    Direct,
    Drive,
    Factor,
    Gate,
    Guard,
    GuardKind,
    MapOut,
    MaxPlus,
    Post,
    Product,
    Ratio,
    Read,
    ReadOut,
    Stream,
    Sum,
    SumOver,
    System,
    Term,
)

States = Mapping[str, Block]


def states(system: System) -> dict[str, Block]:
    """Returns name of state → block."""
    return {b.state: b for b in system.blocks}


def state_ref(block: Block, lag: int) -> Ref:
    """Returns the value of a state `lag` tokens ago."""
    return Ref(block.state, frozenset(block.axes), block.field, Time.STATE, Now(lag))


def apply_term(term: Term, value: Expr) -> Expr:
    """Returns the term applied to a value with the axes of its source."""
    inner = value if term.matrix is None else Map(term.matrix, value)
    out = mul(term.left, total(term.over, mul(term.right, inner)))
    return out if term.after is None else Map(term.after, out)


def drive_value(drive: Drive) -> Expr:
    """Returns key · stream."""
    return mul(drive.key, drive.stream)


def factor_names(block: Block) -> tuple[str, ...]:
    """Returns the names of the values after each factor of a chain: S(1), S(2), …, S."""
    inner = tuple(f"{block.state}({k})" for k in range(1, len(block.chain)))
    return (*inner, block.state)


def factor_formula(factor: Factor, value: Callable[[Term], Expr], axes: tuple[Axis, ...]) -> Expr:
    """Returns Σ terms + Σ drives, each broadcast to the state's axes where it has fewer.

    Args:
        factor: the factor.
        value: the value a term reads.
        axes: axes of the state.
    """
    parts = [apply_term(t, value(t)) for t in factor.terms]
    parts += [drive_value(d) for d in factor.drives]
    full = (p if p.axes >= set(axes) else mul(p, ones(set(axes) - p.axes)) for p in parts)
    return add(*full) if parts else mul(ZERO, ones(axes))


def update_formulas(block: Block, blocks: States) -> tuple[tuple[str, Expr], ...]:
    """Returns (name, value) after each factor of a block's chain; the last is the state itself.

    In a later factor a term of lag 0 reads the value after the factor before it.
    """
    names = factor_names(block)
    over = frozenset(block.axes)
    out = []
    for k, factor in enumerate(block.chain):

        def value(t: Term, k: int = k) -> Expr:
            if k and t.lag == 0 and t.source == block.state:
                return Ref(names[k - 1], over, block.field, Time.STATE, Now(0))
            return state_ref(blocks[t.source], t.lag)

        out.append((names[k], factor_formula(factor, value, block.axes)))
    return tuple(out)


def stream_formula(stream: Stream, blocks: States) -> Expr:
    """Returns the value of a stream as one expression; a running maximum by its value before."""
    value = stream.value
    if isinstance(value, Expr):
        return value
    if isinstance(value, MaxPlus):
        before = Ref(stream.name, frozenset(stream.axes), Field.REAL, Time.TOKEN, Now(1))
        return prim("max", add(before, value.log_decay), value.log_weight)
    return read_out_formula(value, blocks)


def read_out_formula(read_out: ReadOut, blocks: States) -> Expr:
    """Returns a read-out as one expression over states; a cache as its sum over the past."""
    return _formula(read_out, blocks)


@singledispatch
def _formula(r: object, blocks: States) -> Expr:
    raise TypeError(f"{type(r).__name__} is not a read-out")


@_formula.register
def _(r: Read, blocks: States) -> Expr:
    parts = [apply_term(t, state_ref(blocks[t.source], t.lag)) for t in r.terms]
    return add(*parts, *(() if r.direct is None else (r.direct,)))


@_formula.register
def _(r: Direct, blocks: States) -> Expr:
    return r.value


@_formula.register
def _(r: Cache, blocks: States) -> Expr:
    return r.past


@_formula.register
def _(r: Gate, blocks: States) -> Expr:
    value = _formula(r.arg, blocks)
    if isinstance(r.factor, Div) and is_one(r.factor.num):
        return div(value, r.factor.den)
    return mul(r.factor, value)


@_formula.register
def _(r: Product, blocks: States) -> Expr:
    return mul(*(_formula(a, blocks) for a in r.args))


@_formula.register
def _(r: Ratio, blocks: States) -> Expr:
    return div(_formula(r.num, blocks), guarded(_formula(r.den, blocks), r.guard))


def guarded(value: Expr, guard: Guard) -> Expr:
    """Returns a denominator behind its guard."""
    if guard.kind is GuardKind.NONE or guard.constant is None:
        return value
    if guard.kind is GuardKind.ADD:
        return add(value, guard.constant)
    return prim("max", prim("abs", value), guard.constant)


@_formula.register
def _(r: Cast, blocks: States) -> Expr:
    return prim("re" if r.part is ComplexPart.RE else "im", _formula(r.arg, blocks))


@_formula.register
def _(r: Sum, blocks: States) -> Expr:
    return add(*(_formula(a, blocks) for a in r.args))


@_formula.register
def _(r: MapOut, blocks: States) -> Expr:
    return Map(r.map, _formula(r.arg, blocks))


@_formula.register
def _(r: Post, blocks: States) -> Expr:
    return prim(r.name, *(_formula(a, blocks) for a in r.args), axis=r.axis)


@_formula.register
def _(r: SumOver, blocks: States) -> Expr:
    return total((r.axis,), _formula(r.arg, blocks))
