"""What kernels move and compute, as Triton's interpreter sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest


@dataclass
class Traffic:
    """Entries that were read and written, operations in products, and what the units of special
    functions make: powers, logarithms, roots, reciprocals."""

    read: int = 0
    written: int = 0
    powers: int = 0
    operations: int = 0

    def since(self, before: Traffic) -> Traffic:
        """What came after that."""
        return Traffic(**{n: x - getattr(before, n) for n, x in vars(self).items()})


def counting(monkeypatch: pytest.MonkeyPatch) -> Traffic:
    """Counts what the interpreter moves and computes from now on."""
    from triton.runtime.interpreter import InterpreterBuilder

    seen = Traffic()
    load, store = InterpreterBuilder.create_masked_load, InterpreterBuilder.create_masked_store

    def counted_load(self: Any, ptrs: Any, mask: Any, *rest: Any) -> Any:
        seen.read += int(mask.data.sum())
        return load(self, ptrs, mask, *rest)

    def counted_store(self: Any, ptrs: Any, value: Any, mask: Any, *rest: Any) -> Any:
        seen.written += int(mask.data.sum())
        return store(self, ptrs, value, mask, *rest)

    monkeypatch.setattr(InterpreterBuilder, "create_masked_load", counted_load)
    monkeypatch.setattr(InterpreterBuilder, "create_masked_store", counted_store)
    for name in ("exp2", "exp", "log", "log2", "sqrt", "rsqrt", "erf", "fdiv", "precise_divf"):
        function = getattr(InterpreterBuilder, f"create_{name}")

        def made(self: Any, *xs: Any, function: Callable[..., Any] = function) -> Any:
            seen.powers += xs[0].data.size
            return function(self, *xs)

        monkeypatch.setattr(InterpreterBuilder, f"create_{name}", made)
    dot = InterpreterBuilder.create_dot

    def counted_dot(self: Any, a: Any, b: Any, *rest: Any) -> Any:
        seen.operations += 2 * a.data.size * b.data.shape[-1]
        return dot(self, a, b, *rest)

    monkeypatch.setattr(InterpreterBuilder, "create_dot", counted_dot)
    return seen
