"""The imports of an emitted module: of what its text names, and no more."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from .layout import WIDTH

_NAMES = {
    "collections.abc": ("Callable", "Iterable", "Iterator", "Mapping", "Sequence"),
    "dataclasses": ("dataclass", "fields"),
    "functools": ("partial",),
    "typing": ("Any", "ClassVar"),
}
_STANDARD = ("functools", "math", "threading", "warnings")
_TORCH = {"torch": "import torch", "F": "import torch.nn.functional as F"}
_OF_TORCH = {
    "torch": ("Tensor", "nn"),
    "torch.distributed.device_mesh": ("DeviceMesh",),
    "torch.distributed.tensor": (
        *("DTensor", "Partial", "Placement", "Replicate", "Shard"),
        *("distribute_module", "distribute_tensor"),
    ),
    "torch.distributed.tensor.parallel": ("ColwiseParallel", "ParallelStyle", "RowwiseParallel"),
}
BOUND = frozenset(_STANDARD).union(_TORCH, *_OF_TORCH.values(), *_NAMES.values())
"""Every name that an import of a module may bind."""


def imports(named: frozenset[str], more: tuple[str, ...]) -> Iterator[str]:
    """Yields import statements in order, a blank line between the standard library and torch.

    Args:
        named: the names that the module's text uses.
        more: statements that a target needs besides, of the standard library.
    """
    standard = {f"import {module}" for module in _STANDARD if module in named} | set(more)
    standard |= {*_from(_NAMES, named)}
    yield from sorted(standard, key=lambda line: (line.startswith("from "), line))
    yield ""
    yield from (line for name, line in _TORCH.items() if name in named)
    yield from _from(_OF_TORCH, named)


def _from(table: Mapping[str, tuple[str, ...]], named: frozenset[str]) -> Iterator[str]:
    for module, names in table.items():
        used = [n for n in names if n in named]
        if used:
            yield "\n".join(_import(module, used))


def _import(module: str, names: Sequence[str], indent: str = "") -> Iterator[str]:
    line = f"{indent}from {module} import {', '.join(names)}"
    if len(line) <= WIDTH:
        yield line
    else:
        yield f"{indent}from {module} import ("
        yield from (f"{indent}    {name}," for name in names)
        yield f"{indent})"


def imports_from_beside(module: str, names: Collection[str]) -> Iterator[str]:
    """Yields statements that import names from a module in the same folder.

    In a package the import is relative; elsewhere the folder is on Python's path.

    Args:
        module: name of the module.
        names: what is imported of it.
    """
    own = sorted(
        (n for n in names if n.startswith("_")), key=lambda n: (not n.isupper(), n.lower())
    )
    # Public names are exported again: users call them, though the module itself may not.
    exported = [f"{n} as {n}" for n in names if not n.startswith("_")]
    for condition, dot in (("if __package__:", "."), ("else:", "")):
        yield condition
        for ordered in (own, exported):
            yield from _import(f"{dot}{module}", ordered, "    ")
