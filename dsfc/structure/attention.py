"""Softmax attention, read off a ratio of two sums over the past that have no finite state.

    Σ_{j ≤ i} w_ij v_j / Σ_{j ≤ i} w_ij,    w_ij = exp(scale · Σ_keys q_i · k_j + c_i)

for any token-wise q, k and v (Vaswani et al. 2017, eq. 1, causal). What the score has of the query
alone, c_i, is in both sums and cancels. Whatever the spec calls these values, and whichever maps,
norms or filters make them, the ratio is of this class.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dsfc.derive.times import Times, retimed
from dsfc.expr.build import ONE, div, is_one, mul, num, total, walk
from dsfc.expr.normal import normalise
from dsfc.expr.over_time import Relation
from dsfc.expr.reserved_names import TIME
from dsfc.expr.text import text
from dsfc.expr.tree import (
    Add,
    Axis,
    Bound,
    Div,
    Expr,
    Field,
    Mul,
    Now,
    Num,
    Ones,
    Pow,
    Prim,
    Reduce,
    Reduction,
    Rename,
    Size,
    Time,
)
from dsfc.structure.ir import Attention
from dsfc.system.ir import Cache, GuardKind, Ratio


class NotAttention(Exception):
    """A ratio of sums that is no softmax attention; the text says why, as a clause."""


def attention_of(ratio: Ratio) -> Attention:
    """Returns the attention that a ratio is.

    Raises:
        NotAttention: it is none.
    """
    above, below = ratio.num, ratio.den
    if not isinstance(below, Cache):
        raise NotAttention("what it is divided by is no sum of its weights")
    if not isinstance(above, Cache):
        raise NotAttention("what is divided is no weighted sum of values")
    if ratio.guard.kind is not GuardKind.NONE:
        raise NotAttention("a guard stands in its denominator")
    return _Reader(above, below).attention()


def is_attention(ratio: Ratio) -> bool:
    """Whether a ratio is an attention."""
    try:
        attention_of(ratio)
    except NotAttention:
        return False
    return True


@dataclass(frozen=True, slots=True)
class _Term:
    """Σ_over query · key, one term of a score: `query` of token i, `key` of the summed token."""

    query: Expr
    key: Expr
    over: frozenset[Axis] = frozenset()

    @property
    def axes(self) -> frozenset[Axis]:
        return (self.query.axes | self.key.axes) - self.over


class _Reader:
    def __init__(self, above: Cache, below: Cache) -> None:
        self.times = Times()
        self.past = above.past
        for sum_ in (above.past, below.past):
            if sum_.relation in (Relation.FROM, Relation.AFTER):
                raise NotAttention("its sums run over tokens to come")
            if sum_.relation is not Relation.UP_TO or sum_.outer is not None or sum_.lag:
                raise NotAttention("its sums end before the token itself")
        self.var = above.past.var
        weights = retimed(below.past.body, below.past.var, lambda lag: Bound(self.var, lag))
        self.weights = list(_factors(weights))
        self.summands = list(_factors(above.past.body))

    def attention(self) -> Attention:
        value, gate = self._left()
        axes = mul(*self.weights).axes
        terms = [t for e in self._exponents() for t in self._terms(e)]
        pairs = [t for t in terms if not is_one(t.key)]
        if len(pairs) != 1:
            raise NotAttention("its score is not one product of a query and a key")
        (pair,) = pairs
        if pair.over & axes:
            raise NotAttention("an axis stands inside and outside of a contraction")
        scale, query = _scaled(pair.query)
        key = retimed(pair.key, self.var, Now)
        value = retimed(value, self.var, Now)
        if Field.COMPLEX in (query.field, key.field, value.field):
            raise NotAttention("it is complex")
        return Attention(
            heads=tuple(sorted(axes)),
            keys=tuple(sorted(pair.over)),
            channels=tuple(sorted(value.axes - axes)),
            scale=scale,
            query=query,
            key=key,
            value=value,
            gate=gate,
        )

    def _left(self) -> tuple[Expr, Expr]:
        """What the summand has besides the weights: factors of the summed token, and of token i."""
        rest = list(self.summands)
        for f in self.weights:
            same = next((x for x in rest if x is f or normalise(x) == normalise(f)), None)
            if same is not None:
                rest.remove(same)
            elif not isinstance(f, Ones):
                raise NotAttention(f"its normaliser has the factor `{text(f)}`, its sum has not")
        gate = [f for f in rest if self._free(f) == {TIME}]
        value = [f for f in rest if f not in gate]
        for f in value:
            if TIME in self._free(f):
                raise NotAttention(f"its sum has the factor `{text(f)}`, its normaliser has not")
        return mul(*value), mul(*gate)

    def _exponents(self) -> Iterator[Expr]:
        """The scores: arguments of the exponentials among the weights."""
        for f in self.weights:
            free = self._free(f)
            if isinstance(f, Prim) and f.name == "exp" and f.field is Field.REAL:
                yield f.args[0]
            elif self.var in free:
                raise NotAttention(f"its weights have the factor `{text(f)}`, no exponential")
            # A factor of token i alone is in both sums.

    # --- scores -----------------------------------------------------------------------------------

    def _terms(self, e: Expr) -> list[_Term]:
        """A score as terms."""
        free = self._free(e)
        if free - {TIME, self.var}:
            raise NotAttention("its sums are nested")
        if self.var not in free:
            return [_Term(e, ONE)]
        if TIME not in free:
            return [_Term(ONE, e)]
        match e:
            case Add(args):
                return [t for a in args for t in self._terms(a)]
            case Mul(args):
                return self._product(args)
            case Div(numerator, denominator) if self.var not in self._free(denominator):
                below = _Term(div(ONE, denominator), ONE)
                return [_times(t, below) for t in self._terms(numerator)]
            case Div(numerator, denominator) if TIME not in self._free(denominator):
                below = _Term(ONE, div(ONE, denominator))
                return [_times(t, below) for t in self._terms(numerator)]
            case Reduce(how, axis, arg) if how is not Reduction.MAX:
                share = div(ONE, Size(axis)) if how is Reduction.MEAN else ONE
                inner = (_over(t, axis) for t in self._terms(arg))
                return [_Term(mul(share, t.query), t.key, t.over) for t in inner]
            case Rename(old, new, arg):
                return [_renamed(t, old, new) for t in self._terms(arg)]
        raise NotAttention(f"`{text(e)}` is no product of a query and a key")

    def _product(self, args: tuple[Expr, ...]) -> list[_Term]:
        out = [_Term(ONE, ONE)]
        for a in args:
            out = [_times(x, y) for x in out for y in self._terms(a)]
        return out

    def _free(self, e: Expr) -> frozenset[str]:
        return self.times.free(e)


def _factors(e: Expr) -> Iterator[Expr]:
    for a in e.args if isinstance(e, Mul) else (e,):
        if a is e:
            yield a
        else:
            yield from _factors(a)


def _times(a: _Term, b: _Term) -> _Term:
    if a.over and b.over:
        raise NotAttention("its score is a product of two scores")
    if (a.over & (b.query.axes | b.key.axes)) | (b.over & (a.query.axes | a.key.axes)):
        raise NotAttention("an axis stands inside and outside of a contraction")
    return _Term(mul(a.query, b.query), mul(a.key, b.key), a.over | b.over)


def _over(term: _Term, axis: Axis) -> _Term:
    """Σ over an axis of a term."""
    if axis in term.query.axes and axis in term.key.axes:
        return _Term(term.query, term.key, term.over | {axis})
    if axis in term.key.axes:
        return _Term(term.query, total([axis], term.key), term.over)
    return _Term(total([axis], term.query), term.key, term.over)


def _renamed(term: _Term, old: Axis, new: Axis) -> _Term:
    def side(e: Expr) -> Expr:
        return Rename(old, new, e) if old in e.axes else e

    if {old, new} & term.over:
        raise NotAttention("an axis stands inside and outside of a contraction")
    return _Term(side(term.query), side(term.key), term.over)


def _scaled(query: Expr) -> tuple[Expr, Expr]:
    """A query as a number times the rest; what a parameter scales stays with the query."""
    factors = list(_factors(query))
    numbers = [f for f in factors if not f.axes and all(_plain(e) for e in walk(f))]
    rest = [f for f in factors if f not in numbers]
    return mul(*numbers) if numbers else num(1), mul(*rest)


def _plain(e: Expr) -> bool:
    return e.time is Time.CONST and isinstance(e, Num | Size | Pow | Mul | Div | Add)
