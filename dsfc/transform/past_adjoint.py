"""The gradient of a sum over time that stays a sum: y_i = Σ_j f(i, j).

A leaf read at i gets Σ_j of the summand's derivative; a leaf read at j gets the sum over i of it,
which is a sum over time of the converse relation with i and j exchanged.
"""

from __future__ import annotations

from dataclasses import dataclass

from dsfc.expr.build import rewrite, walk
from dsfc.expr.derivative import MapGradient, pull
from dsfc.expr.over_time import Lag, Past, Relation, Run
from dsfc.expr.reserved_names import TIME
from dsfc.expr.tree import Bound, Expr, Fir, Now, Param, Ref, Time

_CONVERSE = {
    Relation.UP_TO: Relation.FROM,
    Relation.BEFORE: Relation.AFTER,
    Relation.FROM: Relation.UP_TO,
    Relation.AFTER: Relation.BEFORE,
}
"""The relation of i to j when j stands in the given relation to i."""


@dataclass(frozen=True, slots=True)
class PastGradients:
    """Contributions of a sum over time to its leaves.

    Attributes:
        refs: each leaf as read at the present token (or with a lag), and its sum.
        params: each tensor parameter and its sum, per token of the outer index.
        maps: contributions to matrices, under the same sum as the forward one.
    """

    refs: tuple[tuple[Ref, Past], ...]
    params: tuple[tuple[Param, Past], ...]
    maps: tuple[MapGradient, ...]


def pull_past(past: Past, cotangent: Ref) -> PastGradients:
    """Returns the contributions of a sum over time to its leaves.

    Args:
        past: the sum, over the outer time index.
        cotangent: the cotangent of its value, at the present token.

    Raises:
        ValueError: it holds another sum or a running product.
        TypeError: it holds a filter.
    """
    if past.outer is not None or any(isinstance(e, Run | Past) for e in walk(past.body)):
        raise ValueError("a sum over the past that holds another sum or product has no adjoint")
    gradients = pull([(past.body, cotangent)])
    if gradients.filters:
        raise TypeError("a filter inside a sum that does not separate has no derivative")
    refs: list[tuple[Ref, Past]] = []
    for ref, value in gradients.refs.items():
        inner = isinstance(ref.at, Bound)
        at = Now(ref.at.lag) if isinstance(ref.at, Bound) else ref.at
        own = Ref(ref.name, ref.over, ref.kind, min(ref.when, Time.TOKEN), at)
        refs.append((own, _exchanged(past, value) if inner else _summed(past, value)))
    params = tuple((p, _summed(past, g)) for p, g in gradients.params.items())
    return PastGradients(tuple(refs), params, gradients.maps)


def _summed(past: Past, value: Expr) -> Past:
    return Past(past.var, past.relation, value, None, past.lag)


def _exchanged(past: Past, value: Expr) -> Past:
    return Past(past.var, _CONVERSE[past.relation], _swapped(value, past.var), None, -past.lag)


def _swapped(expr: Expr, var: str) -> Expr:
    """The expression with the outer time index and the summed one exchanged."""

    def rule(e: Expr) -> Expr | None:
        match e:
            case Ref(at=Now(lag)):
                return Ref(e.name, e.over, e.kind, e.when, Bound(var, lag))
            case Ref(at=Bound(name, lag)) if name == var:
                return Ref(e.name, e.over, e.kind, e.when, Now(lag))
            case Lag(terms, constant):
                names = {TIME: var, var: TIME}
                moved = tuple(sorted((names.get(v, v), c) for v, c in terms))
                return Lag(moved, constant)
            case Fir():
                raise TypeError("a filter inside a sum that does not separate has no derivative")
        return None

    return rewrite(expr, rule)
