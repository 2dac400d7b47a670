"""Which Systems are stored over a running maximum: those whose weights have no upper bound."""

from __future__ import annotations

from dsfc.expr.interval import INF
from dsfc.expr.tree import Expr, Time
from dsfc.structure.bounds import Ranges, ranges_of
from dsfc.system.ir import System
from dsfc.transform.running_max import running_max_gauge


def stabilised(system: System) -> System:
    """Returns the System as it is computed: ratios of unbounded exponential weights kept finite.

    Numerator and denominator of a ratio whose drives share a factor exp(x), x real and without an
    upper bound, are stored over e^m with m their running maximum
    (`dsfc.transform.running_max`). A System without such a ratio is returned as it is.
    """
    return running_max_gauge(system, bounds(system))[0]


def bounds(system: System) -> Bounds:
    """Returns what intervals say of the exponents and decays of a System."""
    return Bounds(ranges_of(system))


class Bounds:
    """Says of exponents whether they have a bound, and of decays whether they have a logarithm.

    Definitions are inlined in all expressions that it is given.
    """

    def __init__(self, ranges: Ranges) -> None:
        """Takes ranges of leaves."""
        self._ranges = ranges

    def unbounded(self, exponent: Expr) -> bool:
        """Returns whether an exponent varies with the tokens and has no upper bound."""
        return exponent.time is not Time.CONST and self._ranges.of(exponent).high == INF

    def positive(self, decay: Expr) -> bool:
        """Returns whether a decay is above 0 for all tokens and parameters."""
        values = self._ranges.of(decay)
        return values.low > 0 or (values.low == 0 and values.open_low)
