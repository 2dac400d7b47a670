"""Sums and products of the entries so far along an axis, in C."""

from __future__ import annotations

from dsfc.kernel_ir.ir import Between, Cumulate

from .memory import Memory
from .text import Text, size


class Cumulative:
    """Prints the cumulative sums and products of one kernel."""

    def __init__(self, memory: Memory, text: Text) -> None:
        self._memory = memory
        self._text = text

    def cumulate(self, name: str, c: Cumulate) -> None:
        """Prints the sums or products of the entries so far."""
        axes = self._memory.ordered(self._memory.schedule.types[name].axes)
        rest = tuple(a for a in axes if a != c.axis)
        to = self._memory.new(name)
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
                            own = self._memory.use(c.operand, {**inner, **before})
                            value = neutral if start else f"{so_far} {operator} {own}"
                        else:
                            own = self._memory.use(c.operand, {**inner, **now})
                            value = own if start else f"{so_far} {operator} {own}"
                        self._text.line(f"{to.entry({**inner, **now})} = {value};")

    def between(self, name: str, b: Between) -> None:
        """Prints the products over what lies between two entries."""
        to, x = self._memory.new(name), self._memory.places[b.operand]
        count, last = size(b.to), int(b.exclusive)
        assert self._memory.ordered(self._memory.schedule.types[name].axes) == (b.to, b.since)
        rows = f"{to.pointer}, {to.strides[b.to]}"
        self._text.line(f"between({count}, {x.pointer}, {x.strides[b.axis]}, {rows}, {last});")
