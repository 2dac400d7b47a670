"""Expressions over several tokens: nodes of a mixer only, never in a System."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from dsfc.expr.reserved_names import TIME
from dsfc.expr.tree import Bound, Expr, Field, Now, Time, Type


def index_name(at: Now | Bound) -> str:
    """Returns the name of the index of a time, "i" for the outer one."""
    return TIME if isinstance(at, Now) else at.var


class Relation(Enum):
    """Which tokens a sum over time runs over, relative to the outer index i."""

    UP_TO = "<="
    BEFORE = "<"
    FROM = ">="
    AFTER = ">"

    def tokens(self, outer: int, length: int) -> range:
        """Tokens of a sequence that stand in this relation to `outer`."""
        match self:
            case Relation.UP_TO:
                return range(0, min(outer + 1, length))
            case Relation.BEFORE:
                return range(0, min(outer, length))
            case Relation.FROM:
                return range(max(outer, 0), length)
            case Relation.AFTER:
                return range(max(outer + 1, 0), length)


@dataclass(frozen=True, slots=True, eq=False)
class Past(Expr):
    """Σ over time of `body`, for all `var` in the given relation to the outer time index.

    Attributes:
        var: the summed index.
        relation: its relation to the outer index.
        outer: the outer time variable: None for i, else the index bound by an enclosing sum.
        lag: the outer index is (outer - lag).
        body: the summand.
    """

    var: str
    relation: Relation
    body: Expr
    outer: str | None = None
    lag: int = 0

    def _infer(self) -> Type:
        t = self.body.type
        return Type(t.axes, t.field, Time.STATE)


@dataclass(frozen=True, slots=True, eq=False)
class Lag(Expr):
    """A scalar in time, Σ coefficient · variable + constant, e.g. i - j - 1.

    Attributes:
        terms: pairs (variable, integer coefficient), sorted by variable; the outer index is "i".
        constant: the integer constant.
    """

    terms: tuple[tuple[str, int], ...]
    constant: int

    def _infer(self) -> Type:
        return Type(frozenset(), Field.REAL, Time.PAIR)


@dataclass(frozen=True, slots=True, eq=False)
class Run(Expr):
    """Π_{low < var ≤ high} arg: a product over the tokens between two time indices.

    Attributes:
        var: the running index, bound in `arg`.
        low: excluded lower index.
        high: included upper index.
        arg: the factor at `var`.
    """

    var: str
    low: Now | Bound
    high: Now | Bound
    arg: Expr

    def _infer(self) -> Type:
        t = self.arg.type
        return Type(t.axes, t.field, Time.PAIR)
