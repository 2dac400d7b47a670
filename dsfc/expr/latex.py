"""LaTeX of expressions, for formulas as papers write them.

Token-wise values carry the token as an index, k_{i}; what does not depend on the token has none. A
contraction is a sum over the axis. The text is stable and made without SymPy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from types import MappingProxyType

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
from dsfc.latex_symbol import Symbol

SUM, TERM, POWER, ATOM = range(1, 5)

_GREEK = frozenset(
    (
        "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau"
        " upsilon phi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
    ).split()
)


Letters = Mapping[str, Symbol]
"""Name → how a text spells it, `i` for the token; other names stand in typewriter there."""

OWN: Letters = MappingProxyType({})
"""The letters of specs: every name is spelled as it is."""


def latex(expr: Expr, strength: int = SUM) -> str:
    """Returns the expression in LaTeX, in parentheses where it binds less than asked.

    Args:
        expr: the expression.
        strength: SUM, TERM, POWER or ATOM: what stands around it.
    """
    return Printer(OWN)(expr, strength)


class Printer:
    """Prints expressions, each distinct node once, with the letters of one text."""

    def __init__(self, letters: Letters) -> None:
        """Starts with an empty memory.

        Args:
            letters: of the text.
        """
        self._letters = letters
        self._done: dict[Expr, tuple[str, int]] = {}

    def __call__(self, expr: Expr, strength: int) -> str:
        """Returns the LaTeX of an expression where `strength` is asked."""
        if expr not in self._done:
            self._done[expr] = _latex(expr, self)
        out, own = self._done[expr]
        return out if own >= strength else rf"\left({out}\right)"

    def name(self, spelling: str, *indices: str) -> str:
        """Returns a name with indices below it; in typewriter among others that are letters."""
        letter = self._letters.get(spelling)
        if letter is None:
            return name(spelling, *indices, typewriter=bool(self._letters))
        return letter.at(*indices)

    def named(self, spelling: str, *indices: str) -> tuple[str, int]:
        """Returns a name with its strength: one with a superscript takes no other."""
        letter = self._letters.get(spelling)
        return self.name(spelling, *indices), POWER if letter and letter.above else ATOM

    def map_name(self, map: LinearMap) -> str:
        """Returns the name of a map, its adjoint marked."""
        if not map.adjoint:
            return self.name(map.name)
        shown, strength = self.named(map.name)
        mark = r"^{\mathsf{H}}" if map.field is Field.COMPLEX else r"^{\top}"
        return (shown if strength == ATOM else f"{{{shown}}}") + mark

    def token(self, index: str) -> str:
        """Returns the index of a token."""
        return self.name(TIME) if index == TIME and TIME in self._letters else index

    def instant(self, at: Now | Bound | None) -> tuple[str, ...]:
        """Returns the token as an index; nothing for what has none."""
        return () if at is None else (shifted(self.token(index_name(at)), at.lag),)

    def axes(self, axes: frozenset[Axis]) -> str:
        """Returns axes, with commas between them."""
        return ", ".join(self.name(a.name) for a in sorted(axes))


def name(spelling: str, *indices: str, typewriter: bool = False) -> str:
    r"""Returns a name: Greek letters as commands, parts after `_` and indices as subscript.

    `W_Q` is W_{Q}; `b_Delta` at i is b_{\Delta, i}.
    """
    base, *rest = spelling.split("_")
    if base[1:].isdigit() and base[0].isalpha():
        base, rest = base[0], [base[1:], *rest]
    below = [*(_letter(p) for p in rest if p), *indices]
    shown = rf"\mathtt{{{_sign(base)}}}" if typewriter else _letter(base)
    return shown + (f"_{{{', '.join(below)}}}" if below else "")


def _letter(part: str) -> str:
    word = len(part) > 1 and part not in _GREEK and not part.isdigit()
    return rf"\mathrm{{{part}}}" if word else _sign(part)


def _sign(part: str) -> str:
    return "\\" + part if part in _GREEK else part


def map_name(map: LinearMap) -> str:
    """Returns the name of a map, its adjoint marked."""
    return Printer(OWN).map_name(map)


def _number(value: Fraction) -> str:
    sign = "-" if value < 0 else ""
    if value.denominator == 1:
        return str(value.numerator)
    return rf"{sign}\tfrac{{{abs(value.numerator)}}}{{{value.denominator}}}"


@singledispatch
def _latex(e: Expr, at: Printer) -> tuple[str, int]:
    raise TypeError(f"{type(e).__name__} has no LaTeX")


@_latex.register
def _(e: Num, at: Printer) -> tuple[str, int]:
    return _number(e.value), TERM if e.value < 0 else ATOM


@_latex.register
def _(e: Size, at: Printer) -> tuple[str, int]:
    return at.named(e.axis.name)


@_latex.register
def _(e: Ones, at: Printer) -> tuple[str, int]:
    return rf"\mathbf{{1}}_{{{at.axes(e.over)}}}", ATOM


@_latex.register
def _(e: Iota, at: Printer) -> tuple[str, int]:
    return rf"\iota_{{{at.name(e.axis.name)}}}", ATOM


@_latex.register
def _(e: Param, at: Printer) -> tuple[str, int]:
    return at.named(e.name)


@_latex.register
def _(e: Ref, at: Printer) -> tuple[str, int]:
    return at.named(e.name, *at.instant(e.at))


@_latex.register
def _(e: Add, at: Printer) -> tuple[str, int]:
    out = at(e.args[0], SUM)
    for a in e.args[1:]:
        t = at(a, TERM) if isinstance(a, Add) else at(a, SUM)
        out += f" - {t[1:]}" if t.startswith("-") else f" + {t}"
    return out, SUM


@_latex.register
def _(e: Mul, at: Printer) -> tuple[str, int]:
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
def _(e: Div, at: Printer) -> tuple[str, int]:
    return rf"\frac{{{at(e.num, SUM)}}}{{{at(e.den, SUM)}}}", TERM


@_latex.register
def _(e: Pow, at: Printer) -> tuple[str, int]:
    return f"{at(e.base, ATOM)}^{{{at(e.exponent, SUM)}}}", POWER


_REDUCERS = {
    Reduction.SUM: r"\sum",
    Reduction.MEAN: r"\operatorname{mean}",
    Reduction.MAX: r"\max",
}


@_latex.register
def _(e: Reduce, at: Printer) -> tuple[str, int]:
    return rf"{_REDUCERS[e.how]}_{{{at.name(e.axis.name)}}} {at(e.arg, TERM)}", SUM


@_latex.register
def _(e: Map, at: Printer) -> tuple[str, int]:
    return rf"{at.map_name(e.map)}\, {at(e.arg, POWER)}", TERM


@_latex.register
def _(e: Fir, at: Printer) -> tuple[str, int]:
    sign = r"\star" if e.reverse else "*"
    return rf"{at(e.weight, ATOM)} {sign}_{{{at.name(e.axis.name)}}} {at(e.arg, ATOM)}", TERM


@_latex.register
def _(e: Rename, at: Printer) -> tuple[str, int]:
    old, new = at.name(e.old.name), at.name(e.new.name)
    return rf"{at(e.arg, ATOM)}\big|_{{{old} \to {new}}}", ATOM


@dataclass(frozen=True, slots=True)
class _Argument:
    """An argument of a primitive: bare in the text of a row, or `{1.factor}`, one of a product."""

    value: Expr
    at: Printer

    def __str__(self) -> str:
        return self.at(self.value, SUM)

    @property
    def factor(self) -> str:
        return self.at(self.value, TERM)


@_latex.register
def _(e: Prim, at: Printer) -> tuple[str, int]:
    r = row(e.name)
    out = r.printers["latex"].format(*(_Argument(a, at) for a in e.args))
    if e.axis is not None:
        out = out.replace("(", rf"_{{{at.name(e.axis.name)}}}(", 1)
    return out, ATOM if out.endswith((")", "|")) else POWER


@_latex.register
def _(e: Series, at: Printer) -> tuple[str, int]:
    return rf"\operatorname{{taylor}}_{{{e.order}}}({at(e.arg, SUM)})", ATOM


@_latex.register
def _(e: Abstract, at: Printer) -> tuple[str, int]:
    return f"{at.name(e.name)}({at(e.arg, SUM)})", ATOM


@_latex.register
def _(e: Draw, at: Printer) -> tuple[str, int]:
    arguments = ", ".join(at(a, SUM) for a in e.args)
    return rf"\operatorname{{{e.distribution.replace('_', ' ')}}}({arguments})", ATOM


_RELATIONS = {"<=": r"\le", ">=": r"\ge", "<": "<", ">": ">"}


@_latex.register
def _(e: Past, at: Printer) -> tuple[str, int]:
    relation = _RELATIONS[e.relation.value]
    outer = shifted(at.token(e.outer or TIME), e.lag)
    return rf"\sum_{{{e.var} {relation} {outer}}} {at(e.body, TERM)}", SUM


@_latex.register
def _(e: Lag, at: Printer) -> tuple[str, int]:
    out = ""
    for var, c in sorted(e.terms, key=lambda t: (t[1] < 0, t[0] != TIME, t[0])):
        size = at.token(var) if abs(c) == 1 else f"{abs(c)}{at.token(var)}"
        out += f"-{size}" if c < 0 else f"+{size}" if out else size
    if e.constant:
        out += f"{e.constant:+d}"
    return out or "0", SUM


@_latex.register
def _(e: Run, at: Printer) -> tuple[str, int]:
    low, high = (shifted(at.token(index_name(t)), t.lag) for t in (e.low, e.high))
    product = rf"\prod_{{{low} < {e.var} \le {high}}} {at(e.arg, TERM)}"
    return product, SUM
