"""The torch backend: a module that runs on every device torch runs on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dsfc.plan.ir import Plan

from .render import render_module
from .words import RESERVED


@dataclass(frozen=True, slots=True)
class TorchBackend:
    """Prints torch modules; see `dsfc.emit.backend.Backend`."""

    name: str = "torch"
    reserved: frozenset[str] = RESERVED

    def render(
        self,
        plan: Plan,
        identity: Any,  # noqa: ANN401 - an Identity; backends do not import emit
        identifier: Callable[[str], str],
        class_name: str,
        function_name: str,
    ) -> str:
        """Returns the module's text, formatted, without the line that states its origin."""
        return render_module(plan, identity, identifier, class_name, function_name)


BACKEND = TorchBackend()
