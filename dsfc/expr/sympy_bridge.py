"""The one door to SymPy: expressions become SymPy objects, by constructors only.

Two views. `to_sympy` treats an expression elementwise: a leaf, or a node SymPy has
no word for (a contraction, a map, a filter), is one symbol. `entries` writes an expression out at
chosen sizes: an array of SymPy expressions over symbols with indices, such as k_{2,0,1}.

Symbols come from one table, `Symbols`, which fixes the assumptions of a name when the name is first
met; SymPy takes symbols of different assumptions for different things. No text is ever parsed, and
`simplify` is never called.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import sympy
from numpy.typing import NDArray

from dsfc.expr.declarations import Constraint
from dsfc.expr.evaluate import NamedArray, Scope, evaluate
from dsfc.expr.table import Primitive
from dsfc.expr.text import text
from dsfc.expr.tree import Add, Div, Expr, Field, Mul, Num, Ones, Param, Pow, Prim, Ref

Symbolic: TypeAlias = Any
"""Any SymPy object; the annotation of values that the rest of the compiler only passes on."""

_ASSUMPTIONS: Mapping[Constraint, Mapping[str, bool]] = {
    Constraint.NONE: {},
    Constraint.POSITIVE: {"positive": True},
    Constraint.NONNEG: {"nonnegative": True},
    Constraint.UNIT: {"nonnegative": True},
    Constraint.NONZERO: {"nonzero": True},
}


class TableFunction(sympy.Function):  # type: ignore[misc]  # SymPy leaves it untyped
    """A primitive that SymPy has no name for; `doit` writes it out, so do numbers and derivatives.

    It stays whole in algebra, which keeps expressions small and comes back as the same primitive.
    """

    nargs = 1

    def written_out(self) -> Symbolic:
        """Returns the definition."""
        return _DEFINITIONS[self.func.__name__](*self.args)

    def doit(self, **hints: bool) -> Symbolic:
        """Returns the definition."""
        return self.written_out().doit(**hints)

    def fdiff(self, argindex: int = 1) -> Symbolic:
        """Returns the derivative."""
        name = _DERIVATIVES.get(self.func.__name__)
        if name is not None:
            return _OPAQUE[name](*self.args)
        x = sympy.Dummy()
        return _DEFINITIONS[self.func.__name__](x).diff(x).xreplace({x: self.args[0]})

    def _eval_evalf(self, prec: int) -> Symbolic:
        return self.written_out()._eval_evalf(prec)

    def _eval_is_real(self) -> bool | None:
        real: bool | None = self.args[0].is_real
        return real


_DEFINITIONS: Mapping[str, Callable[[Symbolic], Symbolic]] = {
    "log1p": lambda x: sympy.log(1 + x),
    "expm1": lambda x: sympy.exp(x) - 1,
    "exprel": lambda x: sympy.Piecewise(((sympy.exp(x) - 1) / x, sympy.Ne(x, 0)), (1, True)),
    "exprel_slope": lambda x: sympy.Piecewise(
        ((sympy.exp(x) * (x - 1) + 1) / x**2, sympy.Ne(x, 0)), (sympy.Rational(1, 2), True)
    ),
    "sigmoid": lambda x: 1 / (1 + sympy.exp(-x)),
    "softplus": lambda x: sympy.log(1 + sympy.exp(x)),
    "logsigmoid": lambda x: -sympy.log(1 + sympy.exp(-x)),
    "relu": lambda x: sympy.Max(x, 0),
    "elu": lambda x: sympy.Piecewise((x, x > 0), (sympy.exp(x) - 1, True)),
    "silu": lambda x: x / (1 + sympy.exp(-x)),
    "gelu": lambda x: x * (1 + sympy.erf(x / sympy.sqrt(2))) / 2,
}
# Of a value defined by cases SymPy would take the derivative case by case: 0 at the point.
_DERIVATIVES = {"exprel": "exprel_slope"}
_OPAQUE: Mapping[str, type[TableFunction]] = {
    name: type(name, (TableFunction,), {}) for name in _DEFINITIONS
}
_ROW_OF = {f: name for name, f in _OPAQUE.items()} | {
    sympy.Abs: "abs", sympy.sign: "sign", sympy.Heaviside: "step", sympy.sin: "sin",
    sympy.cos: "cos", sympy.tanh: "tanh", sympy.erf: "erf", sympy.Max: "max", sympy.Min: "min",
    sympy.re: "re", sympy.im: "im", sympy.conjugate: "conj", sympy.log: "log", sympy.exp: "exp",
}  # fmt: skip
_CONSTRUCTORS: Mapping[str, Callable[..., Symbolic]] = {
    row: f for f, row in _ROW_OF.items() if row not in ("step",)
} | {
    "sqrt": sympy.sqrt,
    "cplx": lambda a, b: a + sympy.I * b,
    "cis": lambda a: sympy.exp(sympy.I * a),
    "pi": lambda: sympy.pi,
    # Evaluated, SymPy would write them out in sines and cosines.
    "re": lambda a: a if a.is_real else sympy.re(a, evaluate=False),
    "im": lambda a: sympy.S.Zero if a.is_real else sympy.im(a, evaluate=False),
    "step": lambda a: sympy.Heaviside(a, sympy.Rational(1, 2)),
    "stop_gradient": lambda a: a,
}


def apply_row(name: str, *args: Symbolic) -> Symbolic:
    """Returns an elementwise primitive of the table applied to SymPy expressions."""
    return _CONSTRUCTORS[name](*args)


def number(value: Fraction) -> sympy.Rational:
    """Returns an exact number."""
    return sympy.Rational(value.numerator, value.denominator)


class Symbols:
    """The table of symbols of one translation.

    Args:
        constraints: promises on the values of named tensors, turned into assumptions.
    """

    def __init__(self, constraints: Mapping[str, Constraint] | None = None) -> None:
        """Starts with no symbols."""
        self._constraints = dict(constraints or {})
        self._of_expr: dict[Expr, sympy.Symbol] = {}
        self._taken: dict[str, sympy.Symbol] = {}

    def named(self, name: str, label: str, field: Field) -> sympy.Symbol:
        """Returns the symbol `label`, with the assumptions declared for `name`."""
        known = self._taken.get(label)
        if known is None:
            facts = dict(_ASSUMPTIONS[self._constraints.get(name, Constraint.NONE)])
            if field is Field.REAL:
                facts.setdefault("real", True)
            known = self._taken[label] = sympy.Symbol(label, **facts)
        return known

    def atom(self, expr: Expr) -> sympy.Symbol:
        """Returns the symbol that stands for a leaf, or for a node SymPy has no word for."""
        symbol = self._of_expr.get(expr)
        if symbol is None:
            label = text(expr)
            while label in self._taken:
                label += "′"
            name = expr.name if isinstance(expr, Ref | Param) else ""
            symbol = self.named(name, label, expr.field)
            self._of_expr[expr] = symbol
        return symbol

    def entry(self, name: str, index: Sequence[int], field: Field) -> sympy.Symbol:
        """Returns the symbol of one entry of a named array, e.g. k_{2,0,1}."""
        label = f"{name}_{{{','.join(map(str, index))}}}" if index else name
        return self.named(name, label, field)


# --- elementwise ----------------------------------------------------------------------------------


def to_sympy(expr: Expr, symbols: Symbols) -> sympy.Expr:
    """Returns an expression, elementwise: axes are not shown, ones are 1."""
    done: dict[Expr, sympy.Expr] = {}

    def go(e: Expr) -> sympy.Expr:
        if e not in done:
            done[e] = _elementwise(e, go, symbols)
        return done[e]

    return go(expr)


def _elementwise(e: Expr, go: Callable[[Expr], sympy.Expr], symbols: Symbols) -> sympy.Expr:
    match e:
        case Num():
            return number(e.value)
        case Ones():
            return sympy.Integer(1)
        case Add():
            return sympy.Add(*(go(a) for a in e.args))
        case Mul():
            return sympy.Mul(*(go(a) for a in e.args))
        case Div():
            return go(e.num) / go(e.den)
        case Pow():
            return go(e.base) ** go(e.exponent)
        case Prim() if e.axis is None:
            return apply_row(e.name, *(go(a) for a in e.args))
        case _:
            return symbols.atom(e)


# --- entry by entry -------------------------------------------------------------------------------


class Exact:
    """The algebra of SymPy entries, for `dsfc.expr.evaluate.evaluate`."""

    def number(self, value: Fraction) -> sympy.Rational:
        """Returns an exact number."""
        return number(value)

    def apply(self, row: Primitive, args: tuple[NDArray[Any], ...], axis: int | None) -> Any:  # noqa: ANN401
        """Applies a primitive entry by entry, or by its definition along an axis."""
        if axis is not None:
            return _ALONG[row.name](args[0], axis)
        if not args:
            return apply_row(row.name)
        return np.frompyfunc(_CONSTRUCTORS[row.name], len(args), 1)(*args)


def _softmax(x: NDArray[Any], axis: int) -> NDArray[Any]:
    e = np.frompyfunc(sympy.exp, 1, 1)(x)
    return np.asarray(e / np.sum(e, axis=axis, keepdims=True))


def _l2norm(x: NDArray[Any], axis: int) -> NDArray[Any]:
    square = np.sum(x * x, axis=axis, keepdims=True)
    return np.asarray(x / np.frompyfunc(sympy.sqrt, 1, 1)(square))


def _rmsnorm(x: NDArray[Any], axis: int) -> NDArray[Any]:
    return np.asarray(_l2norm(x, axis) * sympy.sqrt(x.shape[axis]))


_ALONG: Mapping[str, Callable[[NDArray[Any], int], NDArray[Any]]] = {
    "softmax": _softmax,
    "l2norm": _l2norm,
    "rmsnorm": _rmsnorm,
}
EXACT = Exact()


def entries(expr: Expr, scope: Scope, known: dict[Expr, NamedArray] | None = None) -> NamedArray:
    """Returns an expression written out: an array of SymPy expressions, one per index.

    Args:
        expr: the expression.
        scope: arrays of SymPy expressions for the leaves, and the sizes of axes.
        known: as in `evaluate`.
    """
    return evaluate(expr, scope, known, EXACT)


def symbol_array(
    symbols: Symbols, name: str, shape: Sequence[int], field: Field, prefix: tuple[int, ...] = ()
) -> NDArray[Any]:
    """Returns an array of symbols with indices, prefixed by e.g. the token."""
    data = np.empty(tuple(shape), dtype=object)
    for index in np.ndindex(*shape):
        data[index] = symbols.entry(name, (*prefix, *index), field)
    return data


# --- matrices -------------------------------------------------------------------------------------


def matrix(rows: Sequence[Sequence[Symbolic]], columns: int) -> Symbolic:
    """Returns an immutable matrix of the entries given."""
    return sympy.ImmutableMatrix(len(rows), columns, [_entry(v) for row in rows for v in row])


def _entry(value: Symbolic) -> Symbolic:
    # Zeros of empty sums are Python integers.
    return value if isinstance(value, sympy.Basic) else sympy.Integer(operator.index(value))


def unknown_function(name: str, index: Sequence[int], args: tuple[Symbolic, ...]) -> Symbolic:
    """Returns entry `index` of an uninterpreted real map applied to its arguments."""
    label = f"{name}_{{{','.join(map(str, index))}}}" if index else name
    return sympy.Function(label, real=True)(*args)


def diagonal(values: Sequence[Symbolic]) -> Symbolic:
    """Returns a diagonal matrix."""
    return sympy.ImmutableMatrix(sympy.diag(*values))


def real_part(value: Symbolic) -> Symbolic:
    """Returns the real part of a matrix, entry by entry."""
    return value.applyfunc(lambda v: apply_row("re", v))


def zeros(rows: int, columns: int) -> Symbolic:
    """Returns a matrix of zeros."""
    return sympy.ImmutableMatrix(sympy.zeros(rows, columns))


# --- symbolic sizes -------------------------------------------------------------------------------


def size_symbol(label: str) -> Symbolic:
    """Returns the symbol of a size: a positive integer."""
    return sympy.Symbol(label, integer=True, positive=True)


def matrix_symbol(label: str, rows: Symbolic, columns: Symbolic) -> Symbolic:
    """Returns a matrix of symbolic size."""
    return sympy.MatrixSymbol(label, rows, columns)


def identity(size: Symbolic) -> Symbolic:
    """Returns an identity of symbolic size."""
    return sympy.Identity(size)


def ones(rows: Symbolic, columns: Symbolic) -> Symbolic:
    """Returns a matrix of ones of symbolic size."""
    return sympy.OneMatrix(rows, columns)


def diagonal_of(column: Symbolic) -> Symbolic:
    """Returns the diagonal matrix of a column of symbolic size."""
    return sympy.DiagMatrix(column)


def kronecker(factors: Sequence[Symbolic]) -> Symbolic:
    """Returns A ⊗ B ⊗ …, not multiplied out; identities side by side are one identity."""
    merged: list[Symbolic] = []
    for f in factors:
        if merged and f.is_Identity and merged[-1].is_Identity:
            merged[-1] = sympy.Identity(merged[-1].rows * f.rows)
        else:
            merged.append(f)
    if not merged:
        return sympy.Identity(1)
    return merged[0] if len(merged) == 1 else sympy.KroneckerProduct(*merged)


def matrix_sum(terms: Sequence[Symbolic], rows: Symbolic, columns: Symbolic) -> Symbolic:
    """Returns a sum of matrices of symbolic size; no terms give zero."""
    return sympy.MatAdd(*terms).doit(deep=False) if terms else sympy.ZeroMatrix(rows, columns)


def matrix_product(factors: Sequence[Symbolic]) -> Symbolic:
    """Returns an ordered product of matrices and scalars; identities are dropped."""
    return sympy.MatMul(*factors).doit(deep=False)


def blocks(rows: Sequence[Sequence[Symbolic]]) -> Symbolic:
    """Returns a matrix made of blocks; the block itself when there is one."""
    if not rows or not rows[0]:
        return sympy.ZeroMatrix(0, 0)
    if len(rows) == 1 and len(rows[0]) == 1:
        return rows[0][0]
    return sympy.BlockMatrix([list(r) for r in rows])


def sparse_ring(generators: int) -> Symbolic:
    """Returns SymPy's ring of sparse polynomials over the integers, in lexicographic order."""
    names = [f"x{k}" for k in range(generators)]
    return sympy.polys.rings.PolyRing(names, sympy.ZZ, sympy.polys.orderings.lex)
