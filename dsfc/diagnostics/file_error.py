"""The error of a file that cannot be read or written."""

from __future__ import annotations

import os

from dsfc.diagnostics.catalogue import FileProblem
from dsfc.diagnostics.report import DiagnosticError
from dsfc.source import Source


def file_error(
    path: str | os.PathLike[str], problem: str | OSError, nearest: str | None = None
) -> DiagnosticError:
    """Returns E-FILE, placed at the file itself.

    Args:
        path: as the user gave it.
        problem: what is wrong with it, or what the system said.
        nearest: a file that may have been meant.
    """
    name = os.fspath(path)
    folder = os.path.dirname(name)
    if isinstance(problem, FileNotFoundError) and folder and not os.path.isdir(folder):
        problem = f"there is no folder {folder}"
    elif isinstance(problem, OSError):
        problem = (problem.strerror or type(problem).__name__).lower()
    nowhere = Source(name, "").span()
    return DiagnosticError((FileProblem(nowhere, path=name, problem=problem, nearest=nearest),))
