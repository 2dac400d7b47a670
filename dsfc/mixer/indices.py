"""`x[i-1]`, `k[j]`, `ones[n]`, `iota[n]`: a name with brackets."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dsfc.diagnostics.catalogue import Arguments, Capture, Future, Timeless
from dsfc.expr.build import ones
from dsfc.expr.reserved_names import TIME
from dsfc.expr.tree import Axis, Bound, Expr, Iota, Now, Ref, Time
from dsfc.mixer.axes import unknown_axis
from dsfc.mixer.context import Context
from dsfc.mixer.times import Instant, later
from dsfc.syntax import ast

if TYPE_CHECKING:
    from dsfc.mixer.expressions import Expressions


def index(typer: Expressions, node: ast.Index, ctx: Context) -> Expr | None:
    """Returns a name read at another time, or one of the tensors `ones` and `iota`."""
    name = node.name.text
    known = name in ctx.args or typer.scope.program.taken(name)
    if name == "ones" and not known:
        axes = axes_of(typer, node.brackets, name)
        return None if axes is None else ones(axes)
    if name == "iota" and not known:
        axes = axes_of(typer, node.brackets, name)
        if axes is not None and len(axes) != 1:
            typer.add(Arguments(node.span, function=name, problem="takes one axis"))
            return None
        return None if axes is None else Iota(axes[0])
    return _at_time(typer, node, ctx)


def axes_of(
    typer: Expressions, brackets: tuple[ast.Condition, ...], owner: str
) -> tuple[Axis, ...] | None:
    """Returns the axes that stand in brackets, None after a report."""
    out: list[Axis] = []
    for bracket in brackets:
        word = bracket.id if isinstance(bracket, ast.Name) else None
        axis = None if word is None else typer.scope.axes.get(word)
        if axis is None:
            shown = word or " ".join(bracket.span.text.split())
            typer.add(unknown_axis(owner, shown, bracket.span, typer.scope.axes))
        else:
            out.append(axis)
    return tuple(out) if len(out) == len(brackets) else None


def _at_time(typer: Expressions, node: ast.Index, ctx: Context) -> Expr | None:
    """A stream or state at another time (W4, W11)."""
    name = node.name.text
    if name not in ctx.args and _is_applied(typer, node):
        return None
    at = _instant(typer, node, ctx)
    if name in ctx.args:
        value = ctx.args[name]
        if value is None or at is None:
            return None
        return _argument_at(typer, node, value, at, ctx)
    value = typer.name(name, node.name.span, _reading(ctx))
    if value is None or at is None:
        return None
    if not isinstance(value, Ref) or value.at is None:
        _refuse(typer, node, f"`{name}` does not depend on time")
        return None
    if ctx.calls:
        typer.add(Capture(node.span, function=ctx.calls[-1], stream=name))
        return None
    return _moved(typer, node, value, at, ctx)


def _is_applied(typer: Expressions, node: ast.Index) -> bool:
    """Whether brackets stand where a map or a function takes parentheses; reports it then."""
    name, written = node.name.text, node.name.span.text
    inner = node.span.text[len(written) :].strip()[1:-1]
    if name in typer.scope.program.functions:
        near = f"{written}({inner})"
        problem = "is a function and takes parentheses"
        typer.add(Arguments(node.span, function=written, problem=problem, nearest=near))
        return True
    if not typer.is_map(name):
        return False
    problem = f"is a linear map; apply it: `{written} x`"
    if len(node.brackets) > 1:
        problem = f"is a linear map of one value; write a map of each, `{written} x + V z`"
    typer.add(Arguments(node.span, function=written, problem=problem))
    return True


def _reading(ctx: Context) -> Context:
    """The context for looking up the name alone; a captured stream is reported at the index."""
    return replace(ctx, calls=())


def _argument_at(
    typer: Expressions, node: ast.Index, value: Expr, at: Instant, ctx: Context
) -> Expr | None:
    """An argument at another time; it must be a name: only values of names are delayed."""
    if isinstance(value, Ref) and value.at is not None:
        moment = later(at, value.at)
        if moment is not None:
            return _moved(typer, node, value, moment, ctx)
        _refuse(typer, node, "the argument is already taken at a summed token")
    elif value.time is Time.CONST:
        _refuse(typer, node, "the argument does not depend on time")
    else:
        _refuse(typer, node, "only a name may be indexed, and the argument is an expression")
    return None


def _instant(typer: Expressions, node: ast.Index, ctx: Context) -> Instant | None:
    at = None
    if len(node.brackets) == 1:
        at = typer.instant(node.brackets[0], ctx)
    if at is None:
        _refuse(typer, node, *_meant(typer, node, ctx))
    return at


def _meant(typer: Expressions, node: ast.Index, ctx: Context) -> tuple[str, str | None]:
    """What is wrong with an index, and what stands there instead where that is clear."""
    (bracket, *more) = node.brackets
    head = "".join(node.span.text.split()).partition("[")[0]
    general = "an index is `i` or a summed index, minus a whole number"
    if more:
        return f"{general}; a name has one index, its axes have names", None
    words = {p.id: p.span for p in ast.walk(bracket) if isinstance(p, ast.Name)}
    loose = [word for word in words if word != TIME and word not in ctx.clock.vars]
    axes = [word for word in loose if word in typer.scope.axes]
    if axes:
        return (
            f"`{axes[0]}` is an axis, and an index is a token; `{head}` has all of {axes[0]}",
            None,
        )
    if loose in (["t"], ["n"], ["k"], ["T"]) and TIME not in words:
        index = "".join(bracket.span.text.split()).replace(loose[0], TIME)
        return "the present token is `i`", f"{head}[{index}]"
    if not words and isinstance(bracket, ast.Neg):
        return "an index counts from the present token `i`", f"{head}[i-1]"
    if loose and not ctx.clock.vars:
        return f"{general}; `{loose[0]}` is known inside `sum[{loose[0]} ≤ i](…)` only", None
    return general, None


def _refuse(typer: Expressions, node: ast.Index, problem: str, nearest: str | None = None) -> None:
    reference = "".join(node.span.text.split()) or node.name.text
    typer.add(Timeless(node.span, reference=reference, problem=problem, nearest=nearest))


def _moved(
    typer: Expressions, node: ast.Index, value: Ref, at: Instant, ctx: Context
) -> Expr | None:
    """The value at `at`, unless that lies in the future (W4)."""
    if at.lag < 0 and not _may_look_ahead(typer, value.name, at, ctx):
        reference = "".join(node.span.text.split())
        typer.add(Future(node.span, reference=reference, past=f"{value.name}[i-1]"))
        return None
    return Ref(value.name, value.over, value.kind, value.when, at)


def _may_look_ahead(typer: Expressions, name: str, at: Now | Bound, ctx: Context) -> bool:
    if isinstance(at, Bound):
        return at.var in ctx.clock.ahead
    state = typer.scope.states.get(name)
    return ctx.backward or (state is not None and state.backward)
