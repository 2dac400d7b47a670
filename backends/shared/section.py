"""Builds the runtime section of emitted modules from the files of `runtime`."""

from __future__ import annotations

import ast
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import takewhile

from dsfc.python_text import names_in, parsed

FILES = (
    "checks",
    "states",
    "numbers",
    "rows",
    "caches",
    "exact",
    "sequences",
    "functions",
    "fourier",
    "operators",
    "chunks",
    "keyed",
    "low_rank",
    "delta",
    "elementwise",
    "selective",
    "convolution",
    "dense",
    "maxima",
    "stepped",
    "pairs",
    "attention",
)
"""The files of the runtime, in the order of the section."""


@dataclass(frozen=True, slots=True)
class Section:
    """The runtime section of emitted modules; a `dsfc.emit.audit.Runtime`.

    Attributes:
        text: the bodies of the files, without their docstrings and imports.
        sha256: of the text.
        names: functions, classes and constants that the section defines, in order.
        named: what its text names.
        imports: statements that it needs besides those of names that every module may use.
    """

    text: str
    sha256: str
    names: tuple[str, ...]
    named: frozenset[str]
    imports: tuple[str, ...] = ()

    @property
    def module(self) -> str:
        """Name of the module that holds the section where it stands beside the others."""
        return f"dsfc_runtime_{self.sha256[:12]}"

    @property
    def modules(self) -> frozenset[str]:
        """Modules that its own imports name."""
        return frozenset(line.split()[1] for line in self.imports)


@cache
def section(more: tuple[str, ...] = (), imports: tuple[str, ...] = ()) -> Section:
    """Returns the runtime section, the same for every module of a version and a target.

    Args:
        more: files of a target, behind those of `FILES`.
        imports: statements that these need.
    """
    folder = files(f"{__package__}.runtime")
    sources = [(folder / f"{name}.py").read_text(encoding="utf-8") for name in FILES]
    return extended(Section("", "", (), frozenset(), imports), (*sources, *more))


def extended(own: Section, more: tuple[str, ...]) -> Section:
    """Returns a section with files behind its own.

    Args:
        own: the section.
        more: texts of the files; they need no imports besides those of the section.
    """
    parts = [*map(_split, more)]
    bodies = [body for body, _ in parts]
    text = "\n\n\n".join([own.text, *bodies] if own.text else bodies)
    names = *own.names, *(name for _, tree in parts for name in _defined(tree))
    named = own.named.union(*(names_in(tree) for _, tree in parts))
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Section(text, digest, names, named, own.imports)


def _split(source: str) -> tuple[str, ast.Module]:
    """Returns the lines of a Python file behind its docstring and imports, and their tree."""
    tree = parsed(source)
    heads = [*takewhile(_is_head, tree.body)]
    lines = source.split("\n")[heads[-1].end_lineno if heads else 0 :]
    tree.body = tree.body[len(heads) :]
    return "\n".join(lines).strip("\n"), tree


def _is_head(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr | ast.Import | ast.ImportFrom)


def _defined(tree: ast.Module) -> list[str]:
    """Returns the names that the statements of a module bind."""
    names = []
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.append(name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                names.append(name)
    return names
