"""Compiles the specs of the comparison and calls what came out.

A recurrence is called as the emitted layer calls it: `_recurrence(...)`, whose forward and
backward are operators of torch. The names of its arguments are read off the module, so one that
takes an argument more says so here instead of computing something else.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import Tensor, nn

import dsfc

ROOT = Path(__file__).parent.parent
MODULES = ROOT / "build" / "benchmarks" / "modules"


class UnsupportedError(Exception):
    """The compiler says that it does not emit this mixer yet; the message says why."""


def compile_spec(name: str, backend: str = "torch") -> Path:
    """Compiles `specs/<name>.dsf` and returns the path of the module.

    Args:
        name: of the spec.
        backend: that emits the module.

    Raises:
        UnsupportedError: E-UNSUPPORTED.
        DiagnosticError: anything else that is wrong with the spec.
    """
    MODULES.mkdir(parents=True, exist_ok=True)
    try:
        out = MODULES / f"{name}_{backend}.py"
        return dsfc.compile(ROOT / "specs" / f"{name}.dsf", backend=backend, out=out, force=True)
    except dsfc.DiagnosticError as error:
        found = [d for d in error.diagnostics if d.code == "E-UNSUPPORTED"]
        if not found:
            raise
        raise UnsupportedError("; ".join(d.message for d in found)) from None


def load(path: str | Path) -> ModuleType:
    """Imports an emitted module."""
    return dsfc.import_module(path)


def recurrence(module: ModuleType, mode: str = "auto") -> Callable[..., Tensor]:
    """Returns the recurrence of a module as a function of named tensors to its first output.

    Args:
        module: an emitted module with one recurrence.
        mode: `auto`, or one that the module names in `MODES`.
    """
    settings = {"mode": mode, "chunk": module.CHUNK}
    names = tuple(inspect.signature(module._forward).parameters)
    wanted = set(names) - settings.keys()

    def call(**tensors: Tensor) -> Tensor:
        given = tensors | settings
        if tensors.keys() != wanted:
            raise TypeError(
                f"the recurrence of {module.__name__} takes {', '.join(names)}; "
                f"the comparison gives {', '.join(given)}"
            )
        read: Tensor = module._recurrence(*(given[name] for name in names))[0]
        return read

    return call


def layer(module: ModuleType, **sizes: int) -> nn.Module:
    """Returns a layer of an emitted module.

    Args:
        module: an emitted module.
        sizes: of its axes, by their names in the spec.
    """
    classes: list[Any] = [
        value
        for name in module.__all__
        if isinstance(value := getattr(module, name), type) and issubclass(value, nn.Module)
    ]
    (made,) = classes
    built: nn.Module = made(**sizes)
    return built
