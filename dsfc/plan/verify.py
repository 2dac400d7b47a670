"""Well-formedness of plans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dsfc.expr.build import walk
from dsfc.expr.derivative import pull
from dsfc.expr.over_time import Lag, Past, Run
from dsfc.expr.tree import Axis, Expr, Field, Fir, Map, Now, Num, Param, Ref, Time
from dsfc.plan.ir import Buffer, Kernel, Plan, Pointwise, Role, RunningMax, Turn, Unit
from dsfc.plan.pairs_ir import AllPairs, Attention
from dsfc.plan.recurrence_ir import Recurrence
from dsfc.plan.scan_ir import LOW_RANK, Form, Scan


class PlanError(Exception):
    """A plan that breaks an invariant: a fault of the planner, never of a spec."""


def verify(plan: Plan) -> None:
    """Checks the invariants of a plan.

    Every buffer but the inputs is written once, before it is read; a read of an earlier token has a
    register that is long enough, of the buffer's axes; a scan's key, read and low-rank part lie
    over heads ∪ keys, its values and outputs over heads ∪ channels, its state over all three; a
    scan without keys is ELEMENTWISE or CONVOLUTION and has neither key nor read; what a CONVOLUTION
    reads besides its value is constant; a decay reads its leaves and nothing else; every column's
    state is a state of the plan; attention lies over its axes, and registers keep all tokens of
    what it weighs; a sum over pairs reads its leaves, and its gradients have their axes; what is
    turned has a time and keeps its axes; a recurrence reads what is given before it, and its last
    level is its states; a register hands a running maximum on; each scan has
    one adjoint; parameters that are read are declared; the output is written.

    Raises:
        PlanError: naming the kernel and what is wrong with it.
    """
    arrays = {b.name: b for b in plan.arrays}
    if len(arrays) != len(plan.arrays):
        raise PlanError("two buffers have one name")
    written = {b.name for b in plan.arrays if b.role is Role.INPUT}
    declared = {t.name for t in (*plan.params, *plan.buffers)}
    _check_registers(plan, arrays)
    for k in plan.kernels:
        for name, lag in reads(k):
            if name not in written:
                raise PlanError(f"{_name(k)} reads {name} before it is written")
            if lag < 0:
                raise PlanError(f"{_name(k)} reads the future of {name}")
        for out in written_by(k):
            if out not in arrays:
                raise PlanError(f"{out} is written and is no buffer")
            if out in written:
                raise PlanError(f"{out} is written twice")
            written.add(out)
        if isinstance(k, Turn):
            _check_turn(k, arrays)
        elif isinstance(k, Unit):
            if set(arrays[k.output].axes) != {k.row, k.column}:
                raise PlanError(f"{k.output} is no unit matrix of {k.row} and {k.column}")
        elif isinstance(k, Attention):
            _check_attention(k, plan)
        elif isinstance(k, AllPairs):
            _check_pairs(k, plan)
        elif isinstance(k, RunningMax):
            _check_running_max(k, plan)
        elif isinstance(k, Recurrence):
            _check_recurrence(k, plan)
        elif isinstance(k, Pointwise):
            _check_value(k.value, k.output, declared)
            _check_past(k, plan)
            if not k.value.axes <= frozenset(arrays[k.output].axes):
                raise PlanError(f"{k.output} lacks axes of its value")
        else:
            _check_scan(k, plan)
    for name in arrays:
        if name not in written:
            raise PlanError(f"{name} is never written")
    if plan.output not in written:
        raise PlanError("the output is never written")
    scans = [k.name for k in plan.kernels if isinstance(k, Scan)]
    if scans != [a.scan for a in plan.adjoints]:
        raise PlanError("scans and adjoints do not match")


def _check_registers(plan: Plan, arrays: Mapping[str, Buffer]) -> None:
    kept = {b for k in plan.kernels if isinstance(k, Attention | AllPairs) for b in k.kept}
    for r in plan.registers:
        if r.buffer not in arrays:
            raise PlanError(f"the register {r.name} keeps {r.buffer}, which is no buffer")
        if r.axes != arrays[r.buffer].axes or r.grows != (r.buffer in kept):
            raise PlanError(f"the register {r.name} does not fit {r.buffer}")


def _check_running_max(k: RunningMax, plan: Plan) -> None:
    """Checks that a running maximum has the axes of what it is of, and is handed on."""
    over = {a for name, _ in reads(k) for a in plan.array(name).axes}
    if set(plan.array(k.output).axes) != over:
        raise PlanError(f"{k.output} has the wrong axes")
    if not any(r.buffer == k.output for r in plan.registers):
        raise PlanError(f"{k.output} is a running maximum without a register")


def _check_past(kernel: Pointwise, plan: Plan) -> None:
    """Checks that what a kernel reads of earlier tokens is kept."""
    kept = {r.buffer: r.lengths for r in plan.registers}
    for e in walk(kernel.value):
        if isinstance(e, Ref) and isinstance(e.at, Now) and e.at.lag > 0:
            lag = e.at.lag
            if not any(isinstance(n, Num) and n.value >= lag for n in kept.get(e.name, ())):
                where = f"{lag} tokens back"
                raise PlanError(f"{kernel.output} reads {e.name} {where} without a register")
        if isinstance(e, Fir) and isinstance(e.arg, Ref) and e.arg.name not in kept:
            raise PlanError(f"{kernel.output} filters {e.arg.name} without a register")


def _check_attention(k: Attention, plan: Plan) -> None:
    heads, keys, channels = set(k.heads), set(k.keys), set(k.channels)
    if heads & (keys | channels):
        raise PlanError(f"{k.output}: a head axis is a key or a channel")
    sides = {
        k.query: heads | keys,
        k.key: heads | keys,
        k.value: heads | channels,
        k.present: set(),
    }
    for name, axes in sides.items():
        if not set(plan.array(name).axes) <= axes:
            raise PlanError(f"{k.output}: {name} has axes outside its own")
    if set(plan.array(k.output).axes) != heads | channels:
        raise PlanError(f"{k.output} has the wrong axes")
    if missing := set(k.kept) - {r.buffer for r in plan.registers}:
        raise PlanError(f"{k.output} reads {', '.join(sorted(missing))} without a register")


def _check_pairs(k: AllPairs, plan: Plan) -> None:
    where = f"the sum {k.output}"
    if plan.array(k.output).axes != k.axes:
        raise PlanError(f"{where} has the wrong axes")
    given = {x.name: plan.array(x.buffer).axes for x in k.leaves}
    if len(given) != len(k.leaves):
        raise PlanError(f"{where}: two leaves have one name")
    if any(x.axes != given[x.name] for x in k.leaves):
        raise PlanError(f"{where}: a leaf has other axes than its buffer")
    for x in k.queries + k.keys:
        if plan.array(x.buffer).role is Role.CONSTANT:
            raise PlanError(f"{where}: {x.buffer} has no time")
    for x in k.fixed:
        if plan.array(x.buffer).role is not Role.CONSTANT:
            raise PlanError(f"{where}: {x.buffer} has a time")
    if missing := set(k.kept) - {r.buffer for r in plan.registers}:
        raise PlanError(f"{where} reads {', '.join(sorted(missing))} without a register")
    if k.bound < 0 and not k.later:
        raise PlanError(f"{where} reads the future")
    known = given | ({} if k.lag is None else {k.lag: ()})
    _checked(k.body, known, k.axes, where)
    if not {e.name for e in walk(k.body) if isinstance(e, Ref)} >= set(given):
        raise PlanError(f"{where} does not read all its leaves")
    bar = Ref(k.bar, frozenset(k.axes), plan.array(k.output).field, Time.TOKEN, Now(0))
    due = {r.name for r in pull([(k.body, bar)]).refs} & set(given)
    if missing := due - {g.leaf for g in k.gradients}:
        raise PlanError(f"{where}: {', '.join(sorted(missing))} has no gradient")
    for g in k.gradients:
        if g.leaf not in given:
            raise PlanError(f"{where}: {g.leaf} has a gradient and is no leaf")
        _checked(g.value, known | {k.bar: k.axes}, given[g.leaf], where)


def _name(kernel: Kernel) -> str:
    if isinstance(kernel, Recurrence):
        return f"recurrence {kernel.name}"
    return f"scan {kernel.name}" if isinstance(kernel, Scan) else kernel.output


def written_by(kernel: Kernel) -> tuple[str, ...]:
    """Returns the buffers that a kernel writes."""
    if isinstance(kernel, Recurrence):
        return tuple(r.output for r in kernel.reads)
    return tuple(c.output for c in kernel.columns) if isinstance(kernel, Scan) else (kernel.output,)


def _check_turn(kernel: Turn, arrays: Mapping[str, Buffer]) -> None:
    out, source = arrays[kernel.output], arrays[kernel.source]
    if out.axes != source.axes or Role.CONSTANT in (out.role, source.role):
        raise PlanError(f"{kernel.output} is not {kernel.source} turned")


def reads(kernel: Kernel) -> Iterator[tuple[str, int]]:
    """Yields (buffer, lag) for all that a kernel reads."""
    if isinstance(kernel, Turn):
        yield kernel.source, 0
        return
    if isinstance(kernel, RunningMax):
        yield from ((name, 0) for name in (kernel.weight, kernel.decay) if name is not None)
        return
    if isinstance(kernel, Unit):
        return
    if isinstance(kernel, Attention):
        yield from ((name, 0) for name in (kernel.query, *kernel.kept))
        return
    if isinstance(kernel, AllPairs):
        yield from ((name, 0) for name in (*(x.buffer for x in kernel.leaves), kernel.present))
        return
    if isinstance(kernel, Recurrence):
        yield from ((name, 0) for name in kernel.coefficients)
        return
    if isinstance(kernel, Pointwise):
        for e in walk(kernel.value):
            if isinstance(e, Ref):
                yield e.name, e.at.lag if isinstance(e.at, Now) else 0
        return
    sides = (kernel.low_rank.left, kernel.low_rank.right) if kernel.low_rank is not None else ()
    dense = kernel.transition.matrix if kernel.transition is not None else None
    for name in (kernel.key, kernel.read, dense, *sides, *(c.value for c in kernel.columns)):
        if name is not None:
            yield name, 0
    for name in kernel.decay.leaves if kernel.decay is not None else ():
        yield name, 0


def _check_value(value: Expr, output: str, declared: set[str]) -> None:
    for e in walk(value):
        if isinstance(e, Past | Lag | Run):
            raise PlanError(f"{output} holds a sum over time")
        if isinstance(e, Fir) and not isinstance(e.arg, Ref):
            raise PlanError(f"{output} filters a value that is not a buffer")
        name = e.name if isinstance(e, Param) else e.map.name if isinstance(e, Map) else None
        if name is not None and name not in declared:
            raise PlanError(f"{output} reads the undeclared parameter {name}")


_BY_HEADS = (Form.MATRIX, Form.LOW_RANK)
"""Forms whose decay has head axes only."""

_BY_CHANNELS = (Form.SELECTIVE, Form.ELEMENTWISE)
"""Forms whose decay may have channel axes."""


def _check_scan(scan: Scan, plan: Plan) -> None:
    heads, keys = set(scan.heads), set(scan.keys)
    arrays = {b.name: set(b.axes) for b in plan.arrays}
    states = {s.name: set(s.axes) for s in plan.states}
    keyed = (Form.MATRIX, Form.KEYED, Form.SELECTIVE, *LOW_RANK, Form.DENSE_CONVOLUTION)
    if scan.form in ((Form.ELEMENTWISE, Form.DENSE) if keys else keyed):
        raise PlanError(f"scan {scan.name} has form {scan.form.value} and keys {scan.keys}")
    sides = (scan.low_rank.left, scan.low_rank.right) if scan.low_rank is not None else ()
    if bool(sides) != (scan.form in LOW_RANK):
        raise PlanError(f"scan {scan.name}: a low-rank part goes with the form of that name")
    for name in (scan.key, scan.read, *sides):
        if (name is None) == bool(keys):
            raise PlanError(f"scan {scan.name}: key and read go with key axes")
        if name is not None and not arrays[name] <= heads | keys:
            raise PlanError(f"scan {scan.name}: {name} has axes outside heads and keys")
    for c in scan.columns:
        channels = set(c.channels)
        if c.value is not None and not arrays[c.value] <= heads | channels:
            raise PlanError(f"scan {scan.name}: {c.value} has axes outside heads and channels")
        if arrays[c.output] != heads | channels:
            raise PlanError(f"scan {scan.name}: {c.output} has the wrong axes")
        if c.state not in states:
            raise PlanError(f"scan {scan.name}: {c.state} is not a state of the plan")
        if states[c.state] != heads | keys | channels:
            raise PlanError(f"scan {scan.name}: the state {c.state} has the wrong axes")
    _check_transition(scan, plan)
    if scan.form in (Form.CONVOLUTION, Form.DENSE_CONVOLUTION):
        fixed = [n for n in (scan.key, scan.read) if n is not None]
        fixed += scan.decay.leaves if scan.decay is not None else []
        roles = {b.name: b.role for b in plan.arrays}
        if scan.channels or any(roles[n] is not Role.CONSTANT for n in fixed):
            raise PlanError(f"scan {scan.name} is no convolution")
    if scan.real and (scan.field is Field.REAL or scan.form is not Form.CONVOLUTION):
        raise PlanError(f"scan {scan.name} has no real part to take")
    if scan.decay is not None:
        read = {e.name for e in walk(scan.decay.expr) if isinstance(e, Ref)}
        if read != set(scan.decay.leaves):
            raise PlanError(f"scan {scan.name}: its decay does not read its leaves")
        carried = heads | (set() if scan.form in _BY_HEADS else keys)
        carried |= set(scan.channels) if scan.form in _BY_CHANNELS else set()
        if not scan.decay.expr.axes <= carried:
            raise PlanError(f"scan {scan.name}: its decay has axes that {scan.form.value} lacks")


def _check_recurrence(k: Recurrence, plan: Plan) -> None:
    """Checks that names are given before they are read, with their axes; states are carried on."""
    where = f"recurrence {k.name}"
    states = {s.name: s.axes for s in plan.states}
    arrays = {b.name: b for b in plan.arrays}
    for s in k.states:
        if states.get(s.state) != s.axes:
            raise PlanError(f"{where}: {s.state} is no state of the plan with its axes")
    given = {name: arrays[name].axes for name in k.coefficients}
    if all(arrays[name].role is Role.CONSTANT for name in k.coefficients):
        raise PlanError(f"{where}: no coefficient has a time")
    if not set(k.transitions) <= set(k.coefficients):
        raise PlanError(f"{where}: a coefficient of its transition is none of its coefficients")
    forward = given | {s.before: s.axes for s in k.states}
    for level in k.levels:
        # Values of one level are computed at once: none reads another.
        forward |= {a.name: _checked(a.value, forward, a.axes, where) for a in level}
    last = {a.name for a in k.levels[-1]} if k.levels else set()
    if last != {s.after for s in k.states}:
        raise PlanError(f"{where}: its last level is not its states after a token")
    for r in k.reads:
        _checked(r.value, forward, arrays[r.output].axes, where)
    bars = {r.bar: arrays[r.output].axes for r in k.reads} | {s.bar: s.axes for s in k.states}
    backward = given | bars
    for a in k.adjoint.steps:
        backward[a.name] = _checked(a.value, backward, a.axes, where)
    if not {s.bar_before for s in k.states} <= set(backward):
        raise PlanError(f"{where}: the gradient of a state does not reach the token before")
    known = given | bars | {n: s.axes for s in k.states for n in (s.before, s.after)}
    for a in k.adjoint.values:
        known[a.name] = _checked(a.value, known, a.axes, where)
    for g in k.adjoint.gradients:
        if g.coefficient not in given:
            raise PlanError(f"{where}: {g.coefficient} has a gradient and is no coefficient")
        _checked(g.value, known, given[g.coefficient], where)


def _checked(
    value: Expr, given: Mapping[str, tuple[Axis, ...]], axes: tuple[Axis, ...], where: str
) -> tuple[Axis, ...]:
    """Returns the axes of a value once what it reads is there and it lies within them."""
    for e in walk(value):
        if isinstance(e, Param | Map | Past | Lag | Run | Fir):
            raise PlanError(f"{where} holds a {type(e).__name__}")
        if isinstance(e, Ref) and set(given.get(e.name, ())) != e.axes:
            raise PlanError(f"{where} reads {e.name} before it is given, or with other axes")
        if isinstance(e, Ref) and e.name not in given:
            raise PlanError(f"{where} reads {e.name} before it is given")
    if not value.axes <= frozenset(axes):
        raise PlanError(f"{where}: a value has axes that its name lacks")
    return axes


def _check_transition(scan: Scan, plan: Plan) -> None:
    """Checks that a dense scan, and no other, has a constant matrix over rows and their copies."""
    dense = scan.transition
    if (dense is not None) != (scan.form in (Form.DENSE, Form.DENSE_CONVOLUTION)):
        raise PlanError(f"scan {scan.name}: a dense transition goes with the forms of that name")
    if dense is None:
        return
    matrix = plan.array(dense.matrix)
    mixed = scan.keys if scan.form is Form.DENSE_CONVOLUTION else scan.channels
    rows, columns = set(dense.rows), set(dense.columns)
    if scan.decay is not None or set(mixed) != rows or len(rows) != len(columns):
        raise PlanError(f"scan {scan.name}: its transition does not mix what it says")
    if matrix.role is not Role.CONSTANT or not set(matrix.axes) <= {*scan.heads, *rows, *columns}:
        raise PlanError(f"scan {scan.name}: {matrix.name} is no constant over its rows and columns")
