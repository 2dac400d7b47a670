"""Complex scans as scans of pairs: a complex value is two real ones, its planes.

Kernels compute with real numbers, and no GPU has narrow complex ones. A complex scan without keys,
elementwise or a convolution, becomes one with two columns of one state, the real and the imaginary
plane of its value and output, whose log λ is `cplx` of two leaves, log |λ| and the phase. What
drives it is split as far as its arithmetic goes, through the buffers that it reads; what has no
planes of its own, a linear map or a function of a complex value, stays one complex buffer whose
parts are read.

So does a matrix scan whose keys and reads are real. Its decay is a number a token and head, so that
its phases up to a token are a factor of the whole state,

    S_i = exp(i Φ_i) R_i,   Φ_i = Σ_{l≤i} φ_l,   R_i = |λ_i| R_{i-1} + key_i ⊗ (exp(-i Φ_i) value_i)

and both planes of R are columns of one real scan. All real planes stand in front of all imaginary
ones; those of values that are all real have none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from dsfc.expr.build import ZERO, add, div, mul, neg, prim, remake, rewrite, sub, walk
from dsfc.expr.tree import (
    Add,
    Div,
    Expr,
    Field,
    Mul,
    Now,
    Num,
    Param,
    Pow,
    Prim,
    Ref,
    Time,
    children,
)
from dsfc.fused.ir import SUFFIXES, RealLeaf, halves, is_entrywise
from dsfc.fused.names import fresh, taken
from dsfc.plan.flow import reads, written_by
from dsfc.plan.ir import Buffer, Kernel, Plan, Pointwise, Reverse, Role
from dsfc.plan.real_parts import only_real_parts
from dsfc.plan.scan_ir import Column, Form, LogDecay, Scan


def has_real_sides(scan: Scan, arrays: Mapping[str, Buffer]) -> bool:
    """Whether keys and reads are real: then phases are a factor of all of a matrix scan's state."""
    sides = (scan.key, scan.read)
    return all(n is not None and arrays[n].field is Field.REAL for n in sides)


def split_real_imag(plan: Plan, name: str, held: Collection[str] = ()) -> Plan:
    """Returns the plan with a complex scan as one of real numbers; the plan itself, if it has none.

    Of one without keys, or a matrix scan whose keys and reads are real, value and output become
    pairs. For a selective one there is `with_real_leaves`.

    Args:
        plan: the plan.
        name: of the scan.
        held: buffers that kernels of other scans read, which the plan does not say.
    """
    scan = next(k for k in plan.kernels if isinstance(k, Scan) and k.name == name)
    if scan.field is not Field.COMPLEX or scan.decay is None:
        return plan
    arrays = {b.name: b for b in plan.arrays}
    keyed = scan.form is Form.MATRIX and has_real_sides(scan, arrays)
    if not keyed and not (is_entrywise(scan) and len(scan.columns) == 1):
        return plan
    return _Paired(plan, scan, held).plan()


def with_real_leaves(
    plan: Plan, name: str, held: Collection[str] = ()
) -> tuple[Plan, tuple[RealLeaf, ...]]:
    """Returns the plan with a complex selective scan as one of real numbers, and its leaves.

    Of its output only the real part is read; log λ becomes `cplx` of two values of real leaves. A
    scan of another kind stays as it is, and has no such leaves. Arguments are those of
    `split_real_imag`.
    """
    scan = next(k for k in plan.kernels if isinstance(k, Scan) and k.name == name)
    if scan.form is not Form.SELECTIVE or scan.decay is None or not can_split(plan, scan):
        return plan, ()
    return _Paired(plan, scan, held).with_real_leaves()


def can_split(plan: Plan, scan: Scan) -> bool:
    """Whether a scan is complex, of a real value, and only the real part of its output is read."""
    if scan.field is not Field.COMPLEX or len(scan.columns) != 1:
        return False
    (column,) = scan.columns
    value = next((b for b in plan.arrays if b.name == column.value), None)
    real = value is not None and value.field is Field.REAL and not scan.before
    return real and only_real_parts(plan.kernels, column.output)


class _Paired:
    """A plan under change."""

    def __init__(self, plan: Plan, scan: Scan, held: Collection[str]) -> None:
        self._plan = plan
        self._scan = scan
        self._held = held
        self._arrays = {b.name: b for b in plan.arrays}
        self._names = taken(plan)
        self._values = {k.output: k.value for k in plan.kernels if isinstance(k, Pointwise)}
        self._made: list[Kernel] = []
        self._opaque: dict[Expr, tuple[Expr, Expr]] = {}
        self._done: dict[Expr, tuple[Expr, Expr]] = {}

    def plan(self) -> Plan:
        """Returns the plan."""
        scan = self._scan
        assert scan.decay is not None
        (leaf,) = scan.decay.leaves
        values, logs = self._driven(), self._buffers(leaf)
        outs = [self._outputs(c.output) for c in scan.columns]
        columns = tuple(
            Column(value[k], out[k], c.state, c.channels)
            for k in range(2)
            for c, value, out in zip(scan.columns, values, outs, strict=True)
        )
        log = prim("cplx", *(self._read(n) for n in logs))
        pair = replace(scan, decay=LogDecay(log, logs), columns=columns, real=False)
        kernels: list[Kernel] = []
        for k in self._plan.kernels:
            if k is not scan:
                kernels.append(k)
                continue
            kernels += self._made
            kernels.append(pair)
            # Who reads a part reads its plane; the value itself is made where that is not enough.
            for c, out in zip(scan.columns, outs, strict=True):
                re, im = (self._read(n) for n in out)
                kernels.append(Pointwise(c.output, re if scan.real else prim("cplx", re, im)))
        for c, out in zip(scan.columns, outs, strict=True):
            parts = dict(zip(("re", "im"), map(self._read, out), strict=True))
            kernels = [self._read_by_planes(k, c.output, parts) for k in kernels]
        plan = self._without_the_dead(kernels)
        return plan if is_entrywise(scan) else _read_in_part(plan, pair)

    def _driven(self) -> list[tuple[str | None, str | None]]:
        """The planes of each column's value."""
        columns = self._scan.columns
        if is_entrywise(self._scan):
            return [self._buffers(c.value) for c in columns if c.value is not None]
        real = [c.value is None or self._arrays[c.value].field is Field.REAL for c in columns]
        if all(real):
            return [(c.value, None) for c in columns]
        zero = self._constant(ZERO) if any(real) else None
        pairs = zip(columns, real, strict=True)
        return [(c.value, zero) if r else self._buffers(c.value or "") for c, r in pairs]

    def _constant(self, number: Expr) -> str:
        """The buffer of a number."""
        name = self._fresh(f"{self._scan.name}_none")
        self._arrays[name] = Buffer(name, (), Field.REAL, Role.CONSTANT)
        self._made.append(Pointwise(name, number))
        return name

    def with_real_leaves(self) -> tuple[Plan, tuple[RealLeaf, ...]]:
        """Returns the plan with a selective scan of real leaves, whose output is the real part."""
        scan = self._scan
        (column,) = scan.columns
        assert scan.decay is not None
        parts = []
        for name in scan.decay.leaves:
            if self._arrays[name].field is Field.REAL:
                parts.append(RealLeaf(name, name, "re"))
                continue
            planes = self._done[self._read(name)] = self._leaf_planes(name)
            pairs = zip(planes, ("re", "im"), strict=True)
            parts += [RealLeaf(e.name, name, part) for e, part in pairs if isinstance(e, Ref)]
        log = prim("cplx", *self._split(scan.decay.expr))
        leaves = tuple(dict.fromkeys(e.name for e in walk(log) if isinstance(e, Ref)))
        out, _ = self._outputs(column.output)
        kernels: list[Kernel] = []
        for k in self._plan.kernels:
            if k is scan:
                kernels += self._made
                columns = (replace(column, output=out),)
                k = replace(scan, decay=LogDecay(log, leaves), columns=columns)
            kernels.append(k)
        for name, real in [(column.output, out), *self._reversed(column.output, out, kernels)]:
            part = {"re": self._read(real)}
            kernels = [self._read_by_planes(k, name, part) for k in kernels]
        return self._without_the_dead(kernels), tuple(p for p in parts if p.leaf in leaves)

    def _reversed(self, name: str, real: str, kernels: list[Kernel]) -> list[tuple[str, str]]:
        """Reverses the real part of a buffer where the buffer is, and returns names of both."""
        out = []
        for at, k in reversed(list(enumerate(kernels))):
            if isinstance(k, Reverse) and k.source == name:
                part, _ = self._outputs(k.output)
                kernels.insert(at, Reverse(part, real))
                out.append((k.output, part))
        return out

    def _leaf_planes(self, name: str) -> tuple[Expr, Expr]:
        """The planes of a leaf of log λ: reads of buffers like it, or 0."""
        whole = self._read(name)
        parts = self._split(whole)
        if any(e is not ZERO and (e.axes, e.time) != (whole.axes, whole.time) for e in parts):
            parts = self._done[whole] = self._parts_of(whole)
        pair = self._buffers(name)
        kept = tuple(ZERO if e is ZERO else self._read(n) for e, n in zip(parts, pair, strict=True))
        return kept[0], kept[1]

    def _read_by_planes(self, k: Kernel, name: str, planes: dict[str, Ref]) -> Kernel:
        def rule(e: Expr) -> Expr | None:
            if not isinstance(e, Prim) or e.name not in planes:
                return None
            (arg,) = e.args
            read = isinstance(arg, Ref) and arg.name == name and arg.at == Now(0)
            return planes[e.name] if read else None

        if not isinstance(k, Pointwise):
            return k
        value = rewrite(k.value, rule)
        return k if value is k.value else Pointwise(k.output, value)

    def _without_the_dead(self, kernels: list[Kernel]) -> Plan:
        """Drops what nobody reads any more."""
        kept = {self._plan.output, *(r.buffer for r in self._plan.registers), *self._held}
        live: list[Kernel] = []
        for k in reversed(kernels):
            if isinstance(k, Pointwise | Reverse) and k.output not in kept:
                continue
            kept |= {n for n, _ in reads(k)}
            live.append(k)
        kept |= {n for k in live for n in written_by(k)}
        arrays = tuple(b for b in self._arrays.values() if b.name in kept or b.role is Role.INPUT)
        return replace(self._plan, kernels=tuple(live[::-1]), arrays=arrays)

    # --- buffers ---------------------------------------------------------------------------------

    def _buffers(self, name: str) -> tuple[str, str]:
        """Plans the planes of a complex buffer."""
        b = self._arrays[name]
        out = []
        for e, suffix in zip(self._split(self._read(name)), SUFFIXES, strict=True):
            role = Role.CONSTANT if e.time is Time.CONST else Role.STREAM
            fresh_name = self._fresh(f"{name}{suffix}")
            # A plane may lack axes that the other has, or vary over time where it does not.
            self._arrays[fresh_name] = Buffer(
                fresh_name, tuple(sorted(e.axes)), Field.REAL, role, b.provenance
            )
            self._made.append(Pointwise(fresh_name, e))
            out.append(fresh_name)
        re, im = out
        return re, im

    def _outputs(self, name: str) -> tuple[str, str]:
        b = self._arrays[name]
        out = []
        for suffix in SUFFIXES:
            fresh_name = self._fresh(f"{name}{suffix}")
            self._arrays[fresh_name] = Buffer(fresh_name, b.axes, Field.REAL, b.role)
            out.append(fresh_name)
        re, im = out
        return re, im

    def _read(self, name: str) -> Ref:
        b = self._arrays[name]
        constant = b.role is Role.CONSTANT
        time, at = (Time.CONST, None) if constant else (Time.TOKEN, Now(0))
        return Ref(name, frozenset(b.axes), b.field, time, at)

    def _fresh(self, name: str) -> str:
        unused = fresh(name, self._names)
        self._names.add(unused)
        return unused

    # --- values ----------------------------------------------------------------------------------

    def _real(self, e: Expr) -> Expr:
        """A real value whose complex parts are split where they can be."""
        if e.field is Field.REAL and isinstance(e, Prim) and e.name in ("re", "im"):
            return self._split(e.args[0])[e.name == "im"]
        if isinstance(e, Add | Mul | Div | Pow) or (isinstance(e, Prim) and e.axis is None):
            if all(c.field is Field.REAL for c in children(e)):
                return remake(e, tuple(map(self._real, children(e))))
        return e

    def _split(self, e: Expr) -> tuple[Expr, Expr]:
        """The planes of a value."""
        if e.field is Field.REAL:
            return self._real(e), ZERO
        if e not in self._done:
            self._done[e] = self._planes_of(e)
        return self._done[e]

    def _planes_of(self, e: Expr) -> tuple[Expr, Expr]:
        match e:
            case Ref(at=Now(lag=0) | None) if _splits(self._values.get(e.name)):
                return self._split(self._values[e.name])
            case Add():
                parts = [self._split(a) for a in e.args]
                return add(*(a for a, _ in parts)), add(*(b for _, b in parts))
            case Mul():
                out = self._split(e.args[0])
                for a in e.args[1:]:
                    out = _times(out, self._split(a))
                return out
            case Div():
                (a, b), (c, d) = self._split(e.num), self._split(e.den)
                if d is ZERO:
                    return div(a, c), div(b, c)
                size = add(mul(c, c), mul(d, d))
                return tuple(div(x, size) for x in _times((a, b), (c, neg(d))))  # type: ignore[return-value]  # of two
            case Pow(exponent=Num(value=power)) if power in (2, 3):
                base = self._split(e.base)
                out = _times(base, base)
                return out if power == 2 else _times(out, base)
            case Prim(name="cplx", args=(a, b)):
                return self._real(a), self._real(b)
            case Prim(name="cis", args=(x,)):
                x = self._real(x)
                return prim("cos", x), prim("sin", x)
            case Prim(name="conj", args=(x,)):
                a, b = self._split(x)
                return a, neg(b)
            case Prim(name="exp", args=(x,)):
                a, b = self._split(x)
                size = prim("exp", a)
                return mul(size, prim("cos", b)), mul(size, prim("sin", b))
            case _:
                return self._parts_of(e)

    def _parts_of(self, e: Expr) -> tuple[Expr, Expr]:
        """The parts of what stays complex: a parameter, an earlier token, or a new buffer."""
        if e not in self._opaque:
            whole = e
            if not isinstance(e, Ref | Param):
                fresh_name = self._fresh(f"{self._scan.name}_part")
                role = Role.CONSTANT if e.time is Time.CONST else Role.STREAM
                self._arrays[fresh_name] = Buffer(fresh_name, tuple(sorted(e.axes)), e.field, role)
                self._made.append(Pointwise(fresh_name, e))
                whole = self._read(fresh_name)
            self._opaque[e] = prim("re", whole), prim("im", whole)
        return self._opaque[e]


def _read_in_part(plan: Plan, pair: Scan) -> Plan:
    """Says of a matrix scan of pairs whether only its real part is read."""
    imaginary = {c.output for c in halves(pair)[1].columns}
    read = {n for k in plan.kernels for n, _ in reads(k)} | {plan.output}
    if imaginary & read:
        return plan
    told = replace(pair, real=True)
    return replace(plan, kernels=tuple(told if k is pair else k for k in plan.kernels))


def _splits(e: Expr | None) -> bool:
    """Whether the planes of a value are arithmetic of those of its parts."""
    match e:
        case Add() | Mul() | Div() | Ref():
            return True
        case Pow(exponent=Num(value=power)):
            return power in (2, 3)
        case Prim(name=name):
            return e.field is Field.REAL or name in ("cplx", "cis", "conj", "exp")
        case _:
            return False


def _times(x: tuple[Expr, Expr], y: tuple[Expr, Expr]) -> tuple[Expr, Expr]:
    (a, b), (c, d) = x, y
    return sub(mul(a, c), mul(b, d)), add(mul(a, d), mul(b, c))
