"""Typing rules T3–T9: what each product, sum and map asks of the axes of its operands.

Each rule takes operands that are well typed and returns the expression, or reports why there is
none and returns None.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from dsfc.diagnostics.catalogue import (
    ComplexValue,
    ShapeAdd,
    ShapeDiv,
    ShapeDot,
    ShapeMap,
    ShapeMul,
    ShapeOuter,
    ShapeSum,
)
from dsfc.diagnostics.report import Diagnostic, braces
from dsfc.expr.build import MINUS_ONE, div, mul, power
from dsfc.expr.tree import Axis, Expr, Field, LinearMap, Map, Reduce, Reduction, Rename
from dsfc.mixer.times import lag_product, lag_sum
from dsfc.source import Span

_CLIP = 40


class Reports(Protocol):
    """What takes diagnostics: a `Reporter`, or something that filters for one."""

    def add(self, *problems: Diagnostic) -> None:
        """Takes note of problems."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A typed operand with the place it is written at."""

    value: Expr
    span: Span

    @property
    def axes(self) -> frozenset[Axis]:
        """Axes of the value."""
        return self.value.axes

    @property
    def shown(self) -> str:
        """Axes of the value as messages print them."""
        return named(self.axes)

    @property
    def text(self) -> str:
        """Spelling in the source, on one line and cut to a readable length."""
        text = " ".join(self.span.text.split())
        return text if len(text) <= _CLIP else text[: _CLIP - 1] + "…"

    def with_value(self, value: Expr, until: Operand) -> Operand:
        """Returns the operand that a chain read from the left has become."""
        return Operand(value, self.span.to(until.span))


def named(axes: Iterable[Axis]) -> str:
    """Returns a set of axes as messages print it: `{h,n}`, in canonical order."""
    return braces(a.name for a in sorted(axes))


def _compatible(left: frozenset[Axis], right: frozenset[Axis]) -> bool:
    return left >= right or right >= left


def added(left: Operand, right: Operand, minus: bool, reporter: Reports) -> Expr | None:
    """T3: `+` needs equal axes, or one side without axes."""
    if left.axes and right.axes and left.axes != right.axes:
        reporter.add(ShapeAdd(left.span.to(right.span), left=left.shown, right=right.shown))
        return None
    return lag_sum(left.value, negated(right.value) if minus else right.value)


def negated(value: Expr) -> Expr:
    """Unary minus, which keeps a lag a lag."""
    return lag_product(MINUS_ONE, value)


def multiplied(left: Operand, right: Operand, reporter: Reports) -> Expr | None:
    """T4: `*` needs the axes of one side to contain those of the other."""
    if not _compatible(left.axes, right.axes):
        _refuse_product(left, right, reporter)
        return None
    return lag_product(left.value, right.value)


def _refuse_product(left: Operand, right: Operand, reporter: Reports) -> None:
    reporter.add(
        ShapeMul(
            left.span.to(right.span),
            left=left.text,
            left_axes=left.shown,
            right=right.text,
            right_axes=right.shown,
        )
    )


def products(left: Operand, right: Operand | None) -> str:
    """Returns the products that two operands can have, for a message: the likeliest first."""
    if right is None:
        return "`*`, `·` or `⊗`"
    shared = {a for a in left.axes & right.axes if not a.heads}
    if len(shared) == 1:
        return f"`·`, which sums over `{min(shared).name}`, or `*`, which does not"
    return "`*`" if _compatible(left.axes, right.axes) else "`⊗`"


def divided(left: Operand, right: Operand, reporter: Reports) -> Expr | None:
    """T9: the divisor's axes are among the dividend's; a dividend without axes goes with any."""
    span = left.span.to(right.span)
    if left.axes and not right.axes <= left.axes:
        reporter.add(ShapeDiv(span, left_axes=left.shown, right_axes=right.shown))
        return None
    return div(left.value, right.value)


def power_shape(base: Operand, exponent: Operand, reporter: Reports) -> Expr | None:
    """`^`, elementwise: the axes of one side contain those of the other."""
    if not _compatible(base.axes, exponent.axes):
        _refuse_product(base, exponent, reporter)
        return None
    return power(base.value, exponent.value)


def outer(left: Operand, right: Operand, reporter: Reports) -> Expr | None:
    """T5: `⊗` may share `heads` axes only."""
    shared = frozenset(a for a in left.axes & right.axes if not a.heads)
    if shared:
        hint = _heads_hint(left, right, shared)
        reporter.add(ShapeOuter(left.span.to(right.span), shared=named(shared), hint=hint))
        return None
    return mul(left.value, right.value)


def contracted(left: Operand, right: Operand, reporter: Reports) -> Expr | None:
    """T6: `·` contracts the one shared axis that is not a `heads` axis."""
    shared = frozenset(a for a in left.axes & right.axes if not a.heads)
    if len(shared) != 1:
        reporter.add(
            ShapeDot(
                left.span.to(right.span),
                left_axes=left.shown,
                right_axes=right.shown,
                shared=named(shared) if shared else "none",
                hint=_heads_hint(left, right, shared) if len(shared) > 1 else None,
            )
        )
        return None
    (axis,) = shared
    return Reduce(Reduction.SUM, axis, mul(left.value, right.value))


def _heads_hint(left: Operand, right: Operand, shared: frozenset[Axis]) -> str | None:
    """What may be meant where both sides have more axes than those that are in the way."""
    if left.axes == right.axes or any(a.heads for a in left.axes | right.axes):
        return None
    names = " or ".join(f"`{a.name}`" for a in sorted(shared))
    return f"if {names} counts heads, declare it so, `dims heads …`: `⊗` and `·` pass over heads"


def mapped(map: LinearMap, arg: Operand, span: Span, reporter: Reports) -> Expr | None:
    """T7: the value has all axes a map takes, and none that it brings in."""
    if not fits_map(map.each, map.source, map.target, arg.axes):
        takes = (*map.each, *map.source)
        reporter.add(ShapeMap(span, map=map.name, takes=named(takes), got=arg.shown))
        return None
    return Map(map, arg.value)


def fits_map(
    each: Iterable[Axis], source: Iterable[Axis], target: Iterable[Axis], axes: frozenset[Axis]
) -> bool:
    """Whether a map applies to a value with these axes."""
    taken = frozenset(source)
    kept = axes - taken
    return taken <= axes and frozenset(each) <= kept and not kept & frozenset(target)


def reduced(how: Reduction, axis: Axis, arg: Operand, reporter: Reports) -> Expr | None:
    """T9: a reduction runs over an axis that the value has."""
    if not has_axis(axis, arg, reporter):
        return None
    if how is Reduction.MAX and arg.value.field is Field.COMPLEX:
        problem = f"`max` takes real values, but `{arg.text}` is complex"
        reporter.add(ComplexValue(arg.span, problem=problem))
        return None
    return Reduce(how, axis, arg.value)


def has_axis(axis: Axis, arg: Operand, reporter: Reports) -> bool:
    """T9: whether the value has the axis; reports if it does not."""
    if axis in arg.axes:
        return True
    reporter.add(ShapeSum(arg.span, operand=arg.text, axis=axis.name, axes=arg.shown))
    return False


def renamed_axis(old: Axis, new: Axis, arg: Operand, reporter: Reports) -> Expr | None:
    """`rename[old, new](x)`: x has `old` and lacks `new`."""
    if not has_axis(old, arg, reporter):
        return None
    if new in arg.axes:
        takes = f"values without {named((new,))}"
        reporter.add(ShapeMap(arg.span, map="rename", takes=takes, got=arg.shown))
        return None
    return Rename(old, new, arg.value)
