"""The imports of an emitted module: of what its text names, and no more."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from .layout import WIDTH

_NAMES = {
    "collections.abc": ("Callable", "Iterable", "Iterator", "Mapping", "Sequence"),
    "dataclasses": ("dataclass", "fields"),
    "functools": ("partial",),
    "typing": ("Any", "ClassVar"),
}
_STANDARD = ("functools", "math", "threading", "warnings")
_TORCH = {"torch": "import torch", "F": "import torch.nn.functional as F"}
_OF_TORCH = ("Tensor", "nn")
BOUND = frozenset(_STANDARD).union(_TORCH, _OF_TORCH, *_NAMES.values())
"""Every name that an import of a module may bind."""


def imports(named: frozenset[str], more: tuple[str, ...]) -> Iterator[str]:
    """Yields import statements in order, a blank line between the standard library and torch.

    Args:
        named: the names that the module's text uses.
        more: statements that a target needs besides, of the standard library.
    """
    standard = {f"import {module}" for module in _STANDARD if module in named} | set(more)
    for module, names in _NAMES.items():
        used = ", ".join(n for n in names if n in named)
        standard |= {f"from {module} import {used}"} if used else set()
    yield from sorted(standard, key=lambda line: (line.startswith("from "), line))
    yield ""
    yield from (line for name, line in _TORCH.items() if name in named)
    used = ", ".join(n for n in _OF_TORCH if n in named)
    yield f"from torch import {used}"


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
            line = f"    from {dot}{module} import {', '.join(ordered)}"
            if len(line) <= WIDTH:
                yield line
            else:
                yield f"    from {dot}{module} import ("
                yield from (f"        {name}," for name in ordered)
                yield "    )"
