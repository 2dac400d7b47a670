"""Sums over axes and over time, and running products."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from dsfc.diagnostics.catalogue import NameClash, Unsupported
from dsfc.expr.build import mul, ones
from dsfc.expr.over_time import Past, Relation, Run
from dsfc.expr.reserved_names import TIME
from dsfc.expr.tree import Bound, Expr, Reduction
from dsfc.mixer import shapes
from dsfc.mixer.arguments import count, wrong
from dsfc.mixer.context import Context
from dsfc.mixer.indices import axes_of
from dsfc.mixer.times import Clock, Instant, at_lag, lag_to, run_head, shifted, sum_head
from dsfc.syntax import ast

if TYPE_CHECKING:
    from dsfc.mixer.expressions import Expressions

_WINDOW = (
    "a sum over a window of tokens; sum over all of them, `sum[j ≤ i](m(i - j) * …)` with "
    "`m(l) = max(min(w - l, 1), 0)` for a window of w, or filter by weights: `fir[w](ones[w], v)`"
)


def reduction(how: Reduction, typer: Expressions, node: ast.Call, ctx: Context) -> Expr | None:
    """`sum[n](x)`, `mean[n](x)`, `max[n](x)`; several axes are reduced one after the other."""
    inner = _with_indices(typer, node, ctx)
    arg = typer.operand(node.args[0], inner)
    name = node.name.text
    if not node.brackets:
        along = () if arg is None else sorted(arg.axes)
        calls = " or ".join(f"`{name}[{axis.name}](…)`" for axis in along) or f"`{name}[n](…)`"
        tokens = ", or tokens, `sum[j ≤ i](…)`" if name == "sum" else ""
        wrong(typer, node, f"needs an axis in brackets, {calls}{tokens}")
        return None
    if not count(typer, node, 1):
        return None
    if inner is not ctx:
        wrong(
            typer, node, f"over tokens needs a bound: `{name}[{node.brackets[0].span.text} ≤ i](…)`"
        )
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


def _with_indices(typer: Expressions, node: ast.Call, ctx: Context) -> Context:
    """The context with the words that the argument uses as indices of tokens, unbound, as such.

    A sum that says not over what is one mistake, and not as many as there are indices in it.
    """
    if node.name.text != "sum":
        return ctx
    scope = typer.scope
    words = {
        part.id
        for indexed in ast.walk(node.args[0])
        if isinstance(indexed, ast.Index)
        for bracket in indexed.brackets
        for part in ast.walk(bracket)
        if isinstance(part, ast.Name)
    } - {TIME, *ctx.args, *ctx.clock.vars, *scope.axes}
    bound = {
        part.id
        for relation in ast.walk(node.args[0])
        if isinstance(relation, ast.Relation)
        for part in ast.walk(relation)
        if isinstance(part, ast.Name)
    }
    words = {word for word in words - bound if not scope.program.taken(word)}
    named = {bracket.id for bracket in node.brackets if isinstance(bracket, ast.Name)}
    if not words or (node.brackets and not words & named):
        return ctx
    clock = Clock({**ctx.clock.vars, **{word: word for word in words}}, ctx.clock.ahead)
    return replace(ctx, clock=clock, taken=ctx.taken | words)


def summed(typer: Expressions, node: ast.Call, ctx: Context) -> Expr | None:
    """`sum[n](x)` over an axis, or `sum[j ≤ i](x)` over time."""
    if any(isinstance(bracket, ast.Relation) for bracket in node.brackets):
        return _over_time(typer, node, ctx)
    return reduction(Reduction.SUM, typer, node, ctx)


def _over_time(typer: Expressions, node: ast.Call, ctx: Context) -> Expr | None:
    if not typer.may_read_time("has a sum over tokens", node.span, ctx):
        return None
    if len(node.brackets) != 1:
        if _is_window(node):
            span = node.brackets[0].span.to(node.brackets[-1].span)
            typer.add(Unsupported(span, what=_WINDOW))
            return None
        wrong(typer, node, "takes one relation in brackets: `sum[j ≤ i](…)`")
        return None
    (relation,) = node.brackets
    assert isinstance(relation, ast.Relation)
    head = sum_head(relation, ctx.clock)
    if head is None:
        if len(relation.operators) > 1:
            typer.add(Unsupported(relation.span, what=_WINDOW))
        else:
            wrong(typer, node, "takes a new index and its bound: `sum[j ≤ i](…)`")
        return None
    outer = typer.instant(head.outer, ctx)
    if outer is None:
        said = f"runs over tokens, the present one is `i`: `sum[{head.word} ≤ i](…)`"
        if head.relation is not Relation.UP_TO or not isinstance(head.outer, ast.Name):
            said = f"{said}, with `i - {head.word}` for the lag"
        if isinstance(head.outer, ast.Name) and head.outer.id in typer.scope.axes:
            filtered = f"`fir[{head.outer.span.text}](w, v)`"
            said = f"runs over tokens; weights of the last tokens along an axis are {filtered}"
        wrong(typer, node, said)
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


def _is_window(node: ast.Call) -> bool:
    """Whether the brackets bound one index from two sides: `sum[j ≤ i, j > i - 8](…)`."""
    words = [
        {part.id for part in bracket.operands if isinstance(part, ast.Name)} - {TIME}
        for bracket in node.brackets
        if isinstance(bracket, ast.Relation)
    ]
    return len(words) == len(node.brackets) and bool(set.intersection(*words))


def _bind(
    typer: Expressions,
    word: str,
    place: ast.Condition,
    ctx: Context,
    relation: Relation | None,
) -> Context | None:
    """The context inside a sum or product over time; its index has a name of its own."""
    if word in typer.scope.axes or typer.scope.program.taken(word) or word in (TIME, *ctx.args):
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


def running_product(typer: Expressions, node: ast.Call, ctx: Context) -> Expr | None:
    """`prod[j < l ≤ i](a[l])`."""
    if not typer.may_read_time("has a product over tokens", node.span, ctx):
        return None
    relation = node.brackets[0] if len(node.brackets) == 1 else None
    head = run_head(relation) if isinstance(relation, ast.Relation) else None
    if head is None or relation is None:
        wrong(typer, node, "takes two bounds in brackets: `prod[j < l ≤ i](…)`")
        return None
    low = typer.instant(head.low, ctx)
    high = typer.instant(head.high, ctx)
    if low is None or high is None:
        wrong(typer, node, "must be bounded by `i` or indices of enclosing sums")
        return None
    low, high = shifted(low, head.low_shift), shifted(high, head.high_shift)
    inner = _bind(typer, head.word, relation, ctx, None)
    if inner is None or not count(typer, node, 1):
        return None
    if at_lag(low, 0) == at_lag(high, 0):
        tokens = [at_lag(high, lag) for lag in range(high.lag, low.lag)]
        return _window(typer, node, ctx, head.word, tokens or [high], empty=not tokens)
    arg = typer.type(node.args[0], inner)
    if arg is None:
        return None
    var = inner.clock.vars[head.word]
    return Run(var, low, high, arg)


def _window(
    typer: Expressions,
    node: ast.Call,
    ctx: Context,
    word: str,
    tokens: list[Instant],
    empty: bool,
) -> Expr | None:
    """A product over as many tokens wherever it stands: the product of its factors there.

    Args:
        typer: types expressions.
        node: the product.
        ctx: where it stands.
        word: its index.
        tokens: the tokens of the window, or, for an empty one, any: it gives the product its axes.
        empty: whether the window is empty.
    """
    factors: list[Expr] = []
    for token in tokens:
        args = MappingProxyType({**ctx.args, word: lag_to(token)})
        factor = typer.type(node.args[0], replace(ctx, args=args))
        if factor is None:
            return None
        factors.append(factor)
    return ones(factors[0].axes) if empty else mul(*factors)
