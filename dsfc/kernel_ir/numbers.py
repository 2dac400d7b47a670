"""What the entries of tiles are, where a kernel is run with NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dsfc.expr.evaluate import FLOAT64, Algebra
from dsfc.expr.table import Primitive

Array = NDArray[Any]


class Numbers(Algebra, Protocol):
    """Entries that a kernel computes with."""

    @property
    def dtype(self) -> Any:  # noqa: ANN401 - whatever NumPy takes
        """The dtype of arrays."""

    def solved(self, row: Array) -> Array:
        """Returns a row of what a triangular system is solved for, as it is found."""


@dataclass(frozen=True, slots=True)
class Floats:
    """Floating point numbers.

    Attributes:
        dtype: of all computing.
    """

    dtype: Any = np.float64

    def number(self, value: Fraction) -> float:
        """Returns the nearest double."""
        return FLOAT64.number(value)

    def apply(self, row: Primitive, args: tuple[Array, ...], axis: int | None) -> Array:
        """Applies the NumPy function of a primitive."""
        return FLOAT64.apply(row, args, axis)

    def solved(self, row: Array) -> Array:
        """Returns the row itself."""
        return row


DOUBLES = Floats()
