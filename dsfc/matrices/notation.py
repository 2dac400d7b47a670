"""How operators are written: as text or in LaTeX, at any token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dsfc.expr import latex as tex
from dsfc.expr.build import MINUS_ONE, is_one, mul, rewrite
from dsfc.expr.text import ATOM, DOT, POWER, SUM, TERM, Printer, map_name
from dsfc.expr.tree import Axis, Bound, Expr, LinearMap, Mul, Now, Num, Ref
from dsfc.matrices.kronecker import After, Kron, KronFactor, Operator, Shape, is_identity


class Notation(Protocol):
    """A way to write operators."""

    @property
    def token(self) -> str:
        """The letter of the token."""

    @property
    def times(self) -> str:
        """Stands between the factors of a Kronecker product."""

    @property
    def dot(self) -> str:
        """Stands between the factors of a product."""

    def expr(self, e: Expr, strength: int = SUM) -> str:
        """Returns an expression, in parentheses where it binds less than `strength`."""

    def quotient(self, above: Expr, below: Expr) -> str:
        """Returns a scalar quotient, ready to stand in front."""

    def map(self, m: LinearMap) -> str:
        """Returns the name of a map."""

    def identity(self, axes: Sequence[Axis]) -> str:
        """Returns an identity matrix."""

    def ones(self, axes: Sequence[Axis]) -> str:
        """Returns a column of ones."""

    def transposed(self, column: str) -> str:
        """Returns a row."""

    def diagonal(self, inner: str) -> str:
        """Returns a diagonal matrix."""

    def blocks(self, kept: Sequence[Axis], inner: str) -> str:
        """Returns a block-diagonal matrix with one block per index."""


def instant(token: str, lag: int) -> str:
    """Returns the token i - lag without braces; a number where the token is one."""
    if token.isdigit():
        return str(int(token) - lag)
    return token if lag == 0 else f"{token}-{lag}" if lag > 0 else f"{token}+{-lag}"


def subscript(token: str, lag: int) -> str:
    """Returns the token i - lag as a subscript of plain text."""
    shown = instant(token, lag)
    return shown if lag == 0 or token.isdigit() else f"{{{shown}}}"


def subscripted(e: Expr, token: str) -> Expr:
    """Returns the expression with the token written into the names of token-wise values."""

    def named(n: Expr) -> Expr | None:
        if isinstance(n, Ref) and isinstance(n.at, Now):
            shown = f"{n.name}_{subscript(token, n.at.lag)}"
            return Ref(shown, n.over, n.kind, n.when, Now(0))
        return None

    return rewrite(e, named)


@dataclass(frozen=True, slots=True)
class Text:
    """Plain Unicode text: `(1 / eta_i) (I_p ⊗ k_i)`."""

    token: str = "i"
    times: str = " ⊗ "
    dot: str = " · "

    def expr(self, e: Expr, strength: int = SUM) -> str:
        """See `Notation`."""
        return Printer().at(subscripted(e, self.token), strength)

    def quotient(self, above: Expr, below: Expr) -> str:
        """See `Notation`."""
        return f"({self.expr(above, TERM)} / {self.expr(below, DOT)})"

    def map(self, m: LinearMap) -> str:
        """See `Notation`."""
        return map_name(m)

    def identity(self, axes: Sequence[Axis]) -> str:
        """See `Notation`."""
        return "I_" + (axes[0].name if len(axes) == 1 else f"{{{' '.join(a.name for a in axes)}}}")

    def ones(self, axes: Sequence[Axis]) -> str:
        """See `Notation`."""
        return "1_" + (axes[0].name if len(axes) == 1 else f"{{{' '.join(a.name for a in axes)}}}")

    def transposed(self, column: str) -> str:
        """See `Notation`."""
        return f"{column}ᵀ"

    def diagonal(self, inner: str) -> str:
        """See `Notation`."""
        return f"diag({inner})"

    def blocks(self, kept: Sequence[Axis], inner: str) -> str:
        """See `Notation`."""
        return f"blockdiag_{','.join(a.name for a in kept)}({inner})"


_LATEX_STRENGTH = {SUM: tex.SUM, TERM: tex.TERM, DOT: tex.TERM, POWER: tex.TERM, ATOM: tex.POWER}


@dataclass(frozen=True, slots=True)
class Latex:
    """LaTeX for mathematics mode."""

    token: str = "i"
    times: str = r" \otimes "
    dot: str = r" \, "

    def expr(self, e: Expr, strength: int = SUM) -> str:
        """See `Notation`."""

        def moved(n: Expr) -> Expr | None:
            if isinstance(n, Ref) and isinstance(n.at, Now):
                return Ref(n.name, n.over, n.kind, n.when, Bound(self.token, n.at.lag))
            return None

        return tex.latex(rewrite(e, moved), _LATEX_STRENGTH[strength])

    def quotient(self, above: Expr, below: Expr) -> str:
        """See `Notation`."""
        return rf"\frac{{{self.expr(above)}}}{{{self.expr(below)}}}"

    def map(self, m: LinearMap) -> str:
        """See `Notation`."""
        return tex.map_name(m)

    def identity(self, axes: Sequence[Axis]) -> str:
        """See `Notation`."""
        return f"I_{{{' '.join(tex.name(a.name) for a in axes)}}}"

    def ones(self, axes: Sequence[Axis]) -> str:
        """See `Notation`."""
        return rf"\mathbf{{1}}_{{{' '.join(tex.name(a.name) for a in axes)}}}"

    def transposed(self, column: str) -> str:
        """See `Notation`."""
        return rf"{{{column}}}^{{\top}}"

    def diagonal(self, inner: str) -> str:
        """See `Notation`."""
        return rf"\operatorname{{diag}}({inner})"

    def blocks(self, kept: Sequence[Axis], inner: str) -> str:
        """See `Notation`."""
        names = ", ".join(tex.name(a.name) for a in kept)
        return rf"\operatorname{{blockdiag}}_{{{names}}}({inner})"


# --- operators ------------------------------------------------------------------------------------


def operator(o: Operator, n: Notation) -> str:
    """Returns a sum of Kronecker products."""
    if not o:
        return "0"
    out = _kron(o[0], n)
    for k in o[1:]:
        t = _kron(k, n)
        out += f" - {t[1:]}" if t.startswith("-") else f" + {t}"
    return out


def chain(operators: Sequence[Operator], n: Notation) -> str:
    """Returns a product of operators, in the order given; identities among others are left out."""
    shown = [o for o in operators if not is_identity(o)] or list(operators[:1])
    if len(shown) == 1:
        return operator(shown[0], n)
    return n.dot.join(in_product(o, n) for o in shown)


def in_product(o: Operator, n: Notation) -> str:
    """Returns an operator as a factor of a product: in parentheses where it needs them."""
    shown = operator(o, n)
    bare = len(o) == 1 and not (o[0].above or o[0].below or o[0].after or o[0].before)
    apart = bare and n.times in shown and not shown.startswith("-")
    return f"({shown})" if apart or len(o) > 1 else shown


def chain_in_product(operators: Sequence[Operator], n: Notation) -> str:
    """Returns a product of operators as part of a longer one."""
    shown = [o for o in operators if not is_identity(o)] or list(operators[:1])
    return n.dot.join(in_product(o, n) for o in shown)


def _kron(k: Kron, n: Notation) -> str:
    """Returns one product: maps after, coefficient, factors, maps before."""
    sign, coefficient = _coefficient(k.above, k.below, n)
    before = [n.map(m) for m in k.before]
    after = [_after(a, n) for a in k.after]
    factors = _factors(k.factors, n)
    beside = bool(after or before or coefficient)
    identity = all(f.is_identity for f in k.factors)
    middle: list[str] = []
    if factors and not (identity and (after or before)):
        joined = n.times.join(factors)
        middle.append(f"({joined})" if len(factors) > 1 and beside else joined)
    parts = [*after, *([coefficient] if coefficient else []), *middle, *before]
    return sign + (" ".join(parts) or "1")


def _coefficient(above: tuple[Expr, ...], below: tuple[Expr, ...], n: Notation) -> tuple[str, str]:
    value = mul(*above)
    sign = ""
    first = value.args[0] if isinstance(value, Mul) else value
    if isinstance(first, Num) and first.value < 0:
        sign, value = "-", mul(MINUS_ONE, value)
    if below:
        return sign, n.quotient(value, mul(*below))
    return sign, "" if is_one(value) else n.expr(value, POWER)


def _after(a: After, n: Notation) -> str:
    if isinstance(a, LinearMap):
        return n.map(a)
    if isinstance(a, Axis):
        return n.transposed(n.ones((a,)))
    return n.diagonal(n.expr(a))


def _factors(factors: tuple[KronFactor, ...], n: Notation) -> list[str]:
    out: list[str] = []
    run: list[Axis] = []
    for f in factors:
        if f.is_identity:
            run += f.axes
            continue
        if run:
            out.append(n.identity(run))
            run = []
        out.append(_factor(f, n))
    if run:
        out.append(n.identity(run))
    return out


def _factor(f: KronFactor, n: Notation) -> str:
    def entries(e: Expr, strength: int) -> str:
        return n.ones(f.axes) if is_one(e) else n.expr(e, strength)

    match f.shape:
        case Shape.DIAGONAL:
            return n.diagonal(n.expr(f.value))
        case Shape.COLUMN:
            return entries(f.value, ATOM)
        case Shape.ROW:
            return n.transposed(entries(f.value, ATOM))
        case Shape.COLUMNS:
            return n.blocks(f.kept, entries(f.value, SUM))
        case Shape.ROWS:
            return n.blocks(f.kept, n.transposed(entries(f.value, ATOM)))
        case Shape.OUTER:
            both = f"{entries(f.value, ATOM)} {n.transposed(entries(f.right, ATOM))}"
            return n.blocks(f.kept, both) if f.kept else both
