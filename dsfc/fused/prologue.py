"""Computes in the kernel of a scan what drives it: the prologue of scans without products of keys.

A scan that is bound by memory computes what drives it where it reads it, so that only leaves come
from memory, and only their gradients go there. The prologue of a scan without keys, elementwise or
a convolution, computes its value and log λ; a complex scan is one of pairs
(`dsfc.fused.real_imag`), and its prologue computes both parts of each. A selective scan, whose
log λ is a product of a few leaves, computes its value and those leaves that have the axes of its
output, and what is added to that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from dsfc.expr.build import ZERO, add, mul, neg, prim, remake, rewrite, walk
from dsfc.expr.derivative import pull
from dsfc.expr.tree import (
    Add,
    Div,
    Expr,
    Field,
    Map,
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
from dsfc.fused.ir import (
    DECAY_BAR,
    OUT_BAR,
    VALUE_BAR,
    FusedPlan,
    Prologue,
    barred,
    is_entrywise,
    is_paired,
    is_split,
    joined,
    rate_bar,
    real_imag,
)
from dsfc.fused.names import called, fresh, taken
from dsfc.fused.real_imag import split_real_imag, with_real_leaves
from dsfc.plan.flow import reads, written_by
from dsfc.plan.ir import Buffer, Kernel, Plan, Pointwise, Role
from dsfc.plan.recurrence_ir import Recurrence
from dsfc.plan.scan_ir import Form, LogDecay, Scan


def fuse_prologue(fused: FusedPlan, computes: Callable[[Prim], bool]) -> FusedPlan:
    """Returns the plan with a prologue for each elementwise and selective scan that can have one.

    Args:
        fused: the plan so far.
        computes: whether a kernel computes a primitive; others are left in front of the scan.
    """
    plan = fused.plan
    prologues = list(fused.prologues)
    held = {n for p in prologues for n in p.leaves}
    for name in [k.name for k in plan.kernels if isinstance(k, Scan)]:
        whole, parts = with_real_leaves(split_real_imag(plan, name, held), name, held)
        scan = next(k for k in whole.kernels if isinstance(k, Scan) and k.name == name)
        if not has_prologue(scan):
            continue
        inside = _Inside(whole, scan, computes, held)
        prologue = inside.prologue()
        if prologue.tokens and inside.is_computed():
            prologues.append(replace(prologue, parts=parts))
            held |= set(prologue.leaves)
            plan = inside.plan()
    return replace(fused, plan=plan, prologues=tuple(prologues))


def has_prologue(scan: Scan) -> bool:
    """Whether a scan may have a prologue: it has no keys, or is selective, and decays.

    It is real, or a scan of pairs.

    A kernel holds all keys of a channel in registers. Where they share a decay (class `per_value`)
    they are those of a matrix scan, and too many.
    """
    of_reals = scan.field is Field.REAL or is_paired(scan) or is_split(scan)
    if not of_reals or scan.decay is None:
        return False
    own = set(scan.keys) <= scan.decay.expr.axes
    return is_entrywise(scan) or (scan.form is Form.SELECTIVE and own)


def _label(kernel: Kernel) -> str:
    """A name that no other kernel has: that of what it writes, or, of states, one of two words."""
    if isinstance(kernel, Scan | Recurrence):
        return f"kernel {kernel.name}"
    return kernel.output


def _reads(kernel: Kernel) -> set[str]:
    """The buffers that a kernel reads."""
    return {name for name, _ in reads(kernel)}


class _Inside:
    """The prologue of one scan of a plan under change."""

    def __init__(
        self, plan: Plan, scan: Scan, computes: Callable[[Prim], bool], held: Collection[str]
    ) -> None:
        self.kernels: dict[str, Kernel] = {_label(k): k for k in plan.kernels}
        self._plan = plan
        self._scan = scan
        self._computes = computes
        self._outside = {plan.output, *(r.buffer for r in plan.registers), *held}
        self._tile = frozenset((*scan.heads, *scan.channels))
        self._arrays = {b.name: b for b in plan.arrays}
        self._names = taken(plan)
        assert scan.decay is not None
        self._sum = self._taken_sum(scan.columns[0].output)
        self._absorbed = self._private()
        self._leaves: dict[Expr, Ref] = {}
        self._new: list[Pointwise] = []
        self._value = joined(self._inside(self._read(n)) for n in self._driven)
        self._rates = {n: self._inside(self._read(n)) for n in scan.decay.leaves if self._fits(n)}
        self._decay = rewrite(scan.decay.expr, self._inside_leaf)
        self._added = ZERO if self._sum is None else self._inside(self._sum[1])

    def prologue(self) -> Prologue:
        """Returns the prologue."""
        pairs = barred(self._value, VALUE_BAR)
        if self._selective:
            pairs += [(e, rate_bar(n)) for n, e in self._rates.items()]
            pairs += [] if self._sum is None else [(self._added, OUT_BAR)]
        else:
            pairs += barred(self._decay, DECAY_BAR)
        bars = [(e, Ref(n, self._tile, Field.REAL, Time.TOKEN, Now(0))) for e, n in pairs]
        pulled = pull(bars).refs
        decay, size = self._decayed()
        refs = sorted(dict.fromkeys(self._leaves.values()), key=lambda r: r.time is Time.CONST)
        again = {prim("exp", real_imag(self._decay)[0]): size}
        values = [(n, self._inside(self._read(n))) for n in self._absorbed]
        named = tuple((n, _replaced(v, again)) for n, v in values)
        return Prologue(
            self._scan.name,
            tuple(r.name for r in refs if r.time is not Time.CONST),
            tuple(r.name for r in refs if r.time is Time.CONST),
            _replaced(self._value, again),
            self._decay,
            decay,
            named,
            tuple(_replaced(pulled.get(r, ZERO), again) for r in refs),
            tuple(self._rates.items()) if self._selective else (),
            self._added,
        )

    def _decayed(self) -> tuple[Expr, Expr]:
        """λ and |λ|. Of a phase that is the same at all tokens, sine and cosine are leaves."""
        log, *phase = real_imag(self._decay)
        size = _exponential(log)
        if self._selective and phase:
            return prim("exp", self._decay), size
        if not phase:
            return size, size
        # A parameter is no buffer, which a kernel in front of the scan could read.
        params: dict[Expr, Expr] = {
            leaf: e for e, leaf in self._leaves.items() if isinstance(e, Param)
        }
        angle = rewrite(phase[0], params.get)
        parts = (self._inside(prim(name, angle)) for name in ("cos", "sin"))
        return joined(mul(size, x) for x in parts), size

    def is_computed(self) -> bool:
        """Whether a kernel can compute log λ of its leaves."""
        nodes = (e for part in real_imag(self._decay) for e in walk(part))
        return all(self._is_entrywise(e) or isinstance(e, Ref | Num) for e in nodes)

    def plan(self) -> Plan:
        """Returns the plan, in which `kernels` are those left."""
        for name in self._absorbed:
            del self.kernels[name]
        new = {k.output: k for k in self._new}
        order: dict[str, Kernel] = {}
        for name, kernel in self.kernels.items():
            if kernel is self._scan:
                order |= new
                decays = [*self._rates.values(), self._decayed()[0]]
                computed = [e for e in decays for e in self._leaves_of(e)]
                # So are constants: one number a channel costs nothing.
                computed += [r for r in self._leaves.values() if r.time is Time.CONST]
                wide = dict.fromkeys(r.name for r in computed if self._computed(r.name))
                columns = self._scan.columns
                if self._sum is not None:
                    columns = (replace(columns[0], output=self._sum[0]),)
                decay = LogDecay(self._decay, tuple(wide))
                order[name] = replace(self._scan, decay=decay, columns=columns)
            elif self._sum is not None and name == self._sum[0]:
                continue
            else:
                order[name] = kernel
        self.kernels = order
        arrays = tuple(self._arrays.values())
        return replace(self._plan, kernels=tuple(order.values()), arrays=arrays)

    # --- what is taken in ------------------------------------------------------------------------

    @property
    def _selective(self) -> bool:
        return self._scan.form is Form.SELECTIVE

    def _fits(self, leaf: str) -> bool:
        """Whether a leaf of the decay has the axes of the output, and varies over time."""
        b = self._arrays[leaf]
        return not self._selective or (set(b.axes) == self._tile and b.role is not Role.CONSTANT)

    @property
    def _inputs(self) -> set[str]:
        """What the scan reads that may be computed inside."""
        assert self._scan.decay is not None
        return {*self._driven, *(n for n in self._scan.decay.leaves if self._fits(n))}

    @property
    def _driven(self) -> tuple[str, ...]:
        """The buffer of the value, or those of its planes."""
        return tuple(c.value for c in self._scan.columns if c.value is not None)

    def _inside_leaf(self, e: Expr) -> Expr | None:
        """A leaf of an elementwise decay is the decay; a selective one is computed of leaves."""
        if self._selective or not isinstance(e, Ref):
            return None
        return self._rates[e.name]

    def _taken_sum(self, output: str) -> tuple[str, Expr] | None:
        """The kernel that adds to what a selective scan reads, and what it adds.

        It is taken in where nothing else has the scan's output, and where what it adds is there
        before the scan.
        """
        readers = [n for n, k in self.kernels.items() if output in _reads(k)]
        if not self._selective or self._scan.before or len(readers) != 1:
            return None
        kernel = self.kernels[readers[0]]
        if output in self._outside or not isinstance(kernel, Pointwise):
            return None
        value = kernel.value
        if not isinstance(value, Add) or value.axes != self._tile or value.field is not Field.REAL:
            return None
        rest = [e for e in value.args if not (isinstance(e, Ref) and e.name == output)]
        kernels = list(self.kernels.values())
        behind = kernels[kernels.index(self._scan) :]
        later = {b for k in behind for b in written_by(k)}
        read = {r.name for e in rest for r in walk(e) if isinstance(r, Ref)}
        if len(rest) + 1 != len(value.args) or read & later:
            return None
        return readers[0], add(*rest)

    def _private(self) -> tuple[str, ...]:
        """Buffers computed of tiles that nothing but the scan needs, in the order of the plan."""
        outside = set(self._outside)
        taken: set[str] = set()
        # Readers come after what they read, so that one pass from the end finds all.
        for name, kernel in reversed(self.kernels.items()):
            if isinstance(kernel, Scan):
                outside |= _reads(kernel) - (self._inputs if kernel is self._scan else set())
            elif not isinstance(kernel, Pointwise):
                outside |= _reads(kernel)
            elif self._sum is not None and name == self._sum[0]:
                outside |= set(self._read_in_front(self._sum[1]))
            elif isinstance(kernel.value, Num | Param | Ref) and name not in outside:
                taken.add(name)  # a plane of nothing, or another name of something
                outside |= set(self._read_in_front(kernel.value))
            elif name in outside or not self._is_arithmetic(kernel.value):
                outside |= {r.name for r in walk(kernel.value) if isinstance(r, Ref)}
            else:
                taken.add(name)
                outside |= set(self._read_in_front(kernel.value))
        return tuple(n for n in self.kernels if n in taken)

    def _read_in_front(self, e: Expr) -> Iterator[str]:
        """Buffers that the leaves of an expression are computed from."""
        if self._is_arithmetic(e):
            for c in children(e):
                yield from self._read_in_front(c)
        elif not (isinstance(e, Ref) and e.at == Now(0)):
            yield from (r.name for r in walk(e) if isinstance(r, Ref))

    def _is_arithmetic(self, e: Expr) -> bool:
        if e.axes != self._tile or e.time is Time.CONST or e.field is not Field.REAL:
            return False
        return self._is_entrywise(e)

    def _is_entrywise(self, e: Expr) -> bool:
        """Whether a kernel can compute an entry of it from the same entry of its parts."""
        if isinstance(e, Prim):
            return e.axis is None and self._computes(e)
        if isinstance(e, Pow):
            return isinstance(e.exponent, Num) and e.exponent.value in (2, 3)
        return isinstance(e, Add | Mul | Div)

    def _read(self, name: str) -> Ref:
        """A buffer, broadcast to the state's axes: whoever broadcasts it sums its gradient."""
        constant = self._arrays[name].role is Role.CONSTANT
        time, at = (Time.CONST, None) if constant else (Time.TOKEN, Now(0))
        return Ref(name, self._tile, Field.REAL, time, at)

    def _inside(self, e: Expr) -> Expr:
        """The expression over leaves: what is no arithmetic of tiles becomes one."""
        if isinstance(e, Num):
            return e
        if isinstance(e, Ref) and e.at in (Now(0), None) and e.name in self._absorbed:
            kernel = self.kernels[e.name]
            assert isinstance(kernel, Pointwise)
            return self._inside(kernel.value)
        if self._is_arithmetic(e):
            return remake(e, tuple(self._inside(c) for c in children(e)))
        return self._leaf(e)

    # --- leaves ----------------------------------------------------------------------------------

    def _leaf(self, e: Expr) -> Ref:
        if e in self._leaves:
            return self._leaves[e]
        if isinstance(e, Ref) and e.at in (Now(0), None):
            name = e.name
        elif isinstance(e, Param):
            name = e.name
            self._arrays[name] = Buffer(name, tuple(sorted(e.axes)), e.field, Role.CONSTANT)
        else:
            name = fresh(called(e), self._names)
            self._names.add(name)
            role = Role.CONSTANT if e.time is Time.CONST else Role.STREAM
            self._arrays[name] = Buffer(name, tuple(sorted(e.axes)), e.field, role)
            self._new.append(Pointwise(name, e))
        self._leaves[e] = self._read(name)
        return self._leaves[e]

    def _leaves_of(self, e: Expr) -> list[Ref]:
        return [n for n in walk(e) if isinstance(n, Ref)]

    def _computed(self, name: str) -> bool:
        """Whether a leaf is the result of arithmetic, not of a map, nor given."""
        values = {k.output: k.value for k in self._new}
        kernel = self.kernels.get(name)
        value = values.get(name, kernel.value if isinstance(kernel, Pointwise) else None)
        return value is not None and not isinstance(value, Map)


def _replaced(e: Expr, table: dict[Expr, Expr]) -> Expr:
    return rewrite(e, table.get)


def _exponential(e: Expr) -> Expr:
    """exp(e), in fewer functions: of a logarithm its argument, of a sigmoid's the sigmoid."""
    match e:
        case Prim(name="logsigmoid", args=(x,)):
            return prim("sigmoid", x)
        case Mul(args=(Num(value=-1), Prim(name="softplus", args=(x,)))):
            return prim("sigmoid", neg(x))
        case Prim(name="log", args=(x,)):
            return x
        case _:
            return prim("exp", e)
