"""Calls: sums over axes and time, the forms of the language, maps, functions, primitives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from dsfc.diagnostics.catalogue import (
    Arguments,
    ComplexValue,
    Juxtaposition,
    NameClash,
    Order,
    Timeless,
    UnknownName,
    Unsupported,
)
from dsfc.diagnostics.report import nearest
from dsfc.mixer import shapes
from dsfc.mixer.context import Context
from dsfc.mixer.indices import axes_of
from dsfc.mixer.initial import draw
from dsfc.mixer.shapes import Operand, named
from dsfc.mixer.times import TIME, Clock, run_head, shifted, sum_head
from dsfc.primitives.build import is_zero, prim, rewrite, walk
from dsfc.primitives.distributions import DISTRIBUTIONS
from dsfc.primitives.expr import (
    Abstract,
    Axis,
    Bound,
    Expr,
    Field,
    Fir,
    Lag,
    Now,
    Num,
    Past,
    Reduction,
    Ref,
    Relation,
    Run,
    Series,
    Time,
)
from dsfc.primitives.table import SPELLINGS, TABLE
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
    for arg in node.args:
        typer.type(arg, ctx)
    known = (*typer.scope.callables(), *_FORMS, *SPELLINGS)
    typer.add(UnknownName(node.name.span, name=name, nearest=nearest(name, known)))
    return None


def wrong(typer: Expressions, node: ast.Call, problem: str) -> None:
    """Reports a call with the wrong arguments or brackets."""
    typer.add(Arguments(node.span, function=node.name.text, problem=problem))


def count(typer: Expressions, node: ast.Call, number: int) -> bool:
    """Whether a call has that many arguments; reports if it has not."""
    if len(node.args) == number:
        return True
    plural = "argument" if number == 1 else "arguments"
    wrong(typer, node, f"takes {number} {plural}, got {len(node.args)}")
    return False


# --- names of the mixer ---------------------------------------------------------------------------


def _apply_declared(typer: Expressions, node: ast.Call, ctx: Context) -> Expr | None:
    """`W(x)` for a map, `φ(x)` for an abstract one."""
    name = node.name.text
    args = [typer.operand(arg, ctx) for arg in node.args]
    kind = typer.scope.kind(name)
    is_abstract = kind is ast.DeclKind.ABSTRACT
    if name in ctx.args or not (is_abstract or typer.is_map(name)):
        typer.add(Juxtaposition(node.span, name=node.name.span.text or name))
        return None
    if node.brackets:
        wrong(typer, node, "takes no brackets")
        return None
    if not count(typer, node, 1):
        return None
    if not is_abstract:
        return typer.apply_map(name, args[0], node.span)
    return _abstract(typer, node, args[0])


def _abstract(typer: Expressions, node: ast.Call, arg: Operand | None) -> Expr | None:
    if not typer.declared(node.name.text) or arg is None:
        return None
    map_ = typer.scope.abstracts[node.name.text]
    assert map_ is not None
    if not shapes.fits_map((), map_.source, map_.target, arg.axes):
        takes = named(map_.source)
        typer.add(shapes.ShapeMap(node.span, map=map_.name, takes=takes, got=arg.shown))
        return None
    return Abstract(map_.name, map_.source, map_.target, arg.value)


# --- sums and products ----------------------------------------------------------------------------


def _reduction(how: Reduction) -> _Form:
    def over_axes(typer: Expressions, node: ast.Call, ctx: Context) -> Expr | None:
        arg = typer.operand(node.args[0], ctx)
        if not count(typer, node, 1):
            return None
        if not node.brackets:
            wrong(typer, node, f"needs an axis: `{node.name.text}[n](…)`")
            return None
        axes = axes_of(typer, node.brackets, node.name.text)
        if axes is None or arg is None:
            return None
        for axis in axes:
            value = shapes.reduced(how, axis, arg, typer)
            if value is None:
                return None
            arg = replace(arg, value=value)
        return arg.value

    return over_axes


def _sum(typer: Expressions, node: ast.Call, ctx: Context) -> Expr | None:
    """`sum[n](x)` over an axis, or `sum[j ≤ i](x)` over time."""
    if any(isinstance(bracket, ast.Relation) for bracket in node.brackets):
        return _over_time(typer, node, ctx)
    return _reduction(Reduction.SUM)(typer, node, ctx)


def _over_time(typer: Expressions, node: ast.Call, ctx: Context) -> Expr | None:
    if len(node.brackets) != 1:
        wrong(typer, node, "takes one relation in brackets: `sum[j ≤ i](…)`")
        return None
    (relation,) = node.brackets
    assert isinstance(relation, ast.Relation)
    head = sum_head(relation, ctx.clock)
    if head is None:
        if len(relation.operators) > 1:
            typer.add(Unsupported(relation.span, what="a sum over a window of tokens"))
        else:
            wrong(typer, node, "takes a new index and its bound: `sum[j ≤ i](…)`")
        return None
    outer = ctx.clock.instant(head.outer, ctx.args)
    if outer is None:
        wrong(typer, node, "must be bounded by `i` or an index of an enclosing sum")
        return None
    inner = _bind(typer, head.word, relation, ctx, head.relation)
    if inner is None or not count(typer, node, 1):
        return None
    var = inner.clock.vars[head.word]
    body = typer.type(node.args[0], inner)
    if body is None:
        return None
    enclosing = outer.var if isinstance(outer, Bound) else None
    return Past(var, head.relation, body, enclosing, outer.lag)


def _bind(
    typer: Expressions,
    word: str,
    place: ast.Condition,
    ctx: Context,
    relation: Relation | None,
) -> Context | None:
    """The context inside a sum or product over time; its index has a name of its own."""
    if word == TIME or word in typer.scope.axes or word in ctx.args:
        role = "an axis" if word in typer.scope.axes else "taken"
        typer.add(NameClash(place.span, name=word, role=role))
        return None
    var, number = word, 1
    while var in ctx.taken:
        number += 1
        var = f"{word}{number}"
    ahead = ctx.clock.ahead
    if relation in (Relation.FROM, Relation.AFTER):
        ahead |= {var}
    clock = Clock(MappingProxyType({**ctx.clock.vars, word: var}), ahead)
    return replace(ctx, clock=clock, taken=ctx.taken | {var})


def _prod(typer: Expressions, node: ast.Call, ctx: Context) -> Expr | None:
    """`prod[j < l ≤ i](a[l])`."""
    relation = node.brackets[0] if len(node.brackets) == 1 else None
    head = run_head(relation) if isinstance(relation, ast.Relation) else None
    if head is None or relation is None:
        wrong(typer, node, "takes two bounds in brackets: `prod[j < l ≤ i](…)`")
        return None
    low = ctx.clock.instant(head.low, ctx.args)
    high = ctx.clock.instant(head.high, ctx.args)
    if low is None or high is None:
        wrong(typer, node, "must be bounded by `i` or indices of enclosing sums")
        return None
    inner = _bind(typer, head.word, relation, ctx, None)
    if inner is None or not count(typer, node, 1):
        return None
    arg = typer.type(node.args[0], inner)
    if arg is None:
        return None
    var = inner.clock.vars[head.word]
    return Run(var, shifted(low, head.low_shift), shifted(high, head.high_shift), arg)


# --- forms ----------------------------------------------------------------------------------------


def _fir(typer: Expressions, node: ast.Call, ctx: Context) -> Expr | None:
    """`fir[t](w, x)`; an argument that is not a name gets one, so that its past values exist."""
    args = [typer.operand(arg, ctx) for arg in node.args]
    axes = axes_of(typer, node.brackets, "fir")
    if not count(typer, node, 2):
        return None
    if axes is not None and len(axes) != 1:
        wrong(typer, node, "takes one axis in brackets: `fir[t](w, x)`")
        return None
    weight, arg = args
    if axes is None or weight is None or arg is None:
        return None
    (axis,) = axes
    if not shapes.has_axis(axis, weight, typer) or not _fits_filter(typer, node, axis, weight, arg):
        return None
    if arg.value.time is Time.CONST:
        reference = arg.text
        problem = "a filter needs an argument that depends on time"
        typer.add(Timeless(arg.span, reference=reference, problem=problem))
        return None
    return filtered(typer, node, axis, weight.value, arg.value, ctx)


def _fits_filter(
    typer: Expressions, node: ast.Call, axis: Axis, weight: Operand, arg: Operand
) -> bool:
    """The weights have the filter axis, the argument has not; else as `*`."""
    if axis in arg.axes:
        wrong(typer, node, f"filters along `{axis.name}`, which `{arg.text}` already has")
        return False
    scale = Operand(weight.value, weight.span)
    rest = scale.axes - {axis}
    if not (rest <= arg.axes or arg.axes <= rest):
        left, right = named(rest), arg.shown
        wrong(typer, node, f"has weights over {left} for an argument over {right}")
        return False
    return True


def filtered(
    typer: Expressions, node: ast.Call, axis: Axis, weight: Expr, arg: Expr, ctx: Context
) -> Expr | None:
    """The filter of a name at the present token; at a summed token the filter gets a name."""
    moments = {
        n.at for e in (weight, arg) for n in walk(e) if isinstance(n, Ref) and n.at is not None
    }
    bound = {at.var for at in moments if isinstance(at, Bound)}
    if not bound:
        if not isinstance(arg, Ref):
            arg = _named(typer, node, arg, ctx)
        return Fir(axis, weight, arg)
    if len(bound) > 1 or any(isinstance(at, Now) for at in moments) or _has_time(weight, arg):
        wrong(typer, node, "mixes two tokens; define the filtered value first")
        return None
    (var,) = bound
    weight, arg = at_present(weight), at_present(arg)
    if not isinstance(arg, Ref):
        arg = _named(typer, node, arg, ctx)
    whole = _named(typer, node, Fir(axis, weight, arg), ctx)
    return Ref(whole.name, whole.over, whole.kind, whole.when, Bound(var, 0))


def _has_time(*values: Expr) -> bool:
    return any(isinstance(n, Past | Lag | Run) for value in values for n in walk(value))


def at_present(value: Expr) -> Expr:
    """Returns an expression of one summed token as the same expression of the present one."""

    def now(node: Expr) -> Expr | None:
        if isinstance(node, Ref) and isinstance(node.at, Bound):
            return Ref(node.name, node.over, node.kind, node.when, Now(node.at.lag))
        return None

    return rewrite(value, now)


def _named(typer: Expressions, node: ast.Call, value: Expr, ctx: Context) -> Ref:
    name = typer.lift(ctx.owner, value, node.span)
    return Ref(name, value.axes, value.field, value.time, Now(0))


def _taylor(typer: Expressions, node: ast.Call, ctx: Context) -> Expr | None:
    """`taylor[P](s)` with a constant order."""
    arg = typer.type(node.args[0], ctx)
    if not count(typer, node, 1):
        return None
    if len(node.brackets) != 1:
        wrong(typer, node, "takes its order in brackets: `taylor[2](…)`")
        return None
    bracket = node.brackets[0]
    order = None if isinstance(bracket, ast.Relation) else typer.type(bracket, ctx)
    most = typer.limits.exponent
    if isinstance(order, Num) and order.value.denominator == 1 and 0 <= order.value <= most:
        return None if arg is None else Series(order.value.numerator, arg)
    if order is not None or isinstance(bracket, ast.Relation):
        shown = " ".join(bracket.span.text.split())
        typer.add(Order(bracket.span, function="taylor", order=shown, most=str(most)))
    return None


def _rename(typer: Expressions, node: ast.Call, ctx: Context) -> Expr | None:
    """`rename[n, m](x)`."""
    arg = typer.operand(node.args[0], ctx)
    axes = axes_of(typer, node.brackets, "rename")
    if not count(typer, node, 1):
        return None
    if axes is not None and len(axes) != 2:
        wrong(typer, node, "takes two axes in brackets: `rename[n, m](x)`")
        return None
    if axes is None or arg is None:
        return None
    return shapes.renamed_axis(axes[0], axes[1], arg, typer)


def _max(typer: Expressions, node: ast.Call, ctx: Context) -> Expr | None:
    """`max[n](x)` along an axis, or `max(a, b)`."""
    form = _reduction(Reduction.MAX) if node.brackets else _primitive
    return form(typer, node, ctx)


def _tensor(typer: Expressions, node: ast.Call, ctx: Context) -> Expr | None:
    wrong(typer, node, f"takes axes in brackets and no argument: `{node.name.text}[n]`")
    return None


_FORMS: Mapping[str, _Form] = MappingProxyType(
    {
        "sum": _sum,
        "mean": _reduction(Reduction.MEAN),
        "max": _max,
        "prod": _prod,
        "fir": _fir,
        "taylor": _taylor,
        "rename": _rename,
        "ones": _tensor,
        "iota": _tensor,
    }
)


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
            wrong(typer, node, f"needs one axis: `{row.spelling}[n](…)`")
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
