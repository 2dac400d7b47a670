"""The row of a form: its verification, modes, state and adjoint, and which blocks it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dsfc.expr.tree import Expr
from dsfc.plan.adjoint import derived
from dsfc.plan.ir import Buffer, Plan
from dsfc.plan.pairs_ir import AllPairs, Attention
from dsfc.plan.recurrence_ir import Recurrence
from dsfc.plan.scan_ir import Adjoint, Form, Group, Scan
from dsfc.structure.ir import BlockStructure


@dataclass(frozen=True, slots=True)
class Candidate:
    """A block that a form may run, with one read of it.

    Attributes:
        structure: of the block.
        log: log λ.
        fixed: whether log λ, key and read are constants, and the read stands in no ratio. A
            convolution errs by a share of the largest output of the sequence: a quotient of small
            outputs would lose all digits.
        rewrites: whether its low-rank part is a delta rule.
    """

    structure: BlockStructure
    log: Expr
    fixed: bool
    rewrites: bool = False

    @property
    def has_key_decay(self) -> bool:
        """Whether each key has a decay of its own."""
        decay = self.structure.decay
        return decay is not None and bool(decay.value.axes & frozenset(self.structure.keys))


def _none(candidate: Candidate) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class FormRow:
    """What the plan knows of a form.

    Attributes:
        form: its name.
        kernel: class of its kernels.
        modes: names of the ways to run it; see `dsfc.plan.modes`.
        check: raises PlanError where a kernel of a plan breaks an invariant of the form.
        state: numbers that a kernel keeps from token to token, by the name of what keeps them.
        decay: groups of axes that log λ of a scan may have besides its heads.
        shares: whether scans have several columns: they have products of read and key.
        narrows: forms in place of which it runs a block that it takes.
        takes: whether it runs a block that one of `narrows` would run.
    """

    form: Form
    kernel: type[Scan | Attention | AllPairs | Recurrence]
    modes: frozenset[str]
    check: Callable[[Any, Plan], None]
    state: Callable[[Any], Mapping[str, Expr]]
    decay: frozenset[Group] = frozenset()
    shares: bool = False
    narrows: frozenset[Form] = frozenset()
    takes: Callable[[Candidate], bool] = _none

    def adjoint(self, scan: Scan, arrays: Mapping[str, Buffer]) -> Adjoint:
        """Returns the derived gradient of a scan with respect to all it reads.

        Args:
            scan: the scan.
            arrays: the plan's buffers by name.
        """
        return derived(scan, arrays, self.decay)
