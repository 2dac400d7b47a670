"""Which token-wise kernels a scan can compute itself, from less than they read and write.

An elementwise scan is bound by memory: what it is driven by is computed where it is read, so that
only leaves come from memory, and only their gradients go there. Backends that have such kernels
ask for it; the plan itself, by which a mixer is known, stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from dsfc.plan.ir import Buffer, Form, Kernel, LogDecay, Plan, Pointwise, Role, Scan
from dsfc.primitives.build import ZERO, neg, prim, remake, rewrite, walk
from dsfc.primitives.derivative import pull
from dsfc.primitives.expr import (
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

VALUE_BAR = "value_bar"
DECAY_BAR = "log_decay_bar"
"""Names under which gradients read those of a scan's value and of its log λ."""


@dataclass(frozen=True, slots=True)
class Gates:
    """What a scan is driven by, as expressions over leaves with the axes of its state.

    Attributes:
        scan: name of the scan.
        tokens: buffers that vary over time.
        constants: buffers that do not.
        value: what is added to the state.
        log_decay: log λ.
        decay: λ; equal to exp(log_decay), in a form of fewer functions where there is one.
        named: (name, value) of the buffers that are not stored any more, in order.
        gradients: one per leaf, `tokens` first, over the leaves, `Ref("value_bar")` and
            `Ref("log_decay_bar")`; those of `constants` are to be summed over time.
    """

    scan: str
    tokens: tuple[str, ...]
    constants: tuple[str, ...]
    value: Expr
    log_decay: Expr
    decay: Expr
    named: tuple[tuple[str, Expr], ...]
    gradients: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Absorbed:
    """A plan whose scans compute their gates.

    Attributes:
        plan: without the kernels that the gates hold, and with one for each leaf that had none. A
            scan with gates reads them instead of its value and log-decay; the leaves of its
            `decay` are those that are computed token by token, in the precision of a decay.
        gates: one per scan that has any, in order.
    """

    plan: Plan
    gates: tuple[Gates, ...]


def absorb(plan: Plan, knows: Callable[[Prim], bool]) -> Absorbed:
    """Returns the plan with the gates of its elementwise scans taken in.

    Args:
        plan: the plan.
        knows: whether a kernel can compute a primitive; others are left in front of the scan.
    """
    kernels = {_output(k): k for k in plan.kernels}
    found: list[Gates] = []
    for scan in (k for k in plan.kernels if isinstance(k, Scan)):
        if not has_gates(scan):
            continue
        taken = _Taken(plan, kernels, scan, knows)
        gates = taken.gates()
        if gates.tokens:
            found.append(gates)
            plan, kernels = taken.plan(), taken.kernels
    return Absorbed(plan, tuple(found))


def has_gates(scan: Scan) -> bool:
    """Whether a scan's gates can be taken in: it is elementwise, real, and decays."""
    return scan.form is Form.ELEMENTWISE and scan.field is Field.REAL and scan.decay is not None


def _output(kernel: Kernel) -> str:
    return kernel.output if isinstance(kernel, Pointwise) else kernel.name


def _read_by(scan: Scan) -> set[str]:
    """The buffers that a scan reads."""
    leaves = () if scan.decay is None else scan.decay.leaves
    return {n for n in (*leaves, scan.key, scan.read, *(c.value for c in scan.columns)) if n}


class _Taken:
    """The gates of one scan of a plan under change."""

    def __init__(
        self, plan: Plan, kernels: dict[str, Kernel], scan: Scan, knows: Callable[[Prim], bool]
    ) -> None:
        self.kernels = dict(kernels)
        self._plan = plan
        self._scan = scan
        self._knows = knows
        self._tile = frozenset((*scan.heads, *scan.channels))
        self._arrays = {b.name: b for b in plan.arrays}
        self._names = {t.name for t in (*plan.params, *plan.buffers)} | set(self._arrays)
        self._names |= {d.axis.name for d in plan.axes} | {s.name for s in plan.states}
        self._names |= {r.name for r in plan.registers}
        (column,) = scan.columns
        assert scan.decay is not None and column.value is not None
        (leaf,) = scan.decay.leaves
        self._absorbed = self._private()
        self._leaves: dict[Expr, Ref] = {}
        self._new: list[Pointwise] = []
        self._value = self._inside(self._read(column.value))
        self._decay = self._inside(self._read(leaf))

    def gates(self) -> Gates:
        """Returns the gates."""
        value_bar, decay_bar = (
            Ref(n, self._tile, Field.REAL, Time.TOKEN, Now(0)) for n in (VALUE_BAR, DECAY_BAR)
        )
        pulled = pull([(self._value, value_bar), (self._decay, decay_bar)]).refs
        refs = sorted(dict.fromkeys(self._leaves.values()), key=lambda r: r.time is Time.CONST)
        decay = _exponential(self._decay)
        again = {prim("exp", self._decay): decay}
        values = [(n, self._inside(self._read(n))) for n in self._absorbed]
        named = tuple((n, _replaced(v, again)) for n, v in values)
        return Gates(
            self._scan.name,
            tuple(r.name for r in refs if r.time is not Time.CONST),
            tuple(r.name for r in refs if r.time is Time.CONST),
            _replaced(self._value, again),
            self._decay,
            decay,
            named,
            tuple(_replaced(pulled.get(r, ZERO), again) for r in refs),
        )

    def plan(self) -> Plan:
        """Returns the plan, in which `kernels` are those left."""
        for name in self._absorbed:
            del self.kernels[name]
        made = {k.output: k for k in self._new}
        order: dict[str, Kernel] = {}
        for name, kernel in self.kernels.items():
            if name == self._scan.name:
                order |= made
                wide = [r.name for r in self._leaves_of(self._decay) if self._computed(r.name)]
                order[name] = replace(self._scan, decay=LogDecay(self._decay, tuple(wide)))
            else:
                order[name] = kernel
        self.kernels = order
        arrays = tuple(self._arrays.values())
        return replace(self._plan, kernels=tuple(order.values()), arrays=arrays)

    # --- what is taken in ------------------------------------------------------------------------

    def _private(self) -> tuple[str, ...]:
        """Buffers computed of tiles that nothing but the scan needs, in the order of the plan."""
        outside = {self._plan.output, *(r.buffer for r in self._plan.registers)}
        taken: set[str] = set()
        # Readers come after what they read, so that one pass from the end finds all.
        for name, kernel in reversed(self.kernels.items()):
            if isinstance(kernel, Scan):
                if kernel is not self._scan:
                    outside |= _read_by(kernel)
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
        if isinstance(e, Prim):
            return e.axis is None and self._knows(e)
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
        if isinstance(e, Ref) and e.at == Now(0) and e.name in self._absorbed:
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
            name = self._fresh(_called(e))
            role = Role.CONSTANT if e.time is Time.CONST else Role.STREAM
            self._arrays[name] = Buffer(name, tuple(sorted(e.axes)), e.field, role)
            self._new.append(Pointwise(name, e))
        self._leaves[e] = self._read(name)
        return self._leaves[e]

    def _leaves_of(self, e: Expr) -> list[Ref]:
        return [n for n in walk(e) if isinstance(n, Ref)]

    def _computed(self, name: str) -> bool:
        """Whether a leaf is the result of arithmetic, not of a map, nor given."""
        made = {k.output: k.value for k in self._new}
        kernel = self.kernels.get(name)
        value = made.get(name, kernel.value if isinstance(kernel, Pointwise) else None)
        return value is not None and not isinstance(value, Map)

    def _fresh(self, name: str) -> str:
        made, count = name, 2
        while made in self._names:
            made, count = f"{name}_{count}", count + 1
        self._names.add(made)
        return made


def _replaced(e: Expr, table: dict[Expr, Expr]) -> Expr:
    return rewrite(e, table.get)


def _called(e: Expr) -> str:
    """A name that says what is computed: `W_r_u` for W_r u, `softplus_zeta`."""
    match e:
        case Map():
            return f"{e.map.name}_{_called(e.arg)}"
        case Prim():
            return "_".join([e.name, *(_called(a) for a in e.args)])
        case Ref() | Param():
            return e.name
        case _:
            return "part"


def _exponential(e: Expr) -> Expr:
    """exp(e); of a logarithm of the sigmoid the sigmoid, which takes one function, not three."""
    match e:
        case Prim(name="logsigmoid", args=(x,)):
            return prim("sigmoid", x)
        case Mul(args=(Num(value=-1), Prim(name="softplus", args=(x,)))):
            return prim("sigmoid", neg(x))
        case _:
            return prim("exp", e)
