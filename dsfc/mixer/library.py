"""Finds the mixers and modifiers a spec names: in its own text, beside it, among the shipped specs.

A name `qkv` is looked up in the text that writes it, then as `qkv.dsf` in the folder of that text,
then as `qkv.dsf` in the shipped library. A text found this way looks its own names up from where
*it* stands, so a shipped spec never picks up a file of the user by accident.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TypeVar

from dsfc.limits import DEFAULT_LIMITS, Limits
from dsfc.source import Source
from dsfc.syntax import ast
from dsfc.syntax.parse import parse
from dsfc.syntax.read import read_source

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_SUFFIX = ".dsf"
_UnitT = TypeVar("_UnitT", ast.MixerUnit, ast.ModifierUnit)


@dataclass(frozen=True, slots=True)
class Home:
    """Where a unit stands: names written in it are looked up from here.

    Attributes:
        spec: the text.
        folders: the folder of the text (if it has one), then the shipped library.
    """

    spec: ast.Spec
    folders: tuple[Traversable | Path, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """A mixer with the place it was found in."""

    unit: ast.MixerUnit
    home: Home


@dataclass(frozen=True, slots=True)
class FoundModifier:
    """A modifier with the place it was found in."""

    unit: ast.ModifierUnit
    home: Home


@dataclass(frozen=True, slots=True)
class Library:
    """The texts that names may refer to. Files are read when first asked for, each once.

    Attributes:
        folder: where the user's spec stands; None for a text without a file.
        shipped: the library that comes with the compiler.
        limits: bounds that every text respects.
    """

    folder: Path | None = None
    shipped: Traversable = field(default_factory=lambda: resources.files("dsfc.specs"))
    limits: Limits = DEFAULT_LIMITS
    _read: dict[str, ast.Spec | None] = field(default_factory=dict, repr=False, compare=False)

    def home(self, spec: ast.Spec) -> Home:
        """Returns the place of the user's own text."""
        folders = () if self.folder is None else (self.folder,)
        return Home(spec, (*folders, self.shipped))

    def holding(self, texts: Iterable[ast.Spec]) -> Library:
        """Returns the library in which some texts stand for the files they are named after."""
        return replace(self, _read={spec.span.source.name: spec for spec in texts})

    def mixer(self, name: str, home: Home) -> Found | None:
        """Returns the mixer of that name as seen from `home`, or None.

        Raises:
            DiagnosticError: the file that should hold it cannot be parsed.
        """
        unit = self._find(name, home, ast.MixerUnit)
        return None if unit is None else Found(*unit)

    def modifier(self, name: str, home: Home) -> FoundModifier | None:
        """Returns the modifier of that name as seen from `home`, or None.

        Raises:
            DiagnosticError: the file that should hold it cannot be parsed.
        """
        unit = self._find(name, home, ast.ModifierUnit)
        return None if unit is None else FoundModifier(*unit)

    def names(self, home: Home) -> tuple[str, ...]:
        """Returns the names that a lookup from `home` may find, for suggestions."""
        own = (unit.name.text for unit in home.spec.units)
        files = (name for folder in home.folders for name in _stems(folder))
        return tuple(sorted({*own, *files}))

    def _find(self, name: str, home: Home, kind: type[_UnitT]) -> tuple[_UnitT, Home] | None:
        own = _unit(home.spec, name, kind)
        if own is not None:
            return own, home
        for position, folder in enumerate(home.folders):
            spec = self._file(folder, name)
            unit = None if spec is None else _unit(spec, name, kind)
            if spec is not None and unit is not None:
                return unit, Home(spec, home.folders[position:])
        return None

    def _file(self, folder: Traversable | Path, name: str) -> ast.Spec | None:
        """The text of `name.dsf` in a folder; None if there is none, or it lies outside."""
        if not _NAME.fullmatch(name):
            return None
        file = folder / f"{name}{_SUFFIX}"
        key = str(file)
        if key not in self._read:
            self._read[key] = self._parsed(folder, file)
        return self._read[key]

    def _parsed(self, folder: Traversable | Path, file: Traversable | Path) -> ast.Spec | None:
        if not file.is_file() or not _inside(folder, file):
            return None
        if isinstance(file, Path):
            source = read_source(file, limits=self.limits)
        else:
            source = Source(file.name, file.read_text("utf-8"))  # packed: the shipped library
        return parse(source, self.limits)


def _inside(folder: Traversable | Path, file: Traversable | Path) -> bool:
    """Whether a file really lies in its folder, links resolved; packed resources have no links."""
    if isinstance(folder, Path) and isinstance(file, Path):
        return file.resolve().parent == folder.resolve()
    return True


def _stems(folder: Traversable | Path) -> Iterator[str]:
    if folder.is_dir():
        for file in folder.iterdir():
            if file.name.endswith(_SUFFIX):
                yield file.name.removesuffix(_SUFFIX)


def _unit(spec: ast.Spec, name: str, kind: type[_UnitT]) -> _UnitT | None:
    return next((u for u in spec.units if isinstance(u, kind) and u.name.text == name), None)
