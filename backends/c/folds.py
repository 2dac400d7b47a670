"""Sums, products and maxima along an axis in C, and those of the entries so far."""

from __future__ import annotations

from dsfc.kernel_ir.ir import Axis, Between, Cumulate, Reduce

from .text import Text, size
from .values import Place, Values


class Folds:
    """Prints the reductions and the cumulative sums of one kernel."""

    def __init__(self, values: Values, text: Text) -> None:
        self._values = values
        self._text = text

    def reduce(self, name: str, reduce: Reduce) -> None:
        """Prints the sum, the product or the maximum along an axis."""
        x, axis = reduce.operand, reduce.axis
        axes = self._values.ordered(self._values.schedule.types[x].axes)
        start = {"sum": "0", "product": "1", "max": "-INFINITY"}[reduce.function]
        if len(axes) == 1:
            self._text.line(f"real {name} = {start};")
            self._values.places[name] = Place(name, {})
            self._fold(name, reduce, axes, {})
            return
        to = self._values.new(name)
        rest = tuple(a for a in axes if a != axis)
        if axis == axes[-1]:
            with self._text.loops(rest, simd=False) as indices:
                self._text.line(f"real {name}__so_far = {start};")
                self._fold(f"{name}__so_far", reduce, (axis,), indices)
                self._text.line(f"{to.entry(indices)} = {name}__so_far;")
            return
        with self._text.loops(rest) as indices:
            self._text.line(f"{to.entry(indices)} = {start};")
        with self._text.loops(axes) as indices:
            entry = to.entry(indices)
            self._text.line(_folded(reduce.function, entry, self._values.use(x, indices)))

    def _fold(
        self,
        so_far: str,
        reduce: Reduce,
        axes: tuple[Axis, ...],
        indices: dict[Axis, str],
    ) -> None:
        operator = {"sum": "+", "product": "*", "max": "max"}[reduce.function]
        with self._text.loops(axes, simd=f"reduction({operator} : {so_far})") as inner:
            x = self._values.use(reduce.operand, {**indices, **inner})
            self._text.line(_folded(reduce.function, so_far, x))

    def cumulate(self, name: str, c: Cumulate) -> None:
        """Prints the sums or products of the entries so far."""
        axes = self._values.ordered(self._values.schedule.types[name].axes)
        rest = tuple(a for a in axes if a != c.axis)
        to = self._values.new(name)
        count = c.axis.size
        assert isinstance(count, int)
        first, step = (count - 1, -1) if c.reverse else (0, 1)
        operator = "+" if c.function == "sum" else "*"
        neutral = "0" if c.function == "sum" else "1"
        i = f"i_{c.axis.name}"
        with self._text.block(
            f"for (int64_t i_ = 0, {i} = {first}; i_ < {count}; i_++, {i} += {step})"
        ):
            block = c.block or count
            starts = f"i_ % {block} == 0" if block < count else "i_ == 0"
            before = {c.axis: f"({i} - {step})"}
            now = {c.axis: i}
            for start in (True, False):
                with self._text.block(f"if ({starts})" if start else "else"):
                    with self._text.loops(rest) as inner:
                        so_far = to.entry({**inner, **before})
                        if c.exclusive:
                            own = self._values.use(c.operand, {**inner, **before})
                            value = neutral if start else f"{so_far} {operator} {own}"
                        else:
                            own = self._values.use(c.operand, {**inner, **now})
                            value = own if start else f"{so_far} {operator} {own}"
                        self._text.line(f"{to.entry({**inner, **now})} = {value};")

    def between(self, name: str, b: Between) -> None:
        """Prints the products over what lies between two entries."""
        to, x = self._values.new(name), self._values.places[b.operand]
        count, last = size(b.to), int(b.exclusive)
        assert self._values.ordered(self._values.schedule.types[name].axes) == (b.to, b.since)
        rows = f"{to.pointer}, {to.strides[b.to]}"
        self._text.line(f"between({count}, {x.pointer}, {x.strides[b.axis]}, {rows}, {last});")


def _folded(function: str, so_far: str, x: str) -> str:
    if function == "max":
        return f"{so_far} = real_max({so_far}, {x});"
    return f"{so_far} {'+' if function == 'sum' else '*'}= {x};"
