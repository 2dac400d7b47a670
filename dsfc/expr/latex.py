"""LaTeX of expressions, for formulas as papers write them.

Token-wise values carry the token as an index, k_{i}; what does not depend on the token has none. A
contraction is a sum over the axis. The text is stable and made without SymPy.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import singledispatch

from dsfc.expr.over_time import Lag, Past, Run, index_name
from dsfc.expr.reserved_names import TIME
from dsfc.expr.table import row
from dsfc.expr.text import shifted
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

SUM, TERM, POWER, ATOM = range(1, 5)

_GREEK = frozenset(
    (
        "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau"
        " upsilon phi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
    ).split()
)


def latex(expr: Expr, strength: int = SUM) -> str:
    """Returns the expression in LaTeX, in parentheses where it binds less than asked.

    Args:
        expr: the expression.
        strength: SUM, TERM, POWER or ATOM: what stands around it.
    """
    done: dict[Expr, tuple[str, int]] = {}

    def at(e: Expr, asked: int) -> str:
        if e not in done:
            done[e] = _latex(e, at)
        out, own = done[e]
        return out if own >= asked else rf"\left({out}\right)"

    return at(expr, strength)


At = Callable[[Expr, int], str]


def name(spelling: str, *indices: str) -> str:
    r"""Returns a name: Greek letters as commands, parts after `_` and indices as subscript.

    `W_Q` is W_{Q}; `b_Delta` at i is b_{\Delta, i}.
    """
    base, *rest = spelling.split("_")
    if base[1:].isdigit() and base[0].isalpha():
        base, rest = base[0], [base[1:], *rest]
    below = [*(_letter(p) for p in rest if p), *indices]
    return _letter(base) + (f"_{{{', '.join(below)}}}" if below else "")


def _letter(part: str) -> str:
    if part in _GREEK:
        return "\\" + part
    return part if len(part) <= 1 or part.isdigit() else rf"\mathrm{{{part}}}"


def map_name(map: LinearMap) -> str:
    """Returns the name of a map, its adjoint marked."""
    if not map.adjoint:
        return name(map.name)
    return name(map.name) + (r"^{\mathsf{H}}" if map.field is Field.COMPLEX else r"^{\top}")


def instant(at: Now | Bound | None) -> tuple[str, ...]:
    """Returns the token as an index; nothing for what has none."""
    if at is None:
        return ()
    return (shifted(index_name(at), at.lag),)


def _axes(axes: frozenset[Axis]) -> str:
    return ", ".join(name(a.name) for a in sorted(axes))


def _number(value: Fraction) -> str:
    sign = "-" if value < 0 else ""
    if value.denominator == 1:
        return str(value.numerator)
    return rf"{sign}\tfrac{{{abs(value.numerator)}}}{{{value.denominator}}}"


@singledispatch
def _latex(e: Expr, at: At) -> tuple[str, int]:
    raise TypeError(f"{type(e).__name__} has no LaTeX")


@_latex.register
def _(e: Num, at: At) -> tuple[str, int]:
    return _number(e.value), TERM if e.value < 0 else ATOM


@_latex.register
def _(e: Size, at: At) -> tuple[str, int]:
    return name(e.axis.name), ATOM


@_latex.register
def _(e: Ones, at: At) -> tuple[str, int]:
    return rf"\mathbf{{1}}_{{{_axes(e.over)}}}", ATOM


@_latex.register
def _(e: Iota, at: At) -> tuple[str, int]:
    return rf"\iota_{{{name(e.axis.name)}}}", ATOM


@_latex.register
def _(e: Param, at: At) -> tuple[str, int]:
    return name(e.name), ATOM


@_latex.register
def _(e: Ref, at: At) -> tuple[str, int]:
    return name(e.name, *instant(e.at)), ATOM


@_latex.register
def _(e: Add, at: At) -> tuple[str, int]:
    out = at(e.args[0], SUM)
    for a in e.args[1:]:
        t = at(a, TERM) if isinstance(a, Add) else at(a, SUM)
        out += f" - {t[1:]}" if t.startswith("-") else f" + {t}"
    return out, SUM


@_latex.register
def _(e: Mul, at: At) -> tuple[str, int]:
    first, *rest = e.args
    sign = ""
    if isinstance(first, Num) and first.value == -1 and rest:
        sign, (first, *rest) = "-", rest
    out = at(first, TERM)
    have = first.axes
    for f in rest:
        outer = not (have <= f.axes or f.axes <= have) and all(a.heads for a in have & f.axes)
        have |= f.axes
        factor = at(f, POWER if isinstance(f, Num) else TERM)
        out += (r" \otimes " if outer else r"\, ") + factor
    return sign + out, TERM


@_latex.register
def _(e: Div, at: At) -> tuple[str, int]:
    return rf"\frac{{{at(e.num, SUM)}}}{{{at(e.den, SUM)}}}", TERM


@_latex.register
def _(e: Pow, at: At) -> tuple[str, int]:
    return f"{at(e.base, ATOM)}^{{{at(e.exponent, SUM)}}}", POWER


_REDUCERS = {
    Reduction.SUM: r"\sum",
    Reduction.MEAN: r"\operatorname{mean}",
    Reduction.MAX: r"\max",
}


@_latex.register
def _(e: Reduce, at: At) -> tuple[str, int]:
    return rf"{_REDUCERS[e.how]}_{{{name(e.axis.name)}}} {at(e.arg, TERM)}", SUM


@_latex.register
def _(e: Map, at: At) -> tuple[str, int]:
    return rf"{map_name(e.map)}\, {at(e.arg, POWER)}", TERM


@_latex.register
def _(e: Fir, at: At) -> tuple[str, int]:
    sign = r"\star" if e.reverse else "*"
    return rf"{at(e.weight, ATOM)} {sign}_{{{name(e.axis.name)}}} {at(e.arg, ATOM)}", TERM


@_latex.register
def _(e: Rename, at: At) -> tuple[str, int]:
    old, new = name(e.old.name), name(e.new.name)
    return rf"{at(e.arg, ATOM)}\big|_{{{old} \to {new}}}", ATOM


@_latex.register
def _(e: Prim, at: At) -> tuple[str, int]:
    r = row(e.name)
    out = r.printers["latex"].format(*(at(a, SUM) for a in e.args))
    if e.axis is not None:
        out = out.replace("(", rf"_{{{name(e.axis.name)}}}(", 1)
    return out, ATOM if out.endswith((")", "|")) else POWER


@_latex.register
def _(e: Series, at: At) -> tuple[str, int]:
    return rf"\operatorname{{taylor}}_{{{e.order}}}({at(e.arg, SUM)})", ATOM


@_latex.register
def _(e: Abstract, at: At) -> tuple[str, int]:
    return f"{name(e.name)}({at(e.arg, SUM)})", ATOM


@_latex.register
def _(e: Draw, at: At) -> tuple[str, int]:
    arguments = ", ".join(at(a, SUM) for a in e.args)
    return rf"\operatorname{{{e.distribution.replace('_', ' ')}}}({arguments})", ATOM


_RELATIONS = {"<=": r"\le", ">=": r"\ge", "<": "<", ">": ">"}


@_latex.register
def _(e: Past, at: At) -> tuple[str, int]:
    relation = _RELATIONS[e.relation.value]
    outer = shifted(e.outer or TIME, e.lag)
    return rf"\sum_{{{e.var} {relation} {outer}}} {at(e.body, TERM)}", SUM


@_latex.register
def _(e: Lag, at: At) -> tuple[str, int]:
    out = ""
    for var, c in sorted(e.terms, key=lambda t: (t[1] < 0, t[0] != TIME, t[0])):
        size = var if abs(c) == 1 else f"{abs(c)}{var}"
        out += f"-{size}" if c < 0 else f"+{size}" if out else size
    if e.constant:
        out += f"{e.constant:+d}"
    return out or "0", SUM


@_latex.register
def _(e: Run, at: At) -> tuple[str, int]:
    low, high = (shifted(index_name(t), t.lag) for t in (e.low, e.high))
    product = rf"\prod_{{{low} < {e.var} \le {high}}} {at(e.arg, TERM)}"
    return product, SUM
