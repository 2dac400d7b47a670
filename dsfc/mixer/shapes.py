"""Typing rules T3–T9: what each product, sum and map asks of the axes of its operands.

Each rule takes operands that are well typed and returns the expression, or reports why there is
none and returns None.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

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
from dsfc.expr.build import MINUS_ONE, div, mul, power, walk
from dsfc.expr.tree import (
    Axis,
    Expr,
    Field,
    LinearMap,
    Map,
    Mul,
    Param,
    Reduce,
    Reduction,
    Ref,
    Rename,
)
from dsfc.mixer.times import lag_product, lag_sum
from dsfc.source import Span

if TYPE_CHECKING:
    from dsfc.mixer.scope import State

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


def added(
    left: Operand, right: Operand, minus: bool, state: State | None, reporter: Reports
) -> Expr | None:
    """T3: `+` needs equal axes, or one side without axes; `state` is the one that is updated."""
    if left.axes and right.axes and left.axes != right.axes:
        way, span = _way_to_add(left, right, state), left.span.to(right.span)
        reporter.add(ShapeAdd(span, left=left.shown, right=right.shown, repair=way))
        return None
    return lag_sum(left.value, negated(right.value) if minus else right.value)


def _way_to_add(left: Operand, right: Operand, state: State | None) -> str:
    small, large = sorted((left, right), key=lambda side: len(side.axes))
    lacking = (right.axes - left.axes, left.axes - right.axes)
    if state is not None and frozenset(state.axes) < large.axes and _reads(small, state.name):
        return f"declare `state {state.name} : {product_of(large.axes)}`"
    for side, lacks in zip((left, right), lacking, strict=True):
        summed = _summed_over(side.value) & lacks
        if summed and "·" in side.text:
            return f"`·` has summed over `{min(summed).name}`; the elementwise product is `*`"
    ways = (f"`⊗ ones[{', '.join(a.name for a in sorted(axes))}]`" for axes in lacking if axes)
    return f"broadcast with {' and '.join(ways)}"


def _reads(operand: Operand, state: str) -> bool:
    return any(isinstance(part, Ref) and part.name == state for part in walk(operand.value))


def _summed_over(value: Expr) -> frozenset[Axis]:
    factors = value.args if isinstance(value, Mul) else (value,)
    return frozenset(f.axis for f in factors if isinstance(f, Reduce))


def product_of(axes: Iterable[Axis]) -> str:
    """Returns axes as a shape is written: `h × n`."""
    return " × ".join(axis.name for axis in sorted(axes))


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
            instead=_summed_before(left, right),
        )
    )


def _summed_before(left: Operand, right: Operand) -> str:
    """Where two factors on the left share an axis that the right lacks: they may be contracted."""
    factors = left.value.args if isinstance(left.value, Mul) else ()
    extra = sorted(a for a in left.axes - right.axes if not a.heads)
    axis = next((a for a in extra if sum(a in f.axes for f in factors) > 1), None)
    return "" if axis is None else f", and to sum over `{axis.name}` before `·`"


ANY_PRODUCT = "; for a product write `*`, `·` or `⊗`"
"""How to write a product of values whose axes are not known."""


def product(left: Operand, right: Operand | None) -> str:
    """Returns how to write the product of two values, or a map that was declared as an array."""
    if right is None:
        return ANY_PRODUCT
    way = f"; for a product write {products(left, right)}"
    rest = left.axes - right.axes
    whole = not left.axes or right.axes <= left.axes
    if not isinstance(left.value, Param) or not right.axes or not whole:
        return way
    shape = f"{product_of(right.axes)} -> {product_of(rest) or '…'}"
    return f"{way}; for a map declare `{left.text} : {shape}`"


def products(left: Operand, right: Operand) -> str:
    """Returns the products that two operands can have, for a message: the likeliest first."""
    shared = {a for a in left.axes & right.axes if not a.heads}
    if len(shared) == 1 and left.axes == right.axes:
        return f"`*`, or `·`, which sums over `{min(shared).name}`"
    if len(shared) == 1:
        return f"`·`, which sums over `{min(shared).name}`, or `*`, which does not"
    if len(shared) > 1:
        sums = f"`sum[{max(shared).name}]({left.text} * {right.text})`"
        return f"`*`, and to sum over an axis {sums}"
    return "`*`" if _compatible(left.axes, right.axes) else "`⊗`"


def divided(left: Operand, right: Operand, reporter: Reports) -> Expr | None:
    """T9: the divisor's axes are among the dividend's; a dividend without axes goes with any."""
    span = left.span.to(right.span)
    if left.axes and not right.axes <= left.axes:
        axis = min(right.axes - left.axes).name
        way = f"sum over `{axis}` before, with `·` or `sum[{axis}](…)`"
        problem = ShapeDiv(span, left_axes=left.shown, right_axes=right.shown, repair=way)
        reporter.add(problem)
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
        heads = _heads_hint(left, right, shared)
        way = f"write {products(left, right)}"
        if left.text == right.text:
            way = f"apply one after the other, as in `{left.text} ⊗ ({left.text} · S[i-1])`"
        span = left.span.to(right.span)
        reporter.add(ShapeOuter(span, shared=named(shared), repair=f"{way}{heads}"))
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
                repair=_number_or_product(left, right)
                + (_heads_hint(left, right, shared) if len(shared) > 1 else ""),
            )
        )
        return None
    (axis,) = shared
    return Reduce(Reduction.SUM, axis, mul(left.value, right.value))


def _number_or_product(left: Operand, right: Operand) -> str:
    """The repair of a contraction: a point behind a number may belong to it, as in `1. - a`."""
    way = f"write {products(left, right)}"
    return f"{way}, or `{left.text}.0` for the number" if left.text.isdecimal() else way


def _heads_hint(left: Operand, right: Operand, shared: frozenset[Axis]) -> str:
    """What may be meant where both sides have more axes than those that are in the way."""
    if left.axes == right.axes or any(a.heads for a in left.axes | right.axes):
        return ""
    names = " or ".join(f"`{a.name}`" for a in sorted(shared))
    return f"; if {names} counts heads, declare it so, `dims heads {min(shared).name}`"


def mapped(map: LinearMap, arg: Operand, span: Span, reporter: Reports) -> Expr | None:
    """T7: the value has all axes a map takes, and none that it brings in."""
    if not fits_map(map.each, map.source, map.target, arg.axes):
        takes = named((*map.each, *map.source))
        way = _way_to_map(map, arg)
        reporter.add(ShapeMap(span, map=map.name, takes=takes, got=arg.shown, instead=way))
        return None
    return Map(map, arg.value)


def _way_to_map(map: LinearMap, arg: Operand) -> str:
    """What to declare otherwise, where that is clear; empty elsewhere."""
    source, target = product_of(map.source), product_of(map.target)
    if not arg.axes and isinstance(arg.value, Ref | Param):
        return f"; declare `{arg.text} : {source}`"
    if frozenset(map.target) <= arg.axes and not frozenset(map.source) <= arg.axes:
        return f"; if it runs the other way, declare `{map.name} : {target} -> {source}`"
    return ""


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
