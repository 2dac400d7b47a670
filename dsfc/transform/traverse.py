"""Walking over the read-outs and the token-wise expressions of a System."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from dsfc.primitives.expr import Expr
from dsfc.system.ir import (
    Block,
    Cache,
    Cast,
    Direct,
    Gate,
    MapOut,
    Output,
    Post,
    Product,
    Ratio,
    Read,
    ReadOut,
    Stream,
    Sum,
    SumOver,
    System,
)


def trees(system: System) -> Iterator[ReadOut]:
    """Yields every read-out tree of a System: of streams, then of outputs."""
    for s in system.streams:
        if not isinstance(s.value, Expr):
            yield s.value
    for o in system.outputs:
        yield o.value


def parts(tree: ReadOut) -> Iterator[ReadOut]:
    """Yields a read-out and all read-outs inside it, from the top."""
    yield tree
    match tree:
        case Gate(arg=arg) | Cast(arg=arg) | MapOut(arg=arg) | SumOver(arg=arg):
            yield from parts(arg)
        case Product(args) | Sum(args) | Post(args=args):
            for a in args:
                yield from parts(a)
        case Ratio(numerator, denominator):
            yield from parts(numerator)
            yield from parts(denominator)


def expressions(system: System) -> Iterator[Expr]:
    """Yields every token-wise expression of a System."""
    for s in system.streams:
        if isinstance(s.value, Expr):
            yield s.value
    for tree in trees(system):
        for part in parts(tree):
            match part:
                case Read(terms, direct):
                    yield from (x for t in terms for x in (t.left, t.right))
                    if direct is not None:
                        yield direct
                case Direct(value):
                    yield value
                case Gate(factor):
                    yield factor
                case Cache(past):
                    yield past
    for block in system.blocks:
        for step in block.chain:
            yield from (x for t in step.terms for x in (t.left, t.right))
            yield from (x for d in step.drives for x in (d.key, d.stream))


def map_blocks(system: System, rule: Callable[[Block], Block]) -> System:
    """Returns the System with a rule applied to every block."""
    stages = tuple(replace(s, blocks=tuple(rule(b) for b in s.blocks)) for s in system.stages)
    return replace(system, stages=stages)


def map_trees(system: System, rule: Callable[[ReadOut], ReadOut]) -> System:
    """Returns the System with a rule applied to every node of every read-out, leaves first."""

    def go(tree: ReadOut) -> ReadOut:
        match tree:
            case Gate(factor, arg):
                tree = Gate(factor, go(arg))
            case Cast(part, arg):
                tree = Cast(part, go(arg))
            case MapOut(map, arg):
                tree = MapOut(map, go(arg))
            case SumOver(axis, arg):
                tree = SumOver(axis, go(arg))
            case Product(args):
                tree = Product(tuple(go(a) for a in args))
            case Sum(args):
                tree = Sum(tuple(go(a) for a in args))
            case Post(name, args, axis):
                tree = Post(name, tuple(go(a) for a in args), axis)
            case Ratio(numerator, denominator, guard):
                tree = Ratio(go(numerator), go(denominator), guard)
        return rule(tree)

    def stream(s: Stream) -> Stream:
        return s if isinstance(s.value, Expr) else replace(s, value=go(s.value))

    def output(o: Output) -> Output:
        return replace(o, value=go(o.value))

    return replace(
        system,
        streams=tuple(stream(s) for s in system.streams),
        outputs=tuple(output(o) for o in system.outputs),
    )
