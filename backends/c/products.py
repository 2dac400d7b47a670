"""Products of matrices in C: calls of `dot`, in place of a sum where they are added to one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dsfc.kernel_ir.ir import Axis, Dot, Part, Triangle

from .memory import Memory, Place
from .schedule import Addition, is_lower
from .text import Text, size


class Products:
    """Prints the products of one kernel."""

    def __init__(self, memory: Memory, text: Text) -> None:
        self._memory = memory
        self._text = text

    def add(self, name: str, addition: Addition, dying: set[str]) -> None:
        """Prints a sum that a product is added to, in place of the sum's base if that dies here."""
        base = addition.base
        place = self._memory.places[base]
        root = self._memory.root(base)
        target = self._memory.target_of(name)
        own = (
            root in dying
            and root in self._memory.held
            and place.pointer == f"slot_{self._memory.held[root]}"
        )
        if target is not None and place.pointer == target:
            self._memory.places[name] = place
        elif own and target is None:
            self._memory.held[name] = self._memory.held.pop(root)
            self._memory.places[name] = place
        else:
            to = self._memory.new(name)
            axes = self._memory.ordered(self._memory.schedule.types[name].axes)
            with self._text.loops(axes) as indices:
                self._text.line(f"{to.entry(indices)} = {self._memory.use(base, indices)};")
        to = self._memory.places[name]
        back = {new: old for old, new in addition.renames[::-1]}
        strides = {back.get(a, a): n for a, n in to.strides.items()}
        dot = self._memory.schedule.operations[addition.dot]
        assert isinstance(dot, Dot)
        self.dot(Place(to.pointer, strides), dot, True)

    def dot(self, to: Place, dot: Dot, accumulate: bool) -> None:
        """Prints a product of matrices.

        Args:
            to: where the result lies.
            dot: the product.
            accumulate: whether it is added to what lies there.
        """
        left, right = self._memory.places[dot.left], self._memory.places[dot.right]
        left_part, right_part = dot.left_part, dot.right_part
        axes = self._memory.ordered(tuple(to.strides))
        row = axes[0] if len(axes) == 2 else None
        column = axes[-1]
        if (row is not None and row not in left.strides) or column not in right.strides:
            left, right, left_part, right_part = right, left, right_part, left_part
        name = dot.left if left is self._memory.places[dot.left] else dot.right
        assert right_part is None and column in right.strides
        assert left.strides.keys() & right.strides.keys() == {dot.over}, "a batch of products"
        for part in (dot.out, left_part):
            if part is not None and part.block is not None:
                self._blocks(to, dot, left, right, row, column, part, accumulate)
                return
        terms = "ALL_TERMS"
        if left_part is not None:
            assert is_lower(name, self._memory.schedule.operations), name
            terms = "TERMS_UP_TO_ROW" if left_part.row == row else "TERMS_FROM_ROW"
        elif dot.out is not None and dot.out.row == row:
            terms = "COLUMNS_UP_TO_ROW"
        self._call_dot(to, left, right, row, column, dot.over, {}, {}, accumulate, terms)
        if dot.out is not None:
            strict = int(dot.out.part is Part.STRICTLY_LOWER)
            assert row is not None and dot.out.row == row
            sizes = f"{size(row)}, {size(column)}"
            self._text.line(f"keep_lower({sizes}, {to.pointer}, {to.strides[row]}, {strict});")

    def _call_dot(
        self,
        to: Place,
        left: Place,
        right: Place,
        row: Axis | None,
        column: Axis,
        over: Axis,
        starts: dict[Axis, str],
        sizes: dict[Axis, str],
        accumulate: bool,
        terms: str,
    ) -> None:
        def count(a: Axis) -> str:
            return sizes.get(a, size(a))

        m = "1" if row is None else count(row)
        a_row = "0" if row is None else left.strides[row]
        c_row = "0" if row is None else to.strides[row]
        self._text.line(
            f"dot({m}, {count(column)}, {count(over)}, {left.at(starts)}, {a_row}, "
            f"{left.strides[over]}, {right.at(starts)}, {right.strides[over]}, "
            f"{right.strides[column]}, {to.at(starts)}, {c_row}, {int(accumulate)}, {terms});"
        )

    @contextmanager
    def _each_block(self, triangle: Triangle) -> Iterator[tuple[dict[Axis, str], dict[Axis, str]]]:
        """Loops over blocks: their starts, and their sizes."""
        block = triangle.block
        tokens = triangle.row.size
        assert isinstance(tokens, int) and isinstance(block, int)
        with self._text.block(f"for (int64_t at = 0; at < {tokens}; at += {2 * block})"):
            starts = {triangle.row: f"(at + {block})", triangle.column: "at"}
            yield starts, dict.fromkeys(starts, str(block))

    def _blocks(
        self,
        to: Place,
        dot: Dot,
        left: Place,
        right: Place,
        row: Axis | None,
        column: Axis,
        part: Triangle,
        accumulate: bool,
    ) -> None:
        """Multiplies block by block what a part of the result, or of the left operand, holds."""
        if not accumulate:
            self._zero(to)
        with self._each_block(part) as (starts, sizes):
            self._call_dot(to, left, right, row, column, dot.over, starts, sizes, True, "ALL_TERMS")

    def _zero(self, to: Place) -> None:
        axes = self._memory.ordered(tuple(to.strides))
        with self._text.loops(axes) as indices:
            self._text.line(f"{to.entry(indices)} = 0;")
