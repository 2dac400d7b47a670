"""Finds the file that a user's word for a spec means: a path, or the name of a shipped spec."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from dsfc.diagnostics.file_error import file_error
from dsfc.diagnostics.report import nearest

SUFFIX = ".dsf"
BLOCKS = "blocks"
"""The folder of shipped specs of whole blocks, beside those of mixers."""

_BARE = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Place:
    """A spec file.

    Attributes:
        file: its path.
        shipped: True for one of the library that comes with dsfc.
    """

    file: Path
    shipped: bool = False


def locate(path: str | os.PathLike[str]) -> Place:
    """Returns the place of a spec.

    Args:
        path: a file, or the bare name of a shipped spec, such as `s6`; a file of that very name
            comes first.

    Raises:
        DiagnosticError: E-FILE, naming the nearest spec there is.
    """
    word = os.fspath(path)
    file = Path(word)
    try:
        if file.is_file():
            return Place(file)
        if _BARE.fullmatch(word):
            if (shipped := shipped_file(word)) is not None:
                return Place(shipped, shipped=True)
        if file.exists():  # a folder, a pipe; reading it says what is wrong, if anything is
            return Place(file)
        beside = [str(f) for f in file.parent.glob(f"*{SUFFIX}")]
    except (OSError, ValueError):  # a path that the system cannot have; so does reading it
        return Place(file)
    near = nearest(word, beside) or nearest(file.stem, spec_names())
    if word == f"{file.stem}{SUFFIX}" and file.stem in spec_names():
        near = file.stem
    problem = "no such file, and no shipped spec of that name"
    spec, colon, mixer = word.rpartition(":")
    if colon and mixer.isidentifier() and Path(spec).is_file():
        near = None
        problem = f"no such file; write `{spec}`, and the mixer `{mixer}` apart"
    raise file_error(word, problem, near)


def shipped_names() -> tuple[str, ...]:
    """Returns the names of the shipped mixers, bases and modifiers, sorted; no blocks."""
    return _stems(_library())


def block_names() -> tuple[str, ...]:
    """Returns the names of the shipped blocks of models, sorted."""
    return _stems(_library() / BLOCKS)


def spec_names() -> tuple[str, ...]:
    """Returns every bare name that means a shipped spec, sorted: of mixers and of blocks."""
    return tuple(sorted((*shipped_names(), *block_names())))


def shipped_file(name: str) -> Path | None:
    """Returns the file of a shipped spec, None where none has that name.

    Args:
        name: of the spec, without a suffix.
    """
    files = (folder / f"{name}{SUFFIX}" for folder in (_library(), _library() / BLOCKS))
    return next((file for file in files if file.is_file()), None)


def _stems(folder: Path) -> tuple[str, ...]:
    return tuple(sorted(file.stem for file in folder.glob(f"*{SUFFIX}")))


def _library() -> Path:
    return Path(str(resources.files("dsfc.specs")))
