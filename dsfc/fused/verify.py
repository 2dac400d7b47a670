"""Well-formedness of fused plans."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from dsfc.expr.build import ZERO, walk
from dsfc.expr.derivative import pull
from dsfc.expr.tree import Axis, Expr, Field, Now, Ref, Time
from dsfc.fused.expand import expand
from dsfc.fused.ir import (
    DECAY_BAR,
    FEATURE_BAR,
    OUT_BAR,
    VALUE_BAR,
    Entrywise,
    FusedPlan,
    Prologue,
    PrologueEpilogue,
    barred,
    rate_bar,
    real_imag,
)
from dsfc.plan.flow import PlanError, written_by
from dsfc.plan.ir import Buffer, Role
from dsfc.plan.scan_ir import Form, Scan
from dsfc.plan.verify import verify as verify_plan


def verify(fused: FusedPlan) -> None:
    """Checks the invariants of a fused plan.

    A scan has a prologue, or a prologue and epilogue, once and by its form; leaves are inputs,
    parameters or buffers that are written, those of a token vary over time and constants do not;
    what is computed reads leaves and nothing else, in real numbers; each leaf has one gradient,
    which is not 0 where what is computed has a derivative, and reads leaves and gradients of what
    is computed; a prologue and epilogue reads one leaf for φ and one for ψ; the fused plan has the
    inputs, parameters, states, registers, adjoints and output of its original; the plan that it
    expands to is well-formed.

    Raises:
        PlanError: naming the scan and what is wrong with it.
    """
    before, after = fused.original, fused.plan
    for what in (
        "name",
        "inputs",
        "params",
        "buffers",
        "states",
        "registers",
        "adjoints",
        "output",
    ):
        if getattr(before, what) != getattr(after, what):
            raise PlanError(f"the fused plan has other {what} than its original")
    named = fused.fused_scans
    if len(named) != len(set(named)):
        raise PlanError("a scan is fused twice")
    scans = fused.scans
    for name in named:
        if name not in scans:
            raise PlanError(f"{name} is fused and is no scan")
    arrays = {b.name: b for b in after.arrays}
    there = {n for k in after.kernels for n in written_by(k)}
    there |= {b.name for b in after.arrays if b.role is Role.INPUT}
    there |= {t.name for t in (*after.params, *after.buffers)} & set(arrays)
    for prologue in fused.prologues:
        _check_prologue(prologue, scans[prologue.scan], arrays, there)
    for matrix in fused.matrices:
        _check_matrix(matrix, scans[matrix.scan], there)
    verify_plan(expand(fused))


def _check_prologue(
    prologue: Prologue, scan: Scan, arrays: dict[str, Buffer], there: Collection[str]
) -> None:
    where = f"the prologue of {prologue.scan}"
    if scan.form not in (Form.ELEMENTWISE, Form.CONVOLUTION, Form.SELECTIVE) or scan.decay is None:
        raise PlanError(f"{where}: a scan of form {scan.form.value} has none")
    _check_there(prologue.leaves, there, where)
    roles = [arrays[n].role is Role.CONSTANT for n in prologue.leaves]
    if roles != [False] * len(prologue.tokens) + [True] * len(prologue.constants):
        raise PlanError(f"{where}: a leaf of a token has no time, or a constant has one")
    computed = [prologue.value, prologue.added, *(e for _, e in prologue.rates)]
    logs = real_imag(prologue.log_decay)
    selective = scan.form is Form.SELECTIVE
    if not selective:
        computed += [prologue.log_decay, prologue.decay]
        if {n for n, _ in prologue.rates} or prologue.added != ZERO:
            raise PlanError(f"{where}: rates and a sum go with a selective scan")
    for e in (*computed, *(e for _, e in prologue.named)):
        _check_reads(e, prologue.leaves, where)
    if not set(scan.decay.leaves) <= {*prologue.leaves, *_names(logs)}:
        raise PlanError(f"{where}: the decay of its scan has other leaves")
    pairs = barred(prologue.value, VALUE_BAR)
    if selective:
        pairs += [(e, rate_bar(n)) for n, e in prologue.rates] + [(prologue.added, OUT_BAR)]
    else:
        pairs += barred(prologue.log_decay, DECAY_BAR)
    _check_gradients(pairs, prologue.leaves, prologue.gradients, where)


def _check_matrix(matrix: PrologueEpilogue, scan: Scan, there: Collection[str]) -> None:
    where = f"the prologue and epilogue of {matrix.scan}"
    if scan.form is not Form.MATRIX:
        raise PlanError(f"{where}: a scan of form {scan.form.value} has none")
    if (matrix.read.leaves, matrix.key.leaves) != ((scan.read,), (scan.key,)):
        raise PlanError(f"{where}: its scan has other queries or keys")
    if any(e.axes for e in walk(matrix.factor)):
        raise PlanError(f"{where}: its factor is no number")
    if matrix.running and scan.columns[-1].output not in matrix.computed[-1].leaves:
        raise PlanError(f"{where}: its normaliser is not computed of a column")
    for e in matrix.computed:
        _check_there(e.leaves, there, where)
        _check_entrywise(e, where)


def _check_entrywise(e: Entrywise, where: str) -> None:
    _check_reads(e.value, e.leaves, where)
    _check_gradients([(e.value, FEATURE_BAR)], e.leaves, e.gradients, where)


def _check_there(leaves: Iterable[str], there: Collection[str], where: str) -> None:
    for name in leaves:
        if name not in there:
            raise PlanError(f"{where} reads {name}, which is never written")


def _check_reads(value: Expr, known: Collection[str], where: str) -> None:
    for part in real_imag(value):
        if part.field is not Field.REAL:
            raise PlanError(f"{where} computes a complex number")
    for name in _names(real_imag(value)):
        if name not in known:
            raise PlanError(f"{where} reads {name}, which is no leaf of it")


def _check_gradients(
    computed: list[tuple[Expr, str]],
    leaves: tuple[str, ...],
    gradients: tuple[Expr, ...],
    where: str,
) -> None:
    """Checks that each leaf has one gradient, and one that is not 0 where there is a derivative."""
    if len(gradients) != len(leaves):
        raise PlanError(f"{where} has {len(gradients)} gradients of {len(leaves)} leaves")
    tile = frozenset[Axis]().union(*(e.axes for e, _ in computed))
    bars = [(e, Ref(bar, tile, Field.REAL, Time.TOKEN, Now(0))) for e, bar in computed]
    due = {ref.name for ref, e in pull(bars).refs.items() if e != ZERO}
    for leaf, gradient in zip(leaves, gradients, strict=True):
        _check_reads(gradient, {*leaves, *(bar for _, bar in computed)}, where)
        if (leaf in due) != (gradient != ZERO):
            raise PlanError(f"{where}: the gradient of {leaf} is not that of what is computed")


def _names(values: Iterable[Expr]) -> set[str]:
    return {e.name for value in values for e in walk(value) if isinstance(e, Ref)}
