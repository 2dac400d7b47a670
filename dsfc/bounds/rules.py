"""All rules that a chain of inequalities may use, by name and by what they bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from dsfc.bounds import gap_functions, gap_sums, gaps, means
from dsfc.bounds.form import Form
from dsfc.bounds.gaps import Premises
from dsfc.bounds.magnitudes import magnitude
from dsfc.bounds.pair import Bound, Gap, Get, Magnitude, Pair, Range, Ratio, Subject
from dsfc.bounds.ranges import range_of, state_range
from dsfc.expr.interval import Interval

Rule = Callable[[Subject, Pair, Get], Bound]
"""Returns what is true of a subject, if what `get` returns of others is.

Raises:
    Obstacle: the rule does not fit, or a premise has no bound.
"""


def _gap(rule: Callable[[Premises], Form]) -> Rule:
    def of(subject: Subject, pair: Pair, get: Get) -> Bound:
        assert isinstance(subject, Gap)
        return rule(Premises(subject, pair, get))

    return of


def _range(rule: Callable[[Range, Pair, Get], Interval]) -> Rule:
    def of(subject: Subject, pair: Pair, get: Get) -> Bound:
        assert isinstance(subject, Range)
        return rule(subject, pair, get)

    return of


def _ratio(rule: Callable[[Ratio, Pair, Get], Interval]) -> Rule:
    def of(subject: Subject, pair: Pair, get: Get) -> Bound:
        assert isinstance(subject, Ratio)
        return rule(subject, pair, get)

    return of


def _magnitude(subject: Subject, pair: Pair, get: Get) -> Bound:
    assert isinstance(subject, Magnitude)
    return magnitude(subject, pair, get)


_GAPS = (
    gaps.leaf, gaps.definition, gaps.inlined, gaps.state, gap_sums.sums, gaps.addition,
    gaps.product, means.mean, gaps.quotient, gap_functions.linear, gap_functions.primitive,
    gap_functions.largest_of, gap_functions.norm, gap_functions.powers, gap_functions.series,
    gap_sums.decay_powers, gaps.apart,
)  # fmt: skip
_RATIOS = (
    means.ratio_of_equal,
    means.ratio_of_exponentials,
    means.ratio_of_series,
    means.ratio_of_products,
    means.ratio_by_gap,
)
_RANGES = (state_range, range_of)


RULES: Mapping[type[Subject], Mapping[str, Rule]] = MappingProxyType({
    Gap: MappingProxyType({f.__name__: _gap(f) for f in _GAPS}),
    Ratio: MappingProxyType({f.__name__: _ratio(f) for f in _RATIOS}),
    Range: MappingProxyType({f.__name__: _range(f) for f in _RANGES}),
    Magnitude: MappingProxyType({"magnitude": _magnitude}),
})  # fmt: skip
"""What is bounded → name of a rule → rule."""

STATEMENTS: Mapping[str, str] = MappingProxyType(
    {f.__name__: (f.__doc__ or "").strip().partition("\n")[0] for f in (*_GAPS, *_RATIOS)}
    | {"magnitude": "|x y| = |x| |y|, and a sum over the past is at most the sum over all lags m."}
)
"""Name of a rule → its inequality."""
