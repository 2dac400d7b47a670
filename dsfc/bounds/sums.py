"""Sums over the past as one form: a summand in the lag, and the lags that it runs over.

Sums of definitions are such, and so are filters whose taps are functions of their position, and
states that are multiplied by a decay and added to: x_i = c_i x_{i-1} + d_i is the sum of d_j times
the product of the c_l with j < l ≤ i. What is multiplied by a sum, and summed over an axis, is put
into the summand, and what does not have that axis is taken out of the inner sum. All of these are
identities, for all lengths: before the first token states are 0, and so is what a filter reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dsfc.bounds.pair import OneMixer
from dsfc.bounds.ranges import is_causal
from dsfc.expr.build import add, mul, replaced, rewrite, walk
from dsfc.expr.over_time import Lag, Past, Relation, Run
from dsfc.expr.reserved_names import FIRST, TIME
from dsfc.expr.tree import (
    Add,
    Axis,
    Bound,
    Expr,
    Fir,
    Iota,
    Map,
    Mul,
    Now,
    Pow,
    Prim,
    Reduce,
    Reduction,
    Ref,
    Rename,
    Time,
)

VAR, RUN = "j", "l"
"""Names of the summed token, and of that in a product between tokens."""


@dataclass(frozen=True, slots=True)
class Summation:
    """Σ over lags m = i - j from `first` to `last` of a summand in i and j.

    Attributes:
        body: the summand.
        first: the least lag.
        last: the largest lag; None where all of the past is summed.
    """

    body: Expr
    first: int
    last: int | None


def summation(e: Expr, side: OneMixer, sizes: Mapping[str, int]) -> Summation | None:
    """Returns an expression of one mixer as a sum over the past, if it is one.

    No exponent of its summand is below 0, and no product runs backwards.
    """
    past_sum = _summation(e, side, sizes)
    if past_sum is None or all(least + past_sum.first >= 0 for least in _constants(past_sum.body)):
        return past_sum
    return None


def is_plain(body: Expr) -> bool:
    """Returns whether a summand has no sums, and products over one token alone.

    Then its token may get another name: nothing inside is called so.
    """
    for x in walk(body):
        if isinstance(x, Past):
            return False
        if isinstance(x, Run):
            for y in walk(x.arg):
                other = isinstance(y, Ref) and isinstance(y.at, Bound) and y.at.var != x.var
                if other or isinstance(y, Run | Lag):
                    return False
    return True


def _constants(body: Expr) -> Iterator[int]:
    """How much lags of a summand, and numbers of factors of its products, are above i - j."""
    for x in walk(body):
        match x:
            case Lag(constant=constant):
                yield constant
            case Run(low=low, high=high):
                yield low.lag - high.lag


def _summation(e: Expr, side: OneMixer, sizes: Mapping[str, int]) -> Summation | None:
    match e:
        case Past() if is_causal(e):
            first = e.lag + (e.relation is Relation.BEFORE)
            if not is_plain(e.body):
                return None
            return Summation(factored(renamed(e.body, e.var, VAR)), first, None)
        case Fir():
            return _filtered(e, sizes)
        case Ref(name=name, at=Now(0)) if name in side.updates:
            return _unrolled(e, side)
        case Ref(name=name, at=Now(0)) if name in side.definitions:
            return summation(side.definitions[name].value, side, sizes)
        case Mul(args):
            return _inside(args, None, side, sizes)
        case Reduce(Reduction.SUM, axis, Mul(args)) if axis in e.arg.axes:
            return _inside(args, axis, side, sizes)
    return None


def _inside(
    args: tuple[Expr, ...], axis: Axis | None, side: OneMixer, sizes: Mapping[str, int]
) -> Summation | None:
    """A product with one sum, the rest put into the summand."""
    parts = [(k, summation(x, side, sizes)) for k, x in enumerate(args)]
    sums = [(k, past_sum) for k, past_sum in parts if past_sum is not None]
    if len(sums) != 1:
        return None
    k, past_sum = sums[0]
    rest = (*args[:k], *args[k + 1 :])
    if any(isinstance(x, Past | Lag | Run) for r in rest for x in walk(r)):
        return None
    body = mul(*rest, past_sum.body)
    if axis is not None:
        body = Reduce(Reduction.SUM, axis, body)
    return Summation(factored(body), past_sum.first, past_sum.last)


def _filtered(e: Fir, sizes: Mapping[str, int]) -> Summation | None:
    """A filter whose taps are a function of their position alone: r = i - j - lag."""
    arg = e.arg
    if e.reverse or e.axis.name not in sizes:
        return None
    if not isinstance(arg, Ref) or not isinstance(arg.at, Now) or arg.at.lag < 0:
        return None
    lag = Lag(((TIME, 1), (VAR, -1)), -arg.at.lag)
    weight = replaced(e.weight, {Iota(e.axis): lag})
    if e.axis in weight.axes or any(_binds(x, e.axis) for x in walk(e.weight)):
        return None
    tap = Ref(arg.name, arg.over, arg.kind, arg.when, Bound(VAR, 0))
    return Summation(factored(mul(weight, tap)), arg.at.lag, arg.at.lag + sizes[e.axis.name] - 1)


def _binds(e: Expr, axis: Axis) -> bool:
    """Whether a node is a sum over time, or uses up or makes an axis."""
    match e:
        case Past() | Run() | Lag() | Fir() | Map():
            return True
        case Reduce(axis=other) | Prim(axis=other):
            return other == axis
        case Rename(old, new):
            return axis in (old, new)
    return False


def _unrolled(e: Ref, side: OneMixer) -> Summation | None:
    """A state that is multiplied by a decay and added to."""
    update = side.updates[e.name]
    if update.backward or update.maximum:
        return None
    earlier = Ref(e.name, e.over, e.kind, e.when, Now(1))
    decays, drives = list[Expr](), list[Expr]()
    for term in update.value.args if isinstance(update.value, Add) else (update.value,):
        factors = term.args if isinstance(term, Mul) else (term,)
        if factors.count(earlier) == 1:
            rest = list(factors)
            rest.remove(earlier)
            decays.append(mul(*rest))
        else:
            drives.append(term)
    if not decays or not drives:
        return None
    decay, drive = add(*decays), add(*drives)
    for x in (decay, drive):
        if e.name in side.reads(x) or FIRST in side.reads(x):
            return None
        if any(isinstance(y, Past | Lag | Run | Fir) for y in walk(x)):
            return None
    if decay.time is Time.CONST:
        product: Expr = Pow(decay, Lag(((TIME, 1), (VAR, -1)), 0))
    else:
        product = Run(RUN, Bound(VAR, 0), Now(0), _at(decay, RUN))
    return Summation(factored(mul(product, _at(drive, VAR))), 0, None)


def _at(e: Expr, var: str) -> Expr:
    """An expression of the present token as one of the token that is summed over."""

    def moved(x: Expr) -> Expr | None:
        if isinstance(x, Ref) and isinstance(x.at, Now):
            return Ref(x.name, x.over, x.kind, x.when, Bound(var, x.at.lag))
        return None

    return rewrite(e, moved)


def renamed(e: Expr, old: str, new: str) -> Expr:
    """Returns an expression with another name for the summed token."""

    def at(x: Now | Bound) -> Now | Bound:
        return Bound(new, x.lag) if isinstance(x, Bound) and x.var == old else x

    def moved(x: Expr) -> Expr | None:
        match x:
            case Ref(at=Bound()):
                assert x.at is not None
                return Ref(x.name, x.over, x.kind, x.when, at(x.at))
            case Lag(terms, constant):
                named = tuple(sorted((new if v == old else v, c) for v, c in terms))
                return Lag(named, constant)
            case Run(var, low, high, arg):
                return Run(RUN, at(low), at(high), renamed(arg, var, RUN))
        return None

    return rewrite(e, moved)


def factored(e: Expr) -> Expr:
    """Returns a product with its factors in one list, those without an axis out of its sum."""
    match e:
        case Mul(args):
            return mul(*map(factored, args))
        case Reduce(Reduction.SUM, axis, arg) if axis in arg.axes:
            inner = factored(arg)
            factors = inner.args if isinstance(inner, Mul) else (inner,)
            out = [x for x in factors if axis not in x.axes]
            within = [x for x in factors if axis in x.axes]
            if within and out:
                return mul(*out, factored(Reduce(Reduction.SUM, axis, mul(*within))))
    return e
