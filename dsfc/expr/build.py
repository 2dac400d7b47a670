"""The constructors of expressions, and the rewriting and walking of trees.

Other packages import the constructors from here; the arithmetic ones stand in `arithmetic` because
the primitive table, which `prim` needs, is written with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from dsfc.expr.arithmetic import (
    MINUS_ONE,
    ONE,
    ZERO,
    add,
    div,
    is_one,
    is_zero,
    mul,
    neg,
    num,
    ones,
    power,
    sub,
    total,
)
from dsfc.expr.over_time import Lag, Past, Run
from dsfc.expr.reserved_names import TIME
from dsfc.expr.table import row
from dsfc.expr.tree import (
    Add,
    Axis,
    Bound,
    Div,
    Expr,
    Field,
    Map,
    Mul,
    Now,
    Ones,
    Pow,
    Prim,
    Ref,
    children,
    rebuild,
)

__all__ = [
    "MINUS_ONE",
    "ONE",
    "ZERO",
    "add",
    "div",
    "is_one",
    "is_zero",
    "mul",
    "neg",
    "num",
    "ones",
    "power",
    "prim",
    "remake",
    "replaced",
    "rewrite",
    "shift",
    "sub",
    "total",
    "walk",
]


def prim(name: str, *args: Expr, axis: Axis | None = None) -> Expr:
    """Returns the primitive `name` applied to `args`.

    The field of the result comes from the table. `re` and `conj` of a real value are that value.

    Raises:
        KeyError: no row has this name.
        TypeError: wrong number of arguments, an axis missing or unwanted, or a complex argument
            where the row takes real ones.
    """
    r = row(name)
    if len(args) != r.arity:
        raise TypeError(f"`{name}` takes {r.arity} arguments, got {len(args)}")
    if (axis is not None) != r.along_axis:
        raise TypeError(f"`{name}` {'needs' if r.along_axis else 'takes no'} axis")
    real = all(a.field is Field.REAL for a in args)
    if not real and not r.fields.takes_complex:
        raise TypeError(f"`{name}` takes real arguments")
    if real and r.keeps_reals:
        return args[0]
    return Prim(name, args, r.fields.result(real), axis)


def shift(expr: Expr, by: int) -> Expr:
    """Returns the expression read `by` steps earlier: each `Now(k)` becomes `Now(k + by)`.

    Only the values of *names* are 0 before the sequence: `exp(k)` shifted is `exp(k[i-1])`, which
    is 1 at the first token. To delay the value of an expression, name it and shift the name.
    """

    def later(e: Expr) -> Expr | None:
        if isinstance(e, Ref) and isinstance(e.at, Now):
            return Ref(e.name, e.over, e.kind, e.when, Now(e.at.lag + by))
        if isinstance(e, Run):
            return Run(e.var, _moved(e.low, by), _moved(e.high, by), e.arg)
        if isinstance(e, Past) and e.outer is None:
            return Past(e.var, e.relation, e.body, None, e.lag + by)
        if isinstance(e, Lag):
            return Lag(e.terms, e.constant - by * dict(e.terms).get(TIME, 0))
        return None

    return rewrite(expr, later) if by else expr


def _moved(at: Now | Bound, by: int) -> Now | Bound:
    return Now(at.lag + by) if isinstance(at, Now) else at


_REMAKE: dict[type[Expr], Callable[..., Expr]] = {
    Add: add,
    Mul: mul,
    Div: div,
    Pow: power,
}


def remake(expr: Expr, new: tuple[Expr, ...]) -> Expr:
    """Returns the node with new direct sub-expressions, flattened and folded again."""
    if new == children(expr):
        return expr
    maker = _REMAKE.get(type(expr))
    return maker(*new) if maker else rebuild(expr, new)


def rewrite(expr: Expr, rule: Callable[[Expr], Expr | None]) -> Expr:
    """Returns the expression with `rule` applied bottom-up; None keeps a node.

    Shared sub-expressions are visited once. Expressions may be of any height.
    """
    return _rewritten(expr, rule, {})


def replaced(expr: Expr, values: Mapping[Expr, Expr]) -> Expr:
    """Returns the expression with others in the place of some, the outermost first."""
    return _rewritten(expr, lambda _: None, dict(values))


def _rewritten(expr: Expr, rule: Callable[[Expr], Expr | None], done: dict[Expr, Expr]) -> Expr:
    stack = [(expr, children(expr))]
    while stack:
        e, below = stack[-1]
        waiting = () if e in done else [c for c in below if c not in done]
        if waiting:
            stack.extend((c, children(c)) for c in reversed(waiting))
            continue
        stack.pop()
        if e not in done:
            new = remake(e, tuple(done[c] for c in below))
            out = rule(new)
            done[e] = new if out is None else out
    return done[expr]


def walk(expr: Expr) -> Iterable[Expr]:
    """Yields every distinct node, parents before children."""
    seen: set[Expr] = set()
    stack = [expr]
    while stack:
        e = stack.pop()
        if e not in seen:
            seen.add(e)
            yield e
            stack.extend(reversed(children(e)))


def effective_axes(expr: Expr) -> frozenset[Axis]:
    """Returns the axes that an elementwise value depends on: those not only from `ones`."""
    if isinstance(expr, Ones):
        return frozenset()
    kids = children(expr)
    if kids and _spreads(expr):
        return frozenset().union(*(effective_axes(k) for k in kids))
    return expr.axes


def lean(expr: Expr) -> Expr:
    """Returns an elementwise value without the axes that only `ones` gives it."""
    return _over(expr, effective_axes(expr))


def _over(expr: Expr, axes: frozenset[Axis]) -> Expr:
    if isinstance(expr, Ones):
        return ones(expr.over & axes)
    if expr.axes <= axes or not _spreads(expr):
        return expr
    return remake(expr, tuple(_over(k, axes) for k in children(expr)))


def _spreads(expr: Expr) -> bool:
    """Whether a node has the axes of its arguments and treats each index alike."""
    elementwise = not isinstance(expr, Map) and getattr(expr, "axis", None) is None
    return elementwise and expr.axes == frozenset().union(*(k.axes for k in children(expr)))
