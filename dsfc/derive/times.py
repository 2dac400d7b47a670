"""Which time indices an expression mentions, and moving it from one index to another."""

from __future__ import annotations

from collections.abc import Callable

from dsfc.expr.build import rewrite
from dsfc.expr.over_time import Lag, Past, Run, index_name
from dsfc.expr.reserved_names import TIME
from dsfc.expr.tree import Bound, Expr, Now, Ref, children


class Times:
    """The free time indices of expressions; remembers what it has seen."""

    def __init__(self) -> None:
        """Starts with an empty memory."""
        self._free: dict[Expr, frozenset[str]] = {}

    def free(self, expr: Expr) -> frozenset[str]:
        """Returns the time indices an expression depends on: "i" and indices bound outside."""
        if expr not in self._free:
            self._free[expr] = self._find(expr)
        return self._free[expr]

    def _find(self, e: Expr) -> frozenset[str]:
        inner: frozenset[str] = frozenset().union(*(self.free(c) for c in children(e)))
        match e:
            case Ref(at=at):
                return frozenset() if at is None else frozenset({index_name(at)})
            case Lag(terms=terms):
                return frozenset(v for v, c in terms if c)
            case Past(var=var, outer=outer):
                return (inner - {var}) | {outer or TIME}
            case Run(var=var, low=low, high=high):
                return (inner - {var}) | {index_name(low), index_name(high)}
        return inner


def lag_between(terms: tuple[tuple[str, int], ...], constant: int) -> Lag | None:
    """Returns the lag with zero coefficients left out, None when nothing varies."""
    kept = tuple(sorted((v, c) for v, c in terms if c))
    return Lag(kept, constant) if kept else None


def at_index(outer: str | None, lag: int) -> Now | Bound:
    """Returns the index (outer − lag); None is the outer time index i."""
    return Now(lag) if outer is None else Bound(outer, lag)


def retimed(expr: Expr, old: str, new: Callable[[int], Now | Bound]) -> Expr:
    """Returns the expression with the index `old − k` replaced by `new(k)`.

    Sums and runs inside are moved along: only the free index is replaced. `Lag` nodes over the old
    index are not expected here; separation has taken them out.
    """

    def rule(e: Expr) -> Expr | None:
        match e:
            case Ref(at=at) if at is not None and index_name(at) == old:
                return Ref(e.name, e.over, e.kind, e.when, new(at.lag))
            case Past(outer=outer, lag=lag) if (outer or TIME) == old:
                moved = new(lag)
                name = None if isinstance(moved, Now) else moved.var
                return Past(e.var, e.relation, e.body, name, moved.lag)
            case Run(low=low, high=high) if old in (index_name(low), index_name(high)):
                bottom, top = (new(x.lag) if index_name(x) == old else x for x in (low, high))
                return Run(e.var, bottom, top, e.arg)
        return None

    return rewrite(expr, rule)
