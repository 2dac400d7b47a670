"""Initialisers: `= value` and `~ value`, where draws may stand."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dsfc.diagnostics.catalogue import Initialiser
from dsfc.expr.build import rewrite, walk
from dsfc.expr.declarations import Init
from dsfc.expr.distributions import DISTRIBUTIONS
from dsfc.expr.tree import Axis, Draw, Expr, Field, Iota, Ones
from dsfc.mixer.context import Context
from dsfc.mixer.indices import axes_of
from dsfc.mixer.shapes import named
from dsfc.syntax import ast

if TYPE_CHECKING:
    from dsfc.mixer.expressions import Expressions


def initialiser(
    typer: Expressions, name: str, init: ast.Init, axes: tuple[Axis, ...], kind: Field
) -> Init | None:
    """Returns the typed initialiser of a declared tensor, None after a report.

    Args:
        typer: types expressions.
        name: the tensor.
        init: what is written.
        axes: axes of the tensor; for a map those it is stored with.
        kind: its field.
    """
    drawn = init.kind is ast.InitKind.DRAW
    over = frozenset(axes)
    ctx = Context(name, draws=over if drawn else None, constant=True)
    value = typer.type(init.expr, ctx)
    if value is None:
        return None
    problem = None
    if not value.axes <= over:
        problem = f"has axes {named(value.axes)}, but `{name}` has {named(over)}"
    elif len(axes) != len(over) and any(isinstance(n, Iota | Ones) for n in walk(value)):
        problem = "must be a number or a draw, because the map has one axis on both sides"
    elif value.field > kind:
        problem = f"is complex, but `{name}` is real"
    if problem is not None:
        typer.add(Initialiser(init.span, name=name, problem=problem))
        return None
    return Init(_numbered(value), drawn)


def _numbered(value: Expr) -> Expr:
    """Numbers the draws, told apart by their place in the text, in the order they are written."""
    places = sorted({e.number for e in walk(value) if isinstance(e, Draw)})
    return rewrite(
        value,
        lambda e: replace(e, number=places.index(e.number)) if isinstance(e, Draw) else None,
    )


def draw(typer: Expressions, node: ast.Call, ctx: Context) -> Expr | None:
    """Returns a random draw with the axes of the tensor it initialises, or a sequence along one."""
    row = DISTRIBUTIONS[node.name.text]
    args = [typer.type(arg, ctx) for arg in node.args]
    if ctx.draws is None:
        problem = f"draws from `{row.name}`; a draw follows `~`, not `=`"
        typer.add(Initialiser(node.span, name=ctx.owner, problem=problem))
        return None
    if len(args) != row.arity or (node.brackets and row.sequence is None):
        problem = f"must call `{row.name}` with {row.arity} numbers, not {len(args)}"
        typer.add(Initialiser(node.span, name=ctx.owner, problem=problem))
        return None
    over: frozenset[Axis] = ctx.draws
    if row.sequence is not None:
        along = axes_of(typer, node.brackets, row.name) if node.brackets else ()
        if along is None:
            return None
        if len(along) != 1:
            problem = f"must say along which axis `{row.name}` is: `{row.name}[n](…)`"
            typer.add(Initialiser(node.span, name=ctx.owner, problem=problem))
            return None
        over = frozenset(along)
    known = tuple(arg for arg in args if arg is not None)
    if len(known) != len(args):
        return None
    if any(arg.axes or arg.field is Field.COMPLEX for arg in known):
        problem = f"must give `{row.name}` real numbers without axes"
        typer.add(Initialiser(node.span, name=ctx.owner, problem=problem))
        return None
    return Draw(row.name, known, over, node.span.start)
