"""Calls: functions, maps, the forms of the language, primitives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from dsfc.diagnostics.catalogue import ComplexValue, Juxtaposition, ShapeMap
from dsfc.expr.build import is_zero, prim
from dsfc.expr.distributions import DISTRIBUTIONS
from dsfc.expr.table import SPELLINGS, TABLE
from dsfc.expr.tree import Abstract, Axis, Expr, Field, Reduction
from dsfc.mixer import shapes
from dsfc.mixer.arguments import count, wrong
from dsfc.mixer.context import Context
from dsfc.mixer.forms import fir, rename, taylor
from dsfc.mixer.indices import axes_of
from dsfc.mixer.initial import draw
from dsfc.mixer.rules.constant import reads_name
from dsfc.mixer.shapes import Operand, named
from dsfc.mixer.sums import reduction, running_product, summed
from dsfc.mixer.unknown import unknown_call
from dsfc.syntax import ast

if TYPE_CHECKING:
    from dsfc.mixer.expressions import Expressions

_Form = Callable[["Expressions", ast.Call, "Context"], Expr | None]


def call(typer: Expressions, node: ast.Call, ctx: Context) -> Expr | None:
    """Returns the value of a call, None after a report."""
    name = node.name.text
    program = typer.scope.program
    if name in program.functions:
        return typer.expand(program.functions[name], node, ctx)
    if name in program.declared or name in program.updates or name in ctx.args:
        return _apply_declared(typer, node, ctx)
    if name in _FORMS:
        return _FORMS[name](typer, node, ctx)
    if name in DISTRIBUTIONS:
        return draw(typer, node, ctx)
    if name in SPELLINGS:
        return _primitive(typer, node, ctx)
    args = tuple(typer.operand(arg, ctx) for arg in node.args)
    typer.add(unknown_call(typer.scope, ctx, node, args))
    return None


# --- names of the mixer ---------------------------------------------------------------------------


def _apply_declared(typer: Expressions, node: ast.Call, ctx: Context) -> Expr | None:
    """`W(x)` for a map, `φ(x)` for an abstract one."""
    name = node.name.text
    if ctx.constant and name not in ctx.args:
        typer.add(reads_name(typer.scope, ctx.owner, name, node.name.span))
        return None
    args = [typer.operand(arg, ctx) for arg in node.args]
    kind = typer.scope.kind(name)
    is_abstract = kind is ast.DeclKind.ABSTRACT
    if name in ctx.args or not (is_abstract or typer.is_map(name)):
        typer.add(*_not_applicable(typer, node, ctx, args[0]))
        return None
    if node.brackets:
        wrong(typer, node, "takes no brackets")
        return None
    if not count(typer, node, 1):
        return None
    if not is_abstract:
        return typer.apply_map(name, args[0], node.span)
    return _abstract(typer, node, args[0])


def _not_applicable(
    typer: Expressions, node: ast.Call, ctx: Context, arg: Operand | None
) -> tuple[Juxtaposition, ...]:
    """`S(i-1)`, `k(v)`: what was meant by a parenthesis behind a value; nothing of a wrong one."""
    name, written = node.name.text, node.name.span.text or node.name.text
    text = " ".join(node.args[0].span.text.split())
    if not isinstance(node.args[0], ast.Num) and ctx.clock.instant(node.args[0], ctx.args):
        what = "not a map, and a token stands in square brackets"
        near = f"{written}[{text}]"
        return (Juxtaposition(node.span, name=written, what=what, nearest=near),)
    if name in ctx.args:
        return (Juxtaposition(node.span, name=written, repair=shapes.ANY_PRODUCT),)
    left = typer.operand(ast.Name(name, node.name.span), ctx)
    if left is None:
        return ()
    return (Juxtaposition(node.span, name=written, repair=shapes.product(left, arg)),)


def _abstract(typer: Expressions, node: ast.Call, arg: Operand | None) -> Expr | None:
    if not typer.declared(node.name.text) or arg is None:
        return None
    map_ = typer.scope.abstracts[node.name.text]
    assert map_ is not None
    if not shapes.fits_map((), map_.source, map_.target, arg.axes):
        takes = named(map_.source)
        typer.add(ShapeMap(node.span, map=map_.name, takes=takes, got=arg.shown))
        return None
    return Abstract(map_.name, map_.source, map_.target, arg.value)


# --- primitives -----------------------------------------------------------------------------------


def _primitive(typer: Expressions, node: ast.Call, ctx: Context) -> Expr | None:
    """A row of the primitive table."""
    row = TABLE[SPELLINGS[node.name.text]]
    args = [typer.operand(arg, ctx) for arg in node.args]
    axis = None
    if not count(typer, node, row.arity):
        return None
    if row.along_axis:
        axes = axes_of(typer, node.brackets, row.spelling)
        if axes is not None and len(axes) != 1:
            wrong(typer, node, _needs_axis(row.spelling, args[0]))
            return None
        axis = None if axes is None else axes[0]
    elif node.brackets:
        wrong(typer, node, "takes no brackets")
        return None
    known = [arg for arg in args if arg is not None]
    if len(known) != len(args) or (row.along_axis and axis is None):
        return None
    if axis is not None and not shapes.has_axis(axis, known[0], typer):
        return None
    return _checked_primitive(typer, node, row.name, known, axis)


def _needs_axis(spelling: str, arg: Operand | None) -> str:
    along = [] if arg is None else sorted(axis for axis in arg.axes if not axis.heads)
    calls = " or ".join(f"`{spelling}[{axis.name}](…)`" for axis in along)
    said = f"needs one axis: {calls or f'`{spelling}[n](…)`'}"
    if spelling != "softmax":
        return said
    return f"{said}; over tokens write `sum[j ≤ i](exp(s) * v[j]) / sum[j ≤ i](exp(s))`"


def _checked_primitive(
    typer: Expressions, node: ast.Call, name: str, args: list[Operand], axis: Axis | None
) -> Expr | None:
    row = TABLE[name]
    shaped = {arg.axes for arg in args if arg.axes}
    if len(shaped) > 1:
        shown = " and ".join(arg.shown for arg in args)
        wrong(typer, node, f"takes values with equal axes, or without; got {shown}")
        return None
    for arg in args:
        if arg.value.field is Field.COMPLEX and not row.fields.takes_complex:
            problem = f"`{row.spelling}` takes real values, but `{arg.text}` is complex"
            typer.add(ComplexValue(arg.span, problem=problem))
            return None
    if name == "log" and is_zero(args[0].value):
        wrong(typer, node, "of 0 is not a number")
        return None
    return prim(name, *(arg.value for arg in args), axis=axis)


# --- forms ----------------------------------------------------------------------------------------


def _mean(typer: Expressions, node: ast.Call, ctx: Context) -> Expr | None:
    """`mean[n](x)`."""
    return reduction(Reduction.MEAN, typer, node, ctx)


def _max(typer: Expressions, node: ast.Call, ctx: Context) -> Expr | None:
    """`max[n](x)` along an axis, or `max(a, b)`."""
    if node.brackets:
        return reduction(Reduction.MAX, typer, node, ctx)
    return _primitive(typer, node, ctx)


def _tensor(typer: Expressions, node: ast.Call, ctx: Context) -> Expr | None:
    wrong(typer, node, f"takes axes in brackets and no argument: `{node.name.text}[n]`")
    return None


_FORMS: Mapping[str, _Form] = MappingProxyType(
    {
        "sum": summed,
        "mean": _mean,
        "max": _max,
        "prod": running_product,
        "fir": fir,
        "taylor": taylor,
        "rename": rename,
        "ones": _tensor,
        "iota": _tensor,
    }
)
