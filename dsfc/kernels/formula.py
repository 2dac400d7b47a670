"""Expressions of the plan as operations of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dsfc.expr.table import row
from dsfc.expr.tree import Add, Axis, Div, Expr, Mul, Num, Pow, Prim, Reduce, Reduction, Ref
from dsfc.kernel_ir.build import KernelBuilder, Tile
from dsfc.kernel_ir.ir import Axis as TileAxis


class NoFormula(Exception):
    """An expression that no kernel computes."""


def formula(
    expr: Expr,
    builder: KernelBuilder,
    leaf: Callable[[str], Tile],
    axes: Mapping[Axis, TileAxis],
) -> Tile:
    """Returns an expression as a tile.

    Args:
        expr: reads leaves as `Ref`.
        builder: of the kernel.
        leaf: name of a leaf → its tile.
        axes: axis of the plan → axis of tiles; sums over others are sums over nothing.

    Raises:
        NoFormula: the expression holds what no kernel computes.
    """
    done: dict[Expr, Tile] = {}

    def go(e: Expr) -> Tile:
        if e not in done:
            done[e] = node(e)
        return done[e]

    def node(e: Expr) -> Tile:
        match e:
            case Num(value=value):
                return builder.const(float(value))
            case Ref(name=name):
                return leaf(name)
            case Add(args=args):
                return _folded("add", [go(a) for a in args])
            case Mul(args=args):
                return _product([go(a) for a in args])
            case Div(num=num, den=den):
                return go(num) / go(den)
            case Pow(base=base, exponent=Num(value=power)) if power in (2, 3):
                x = go(base)
                return x * x if power == 2 else x * x * x
            case Prim(name=name, args=args) if not row(name).along_axis:
                # An exponential stands in the spec, whatever its argument is.
                return builder.map(name, *(go(a) for a in args), free=name == "exp")
            case Reduce(how=Reduction.SUM, axis=axis, arg=arg):
                return builder.sum(go(arg), *((axes[axis],) if axis in axes else ()))
            case _:
                raise NoFormula(type(e).__name__)

    return go(expr)


def is_formula(expr: Expr, knows: Callable[[str], bool]) -> bool:
    """Returns whether a kernel computes an expression.

    Args:
        expr: the expression.
        knows: whether a target has a primitive.
    """
    match expr:
        case Num() | Ref():
            return True
        case Add(args=args) | Mul(args=args):
            return all(is_formula(a, knows) for a in args)
        case Div(num=num, den=den):
            return is_formula(num, knows) and is_formula(den, knows)
        case Pow(base=base, exponent=Num(value=power)):
            return power in (2, 3) and is_formula(base, knows)
        case Prim(name=name, args=args):
            known = not row(name).along_axis and knows(name)
            return known and all(is_formula(a, knows) for a in args)
        case Reduce(how=how, arg=arg):
            return how is Reduction.SUM and is_formula(arg, knows)
        case _:
            return False


def _folded(function: str, tiles: list[Tile]) -> Tile:
    first, *rest = tiles
    for x in rest:
        first = first.builder.map(function, first, x)
    return first


def _product(tiles: list[Tile]) -> Tile:
    """The product, those of few axes first: they are multiplied once, not for every entry."""
    return _folded("mul", sorted(tiles, key=lambda x: len(x.axes)))
