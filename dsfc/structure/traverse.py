"""Walking over the read-outs and the token-wise expressions of a System."""

from __future__ import annotations

from collections.abc import Iterator

from dsfc.primitives.expr import Expr
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
