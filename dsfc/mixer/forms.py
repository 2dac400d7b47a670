"""Forms of the language that look like functions: filters, series, renamed axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsfc.diagnostics.catalogue import Order, Timeless
from dsfc.expr.build import rewrite, walk
from dsfc.expr.over_time import Lag, Past, Run
from dsfc.expr.tree import Axis, Bound, Expr, Fir, Now, Num, Ref, Series, Time
from dsfc.mixer import shapes
from dsfc.mixer.arguments import count, wrong
from dsfc.mixer.context import Context
from dsfc.mixer.indices import axes_of
from dsfc.mixer.shapes import Operand, named
from dsfc.mixer.times import is_lag
from dsfc.syntax import ast

if TYPE_CHECKING:
    from dsfc.mixer.expressions import Expressions


def fir(typer: Expressions, node: ast.Call, ctx: Context) -> Expr | None:
    """`fir[t](w, x)`; an argument that is no name of a stream gets one, so that it has a past."""
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
    return _filtered(typer, node, axis, weight.value, arg.value, ctx)


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


def _filtered(
    typer: Expressions, node: ast.Call, axis: Axis, weight: Expr, arg: Expr, ctx: Context
) -> Expr | None:
    """The filter of a name at the present token; at a summed token the filter gets a name."""
    if any(isinstance(n, Lag) and not is_lag(n) for e in (weight, arg) for n in walk(e)):
        wrong(typer, node, "cannot filter a value of the position itself")
        return None
    moments = {
        n.at for e in (weight, arg) for n in walk(e) if isinstance(n, Ref) and n.at is not None
    }
    bound = {at.var for at in moments if isinstance(at, Bound)}
    if not bound:
        return Fir(axis, weight, _at_tokens(typer, node, arg, ctx))
    if len(bound) > 1 or any(isinstance(at, Now) for at in moments) or _has_time(weight, arg):
        wrong(typer, node, "mixes two tokens; define the filtered value first")
        return None
    (var,) = bound
    weight, arg = _at_present(weight), _at_present(arg)
    whole = _named(typer, node, Fir(axis, weight, _at_tokens(typer, node, arg, ctx)), ctx)
    return Ref(whole.name, whole.over, whole.kind, whole.when, Bound(var, 0))


def _at_tokens(typer: Expressions, node: ast.Call, arg: Expr, ctx: Context) -> Ref:
    """A name of the values that are filtered: those at tokens of the sequence, 0 before the first.

    A state has a value before the first token, which `s[i-1]` reads and a filter does not.
    """
    if isinstance(arg, Ref) and not (typer.scope.is_state(arg.name) and arg.at == Now(0)):
        return arg
    return _named(typer, node, arg, ctx)


def _has_time(*values: Expr) -> bool:
    return any(isinstance(n, Past | Lag | Run) for value in values for n in walk(value))


def _at_present(value: Expr) -> Expr:
    """Returns an expression of one summed token as the same expression of the present one."""

    def now(node: Expr) -> Expr | None:
        if isinstance(node, Ref) and isinstance(node.at, Bound):
            return Ref(node.name, node.over, node.kind, node.when, Now(node.at.lag))
        return None

    return rewrite(value, now)


def _named(typer: Expressions, node: ast.Call, value: Expr, ctx: Context) -> Ref:
    name = typer.lift(ctx.owner, value, node.span)
    return Ref(name, value.axes, value.field, value.time, Now(0))


def taylor(typer: Expressions, node: ast.Call, ctx: Context) -> Expr | None:
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


def rename(typer: Expressions, node: ast.Call, ctx: Context) -> Expr | None:
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
