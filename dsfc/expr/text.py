"""Readable text of expressions, close to the syntax of specs, with as few parentheses as it allows.

The text is stable: it depends on the expression alone. It is for people; a spec that says the same
may be typed in other words (`*` and `⊗` are one node, and `a · b` is a sum of products).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import singledispatch

from dsfc.expr.distributions import distribution
from dsfc.expr.over_time import Lag, Past, Run, index_name
from dsfc.expr.reserved_names import TIME
from dsfc.expr.table import row
from dsfc.expr.tree import (
    Abstract,
    Add,
    Axis,
    Bound,
    Div,
    Draw,
    Expr,
    Field,
    Fir,
    Iota,
    LinearMap,
    Map,
    Mul,
    Now,
    Num,
    Ones,
    Param,
    Pow,
    Prim,
    Reduce,
    Reduction,
    Ref,
    Rename,
    Series,
    Size,
)

# Binding strengths of the grammar: a text needs parentheses where more than its own is asked.
SUM, OUTER, TERM, DOT, SIGN, POWER, ATOM = range(1, 8)

_ASCII = str.maketrans({"⊗": "(*)", "·": ".", "≤": "<=", "≥": ">="})


def text(expr: Expr, ascii_only: bool = False) -> str:
    """Returns the expression as text.

    Args:
        expr: the expression.
        ascii_only: spell ⊗ · ≤ ≥ as `(*)`, `.`, `<=`, `>=`.
    """
    out = Printer().at(expr, SUM)
    return out.translate(_ASCII) if ascii_only else out


class Printer:
    """Prints expressions, each distinct node once."""

    def __init__(self) -> None:
        """Starts with an empty memory."""
        self._done: dict[Expr, tuple[str, int]] = {}

    def at(self, expr: Expr, strength: int) -> str:
        """Returns the text of an expression where `strength` is asked."""
        if expr not in self._done:
            self._done[expr] = _text(expr, self.at)
        out, own = self._done[expr]
        return out if own >= strength else f"({out})"


At = Callable[[Expr, int], str]


def number(value: Fraction) -> tuple[str, int]:
    """Returns an exact number as text with its binding strength: 3, 0.02, 1/3, -1/2."""
    sign = SIGN if value < 0 else ATOM
    if value.denominator == 1:
        return str(value.numerator), sign
    if _is_decimal(value.denominator) and value.denominator > 16:
        short = repr(float(value))
        if Fraction(short) == value:
            return short, sign
    return f"{value.numerator}/{value.denominator}", TERM


def _is_decimal(n: int) -> bool:
    for p in (2, 5):
        while n % p == 0:
            n //= p
    return n == 1


def instant(at: Now | Bound | None) -> str:
    """Returns a time index in brackets; nothing for the present."""
    if at is None or at == Now(0):
        return ""
    name = index_name(at)
    return f"[{shifted(name, at.lag)}]"


def shifted(name: str, lag: int) -> str:
    """Returns an index `lag` tokens ago: i, i-1, i+2."""
    return name if lag == 0 else f"{name}-{lag}" if lag > 0 else f"{name}+{-lag}"


def map_name(map: LinearMap) -> str:
    """Returns the name of a map; its adjoint is marked ^T (real) or ^H (complex)."""
    if not map.adjoint:
        return map.name
    return map.name + ("^H" if map.field is Field.COMPLEX else "^T")


@singledispatch
def _text(e: Expr, at: At) -> tuple[str, int]:
    raise TypeError(f"{type(e).__name__} has no text")


@_text.register
def _(e: Num, at: At) -> tuple[str, int]:
    return number(e.value)


@_text.register
def _(e: Size, at: At) -> tuple[str, int]:
    return e.axis.name, ATOM


@_text.register
def _(e: Ones, at: At) -> tuple[str, int]:
    return f"ones[{', '.join(a.name for a in sorted(e.over))}]", ATOM


@_text.register
def _(e: Iota, at: At) -> tuple[str, int]:
    return f"iota[{e.axis.name}]", ATOM


@_text.register
def _(e: Param, at: At) -> tuple[str, int]:
    return e.name, ATOM


@_text.register
def _(e: Ref, at: At) -> tuple[str, int]:
    return e.name + instant(e.at), ATOM


@_text.register
def _(e: Add, at: At) -> tuple[str, int]:
    out = at(e.args[0], OUTER)
    for a in e.args[1:]:
        t = at(a, OUTER)
        out += f" - {t[1:]}" if t.startswith("-") else f" + {t}"
    return out, SUM


@_text.register
def _(e: Mul, at: At) -> tuple[str, int]:
    first, *rest = e.args
    if isinstance(first, Num) and first.value == -1 and rest:
        # The minus of the spec binds one factor; a sign in front of a product is the same value.
        out, strength = _product(rest, at)
        return f"-{out}", min(strength, SIGN)
    return _product(list(e.args), at)


def _product(factors: list[Expr], at: At) -> tuple[str, int]:
    strength = TERM if len(factors) > 1 else SIGN
    out = at(factors[0], TERM if len(factors) > 1 else SIGN)
    have = factors[0].axes
    for f in factors[1:]:
        sign = _sign(have, f.axes)
        strength = OUTER if sign == "⊗" else strength
        have |= f.axes
        out += f" {sign} {at(f, DOT)}"
    return out, strength


def _sign(left: frozenset[Axis], right: frozenset[Axis]) -> str:
    """`⊗` where the axes are different (but for heads), else `*`."""
    if left <= right or right <= left:
        return "*"
    return "⊗" if all(a.heads for a in left & right) else "*"


@_text.register
def _(e: Div, at: At) -> tuple[str, int]:
    return f"{at(e.num, TERM)} / {at(e.den, DOT)}", TERM


@_text.register
def _(e: Pow, at: At) -> tuple[str, int]:
    return f"{at(e.base, ATOM)}^{at(e.exponent, ATOM)}", POWER


@_text.register
def _(e: Reduce, at: At) -> tuple[str, int]:
    if e.how is Reduction.SUM and isinstance(e.arg, Mul) and len(e.arg.args) == 2:
        left, right = e.arg.args
        shared = {a for a in left.axes & right.axes if not a.heads}
        if shared == {e.axis}:
            return f"{at(left, DOT)} · {at(right, SIGN)}", DOT
    if e.how is Reduction.SUM and isinstance(e.arg, Mul):
        # Factors without the axis stand in front: n^(-1/2) * q · S.
        inside = [a for a in e.arg.args if e.axis in a.axes]
        outside = [a for a in e.arg.args if e.axis not in a.axes]
        if outside and len(inside) == 2:
            dot = Reduce(Reduction.SUM, e.axis, Mul(tuple(inside)))
            if dot.axes | frozenset().union(*(a.axes for a in outside)) == e.axes:
                return _text(Mul((*outside, dot)), at)
    return f"{e.how.value}[{e.axis.name}]({at(e.arg, SUM)})", ATOM


@_text.register
def _(e: Map, at: At) -> tuple[str, int]:
    # Strength of the application W x: an operand is a name, a call, or another application.
    operand = isinstance(e.arg, Ref | Param | Map | Prim | Fir | Series | Abstract | Past | Run)
    inner = at(e.arg, SUM)
    return f"{map_name(e.map)} {inner}" if operand else f"{map_name(e.map)}({inner})", POWER


@_text.register
def _(e: Fir, at: At) -> tuple[str, int]:
    way = ", reverse" if e.reverse else ""
    return f"fir[{e.axis.name}{way}]({at(e.weight, SUM)}, {at(e.arg, SUM)})", ATOM


@_text.register
def _(e: Rename, at: At) -> tuple[str, int]:
    return f"rename[{e.old.name}, {e.new.name}]({at(e.arg, SUM)})", ATOM


@_text.register
def _(e: Prim, at: At) -> tuple[str, int]:
    name = row(e.name).spelling
    axis = f"[{e.axis.name}]" if e.axis else ""
    call = f"({', '.join(at(a, SUM) for a in e.args)})" if e.args else ""
    return name + axis + call, ATOM


@_text.register
def _(e: Series, at: At) -> tuple[str, int]:
    return f"taylor[{e.order}]({at(e.arg, SUM)})", ATOM


@_text.register
def _(e: Abstract, at: At) -> tuple[str, int]:
    return f"{e.name}({at(e.arg, SUM)})", ATOM


@_text.register
def _(e: Draw, at: At) -> tuple[str, int]:
    # A sequence is along one axis, a draw over all that its tensor has.
    sequence = distribution(e.distribution).sequence is not None
    along = f"[{', '.join(sorted(a.name for a in e.over))}]" if sequence else ""
    return f"{e.distribution}{along}({', '.join(at(a, SUM) for a in e.args)})", ATOM


_RELATIONS = {"<=": "≤", ">=": "≥"}


@_text.register
def _(e: Past, at: At) -> tuple[str, int]:
    relation = _RELATIONS.get(e.relation.value, e.relation.value)
    outer = shifted(e.outer or TIME, e.lag)
    return f"sum[{e.var} {relation} {outer}]({at(e.body, SUM)})", ATOM


@_text.register
def _(e: Lag, at: At) -> tuple[str, int]:
    out = ""
    # The outer index first: i-j reads as a lag.
    for var, c in sorted(e.terms, key=lambda t: (t[1] < 0, t[0] != TIME, t[0])):
        size = var if abs(c) == 1 else f"{abs(c)}*{var}"
        out += f"-{size}" if c < 0 else f"+{size}" if out else size
    if e.constant:
        out += f"{e.constant:+d}"
    return out or "0", SUM if len(e.terms) + bool(e.constant) > 1 else SIGN


@_text.register
def _(e: Run, at: At) -> tuple[str, int]:
    low, high = (shifted(index_name(t), t.lag) for t in (e.low, e.high))
    return f"prod[{low} < {e.var} ≤ {high}]({at(e.arg, SUM)})", ATOM
