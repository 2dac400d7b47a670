"""Well-formedness of plans."""

from __future__ import annotations

from collections.abc import Mapping

from dsfc.expr.build import walk
from dsfc.expr.over_time import Lag, Past, Run
from dsfc.expr.tree import Expr, Fir, Map, Now, Num, Param, Ref
from dsfc.plan.flow import PlanError, reads, written_by
from dsfc.plan.forms.table import FORMS
from dsfc.plan.ir import Buffer, Kernel, Plan, Pointwise, Reverse, Role, RunningMax, Unit
from dsfc.plan.pairs_ir import AllPairs, Attention
from dsfc.plan.recurrence_ir import Recurrence
from dsfc.plan.scan_ir import Scan


def verify(plan: Plan) -> None:
    """Checks the invariants of a plan.

    Every buffer but the inputs is written once, before it is read; a read of an earlier token has a
    register that is long enough, of the buffer's axes; a scan's key, read and low-rank part lie
    over heads ∪ keys, its values and outputs over heads ∪ channels, its state over all three; a
    scan without keys is ELEMENTWISE or CONVOLUTION and has neither key nor read; what a CONVOLUTION
    reads besides its value is constant; a decay reads its leaves and nothing else; every column's
    state is a state of the plan; attention lies over its axes, and registers keep all tokens of
    what it weighs; a sum over pairs reads its leaves, and its gradients have their axes; what is
    reversed has a time and keeps its axes; a recurrence reads what is given before it, and its last
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
        match k:
            case Reverse():
                _check_reverse(k, arrays)
            case Unit():
                if set(arrays[k.output].axes) != {k.row, k.column}:
                    raise PlanError(f"{k.output} is no unit matrix of {k.row} and {k.column}")
            case RunningMax():
                _check_running_max(k, plan)
            case Pointwise():
                _check_value(k.value, k.output, declared)
                _check_past(k, plan)
                if not k.value.axes <= frozenset(arrays[k.output].axes):
                    raise PlanError(f"{k.output} lacks axes of its value")
            case _:
                row = FORMS[k.form]
                if not isinstance(k, row.kernel):
                    raise PlanError(f"{_name(k)} is no kernel of form {k.form.value}")
                row.check(k, plan)
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


def _name(kernel: Kernel) -> str:
    if isinstance(kernel, Recurrence):
        return f"recurrence {kernel.name}"
    return f"scan {kernel.name}" if isinstance(kernel, Scan) else kernel.output


def _check_reverse(kernel: Reverse, arrays: Mapping[str, Buffer]) -> None:
    out, source = arrays[kernel.output], arrays[kernel.source]
    if out.axes != source.axes or Role.CONSTANT in (out.role, source.role):
        raise PlanError(f"{kernel.output} is not {kernel.source} reversed")


def _check_value(value: Expr, output: str, declared: set[str]) -> None:
    for e in walk(value):
        if isinstance(e, Past | Lag | Run):
            raise PlanError(f"{output} holds a sum over time")
        if isinstance(e, Fir) and not isinstance(e.arg, Ref):
            raise PlanError(f"{output} filters a value that is not a buffer")
        name = e.name if isinstance(e, Param) else e.map.name if isinstance(e, Map) else None
        if name is not None and name not in declared:
            raise PlanError(f"{output} reads the undeclared parameter {name}")
