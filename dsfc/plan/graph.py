"""The graph under construction: buffers, kernels in order and registers, planned on demand.

Asking for a buffer plans what it needs first, so kernels come out in an order in which they can
run, and what nothing asks for is never planned.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from dsfc.expr.build import (
    ONE,
    add,
    is_zero,
    mul,
    neg,
    num,
    prim,
    replaced,
    rewrite,
    sub,
    walk,
)
from dsfc.expr.declarations import Provenance
from dsfc.expr.reserved_names import FIRST
from dsfc.expr.tree import Axis, Expr, Field, Fir, Now, Num, Prim, Ref, Size, Time
from dsfc.plan.flow import reads
from dsfc.plan.ir import Buffer, Kernel, Pointwise, Register, Reverse, Role, RunningMax, Unit
from dsfc.system.inline import inliner_of
from dsfc.system.ir import Cache, MaxPlus, ReadOut, Stream, System

Lowering = Callable[[Stream], Expr]


class Graph:
    """Collects the kernels of a plan; `read_out` turns a stream into an expression over buffers.

    Attributes:
        maxima: names of running maxima that the spec declares.
    """

    def __init__(self, system: System, read_out: Lowering) -> None:
        """Starts with the inputs of `system` and nothing else."""
        self.arrays: dict[str, Buffer] = {}
        self.kernels: list[Kernel] = []
        self._ones: str | None = None
        self._reversed: dict[str, str] = {}
        self._ahead: dict[tuple[str, int], str] = {}
        self._units: dict[tuple[Axis, Axis], Ref] = {}
        self._lengths: dict[str, list[Expr]] = {}
        self._registers: dict[str, str] = {}
        self._kept: dict[Expr, str] = {}
        self.paired: dict[Cache, Expr] = {}
        self.unlike_attention: dict[ReadOut, str] = {}
        """Parts of a ratio → why the ratio is no softmax attention."""
        self._streams = {s.name: s for s in system.streams}
        self._read_out = read_out
        declared = (s for s in system.streams if isinstance(s.value, MaxPlus) and s.value.declared)
        self.maxima = frozenset(s.name for s in declared)
        self._known = named_values(system)
        taken = {s.name for s in system.streams} | {b.state for b in system.blocks}
        taken |= {t.name for t in (*system.inputs, *system.params, *system.buffers)}
        taken |= {d.axis.name for d in system.axes}
        self._taken = taken
        for t in system.inputs:
            self.arrays[t.name] = Buffer(t.name, t.axes, t.field, Role.INPUT)

    def fresh(self, name: str) -> str:
        """Returns a name nothing has yet, as close to `name` as possible, and takes it."""
        unused, count = name, 2
        while unused in self._taken:
            unused, count = f"{name}_{count}", count + 1
        self._taken.add(unused)
        return unused

    def named(self, expr: Expr) -> Expr:
        """Returns the expression with every value that a stream holds read from that stream."""
        return replaced(expr, self._known)

    def need(self, name: str) -> Buffer:
        """Returns the buffer of an input or stream, planned now if it was not."""
        # An explicit stack: definitions may stand in chains of any length.
        stack = [name]
        while stack:
            waiting = self._unplanned(stack[-1])
            if waiting:
                stack.extend(reversed(waiting))
            else:
                self._plan(stack.pop())
        return self.arrays[name]

    def _unplanned(self, name: str) -> list[str]:
        """The streams that the definition of a stream reads and that are not planned yet."""
        stream = None if name in self.arrays else self._streams[name]
        match stream and stream.value:
            case Expr() as value:
                held: tuple[Expr, ...] = (value,)
            case MaxPlus(log_decay=log_decay, log_weight=log_weight):
                held = (log_decay, log_weight)
            case _:
                return []
        refs = (e for h in held for e in walk(h) if isinstance(e, Ref))
        return [r.name for r in refs if r.name in self._streams and r.name not in self.arrays]

    def _plan(self, name: str) -> None:
        if name in self.arrays:
            return
        s = self._streams[name]
        if isinstance(s.value, MaxPlus):
            self._running_max(s, s.value)
            return
        value = self._read_out(s)
        role = Role.CONSTANT if s.constant else Role.STREAM
        self._append(Buffer(name, s.axes, s.field, role, s.provenance), value)

    def _running_max(self, s: Stream, value: MaxPlus) -> None:
        """Plans a running maximum and the register that hands it on."""
        decay = None
        if not is_zero(value.log_decay):
            decay = self.define(f"{s.name}_decay", bounded_log(value.log_decay))
        weight = self.define(f"{s.name}_weight", value.log_weight)
        self.kernels.append(RunningMax(s.name, decay, weight, value.declared))
        self.arrays[s.name] = Buffer(s.name, s.axes, s.field, Role.STREAM, s.provenance)
        self._keep(s.name, num(1))

    def define(self, name: str, value: Expr, provenance: Provenance | None = None) -> str:
        """Plans `name = value` under a fresh name, unless the value is a buffer already."""
        value = self.lower(value)
        if isinstance(value, Ref) and value.at in (Now(0), None) and value.name in self.arrays:
            return value.name
        role = Role.CONSTANT if value.time is Time.CONST else Role.STREAM
        fresh_name = self.fresh(name)
        axes = tuple(sorted(value.axes))
        self._append(Buffer(fresh_name, axes, value.field, role, provenance), value)
        return fresh_name

    def output(
        self, name: str, value: Expr, axes: tuple[Axis, ...], source: Provenance | None
    ) -> str:
        """Plans the module's result, under the spec's own name where that is free."""
        value = self.lower(value)
        output_name = name if name not in self.arrays else self.fresh(name)
        self._append(Buffer(output_name, axes, value.field, Role.OUTPUT, source), value)
        return output_name

    def scan_output(self, name: str, axes: tuple[Axis, ...], field: Field) -> str:
        """Adds the buffer that a scan writes; the caller appends the scan."""
        fresh_name = self.fresh(name)
        self.arrays[fresh_name] = Buffer(fresh_name, axes, field, Role.STREAM)
        return fresh_name

    def lower(self, expr: Expr) -> Expr:
        """Returns the expression with all it reads planned, `first` and filters included."""

        def rule(e: Expr) -> Expr | None:
            if isinstance(e, Fir):
                arg = self._buffer_of(e.arg)
                lag = arg.at.lag if isinstance(arg.at, Now) else 0
                self._keep(arg.name, add(Size(e.axis), num(lag - 1)))
                return Fir(e.axis, e.weight, arg, e.reverse)
            if not isinstance(e, Ref):
                return None
            if e.name == FIRST:
                return self._first(e)
            self.need(e.name)
            if isinstance(e.at, Now) and e.at.lag < 0:
                return self._later(e, -e.at.lag)
            if isinstance(e.at, Now) and e.at.lag > 0:
                self._keep(e.name, num(e.at.lag))
            return None

        return rewrite(expr, rule)

    def _later(self, ref: Ref, ahead: int) -> Ref:
        """A value of a later token, 0 behind the last: an earlier one where tokens are reversed."""
        if (ref.name, ahead) not in self._ahead:
            backwards = self.in_reverse(ref.name)
            self._keep(backwards, num(ahead))
            b = self.arrays[backwards]
            buffer = Buffer(self.fresh(f"{ref.name}_later"), b.axes, b.field, Role.STREAM)
            self._append(buffer, Ref(backwards, ref.over, ref.kind, ref.when, Now(ahead)))
            self._ahead[ref.name, ahead] = self.in_reverse(buffer.name)
        return Ref(self._ahead[ref.name, ahead], ref.over, ref.kind, ref.when, Now(0))

    def _buffer_of(self, value: Expr) -> Ref:
        """The value as a read of a buffer: only what has a buffer has a past."""
        if isinstance(value, Ref):
            return value
        axes = tuple(sorted(value.axes))
        buffer = Buffer(self.fresh("filtered"), axes, value.field, Role.STREAM)
        self._append(buffer, value)
        return Ref(buffer.name, value.axes, value.field, Time.TOKEN, Now(0))

    def ones(self) -> str:
        """Plans the stream that is 1 at every token."""
        if self._ones is None:
            self._ones = self.fresh("ones")
            self._append(Buffer(self._ones, (), Field.REAL, Role.STREAM), ONE)
        return self._ones

    def in_reverse(self, name: str) -> str:
        """Plans the buffer whose tokens are those of another, the last one first.

        What is the same at every token is its own; reversed twice, a buffer is itself.
        """
        b = self.arrays[name]
        if b.role is Role.CONSTANT or name == self._ones:
            return name
        if name not in self._reversed:
            base = name.removesuffix(REVERSED)
            fresh_name = self.fresh(base if base != name else f"{name}{REVERSED}")
            self.arrays[fresh_name] = Buffer(fresh_name, b.axes, b.field, Role.STREAM)
            self.kernels.append(Reverse(fresh_name, name))
            self._reversed |= {name: fresh_name, fresh_name: name}
        return self._reversed[name]

    def unit(self, row: Axis, column: Axis) -> Ref:
        """Plans the unit vectors of an axis, side by side along a copy of it."""
        if (row, column) not in self._units:
            unit_name = self.fresh(f"{row.name}_unit")
            over = (row, column)
            self.arrays[unit_name] = Buffer(
                unit_name, tuple(sorted(over)), Field.REAL, Role.CONSTANT
            )
            self.kernels.append(Unit(unit_name, row, column))
            ref = Ref(unit_name, frozenset(over), Field.REAL, Time.CONST, None)
            self._units[row, column] = ref
        return self._units[row, column]

    def kept(self, name: str, register: str, value: Expr) -> str:
        """Plans `name = value` with a register, of that name, of its values at all tokens.

        What is kept already is not kept twice. The buffer is no other one, even where it has the
        same values: reads of a few earlier tokens have registers of their own.
        """
        value = self.lower(value)
        if value in self._kept:
            return self._kept[value]
        fresh_name = self.fresh(name)
        axes = tuple(sorted(value.axes))
        self._append(Buffer(fresh_name, axes, value.field, Role.STREAM), value)
        self._lengths[fresh_name], self._kept[value] = [], fresh_name
        self._registers[fresh_name] = self.fresh(register)
        return fresh_name

    def forget_unread_copies(self) -> None:
        """Takes out reversed buffers that no kernel reads: what was reversed twice is itself."""
        read = {name for k in self.kernels for name, _ in reads(k)} | set(self._lengths)
        unread = {k.output for k in self.kernels if isinstance(k, Reverse)} - read
        self.kernels = [
            k for k in self.kernels if not (isinstance(k, Reverse) and k.output in unread)
        ]
        for name in unread:
            del self.arrays[name]

    def registers(self) -> tuple[Register, ...]:
        """Returns what must be kept of earlier tokens, in the order it was first asked for."""
        out = []
        for name, lengths in self._lengths.items():
            b = self.arrays[name]
            register = self._registers.get(name) or self.fresh(f"{name}_past")
            out.append(Register(register, name, tuple(lengths), b.axes, b.field))
        return tuple(out)

    def _append(self, buffer: Buffer, value: Expr) -> None:
        self.kernels.append(Pointwise(buffer.name, value))
        self.arrays[buffer.name] = buffer

    def _keep(self, name: str, length: Expr) -> None:
        lengths = self._lengths.setdefault(name, [])
        if length not in lengths:
            lengths.append(length)

    def _first(self, ref: Ref) -> Expr:
        """1 - (the constant 1, one token earlier): 1 at the first token of a sequence."""
        lag = ref.at.lag if isinstance(ref.at, Now) else 0
        ones = self.ones()
        self._keep(ones, num(lag + 1))
        now, before = (Ref(ones, frozenset(), Field.REAL, Time.TOKEN, Now(lag + k)) for k in (0, 1))
        return sub(ONE if lag == 0 else now, before)


def bounded_log(log: Expr) -> Expr:
    """Returns log λ with no logarithm of a computed value below that of the least normal number.

    Below it λ is as good as 0, and the gradient through a logarithm of 0 would be 0 / 0. That of
    1 + x is split at x = -1/2, below which the sum 1 + x has no rounding.
    """

    def rule(e: Expr) -> Expr | None:
        match e:
            case Prim(name="log", args=(x,)) if e.field is Field.REAL:
                return prim("log", prim("max", x, _LEAST))
            case Prim(name="log1p", args=(x,)) if e.field is Field.REAL:
                doubled = mul(num(2), prim("min", add(ONE, x), _HALF))
                small = prim("log", prim("max", doubled, _LEAST))
                return add(prim("log1p", prim("max", x, neg(_HALF))), small)
        return None

    return rewrite(log, rule)


_LEAST = num(Fraction(1, 2**126))
"""The least normal number of float32."""
_HALF = num(Fraction(1, 2))


REVERSED = "_reversed"
"""Behind the name of a buffer whose tokens stand in the other order."""


def named_values(system: System) -> dict[Expr, Expr]:
    """Returns the inlined value of each stream → the `Ref` that reads it, simplest first."""
    out: dict[Expr, Expr] = {}
    inliner = inliner_of(system)
    for s in system.streams:
        value = inliner.value(s.name)
        if value is None or isinstance(value, Ref | Num) or value in out:
            continue
        time, at = (Time.CONST, None) if s.constant else (Time.TOKEN, Now(0))
        out[value] = Ref(s.name, frozenset(s.axes), s.field, time, at)
    return out
