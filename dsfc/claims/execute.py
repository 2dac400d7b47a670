"""One step of a derived system, executed at a point: its transition, its drives, its reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from dsfc.claims.points import Running
from dsfc.expr.tree import Axis
from dsfc.system.ir import (
    Cast,
    ComplexPart,
    Direct,
    Factor,
    Gate,
    MapOut,
    Read,
    ReadOut,
    Stage,
    Sum,
    SumOver,
    Term,
)
from dsfc.trusted.balls import Complex, real
from dsfc.trusted.definition import ZERO, exact
from dsfc.trusted.entries import Index, Obstacle

States = Mapping[str, Mapping[tuple[int, ...], Complex]]
"""State → index in the order of its axes → entry."""


def units(run: Running, stage: Stage) -> Iterator[tuple[str, States]]:
    """Yields every unit vector of a stage's states, with its name."""
    for block in stage.blocks:
        for start in run.places(block.axes):
            where = ", ".join(f"{a.name} = {k}" for a, k in start.items())
            yield (
                f"{block.state} at {where}" if where else block.state,
                {
                    b.state: {
                        tuple(at.values()): exact(1) if b is block and at == start else ZERO
                        for at in run.places(b.axes)
                    }
                    for b in stage.blocks
                },
            )


def after(run: Running, stage: Stage, before: States, token: int, driven: bool) -> States:
    """Returns the states of a stage after a token.

    Args:
        run: the point.
        stage: which states.
        before: their values before the token.
        token: which token's transition.
        driven: whether the drives are added.
    """
    current = {b.state: before[b.state] for b in stage.blocks}
    for position in range(max(len(b.chain) for b in stage.blocks)):
        current = {
            b.state: {
                tuple(at.values()): _entry(
                    run, stage, b.chain[position], current, at, token, driven
                )
                for at in run.places(b.axes)
            }
            if position < len(b.chain)
            else current[b.state]
            for b in stage.blocks
        }
    return current


def _entry(
    run: Running,
    stage: Stage,
    factor: Factor,
    states: States,
    at: Index,
    token: int,
    driven: bool,
) -> Complex:
    axes = {b.state: b.axes for b in stage.blocks}
    total = ZERO
    for t in factor.terms:
        if t.source not in axes:
            raise Obstacle(f"the transition reads {t.source}, which is of another stage")
        total = total + term(run, t, _reader(axes[t.source], states[t.source]), at, token)
    if driven:
        for d in factor.drives:
            total = total + run.entry(d.key, token, at) * run.entry(d.stream, token, at)
    return total


def _reader(
    axes: tuple[Axis, ...], values: Mapping[tuple[int, ...], Complex]
) -> Callable[[Index], Complex]:
    """The entries of a state by index."""
    return lambda there: values[tuple(there[a] for a in axes)]


def term(
    run: Running, t: Term, source: Callable[[Index], Complex], at: Index, token: int
) -> Complex:
    """Returns one entry of after(left · Σ_over(right · matrix(source)))."""

    def inner(there: Index) -> Complex:
        out = ZERO
        for over in run.places(tuple(sorted(t.over))):
            here = {**there, **over}
            value = run.applied(t.matrix, source, here) if t.matrix else source(here)
            out = out + run.entry(t.right, token, here) * value
        return run.entry(t.left, token, there) * out

    return run.applied(t.after, inner, at) if t.after else inner(at)


def read(
    run: Running, tree: ReadOut, states: States, at: Index, token: int, driven: bool
) -> Complex:
    """Returns one entry of a linear read-out of given states; absent states are 0.

    Args:
        run: the point.
        tree: made of reads, sums, gates, casts and maps.
        states: by name.
        at: which entry.
        token: which token's coefficients.
        driven: whether the direct terms are added.

    Raises:
        Obstacle: the read-out is not linear.
    """
    match tree:
        case Read(terms, direct):
            out = ZERO
            for t in terms:
                if t.source in states:
                    block = next(b for b in run.system.blocks if b.state == t.source)
                    source = _reader(block.axes, states[t.source])
                    out = out + term(run, t, source, at, token)
            if direct is not None and driven:
                out = out + run.entry(direct, token, at)
            return out
        case Direct(value):
            return run.entry(value, token, at) if driven else ZERO
        case Gate(factor, arg):
            return run.entry(factor, token, at) * read(run, arg, states, at, token, driven)
        case Sum(args):
            out = ZERO
            for a in args:
                out = out + read(run, a, states, at, token, driven)
            return out
        case Cast(part, arg):
            whole = read(run, arg, states, at, token, driven)
            return Complex(whole.re if part is ComplexPart.RE else whole.im, real(0))
        case MapOut(map, arg):
            return run.applied(map, lambda there: read(run, arg, states, there, token, driven), at)
        case SumOver(axis, arg):
            out = ZERO
            for k in range(run.sizes[axis.name]):
                out = out + read(run, arg, states, {**at, axis: k}, token, driven)
            return out
    raise Obstacle("a read-out is not linear")
