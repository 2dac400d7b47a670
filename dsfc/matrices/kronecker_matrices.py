"""Λ_i, B_i, C_i, D_i and Φ_{ij} of a System as SymPy matrix expressions of symbolic size.

    Λ_i = (η_{i-1} / η_i) I_{p n},   B_i = (1 / η_i) (I_p ⊗ k_i) W_V,   C_i = I_p ⊗ q_iᵀ

One head is shown. Columns such as k_i are matrix symbols of size n × 1, maps are matrix symbols,
scalars are ordinary symbols; `KroneckerProduct` keeps the structure. The token of a matrix is part
of the names: `B(2)` is made of k_2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from dsfc.expr import sympy_bridge as bridge
from dsfc.expr.build import is_one, mul
from dsfc.expr.declarations import Constraint, Tensor
from dsfc.expr.sympy_bridge import Symbolic
from dsfc.expr.text import map_name
from dsfc.expr.tree import Axis, Expr, LinearMap
from dsfc.matrices.kronecker import After, Kron, KronFactor, Operator, Shape
from dsfc.matrices.kronecker_part import Drive, KronBlock, KronPart, kronecker_part
from dsfc.matrices.linear import LinearPart, linear_formula
from dsfc.matrices.notation import Text, subscripted
from dsfc.system.formulas import states
from dsfc.system.ir import System


@dataclass(frozen=True, eq=False)
class KroneckerSystem:
    """One linear part of a System, in one gauge, in Kronecker form.

        h_i = Λ_i h_{i-1} + B_i u_i,     y_i = Re(C_i h_i) + D_i u_i

    Several states stand below one another, several inputs side by side. Where a part reads its
    state before the update, C_i multiplies h_{i-1}.

    Attributes:
        system: the System.
        part: the part.
        in_paper: whether in the paper's gauge.
    """

    system: System
    part: LinearPart
    in_paper: bool

    @cached_property
    def form(self) -> KronPart:
        """The operators it is made of."""
        return kronecker_part(self.system, self.part, self.in_paper)

    @cached_property
    def inputs(self) -> tuple[Expr, ...]:
        """What u is made of, in order of the columns."""
        drives = [d for b in self.form.blocks for d in b.drives]
        return tuple(dict.fromkeys(d.input for d in (*drives, *self.form.direct)))

    def Lambda(self, i: int) -> Symbolic:
        """Returns Λ_i."""
        write = self._writer(i)
        rows = []
        for b in self.form.blocks:
            row = []
            for a in self.form.blocks:
                rows_of, columns = write.size(b.axes), write.size(a.axes)
                if a is b:
                    row.append(write.chain(b.chain, b.axes))
                else:
                    coupled = dict(b.coupled).get(a.block.state, ())
                    row.append(write.operator(coupled, rows_of, columns))
            rows.append(row)
        return bridge.blocks(rows)

    def B(self, i: int) -> Symbolic:
        """Returns B_i."""
        write = self._writer(i)
        return bridge.blocks([self._driven(b, write) for b in self.form.blocks])

    def C(self, i: int) -> Symbolic:
        """Returns C_i."""
        write = self._writer(i)
        row = []
        for b in self.form.blocks:
            operators = [k for r in self.form.reads if r.state == b.block.state for k in r.operator]
            row.append(write.operator(tuple(operators), self._output(write), write.size(b.axes)))
        return bridge.blocks([row])

    def D(self, i: int) -> Symbolic:
        """Returns D_i."""
        write = self._writer(i)
        rows = self._output(write)
        return bridge.blocks([[self._given(s, self.form.direct, write, rows) for s in self.inputs]])

    def Phi(self, i: int, j: int) -> Symbolic:
        """Returns Φ_{ij} as a product, for a part that runs forward.

        Raises:
            ValueError: some state runs backwards.
        """
        lags = {r.lag for r in self.form.reads}
        if any(lag < 0 for lag in lags) or len(lags) > 1:
            raise ValueError(f"`{self.part.name}` reads its state at lags {sorted(lags)}")
        (lag,) = lags or {0}
        write = self._writer(i)
        direct = [self.D(i)] if i == j and self.form.direct else []
        parts = direct
        if j <= i - lag:
            between = [self.Lambda(m) for m in range(i - lag, j, -1)]
            parts = [bridge.matrix_product([self.C(i), *between, self.B(j)]), *direct]
        columns = sum(write.size(plain(s.axes)) for s in self.inputs)
        return bridge.matrix_sum(parts, self._output(write), columns)

    def _writer(self, i: int) -> Writer:
        s = self.system
        tensors = [t for t in (*s.inputs, *s.params, *s.buffers) if isinstance(t, Tensor)]
        return Writer(i, {t.name: t.constraint for t in tensors})

    def _output(self, write: Writer) -> Symbolic:
        formula = linear_formula(self.part.root, states(self.system), self.form.names, lambda e: e)
        return write.size(plain(formula.axes))

    def _driven(self, b: KronBlock, write: Writer) -> list[Symbolic]:
        return [self._given(s, b.drives, write, write.size(b.axes)) for s in self.inputs]

    def _given(
        self, source: Expr, drives: Sequence[Drive], write: Writer, rows: Symbolic
    ) -> Symbolic:
        columns = write.size(plain(source.axes))
        shapes = [
            bridge.matrix_product(
                [
                    *(write.operator(o, rows, rows) for o in d.later),
                    write.operator(d.operator, rows, columns),
                ]
            )
            for d in drives
            if d.input is source
        ]
        return bridge.matrix_sum(shapes, rows, columns)


def plain(axes: frozenset[Axis]) -> tuple[Axis, ...]:
    """Returns axes without heads, in canonical order."""
    return tuple(sorted(a for a in axes if not a.heads))


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes operators at one token.

    Attributes:
        token: the token.
        promises: constraints of named tensors.
    """

    token: int
    promises: Mapping[str, Constraint]

    def size(self, axes: Sequence[Axis]) -> Symbolic:
        """Returns the number of entries of a vector over some axes."""
        out = bridge.EXACT.number(Fraction(1))
        for a in axes:
            out = out * bridge.size_symbol(a.name)
        return out

    def operator(self, o: Operator, rows: Symbolic, columns: Symbolic) -> Symbolic:
        """Returns a sum of Kronecker products."""
        return bridge.matrix_sum([self.kron(k) for k in o], rows, columns)

    def chain(self, operators: Sequence[Operator], axes: Sequence[Axis]) -> Symbolic:
        """Returns a product of operators on one vector."""
        size = self.size(axes)
        return bridge.matrix_product([self.operator(o, size, size) for o in operators])

    def kron(self, k: Kron) -> Symbolic:
        """Returns one Kronecker product with its coefficient and its maps."""
        above, below = self.scalar(mul(*k.above)), self.scalar(mul(*k.below))
        middle = bridge.kronecker([self.factor(f) for f in k.factors])
        after = [self.after(a) for a in k.after]
        return bridge.matrix_product(
            [above / below, *after, middle, *(self.map(m) for m in k.before)]
        )

    def scalar(self, e: Expr) -> Symbolic:
        """Returns a scalar of one head."""
        return bridge.to_sympy(subscripted(e, str(self.token)), bridge.Symbols(self.promises))

    def column(self, e: Expr, axes: Sequence[Axis]) -> Symbolic:
        """Returns a vector as a matrix of one column."""
        size = self.size(axes)
        return bridge.ones(size, 1) if is_one(e) else bridge.matrix_symbol(self.name(e), size, 1)

    def name(self, e: Expr) -> str:
        """Returns the text of an expression at the token."""
        return Text(str(self.token)).expr(e)

    def map(self, m: LinearMap) -> Symbolic:
        """Returns the matrix of a linear map for one head."""
        target, source = (plain(frozenset(a)) for a in (m.target, m.source))
        return bridge.matrix_symbol(map_name(m), self.size(target), self.size(source))

    def after(self, a: After) -> Symbolic:
        """Returns what stands in front of an operator."""
        if isinstance(a, LinearMap):
            return self.map(a)
        if isinstance(a, Axis):
            return bridge.ones(1, self.size((a,)))
        return bridge.diagonal_of(self.column(a, plain(a.axes)))

    def factor(self, f: KronFactor) -> Symbolic:
        """Returns one factor of a Kronecker product."""
        whole, kept = self.size(f.axes), self.size(f.kept)
        match f.shape:
            case Shape.DIAGONAL:
                same = f.is_identity
                return (
                    bridge.identity(whole)
                    if same
                    else bridge.diagonal_of(self.column(f.value, f.axes))
                )
            case Shape.COLUMN:
                return self.column(f.value, f.axes)
            case Shape.ROW:
                return self.column(f.value, f.axes).T
            case Shape.OUTER if not f.kept:
                return bridge.matrix_product(
                    [self.column(f.value, f.axes), self.column(f.right, f.axes).T]
                )
        shown = self.name(f.value)
        kind = f"blockdiag_{','.join(a.name for a in f.kept)}"
        if f.shape is Shape.COLUMNS:
            return bridge.matrix_symbol(f"{kind}({shown})", whole, kept)
        if f.shape is Shape.ROWS:
            return bridge.matrix_symbol(f"{kind}({shown})", whole, kept).T
        return bridge.matrix_symbol(f"{kind}({shown} · {self.name(f.right)}ᵀ)", whole, whole)
