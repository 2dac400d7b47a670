"""Time in expressions: indices such as `i-1`, relations such as `j ≤ i`, lags such as `i - j`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dsfc.expr.build import add, mul, num, power, rewrite, walk
from dsfc.expr.over_time import Lag, Relation, index_name
from dsfc.expr.reserved_names import TIME
from dsfc.expr.tree import Add, Bound, Expr, Now, Num
from dsfc.syntax import ast

_RELATIONS = {
    ast.CmpOp.LE: Relation.UP_TO,
    ast.CmpOp.LT: Relation.BEFORE,
    ast.CmpOp.GE: Relation.FROM,
    ast.CmpOp.GT: Relation.AFTER,
}
_TURNED = {
    ast.CmpOp.LE: ast.CmpOp.GE,
    ast.CmpOp.LT: ast.CmpOp.GT,
    ast.CmpOp.GE: ast.CmpOp.LE,
    ast.CmpOp.GT: ast.CmpOp.LT,
}

Instant = Now | Bound


def as_lag(value: Expr) -> Lag | None:
    """Returns an integer or a lag as a lag, None for anything else."""
    if isinstance(value, Lag):
        return value
    if isinstance(value, Num) and value.value.denominator == 1:
        return Lag((), value.value.numerator)
    return None


def _from_lag(lag: Lag) -> Expr:
    return lag if lag.terms else num(lag.constant)


def _combined(parts: list[tuple[int, Lag]]) -> Expr:
    terms: dict[str, int] = {}
    constant = 0
    for factor, lag in parts:
        constant += factor * lag.constant
        for var, coefficient in lag.terms:
            terms[var] = terms.get(var, 0) + factor * coefficient
    kept = tuple(sorted((v, c) for v, c in terms.items() if c))
    return _from_lag(Lag(kept, constant))


def lag_sum(*terms: Expr) -> Expr:
    """Returns a sum; lags and whole numbers among its terms become one lag."""
    flat = [a for t in terms for a in (t.args if isinstance(t, Add) else (t,))]
    if not any(isinstance(t, Lag) for t in flat):
        return add(*terms)
    whole = [(t, as_lag(t)) for t in flat]
    parts = [(1, lag) for _, lag in whole if lag is not None]
    return add(_combined(parts), *(t for t, lag in whole if lag is None))


def lag_product(*factors: Expr) -> Expr:
    """Returns a product; a whole number times a lag, or times a sum with one, is a lag there."""
    if len(factors) == 2:
        for factor, other in (factors, factors[::-1]):
            if isinstance(factor, Num) and factor.value.denominator == 1:
                if isinstance(other, Lag):
                    return _combined([(factor.value.numerator, other)])
                if isinstance(other, Add) and any(isinstance(t, Lag) for t in other.args):
                    return lag_sum(*(lag_product(factor, t) for t in other.args))
    return mul(*factors)


def is_lag(lag: Lag) -> bool:
    """Whether a time scalar is the distance of two tokens: c · (a - b) + constant."""
    coefficients = sorted(c for _, c in lag.terms)
    return len(coefficients) == 2 and sum(coefficients) == 0


def has_lag(expr: Expr) -> bool:
    """Whether an expression mentions a time scalar."""
    return any(isinstance(node, Lag) for node in walk(expr))


def lag_power(base: Expr, exponent: Lag) -> Expr:
    """Returns base ^ exponent with unit coefficients in the lag: (b²)^(i-j) for b^(2 (i-j)).

    The constant of a scaled lag goes to a separate power.
    """
    scale = abs(exponent.terms[0][1])
    if scale == 1:
        return power(base, exponent)
    unit = Lag(tuple((v, c // scale) for v, c in exponent.terms), 0)
    scaled = power(power(base, num(scale)), unit)
    return scaled if not exponent.constant else mul(power(base, num(exponent.constant)), scaled)


def normalize_times(expr: Expr) -> Expr:
    """Returns the expression with every lag written with coefficients 1 and -1."""

    def unit(node: Expr) -> Expr | None:
        if not isinstance(node, Lag) or not is_lag(node):
            return None
        scale = abs(node.terms[0][1])
        if scale == 1:
            return None
        lag = Lag(tuple((v, c // scale) for v, c in node.terms), 0)
        return add(mul(num(scale), lag), num(node.constant))

    return rewrite(expr, unit)


@dataclass(frozen=True, slots=True)
class Clock:
    """The time variables an expression may name.

    Attributes:
        vars: spelling → unique name of the index bound by an enclosing sum.
        ahead: unique names of those bound by sums over the future.
    """

    vars: Mapping[str, str] = field(default_factory=dict)
    ahead: frozenset[str] = frozenset()

    def read(self, node: ast.Condition, args: Mapping[str, Expr | None]) -> Lag | None:
        """Returns an index expression over time variables and whole numbers, else None."""
        match node:
            case ast.Num():
                return as_lag(num(node.value))
            case ast.Name() if node.id in args:
                value = args[node.id]
                return None if value is None else as_lag(value)
            case ast.Name() if node.id == TIME or node.id in self.vars:
                return Lag(((self.vars.get(node.id, TIME), 1),), 0)
            case ast.Neg():
                inner = self.read(node.operand, args)
                return None if inner is None else as_lag(_combined([(-1, inner)]))
            case ast.Add():
                signs = [1, *(-1 if op is ast.AddOp.MINUS else 1 for op in node.operators)]
                parts = [self.read(operand, args) for operand in node.operands]
                known = [(s, p) for s, p in zip(signs, parts, strict=True) if p is not None]
                return as_lag(_combined(known)) if len(known) == len(parts) else None
            case _:
                return None

    def instant(self, node: ast.Condition, args: Mapping[str, Expr | None]) -> Instant | None:
        """Returns an index of the form variable - lag, None for any other."""
        lag = self.read(node, args)
        if lag is None or len(lag.terms) != 1 or lag.terms[0][1] != 1:
            return None
        ((var, _),) = lag.terms
        return Now(-lag.constant) if var == TIME else Bound(var, -lag.constant)


def later(at: Instant, by: Instant) -> Instant | None:
    """Returns the index `at` of a value that is itself read at `by`; None if both bind a variable.

    With u[i-1] passed as x, `x[i-1]` is u[i-2] and `x[j]` is u[j-1].
    """
    if isinstance(by, Bound):
        return None
    if isinstance(at, Now):
        return Now(at.lag + by.lag)
    return Bound(at.var, at.lag + by.lag)


@dataclass(frozen=True, slots=True)
class SumHead:
    """`j ≤ i` as a sum reads it."""

    word: str
    relation: Relation
    outer: ast.Condition


def sum_head(node: ast.Relation, clock: Clock) -> SumHead | None:
    """Returns the variable, relation and bound of a sum; None for any other form."""
    if len(node.operators) != 1 or node.operators[0] not in _RELATIONS:
        return None
    left, right = node.operands
    op = node.operators[0]
    if _is_new(left, clock):
        # `_is_new` says that it is a name.
        return SumHead(left.id, _RELATIONS[op], right)  # type: ignore[union-attr]
    if _is_new(right, clock):
        # `_is_new` says that it is a name.
        return SumHead(right.id, _RELATIONS[_TURNED[op]], left)  # type: ignore[union-attr]
    return None


def _is_new(node: ast.Condition, clock: Clock) -> bool:
    return isinstance(node, ast.Name) and node.id != TIME and node.id not in clock.vars


@dataclass(frozen=True, slots=True)
class RunHead:
    """`j < l ≤ i` as a product reads it: low excluded by `low_step` 0 or included by 1."""

    word: str
    low: ast.Condition
    low_shift: int
    high: ast.Condition
    high_shift: int


def run_head(node: ast.Relation) -> RunHead | None:
    """Returns the bounds of a running product; None for any other form."""
    if len(node.operands) != 3 or not isinstance(node.operands[1], ast.Name):
        return None
    first, second = node.operators
    low, high = node.operands[0], node.operands[2]
    if first in (ast.CmpOp.GT, ast.CmpOp.GE) and second in (ast.CmpOp.GT, ast.CmpOp.GE):
        low, high, first, second = high, low, _TURNED[second], _TURNED[first]
    below = (ast.CmpOp.LT, ast.CmpOp.LE)
    if first not in below or second not in below:
        return None
    return RunHead(
        node.operands[1].id,
        low,
        1 if first is ast.CmpOp.LE else 0,
        high,
        1 if second is ast.CmpOp.LT else 0,
    )


def at_lag(at: Instant, lag: int) -> Instant:
    """Returns the index `lag` steps before the variable of `at`."""
    return Now(lag) if isinstance(at, Now) else Bound(at.var, lag)


def shifted(at: Instant, by: int) -> Instant:
    """Returns the index `by` steps earlier."""
    return at_lag(at, at.lag + by)


def lag_to(at: Instant) -> Lag:
    """Returns an index as a time scalar."""
    return Lag(((index_name(at), 1),), -at.lag)
