"""`causal`, `time_invariant`, `finite` and `class C`: read off the derived system.

`time_invariant` says that Λ, B, C and D are the same at every token; a fixed function may be
applied to C h + D u. It is a property of the system in the gauge it is stored in, like every
statement about Λ.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from dsfc.claims.compare import satisfied
from dsfc.claims.execute import States, after, read, units
from dsfc.claims.feeding import LINEAR
from dsfc.claims.points import Failed, Point, Running, changed_at, search, shown
from dsfc.claims.verdict import Proved, Refuted, Unknown, Verdict
from dsfc.expr.declarations import Constraint
from dsfc.expr.statements import Comparison
from dsfc.expr.tree import Axis, Expr, Time
from dsfc.structure.ir import Structure
from dsfc.structure.linear import is_fixed_linear
from dsfc.system.inline import inliner_of
from dsfc.system.ir import (
    Cache,
    Cast,
    Direct,
    Gate,
    MapOut,
    Post,
    Product,
    Ratio,
    Read,
    ReadOut,
    Sum,
    SumOver,
    System,
)
from dsfc.system.traverse import parts, trees
from dsfc.trusted.balls import Complex, NotDefined
from dsfc.trusted.definition import ZERO, exact
from dsfc.trusted.entries import Obstacle

When = tuple[Comparison, ...]


def finite(structure: Structure) -> Verdict:
    """Decides whether every sum over the past has a finite state."""
    if structure.sums:
        return Refuted(f"a sum keeps all tokens, because {structure.sums[0]}")
    return Proved("every sum over the past has a finite state")


def of_class(structure: Structure, name: str) -> Verdict:
    """Decides whether the structure class is the one named."""
    class_name = structure.name.value
    if class_name == name:
        return Proved(f"the class is {structure.title} ({structure.label})")
    return Refuted(f"the class is {structure.title} ({structure.label})")


# --- causal ---------------------------------------------------------------------------------------


def causal(system: System, structure: Structure, when: When) -> Verdict:
    """Decides whether outputs depend on their token and earlier ones only."""
    if structure.causal:
        return Proved("no state runs backwards and nothing reads a later token")
    failure = search(system, lambda run: _foresight(run, system, when), shortest=2)
    if isinstance(failure, Failed):
        return Refuted(failure.how, failure.point.text)
    return Unknown(f"a later token is read; {failure}")


def _foresight(run: Running, system: System, when: When) -> str | None:
    """An output that changes with a later token."""
    changed = Running(system, changed_at(run.point, system, range(run.length - 1, run.length)))
    if not (satisfied(run, when) and satisfied(changed, when)):
        return None
    before, then = run.output(), changed.output()
    for token in range(run.length - 1):
        for k, (a, b) in enumerate(zip(before[token], then[token], strict=True)):
            if not a.meets(b):
                return (
                    f"entry {k} of y at token {token} is {shown(a)}, and {shown(b)} when the "
                    f"inputs of token {run.length - 1} change"
                )
    return None


# --- time-invariant -------------------------------------------------------------------------------


def time_invariant(system: System, structure: Structure, when: When) -> Verdict:
    """Decides whether Λ, B, C and D are the same at every token."""
    obstacles = list(_varying(system, structure))
    if not obstacles:
        return Proved("Λ, B, C and D are read off the system and hold no value of a token")
    failure = search(system, lambda run: _variation(run, system, when), shortest=2)
    if isinstance(failure, Failed):
        return Refuted(failure.how, failure.point.text)
    return Unknown(f"{'; '.join(dict.fromkeys(obstacles))}; {failure}")


def _varying(system: System, structure: Structure) -> Iterator[str]:
    """What is not known to be fixed."""
    for b in structure.blocks:
        if not b.transition_fixed:
            yield f"Λ of {b.state} holds values of a token"
        if not b.drive_fixed:
            yield f"B of {b.state} holds values of a token"
        if not b.read_fixed:
            yield f"C of {b.state} holds values of a token"
    inline = inliner_of(system)

    def linear(e: Expr) -> bool:
        return is_fixed_linear(inline.of(e), inline.value)

    for tree in trees(system):
        for part in parts(tree):
            match part:
                case Read(direct=Expr() as e) | Direct(e) if not linear(e):
                    yield "D holds values of a token"
                case Gate(factor) if inline.of(factor).time is not Time.CONST:
                    yield "the output is gated by values of a token"
                case Cache():
                    yield "a sum over the past has no finite state"


def _variation(run: Running, system: System, when: When) -> str | None:
    """An entry of Λ or C that differs between tokens, or an input term that is not affine."""
    if not satisfied(run, when):
        return None
    for stage in system.stages:
        for what, start in units(run, stage):
            difference = _differs([after(run, stage, start, t, driven=False) for t in _tokens(run)])
            if difference:
                return f"Λ takes the unit vector of {what} to different vectors: {difference}"
    if any(not isinstance(s.value, Expr) for s in system.streams):
        return None  # reads of earlier stages count as inputs, which a point does not choose
    for tree in _linear(system.read_out):
        for stage in system.stages:
            for what, start in units(run, stage):
                difference = _differs(
                    [
                        {"y": dict(_entries(run, system, tree, start, t, False))}
                        for t in _tokens(run)
                    ]
                )
                if difference:
                    return f"C reads the unit vector of {what} differently: {difference}"
    return _not_affine(run, system, when)


def _tokens(run: Running) -> range:
    return range(run.length)


def _differs(values: list[States]) -> str | None:
    """Which entry is not the same at the first token and a later one."""
    for token, then in enumerate(values):
        for name, entries in values[0].items():
            for where, a in entries.items():
                b = then[name][where]
                if not a.meets(b):
                    return f"entry {list(where)} is {shown(a)} at token 0, {shown(b)} at {token}"
    return None


def _linear(tree: ReadOut) -> Iterator[ReadOut]:
    """The largest parts of a read-out that are linear in states and inputs."""
    if all(isinstance(p, LINEAR) for p in parts(tree)):
        yield tree
        return
    match tree:
        case Gate(arg=arg) | Cast(arg=arg) | MapOut(arg=arg) | SumOver(arg=arg):
            yield from _linear(arg)
        case Cache():
            raise Obstacle("a sum over the past has no finite state")
        case Ratio(num=num, den=den):
            yield from _linear(num)
            yield from _linear(den)
        case Product(args=args) | Sum(args=args) | Post(args=args):
            for a in args:
                yield from _linear(a)


def _entries(
    run: Running, system: System, tree: ReadOut, states: States, token: int, driven: bool
) -> Iterator[tuple[tuple[int, ...], Complex]]:
    """Entries of a linear read-out for given states, with or without its direct terms."""
    axes = _axes_of(tree, system)
    for at in run.places(axes):
        yield tuple(at.values()), read(run, tree, states, at, token, driven)


def _axes_of(tree: ReadOut, system: System) -> tuple[Axis, ...]:
    """The axes of a linear read-out."""
    blocks = {b.state: frozenset(b.axes) for b in system.blocks}

    def axes(r: ReadOut) -> frozenset[Axis]:
        match r:
            case Read(terms, direct):
                out = frozenset[Axis]() if direct is None else direct.axes
                for t in terms:
                    kept = blocks[t.source]
                    if t.matrix is not None:
                        kept = (kept - set(t.matrix.source)) | set(t.matrix.target)
                    kept = ((kept | t.right.axes) - t.over) | t.left.axes
                    if t.after is not None:
                        kept = (kept - set(t.after.source)) | set(t.after.target)
                    out |= kept
                return out
            case Direct(value):
                return value.axes
            case Gate(factor, arg):
                return factor.axes | axes(arg)
            case Sum(args):
                return frozenset().union(*(axes(a) for a in args))
            case Cast(arg=arg):
                return axes(arg)
            case MapOut(map, arg):
                return (axes(arg) - set(map.source)) | set(map.target) | set(map.each)
            case SumOver(axis, arg):
                return axes(arg) - {axis}
        raise Obstacle("a read-out is not linear")

    return tuple(sorted(axes(tree)))


def _not_affine(run: Running, system: System, when: When) -> str | None:
    """A term of B u or D u that does not follow when all inputs are scaled."""
    plain = {t.name for t in system.inputs if t.constraint is Constraint.NONE}
    if len(plain) != len(system.inputs):
        return None  # an input with a range cannot be scaled freely
    none = Running(system, _scaled(run.point, plain, Fraction(0)))
    for factor in (Fraction(2), Fraction(-1)):
        scaled = Running(system, _scaled(run.point, plain, factor))
        if not (satisfied(none, when) and satisfied(scaled, when)):
            continue
        pairs = zip(*(_input_terms(r, system) for r in (run, none, scaled)), strict=True)
        try:
            for (what, token, a), (_, _, zero), (_, _, both) in pairs:
                # affine: f(c u) = f(0) + c (f(u) - f(0))
                due = zero + exact(factor) * (a - zero)
                if not due.meets(both):
                    return (
                        f"{what} at token {token} is {shown(a)}; with inputs times {factor} a "
                        f"fixed one gives {shown(due)}, and it is {shown(both)}"
                    )
        except NotDefined:
            continue
    return None


def _scaled(point: Point, names: set[str], by: Fraction) -> Point:
    values = tuple(
        (name, tuple((by * re, by * im) for re, im in entries) if name in names else entries)
        for name, entries in point.values
    )
    return Point(point.sizes, point.length, values)


def _input_terms(run: Running, system: System) -> Iterator[tuple[str, int, Complex]]:
    """(what, token, value) of every entry of B u and D u."""
    for token in range(run.length):
        for stage in system.stages:
            nothing = _zero(run, system)
            for name, entries in after(run, stage, nothing, token, driven=True).items():
                for where, value in entries.items():
                    yield f"entry {list(where)} of B u for {name}", token, value
        for tree in _linear(system.read_out):
            for where, value in _entries(run, system, tree, _zero(run, system), token, True):
                yield f"entry {list(where)} of D u", token, value


def _zero(run: Running, system: System) -> States:
    return {b.state: {tuple(at.values()): ZERO for at in run.places(b.axes)} for b in system.blocks}
