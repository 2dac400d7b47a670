"""Other names for the values, arguments and integers of a kernel: what a target reserves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from dsfc.kernel_ir.ir import Axis, Kernel

_NAMES = frozenset(
    "name argument operand operands left right value first next last counter index".split()
)
"""Fields of nodes that hold names of values, arguments or integers."""


def renamed(kernel: Kernel, name: Callable[[str], str]) -> Kernel:
    """Returns the kernel with its values, arguments and integers under other names.

    The name of the kernel itself and those of axes and static sizes stay.

    Args:
        kernel: the kernel.
        name: the new name of each; two names must not become one.
    """
    static = frozenset(kernel.static)

    def call(old: str) -> str:
        return old if old in static else name(old)

    def go(node: Any, is_name: bool = False) -> Any:  # noqa: ANN401 - any node of a kernel
        if isinstance(node, str):
            return call(node) if is_name else node
        if isinstance(node, tuple):
            return tuple(go(x, is_name) for x in node)
        if not is_dataclass(node) or isinstance(node, type | Axis):
            return node
        changed = {f.name: go(getattr(node, f.name), f.name in _NAMES) for f in fields(node)}
        return replace(node, **changed)

    dynamic = tuple(map(call, kernel.dynamic))
    parts = {part: go(getattr(kernel, part)) for part in ("arguments", "grid", "body")}
    return replace(kernel, dynamic=dynamic, **parts)
