"""Heads that processes may share out: an axis of a mixer along which nothing is mixed.

The functional form of a mixer is right for any number of heads. Where no definition sums over them,
renames them or reads how many there are, a mixer of some of the heads gives their part of the
output, so each process may have some.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dsfc.diagnostics.catalogue import NoTensorParallel
from dsfc.diagnostics.report import DiagnosticError
from dsfc.expr.build import walk
from dsfc.expr.declarations import Tensor
from dsfc.expr.tree import Axis, Expr, Iota, Map, Ones, Param, Reduce, Ref, Size, argument_names
from dsfc.plan.ir import Plan
from dsfc.source import NOWHERE, Span


def head_axis(plan: Plan) -> Axis | None:
    """Returns the axis of heads that is declared first; None where there is none."""
    return next((d.axis for d in plan.axes if d.axis.heads), None)


def independent_heads(plan: Plan, mapped: Iterable[Tensor | None], span: Span | None) -> Axis:
    """Returns the axis of heads that processes may share out.

    Args:
        plan: of the mixer inside a layer.
        mapped: its inputs that linear maps of the layer give, and None for the layer's own.
        span: where the text names the mixer.

    Raises:
        DiagnosticError: E-TENSOR-PARALLEL: there are no heads, they are mixed, or an input has them
            where no rows of its map are those of some heads.
    """

    def refuse(problem: str) -> DiagnosticError:
        return DiagnosticError(
            (NoTensorParallel(span or NOWHERE, mixer=plan.name, problem=problem),)
        )

    heads = head_axis(plan)
    if heads is None:
        raise refuse("no axis is declared as `heads`")
    for d in plan.reference:
        why = next(_mixing(d.value, heads), None)
        if why is not None:
            raise refuse(f"`{d.name}` {why}")
    if heads not in plan.array(plan.output).axes:
        raise refuse(f"its output has no axis {heads.name}")
    for t, given in zip(plan.inputs, mapped, strict=True):
        if heads not in t.axes:
            continue
        if given is None:
            raise refuse(f"its input {t.name}, which is the layer's own, lies along {heads.name}")
        if t.axes[0] != heads:
            raise refuse(f"its input {t.name} has {t.axes[0].name} in front of {heads.name}")
    return heads


def _mixing(value: Expr, heads: Axis) -> Iterator[str]:
    """Yields how a value mixes heads, a clause each."""
    for e in walk(value):
        match e:
            case Ones(over=along) | Param(over=along) | Ref(over=along):
                axes: tuple[Axis, ...] = ()
            case Map(map=m):
                axes, along = m.source, frozenset((*m.each, *m.target))
            case _:
                axes, along = tuple(_named(e)), frozenset()
        if any(a == heads or a.copy_of == heads.name for a in axes):
            yield _told(e, heads)
        elif any(a.copy_of == heads.name for a in along):
            yield f"has {heads.name} twice"


def _named(e: Expr) -> Iterator[Axis]:
    """Yields the axes that a node itself names."""
    for name in argument_names(type(e)):
        value = getattr(e, name)
        values = value if isinstance(value, tuple | frozenset) else (value,)
        yield from (x for x in values if isinstance(x, Axis))


def _told(e: Expr, heads: Axis) -> str:
    match e:
        case Map(map=m):
            return f"sums over {heads.name} by {m.name}"
        case Reduce(how=how):
            return f"takes the {how.value} over {heads.name}"
        case Size():
            return f"reads how many {heads.name} there are"
        case Iota():
            return f"counts along {heads.name}"
    return f"is not computed for each {heads.name} alone"
