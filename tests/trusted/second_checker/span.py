"""What rows span over the field of all values."""

from __future__ import annotations

from collections.abc import Iterable

from second_checker.arithmetic import Ring, Value

Vector = dict[tuple[tuple[int, int], ...], Value]
"""Product of state entries, by places and exponents → coefficient."""


class Span:
    """What rows span, brought into echelon form by itself."""

    def __init__(self, ring: Ring, rows: Iterable[Vector]) -> None:
        self.ring = ring
        self.basis: list[tuple[tuple[tuple[int, int], ...], Vector]] = []
        for row in rows:
            self.grows(row)

    def grows(self, row: Vector) -> bool:
        """Adds a row; whether it was not there yet."""
        left = self._left(row)
        if left:
            self.basis.append((next(iter(left)), left))
        return bool(left)

    def holds(self, row: Vector) -> bool:
        return not self._left(row)

    def _left(self, row: Vector) -> Vector:
        left = {cells: v for cells, v in row.items() if v}
        for pivot, known in self.basis:
            if pivot in left:
                factor = left[pivot] / known[pivot]
                for cells, v in known.items():
                    left[cells] = left.get(cells, self.ring.zero) - factor * v
                left = {cells: v for cells, v in left.items() if v}
        return left
