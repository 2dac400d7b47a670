"""The torch backend: a module that runs on every device torch runs on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dsfc.expr.tree import Prim
from dsfc.fused.coverage import ScanCoverage
from dsfc.fused.ir import FusedPlan

from ..shared.section import Section
from .cost import Cost, costs_text, plan_costs
from .render import TORCH, Target, render_module, runtime_file, shared_by_processes
from .reserved_names import RESERVED

if TYPE_CHECKING:
    from dsfc.kernel_ir.ir import Kernel
    from dsfc.plan.whole_layer import WholeLayer


def _torch(fused: FusedPlan) -> Target:
    return TORCH


@dataclass(frozen=True, slots=True)
class TorchBackend:
    """Prints torch modules; see `dsfc.emit.backend.Backend`.

    Attributes:
        target: what the module of a plan runs on besides torch.
        faults: what is known of versions of a compiler besides torch's own.
        probes: questions to a machine about tools besides torch.
        needs: device → what of `dsfc doctor` kernels need there; empty without kernels.
        costs: a fused plan → what its operators or kernels cost, as text.
        modes: a fused plan → what each legal mode costs as torch's operators.
        kernels: a fused plan → what of its kernels is of the kernel IR; none of torch's own.
        coverage: a fused plan → which calls of its scans run in kernels; empty without kernels.
        computes: whether kernels compute a primitive; None where they compute recurrences alone.
    """

    name: str = "torch"
    reserved: frozenset[str] = RESERVED
    target: Callable[[FusedPlan], Target] = _torch
    faults: tuple[Any, ...] = ()
    probes: tuple[Any, ...] = ()
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    costs: Callable[[FusedPlan], str] = lambda fused: costs_text(fused.original)
    modes: Callable[[FusedPlan], tuple[Cost, ...]] = lambda fused: plan_costs(fused.original)
    kernels: Callable[[FusedPlan], tuple[Kernel, ...]] = lambda fused: ()
    computes: Callable[[Prim], bool] | None = None
    coverage: Callable[[FusedPlan], tuple[ScanCoverage, ...]] = lambda fused: ()

    def render(
        self,
        fused: FusedPlan,
        identity: Any,  # noqa: ANN401 - an Identity; backends do not import emit
        identifier: Callable[[str], str],
        class_name: str,
        function_name: str,
        beside: bool = False,
        whole: WholeLayer | None = None,
    ) -> tuple[str, str]:
        """Returns the module's text, without the lines that state its origin, and its namespace."""
        plan, target = fused.original, self.target(fused)
        names = class_name, function_name
        return render_module(plan, identity, identifier, *names, target, beside, whole)

    def runtime(self, fused: FusedPlan) -> Section:
        """Returns the section that a plan's module holds as it stands, or finds beside it."""
        return self.target(fused).runtime

    def runtime_file(self, fused: FusedPlan) -> tuple[str, str]:
        """Returns the name and the text of the file with the runtime of modules beside it."""
        return runtime_file(self.runtime(fused))

    def context_parallel(self) -> TorchBackend:
        """Returns the backend of modules whose sequences processes may share; see `Backend`."""
        return replace(self, target=lambda fused: shared_by_processes(self.target(fused)))


BACKEND = TorchBackend()
