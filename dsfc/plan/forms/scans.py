"""What the rows of all forms of scans share: how a scan is verified, and what it keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dsfc.expr.build import mul, walk
from dsfc.expr.tree import Expr, Field, Ref
from dsfc.plan.flow import PlanError
from dsfc.plan.ir import Plan, Role
from dsfc.plan.scan_ir import Group, Scan
from dsfc.plan.sizes import size

RUN = frozenset({"recurrent", "chunked", "scan"})
"""Modes of a scan whose transitions compose by products of few numbers."""


def state(scan: Scan) -> Mapping[str, Expr]:
    """Returns how many numbers a scan keeps, by name of the state."""
    heads_and_keys = mul(size(scan.heads), size(scan.keys))
    return {c.state: mul(heads_and_keys, size(c.channels)) for c in scan.columns}


@dataclass(frozen=True, slots=True)
class ScanCheck:
    """Verifies scans of a form.

    Attributes:
        keyed: whether they have keys; None where they may.
        decay: groups of axes that log λ may have besides heads.
        low_rank: whether their transition has a low-rank part that is no delta rule.
        delta: whether they have a delta rule.
        dense: whether their transition is a full matrix.
        fixed: whether all that they read besides their value is constant.
        real: whether their output may be a real part.
    """

    keyed: bool | None
    decay: frozenset[Group] = frozenset()
    low_rank: bool = False
    delta: bool = False
    dense: bool = False
    fixed: bool = False
    real: bool = False

    def __call__(self, scan: Scan, plan: Plan) -> None:
        """Checks one scan.

        Args:
            scan: the scan.
            plan: the plan that it is a kernel of.

        Raises:
            PlanError: naming the scan and what is wrong with it.
        """
        heads, keys = set(scan.heads), set(scan.keys)
        if self.keyed is not None and self.keyed != bool(keys):
            raise PlanError(f"scan {scan.name} has form {scan.form.value} and keys {scan.keys}")
        self._check_vectors(scan, plan)
        _check_columns(scan, plan)
        self._check_transition(scan, plan)
        if self.fixed:
            _check_fixed(scan, plan)
        if scan.real and (scan.field is Field.REAL or not self.real):
            raise PlanError(f"scan {scan.name} has no real part to take")
        if scan.decay is not None:
            read = {e.name for e in walk(scan.decay.expr) if isinstance(e, Ref)}
            if read != set(scan.decay.leaves):
                raise PlanError(f"scan {scan.name}: its decay does not read its leaves")
            carried = heads | (keys if Group.KEYS in self.decay else set())
            carried |= set(scan.channels) if Group.CHANNELS in self.decay else set()
            if not scan.decay.expr.axes <= carried:
                raise PlanError(
                    f"scan {scan.name}: its decay has axes that {scan.form.value} lacks"
                )

    def _check_vectors(self, scan: Scan, plan: Plan) -> None:
        inner = {*scan.heads, *scan.keys}
        sides = (scan.low_rank.left, scan.low_rank.right) if scan.low_rank is not None else ()
        if bool(sides) != self.low_rank:
            raise PlanError(f"scan {scan.name}: a low-rank part goes with the form of that name")
        if (scan.delta is not None) != self.delta:
            raise PlanError(f"scan {scan.name}: a delta rule goes with the forms of that name")
        if scan.delta is not None:
            strength = plan.array(scan.delta.strength)
            if not set(strength.axes) <= {*scan.heads}:
                raise PlanError(f"scan {scan.name}: {strength.name} has axes outside heads")
        for name in (scan.key, scan.read, *sides):
            if (name is None) == bool(scan.keys):
                raise PlanError(f"scan {scan.name}: key and read go with key axes")
            if name is not None and not set(plan.array(name).axes) <= inner:
                raise PlanError(f"scan {scan.name}: {name} has axes outside heads and keys")

    def _check_transition(self, scan: Scan, plan: Plan) -> None:
        """Checks that a dense scan, and no other, has a constant matrix over rows and copies."""
        dense = scan.transition
        if (dense is not None) != self.dense:
            raise PlanError(
                f"scan {scan.name}: a dense transition goes with the forms of that name"
            )
        if dense is None:
            return
        matrix = plan.array(dense.matrix)
        mixed = scan.keys if self.keyed else scan.channels
        rows, columns = set(dense.rows), set(dense.columns)
        if scan.decay is not None or set(mixed) != rows or len(rows) != len(columns):
            raise PlanError(f"scan {scan.name}: its transition does not mix what it says")
        within = {*scan.heads, *rows, *columns}
        if matrix.role is not Role.CONSTANT or not set(matrix.axes) <= within:
            raise PlanError(
                f"scan {scan.name}: {matrix.name} is no constant over its rows and columns"
            )


def _check_columns(scan: Scan, plan: Plan) -> None:
    heads, keys = set(scan.heads), set(scan.keys)
    states = {s.name: set(s.axes) for s in plan.states}
    for c in scan.columns:
        outer = heads | set(c.channels)
        if c.value is not None and not set(plan.array(c.value).axes) <= outer:
            raise PlanError(f"scan {scan.name}: {c.value} has axes outside heads and channels")
        if set(plan.array(c.output).axes) != outer:
            raise PlanError(f"scan {scan.name}: {c.output} has the wrong axes")
        if c.state not in states:
            raise PlanError(f"scan {scan.name}: {c.state} is not a state of the plan")
        if states[c.state] != outer | keys:
            raise PlanError(f"scan {scan.name}: the state {c.state} has the wrong axes")


def _check_fixed(scan: Scan, plan: Plan) -> None:
    fixed = [n for n in (scan.key, scan.read) if n is not None]
    fixed += scan.decay.leaves if scan.decay is not None else []
    if scan.channels or any(plan.array(n).role is not Role.CONSTANT for n in fixed):
        raise PlanError(f"scan {scan.name} is no convolution")
