"""The torch backend: a module that runs on every device torch runs on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dsfc.plan.ir import Plan

from .render import TORCH, Target, render_module
from .words import RESERVED


@dataclass(frozen=True, slots=True)
class TorchBackend:
    """Prints torch modules; see `dsfc.emit.backend.Backend`.

    Attributes:
        target: what the module of a plan runs on besides torch.
        faults: what is known of versions of a compiler besides torch's own.
        probes: questions to a machine about tools besides torch.
        needs: device → what of `dsfc doctor` kernels need there; empty without kernels.
        costs: a plan → what its kernels cost, as text; empty for torch's own operators.
        runtime: a section that modules hold as it stands; a `dsfc.emit.audit.Runtime`.
    """

    name: str = "torch"
    reserved: frozenset[str] = RESERVED
    target: Callable[[Plan], Target] = lambda plan: TORCH
    faults: tuple[Any, ...] = ()
    probes: tuple[Any, ...] = ()
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    costs: Callable[[Plan], str] = lambda plan: ""
    runtime: Any = None

    def render(
        self,
        plan: Plan,
        identity: Any,  # noqa: ANN401 - an Identity; backends do not import emit
        identifier: Callable[[str], str],
        class_name: str,
        function_name: str,
    ) -> str:
        """Returns the module's text, formatted, without the line that states its origin."""
        target = self.target(plan)
        return render_module(plan, identity, identifier, class_name, function_name, target)


BACKEND = TorchBackend()
