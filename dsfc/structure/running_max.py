"""Which Systems are stored over a running maximum: those whose weights have no upper bound."""

from __future__ import annotations

from dsfc.primitives.expr import Expr, Time
from dsfc.primitives.interval import INF
from dsfc.structure.bounds import Ranges, constraints_of, nonzero_of
from dsfc.system.ir import System
from dsfc.transform.running_max import running_max_gauge


def stabilised(system: System) -> System:
    """Returns the System as it is computed: ratios of unbounded exponential weights kept finite.

    Numerator and denominator of a ratio whose drives share a factor exp(x), x real and without an
    upper bound, are stored over e^m with m their running maximum
    (`dsfc.transform.running_max`). A System without such a ratio is returned as it is.
    """
    return running_max_gauge(system, unbounded(system))[0]


def unbounded(system: System) -> Unbounded:
    """Returns the test whether an exponent of a System has no upper bound."""
    return Unbounded(Ranges(constraints_of(system), nonzero_of(system)))


class Unbounded:
    """Whether an exponent varies with the tokens and has no upper bound."""

    def __init__(self, ranges: Ranges) -> None:
        """Takes ranges of leaves."""
        self._ranges = ranges

    def __call__(self, exponent: Expr) -> bool:
        """Returns whether it has none.

        Args:
            exponent: with definitions inlined.
        """
        return exponent.time is not Time.CONST and self._ranges.of(exponent).high == INF
