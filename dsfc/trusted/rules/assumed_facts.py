"""Facts that assumptions give, in the forms that definitions are simplified by.

Each is one of every token and index: a product that is a sum of others, a real value that is at
least 0, or a product over two tokens that is 0 for every earlier one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

from dsfc.expr.build import mul, ones, rewrite, walk
from dsfc.expr.inline import Inliner
from dsfc.expr.over_time import Lag, Past, Run
from dsfc.expr.reserved_names import FIRST
from dsfc.expr.tree import (
    Abstract,
    Axis,
    Bound,
    Expr,
    Field,
    LinearMap,
    Map,
    Now,
    Param,
    Ref,
    Time,
)
from dsfc.system.ir import Definition, System
from dsfc.trusted.claim import Assumption
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.rules.product_terms import (
    NOTHING,
    Factors,
    Summed,
    Terms,
    axes_of,
    expression,
    parts_of,
    plus,
    scaled,
    single,
    terms_of,
    with_all,
)


@dataclass(frozen=True, slots=True)
class Equal:
    """A product that is a sum of others, at every token."""

    product: Factors
    value: Terms
    made_of: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class NotNegative:
    """A real value that is at least 0, at every token."""

    terms: Terms
    made_of: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Orthogonal:
    """o Σ_axes κ κ'_j = 0 for every j before the token.

    Attributes:
        axes: A; none where nothing is summed.
        outside: o, and κ where nothing is summed.
        later: κ, of the token.
        earlier: all factors that are read at j, as those of their token.
    """

    axes: frozenset[Axis]
    outside: Factors
    later: Factors
    earlier: Factors
    made_of: tuple[Expr, ...]


Fact = Equal | NotNegative | Orthogonal


def inliner(system: System, states: bool = False) -> Inliner:
    """Returns what puts definitions in, or those of them that read states; states stay names.

    Raises:
        Obstacle: a definition is made of itself.
    """
    read = [
        d for d in system.definition if not d.update and (d.value.time is Time.STATE or not states)
    ]
    check_order(read)
    values = {d.name: of_all_axes(d.value, d.axes) for d in read}
    return Inliner(values.get)


def check_order(definitions: Iterable[Definition]) -> None:
    """Checks that no definition is made of itself, and at another token no more if it is no state.

    Raises:
        Obstacle: one is.
    """
    listed = tuple(definitions)
    plain = {d.name for d in listed if not d.update}
    left = {
        d.name: {
            x.name
            for x in walk(d.value)
            if isinstance(x, Ref) and (x.at in (None, Now(0)) or {x.name, d.name} <= plain)
        }
        for d in listed
    }
    while left:
        ready = [name for name, read in left.items() if not read & left.keys()]
        if not ready:
            raise Obstacle("a definition is made of itself")
        for name in ready:
            del left[name]


def of_all_axes(e: Expr, axes: Iterable[Axis]) -> Expr:
    """Returns a value with the axes that it is read with."""
    missing = frozenset(axes) - e.axes
    return mul(ones(missing), e) if missing else e


def check_read(system: System, what: Assumption) -> None:
    """Checks that an assumption reads names as the language does.

    Constants are read at no token, others at the present one, at one before, or at an index.

    Raises:
        Obstacle: it does not.
    """
    times = {t.name: Time.TOKEN for t in system.inputs} | {FIRST: Time.TOKEN}
    times |= {d.name: Time.STATE if d.update else d.value.time for d in system.definition}
    for x in (x for e in (what.left, what.right) for x in walk(e) if isinstance(x, Ref)):
        constant = times.get(x.name) is Time.CONST
        if constant != (x.at is None) or x.when is not times.get(x.name):
            raise Obstacle(f"`{x.name}` is read at a token that it has not")
        if isinstance(x.at, Now | Bound) and x.at.lag < 0:
            raise Obstacle(f"`{x.name}` is read at a token to come")


def facts(assumed: tuple[Assumption, ...], inline: Inliner) -> tuple[Fact, ...]:
    """Returns what is known by assumptions, in the forms that the rules use."""
    out = list[Fact]()
    for what in assumed:
        with suppress(Obstacle):
            out += _forms(what, inline)
    return tuple(out)


def _forms(what: Assumption, inline: Inliner) -> Iterator[Fact]:
    left, right = inline.of(what.left), inline.of(what.right)
    gap = plus(terms_of(left), scaled(terms_of(right), -1))
    real = left.field is Field.REAL and right.field is Field.REAL
    match what.relation:
        case "==" if what.earlier:
            yield from _orthogonal(what, gap, (left, right), inline)
        case "==":
            for one, other in ((left, right), (right, left)):
                match tuple(terms_of(one).items()):
                    case ((product, c),) if product and other.axes <= axes_of(product):
                        yield Equal(product, scaled(terms_of(other), 1 / c), (left, right))
                        return
        case ">=" | ">" if real and not what.earlier:
            yield NotNegative(gap, (left, right))
        case "<=" | "<" if real and not what.earlier:
            yield NotNegative(scaled(gap, -1), (left, right))


def _orthogonal(
    what: Assumption, gap: Terms, made_of: tuple[Expr, ...], inline: Inliner
) -> Iterator[Fact]:
    """The forms of one product that is 0 for every token before the present one."""
    if len(gap) != 1:
        return
    (product,) = gap
    # These depend on the token j by more than the names that are read there.
    if any(isinstance(x, Past | Run | Lag) for e in parts_of(product) for x in walk(e)):
        return
    read = frozenset(item for item in product if _reads(single(item[0]), what.earlier))
    inside = [item for item in read if isinstance(item[0], Summed)]
    axes, outside, later = frozenset[Axis](), product - read, NOTHING
    match inside:
        case [(Summed() as whole, 1)]:
            axes = whole.axes
            if axes_of(read - {(whole, 1)}) & axes:
                return  # it has such an index of its own, which is not summed
            at_j = frozenset(x for x in whole.inside if _reads(single(x[0]), what.earlier))
            later, read = whole.inside - at_j, with_all(read - {(whole, 1)}, at_j)
        case [_, *_]:
            return
    if not all(_at_one_token(e, what.earlier) for e in parts_of(read)):
        return
    there = expression({read: Fraction(1)}, made_of)
    # A name is 0 before the first token, and so is a product with it.
    lags = (0, 1) if any(isinstance(f, Ref) for f, _ in read) else (0,)
    for lag in lags:
        earlier = terms_of(inline.of(read_at(there, what.earlier, lag)))
        if len(earlier) != 1:
            return
        (kept,) = earlier
        if lag == 0:
            yield Orthogonal(axes, outside, later, kept, made_of)
        if lag == 1 or what.own:
            here = with_all(later, kept)
            whole_here = single(Summed(axes, here)) if axes else here
            yield Equal(with_all(outside, whole_here), {}, made_of)


def _reads(factors: Factors, index: str) -> bool:
    """Whether something is read at a token of an index."""
    return any(
        isinstance(x, Ref) and isinstance(x.at, Bound) and x.at.var == index
        for e in parts_of(factors)
        for x in walk(e)
    )


def _at_one_token(e: Expr, index: str) -> bool:
    """Whether all that a value reads is read at the token of an index."""
    for x in walk(e):
        match x:
            case Ref(at=Bound(var=var)) if var == index:
                continue
            case Ref(at=None):
                continue
            case Ref():
                return False
    return True


def read_at(e: Expr, index: str, back: int) -> Expr:
    """Returns a value of the token of an index, as that of the present one or of one before."""

    def now(x: Expr) -> Expr | None:
        match x:
            case Ref(name, over, kind, when, Bound(var, lag)) if var == index:
                return Ref(name, over, kind, when, Now(lag + back))
        return None

    return rewrite(e, now)


def common_names(a: System, b: System) -> frozenset[str]:
    """Returns names of inputs and parameters of both, and of what both define of them alike."""
    ours, theirs = (frozenset(t.name for t in (*s.inputs, *s.params)) for s in (a, b))
    held = {d.name: d.value for d in a.definition if d in b.definition}
    while True:
        names = (ours & theirs) | held.keys()
        kept = {name: value for name, value in held.items() if made_of_names(value, names)}
        if kept.keys() == held.keys():
            return names
        held = kept


def made_of_names(e: Expr, names: frozenset[str]) -> bool:
    """Returns whether a value is made of what goes by these names alone."""
    for x in walk(e):
        match x:
            case Abstract() | Past() | Run() | Lag():
                return False
            case Ref(name=name) | Param(name=name) | Map(map=LinearMap(name=name)):
                if name not in names and name != FIRST:
                    return False
    return True
