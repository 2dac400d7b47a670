"""Walking over read-out trees: their nodes, terms and expressions."""

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
    Term,
)


def trees(system: System) -> Iterator[ReadOut]:
    """Yields every read-out tree of a System: of streams, then of outputs."""
    for s in system.streams:
        if not isinstance(s.value, Expr):
            yield s.value
    for o in system.outputs:
        yield o.value


def arguments(tree: ReadOut) -> tuple[ReadOut, ...]:
    """Returns the direct sub-trees of a read-out."""
    match tree:
        case Ratio(num, den):
            return num, den
        case Product(args) | Sum(args) | Post(args=args):
            return args
        case Gate(arg=arg) | Cast(arg=arg) | MapOut(arg=arg) | SumOver(arg=arg):
            return (arg,)
    return ()


def parts(tree: ReadOut) -> Iterator[ReadOut]:
    """Yields a read-out and all read-outs inside it, from the top."""
    yield tree
    for a in arguments(tree):
        yield from parts(a)


def terms(tree: ReadOut) -> Iterator[Term]:
    """Yields the terms of all reads in a read-out."""
    for node in parts(tree):
        if isinstance(node, Read):
            yield from node.terms


def own_expressions(node: ReadOut) -> tuple[Expr, ...]:
    """Returns the expressions that one node holds itself, those of its terms left out."""
    match node:
        case Read(direct=direct) if direct is not None:
            return (direct,)
        case Direct(value):
            return (value,)
        case Cache(past):
            return (past,)
        case Gate(factor=factor):
            return (factor,)
        case Ratio(guard=guard) if guard.constant is not None:
            return (guard.constant,)
    return ()


def expressions(tree: ReadOut) -> Iterator[Expr]:
    """Yields all expressions in a read-out, the sides of its terms included."""
    for node in parts(tree):
        yield from own_expressions(node)
        if isinstance(node, Read):
            yield from (e for t in node.terms for e in (t.left, t.right))
