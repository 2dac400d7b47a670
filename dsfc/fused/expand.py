"""Fused plan → plan: what kernels compute inside stands in front of their scans and behind them.

It is the meaning of a fused plan, and shares nothing with the passes that made it: a scan of pairs
is one complex scan again, driven by `cplx` of both parts, and its outputs are parts of that one's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dsfc.expr.build import ONE, ZERO, add, div, mul, prim, rewrite, walk
from dsfc.expr.tree import Expr, Field, Now, Param, Ref, Time
from dsfc.fused.ir import (
    FusedPlan,
    Prologue,
    PrologueEpilogue,
    halves,
    is_paired,
    is_split,
    joined,
    real_imag,
)
from dsfc.fused.names import fresh, taken
from dsfc.plan.flow import written_by
from dsfc.plan.ir import Buffer, Kernel, Plan, Pointwise, Role
from dsfc.plan.scan_ir import Column, Form, LogDecay, Scan


def expand(fused: FusedPlan) -> Plan:
    """Returns a plan with the outputs, states and adjoints of a fused plan, and no fused kernels.

    Args:
        fused: the fused plan.
    """
    expansion = _Expansion(fused.plan)
    for kernel in fused.plan.kernels:
        if not isinstance(kernel, Scan):
            expansion.kernels.append(kernel)
            continue
        prologue = fused.prologue(kernel.name)
        matrix = fused.prologue_epilogue(kernel.name)
        if prologue is not None:
            expansion.with_prologue(kernel, prologue)
        elif matrix is not None:
            expansion.with_prologue_epilogue(kernel, matrix)
        else:
            expansion.kernels.append(kernel)
    return expansion.plan()


class _Expansion:
    """A plan under construction."""

    def __init__(self, plan: Plan) -> None:
        self.kernels: list[Kernel] = []
        self._plan = plan
        self._arrays = {b.name: b for b in plan.arrays}
        self._names = taken(plan)
        self._params = {t.name for t in (*plan.params, *plan.buffers)}

    def plan(self) -> Plan:
        """Returns the plan; a buffer that is not written any more is not in it."""
        written = {n for k in self.kernels for n in written_by(k)}
        every = self._arrays.values()
        arrays = tuple(b for b in every if b.role is Role.INPUT or b.name in written)
        return replace(self._plan, kernels=tuple(self.kernels), arrays=arrays)

    def with_prologue(self, scan: Scan, prologue: Prologue) -> None:
        """Adds a scan with what its prologue computes in front of it."""
        assert scan.decay is not None
        for leaf, value in prologue.rates:
            if not (isinstance(value, Ref) and value.name == leaf):
                self._write(leaf, self._of_buffers(value))
        log = self._of_buffers(prologue.log_decay)
        if scan.form is not Form.SELECTIVE:
            log = self._read(self._define(f"{scan.name}_log_decay", log))
        driven = self._define(f"{scan.name}_value", self._of_buffers(prologue.value))
        whole = replace(scan, decay=LogDecay(log, _leaves(log)))
        if is_paired(scan):
            self._paired(whole, [driven])
            return
        (column,) = scan.columns
        added = self._of_buffers(prologue.added)
        if added == ZERO and not is_split(scan):
            self.kernels.append(replace(whole, columns=(replace(column, value=driven),)))
            return
        out = self._output(column.output, scan.field)
        self.kernels.append(replace(whole, columns=(replace(column, value=driven, output=out),)))
        read: Expr = self._read(out)
        read = prim("re", read) if is_split(scan) else read
        self.kernels.append(Pointwise(column.output, add(read, added)))

    def with_prologue_epilogue(self, scan: Scan, matrix: PrologueEpilogue) -> None:
        """Adds a matrix scan, what its prologue computes before it and its epilogue behind it."""
        read = self._define(f"{scan.name}_query", mul(matrix.factor, matrix.read.value))
        key = self._define(f"{scan.name}_key", matrix.key.value)
        whole = replace(scan, read=read, key=key)
        if is_paired(scan):
            assert matrix.weight is None and matrix.normaliser is None
            self._paired(whole, [self._pair(re, im) for re, im in _pairs(scan)])
            return
        columns = list(scan.columns)
        if matrix.weight is not None:
            columns = [self._weighted(c, matrix.weight.value) for c in columns]
        first, *others = columns
        if matrix.normaliser is None:
            self.kernels.append(replace(whole, columns=(first, *others)))
            return
        out = self._output(first.output, Field.REAL)
        self.kernels.append(replace(whole, columns=(replace(first, output=out), *others)))
        quotient = div(self._read(out), matrix.normaliser.value)
        self.kernels.append(Pointwise(first.output, quotient))

    def _weighted(self, column: Column, weight: Expr) -> Column:
        value = ONE if column.value is None else self._read(column.value)
        return replace(column, value=self._define(f"{column.state}_value", mul(weight, value)))

    def _pair(self, re: Column, im: Column) -> str | None:
        """The complex value of a pair of columns: of the real one None is 1, of the other one 0."""
        if im.value is None:
            return re.value
        real = ONE if re.value is None else self._read(re.value)
        value = prim("cplx", real, self._read(im.value))
        return self._define(f"{re.state}_value", value)

    def _paired(self, scan: Scan, values: Iterable[str | None]) -> None:
        """Adds a scan of pairs as a complex one, and the parts of its outputs."""
        columns, parts = [], []
        for (re, im), value in zip(_pairs(scan), values, strict=True):
            out = self._output(re.output, Field.COMPLEX)
            columns.append(Column(value, out, re.state, re.channels))
            parts += [(re.output, "re", out), (im.output, "im", out)]
        self.kernels.append(replace(scan, columns=tuple(columns), real=False))
        for name, part, out in parts:
            self.kernels.append(Pointwise(name, prim(part, self._read(out))))

    # --- buffers ---------------------------------------------------------------------------------

    def _of_buffers(self, e: Expr) -> Expr:
        """An expression whose leaves have the axes of their buffers: a kernel broadcasts them."""

        def rule(e: Expr) -> Expr | None:
            return self._read(e.name) if isinstance(e, Ref) else None

        return joined(rewrite(part, rule) for part in real_imag(e))

    def _read(self, name: str) -> Expr:
        b = self._arrays[name]
        if name in self._params:
            return Param(name, frozenset(b.axes), b.field)
        constant = b.role is Role.CONSTANT
        time, at = (Time.CONST, None) if constant else (Time.TOKEN, Now(0))
        return Ref(name, frozenset(b.axes), b.field, time, at)

    def _define(self, name: str, value: Expr) -> str:
        """The buffer of a value: a new one, unless it is one already."""
        if isinstance(value, Ref):
            return value.name
        unused = fresh(name, self._names)
        self._write(unused, value)
        return unused

    def _write(self, name: str, value: Expr) -> None:
        self._names.add(name)
        role = Role.CONSTANT if value.time is Time.CONST else Role.STREAM
        axes = tuple(sorted(value.axes))
        self._arrays[name] = Buffer(name, axes, value.field, role)
        self.kernels.append(Pointwise(name, value))

    def _output(self, name: str, field: Field) -> str:
        """A new buffer for what a scan reads, of the axes of an output."""
        unused = fresh(f"{name}_read", self._names)
        self._names.add(unused)
        self._arrays[unused] = Buffer(unused, self._arrays[name].axes, field, Role.STREAM)
        return unused


def _pairs(scan: Scan) -> list[tuple[Column, Column]]:
    re, im = halves(scan)
    return list(zip(re.columns, im.columns, strict=True))


def _leaves(log: Expr) -> tuple[str, ...]:
    return tuple(dict.fromkeys(e.name for e in walk(log) if isinstance(e, Ref)))
