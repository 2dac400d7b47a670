"""Computes in the kernels of a matrix scan what lies before and behind it, as they load and store.

A matrix scan reads queries φ(q), keys ψ(k) and values w v, with one number w a token and head, and
its output is often divided by another number, η, and multiplied by a constant. Its kernels can
compute all of that of what lies before it: φ and ψ as they load, w and η of their own leaves, and
the quotient as they store. Then nothing but q, k, v and these leaves comes from memory, and only
their gradients go there.

Each tile of queries is loaded by several programs, so φ is computed inside only where it reads one
buffer of its size: it moves no more then than its result. A function that kernels do not compute,
or that something else reads too, stays in front.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from dsfc.expr.build import ONE, ZERO, add, is_one, mul, prim, remake, rewrite, walk
from dsfc.expr.derivative import pull
from dsfc.expr.tree import (
    Add,
    Axis,
    Div,
    Expr,
    Field,
    Mul,
    Now,
    Num,
    Pow,
    Prim,
    Ref,
    Size,
    Time,
    children,
)
from dsfc.fused.ir import FEATURE_BAR, Entrywise, FusedPlan, PrologueEpilogue, is_paired
from dsfc.fused.names import called, fresh, taken
from dsfc.fused.real_imag import split_real_imag
from dsfc.plan.flow import reads, written_by
from dsfc.plan.ir import Buffer, Kernel, Plan, Pointwise, Role
from dsfc.plan.scan_ir import Column, Form, Scan


def fuse_prologue_epilogue(fused: FusedPlan, computes: Callable[[Prim], bool]) -> FusedPlan:
    """Returns the plan with a prologue and epilogue for each matrix scan of reals or of pairs.

    Args:
        fused: the plan so far.
        computes: whether a kernel computes a primitive; others are left in front of the scan.
    """
    plan = fused.plan
    matrices = list(fused.matrices)
    held = {n for p in fused.prologues for n in p.leaves} | {n for m in matrices for n in m.numbers}
    for name in [k.name for k in plan.kernels if isinstance(k, Scan) and k.form is Form.MATRIX]:
        whole = split_real_imag(plan, name, held)
        scan = next(k for k in whole.kernels if isinstance(k, Scan) and k.name == name)
        if scan.field is Field.REAL or is_paired(scan):
            plan, matrix = _Inside(whole, scan, computes, held).result()
            matrices.append(matrix)
            held |= set(matrix.numbers)
    return replace(fused, plan=plan, matrices=tuple(matrices))


class _Inside:
    """What one matrix scan of a plan under change computes."""

    def __init__(
        self, plan: Plan, scan: Scan, computes: Callable[[Prim], bool], held: Collection[str]
    ) -> None:
        self._plan = plan
        self._scan = scan
        self._computes = computes
        self._kernels: list[Kernel] = list(plan.kernels)
        self._arrays = {b.name: b for b in plan.arrays}
        self._outside = {plan.output, *(r.buffer for r in plan.registers), *held}
        self._names = taken(plan)
        self._made = {k.output: k.value for k in plan.kernels if isinstance(k, Pointwise)}
        self._readers: dict[str, list[Kernel]] = {}
        for kernel in plan.kernels:
            for name in {n for n, _ in reads(kernel)}:
                self._readers.setdefault(name, []).append(kernel)
        self._new: list[Pointwise] = []
        self._closed: set[str] = set()

    def result(self) -> tuple[Plan, PrologueEpilogue]:
        """Returns the plan, and what the scan computes."""
        scan = self._scan
        assert scan.read is not None and scan.key is not None
        if scan.before:
            # A read of the state before a token uses another token's query: nothing is fused.
            read, key = self._plain(scan.read), self._plain(scan.key)
            return self._plan, PrologueEpilogue(scan.name, read, key, None, None, ONE)
        number, read = self._of_buffer(scan.read)
        _, key = self._of_buffer(scan.key, numbers=False)
        weight: Entrywise | None = None
        normaliser: Entrywise | None = None
        factor: Expr = ONE
        columns = scan.columns
        if not is_paired(scan):
            # Values of pairs are rotated in front of their kernels, and outputs behind them.
            weight, columns = self._weighted(scan.columns)
            factor, normaliser, columns = self._divided(columns, weight)
        running = normaliser is not None and normaliser.leaves == (columns[-1].output,)
        features = PrologueEpilogue(
            scan.name, read, key, weight, normaliser, mul(factor, number), running
        )
        if features.plain:
            # The plan stays as it is, and so do other names of queries and keys.
            read, key = self._plain(scan.read), self._plain(scan.key)
            return self._plan, replace(features, read=read, key=key)
        now = replace(scan, read=read.leaves[0], key=key.leaves[0], columns=columns)
        at = self._kernels.index(scan)
        self._kernels[at : at + 1] = [*self._new, now]
        self._forget(features.numbers)
        kept = self._outside | {n for k in self._kernels for n in written_by(k)}
        left = (b for b in self._arrays.values() if b.role is Role.INPUT or b.name in kept)
        return replace(self._plan, kernels=tuple(self._kernels), arrays=tuple(left)), features

    def _forget(self, numbers: tuple[str, ...]) -> None:
        """Leaves out what is not read any more; the scan reads these as well."""
        while True:
            read = {n for k in self._kernels for n, _ in reads(k)} | self._outside | set(numbers)
            left = [k for k in self._kernels if not self._is_unread(k, read)]
            if len(left) == len(self._kernels):
                return
            self._kernels = left

    def _is_unread(self, kernel: Kernel, read: set[str]) -> bool:
        return isinstance(kernel, Pointwise) and kernel.output not in read

    # --- features --------------------------------------------------------------------------------

    def _of_buffer(self, name: str, numbers: bool = True) -> tuple[Expr, Entrywise]:
        """What is computed of one leaf of the buffer's axes; the buffer itself, if nothing is.

        Its numbers apart, if asked for: those of a read are a factor of what is read.
        """
        ref = self._ref(name)
        value, leaves = self._cut(ref, ref.axes)
        if len(leaves) != 1:
            return ONE, self._plain(name)
        apart = [a for a in value.args if self._is_number(a)] if isinstance(value, Mul) else []
        if not apart or not numbers or not isinstance(value, Mul):
            return ONE, self._feature(value)
        return mul(*apart), self._feature(mul(*(a for a in value.args if a not in apart)))

    def _plain(self, name: str) -> Entrywise:
        """A buffer as it is."""
        ref = self._ref(name)
        return Entrywise((name,), ref, (replace(ref, name=FEATURE_BAR),))

    def _feature(self, value: Expr, name: str = "") -> Entrywise:
        """A value as a function of buffers; those that are made are called after it."""
        leaves = self._cut(value, value.axes)[1]
        refs = {leaf: self._stored(leaf, name) for leaf in leaves}
        value = rewrite(value, refs.get)
        bar = Ref(FEATURE_BAR, value.axes, Field.REAL, Time.TOKEN, Now(0))
        pulled = pull([(value, bar)]).refs
        names = tuple(r.name for r in refs.values())
        return Entrywise(names, rewrite(value, _shorter), tuple(pulled[r] for r in refs.values()))

    def _weighted(self, columns: tuple[Column, ...]) -> tuple[Entrywise | None, tuple[Column, ...]]:
        """The factor that all values share, and the columns without it."""
        heads = frozenset(self._scan.heads)
        weights, rests, named = [], [], set()
        for c in columns:
            value: Expr = ONE if c.value is None else self._opened(self._ref(c.value))
            factors = value.args if isinstance(value, Mul) else (value,)
            narrow = [f for f in factors if f.time is Time.TOKEN and f.axes <= heads]
            named |= {f.name for f in narrow if isinstance(f, Ref)}
            weights.append(self._cut(mul(*narrow), heads)[0])
            rests.append(mul(*(f for f in factors if f not in narrow)))
        first = weights[0]
        alike = all(w is first for w in weights) and first.axes == heads
        # A column of all channels keeps a value that is no constant, or no weight is split off.
        bare = any(is_one(r) and c.channels for r, c in zip(rests, columns, strict=True))
        if is_one(first) or not alike or bare or first.field is not Field.REAL:
            return None, columns
        names = [None if is_one(r) else self._stored(r).name for r in rests]
        now = tuple(replace(c, value=n) for c, n in zip(columns, names, strict=True))
        return self._feature(self._of_one(first), min(named, default="")), now

    def _of_one(self, value: Expr) -> Expr:
        """A function of one number of a token; one of several is computed in front of the scan.

        A kernel has no registers for more.
        """
        if len(self._cut(value, value.axes)[1]) < 2:
            return value
        inner = value.args[0] if isinstance(value, Prim) and len(value.args) == 1 else value
        stored = self._stored(inner)
        self._closed.add(stored.name)
        return stored if inner is value else remake(value, (stored,))

    def _divided(
        self, columns: tuple[Column, ...], weight: Entrywise | None
    ) -> tuple[Expr, Entrywise | None, tuple[Column, ...]]:
        """Factor and normaliser of the one output wherever it is read, and its column."""
        nothing = ONE, None, columns
        column, *others = columns
        readers = self._readers.get(column.output, [])
        if len(others) > 1 or len(readers) != 1 or column.output in self._outside:
            return nothing
        (reader,) = readers
        if not isinstance(reader, Pointwise):
            return nothing
        out = self._ref(column.output)
        done = replace(out, name=f"{out.name} ")
        seen: dict[tuple[Expr, Expr], None] = {}

        def go(e: Expr) -> Expr:
            top, eta = (e.num, e.den) if isinstance(e, Div) else (e, ONE)
            factors = top.args if isinstance(top, Mul) else (top,)
            numbers = [f for f in factors if self._is_number(f)]
            rest = [f for f in factors if f not in numbers and f is not out]
            if out not in factors or (rest and not is_one(eta)):
                return remake(e, tuple(go(c) for c in children(e)))
            seen[mul(*numbers), eta] = None
            return mul(done, *map(go, rest))

        value = go(reader.value)
        left = {e.name for e in walk(value) if isinstance(e, Ref)}
        if len(seen) != 1 or {out.name, *(c.output for c in others)} & left:
            return nothing
        ((factor, eta),) = seen
        normaliser = None
        if not is_one(eta):
            if eta.axes != frozenset(self._scan.heads) or eta.time is Time.CONST:
                return nothing
            name = eta.name if isinstance(eta, Ref) else ""
            normaliser = self._feature(self._cut(eta, eta.axes)[0], name)
            if weight is not None and set(weight.leaves) & set(normaliser.leaves):
                return nothing
            if not self._are_there(set(normaliser.leaves) - {c.output for c in others}):
                return nothing
        if others and not self._is_running(others[0], reader, normaliser, factor):
            return nothing
        at = self._kernels.index(reader)
        if value is done:
            del self._kernels[at]
            return factor, normaliser, (replace(column, output=reader.output), *others)
        self._kernels[at] = Pointwise(
            reader.output, rewrite(value, lambda e: out if e is done else None)
        )
        return factor, normaliser, columns

    def _are_there(self, leaves: set[str]) -> bool:
        """Whether leaves are computed of what is written before the scan."""
        new = {k.output: k.value for k in self._new}
        read = {
            e.name for n in leaves for e in walk(new.get(n, self._ref(n))) if isinstance(e, Ref)
        }
        behind = self._kernels[self._kernels.index(self._scan) :]
        return not read & {n for k in behind for n in written_by(k)}

    def _is_running(
        self, other: Column, reader: Kernel, normaliser: Entrywise | None, factor: Expr
    ) -> bool:
        """Whether a normaliser is computed of one column's output, which nothing else needs.

        A factor of the quotient is none of what the normaliser is computed of.
        """
        of_it = normaliser is not None and normaliser.leaves == (other.output,)
        alone = not other.channels and self._is_for(other.output, reader)
        return alone and of_it and is_one(factor)

    def _is_for(self, name: str, reader: Kernel) -> bool:
        """Whether one kernel alone needs a buffer, under this name or another."""
        readers = [k for k in self._readers.get(name, []) if k is not reader]
        return name not in self._outside and all(
            isinstance(k, Pointwise) and isinstance(k.value, Ref) and self._is_for(k.output, reader)
            for k in readers
        )

    # --- leaves ----------------------------------------------------------------------------------

    def _cut(self, e: Expr, axes: frozenset[Axis]) -> tuple[Expr, tuple[Expr, ...]]:
        """Splits a value into arithmetic and the leaves that the arithmetic reads."""
        if self._is_number(e):
            return e, ()
        opened = self._opened(e)
        if isinstance(opened, Ref):
            return opened, (opened,)
        if not self._is_arithmetic(opened, axes):
            return e, (e,)
        parts = [self._cut(c, axes) for c in children(opened)]
        value = remake(opened, tuple(p for p, _ in parts))
        return value, tuple(dict.fromkeys(leaf for _, leaves in parts for leaf in leaves))

    def _opened(self, e: Expr) -> Expr:
        """What a buffer that nothing else needs is computed from."""
        if not isinstance(e, Ref) or e.at != Now(0) or e.name in self._closed:
            return e
        return self._made[e.name] if self._is_private(e.name) else e

    def _is_private(self, name: str) -> bool:
        if name in self._outside or name not in self._made:
            return False
        behind = [k for c in self._scan.columns for k in self._readers.get(c.output, [])]
        return all(
            k is self._scan
            or k in behind
            or (isinstance(k, Pointwise) and self._is_private(k.output))
            for k in self._readers[name]
        )

    def _is_arithmetic(self, e: Expr, axes: frozenset[Axis]) -> bool:
        """Whether a kernel can compute an entry of it from the same entry of its parts."""
        if e.axes != axes or e.time is Time.CONST or e.field is not Field.REAL:
            return False
        if any(c.time is Time.CONST and not self._is_number(c) for c in children(e)):
            return False  # a sum with a parameter, say: a leaf as it is
        if isinstance(e, Prim):
            return e.axis is None and self._computes(e)
        if isinstance(e, Pow):
            return isinstance(e.exponent, Num) and e.exponent.value in (2, 3)
        return isinstance(e, Add | Mul | Div)

    def _is_number(self, e: Expr) -> bool:
        """Whether a value has only constants and the size of the key axis."""
        sizes = [s.axis for s in walk(e) if isinstance(s, Size)]
        numeric = all(isinstance(n, Num | Size | Pow | Mul) for n in walk(e))
        return numeric and all(self._scan.keys == (a,) for a in sizes)

    def _ref(self, name: str) -> Ref:
        b = self._arrays[name]
        constant = b.role is Role.CONSTANT
        time, at = (Time.CONST, None) if constant else (Time.TOKEN, Now(0))
        return Ref(name, frozenset(b.axes), b.field, time, at)

    def _stored(self, e: Expr, name: str = "") -> Ref:
        """The buffer that holds a leaf, made if there is none."""
        if isinstance(e, Ref) and e.at in (Now(0), None):
            return self._ref(e.name)
        known = {
            k.value: k.output for k in (*self._new, *self._kernels) if isinstance(k, Pointwise)
        }
        if e not in known:
            name = fresh(f"{name}_{called(e)}" if name else called(e), self._names)
            self._names.add(name)
            self._arrays[name] = Buffer(name, tuple(sorted(e.axes)), e.field, Role.STREAM)
            self._new.append(Pointwise(name, e))
            return self._ref(name)
        return self._ref(known[e])


def _shorter(e: Expr) -> Expr | None:
    """elu(x) + 1 as max(x, 0) + exp(min(x, 0)), which takes no digits of exp(x) - 1 near 0."""
    if not isinstance(e, Add) or ONE not in e.args:
        return None
    for a in e.args:
        if isinstance(a, Prim) and a.name == "elu":
            (x,) = a.args
            rest = [b for b in e.args if b is not a and b is not ONE]
            return add(prim("relu", x), prim("exp", prim("min", x, ZERO)), *rest)
    return None
