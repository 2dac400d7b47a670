"""Imports modules that their user may have edited, or may have taken for modules of dsfc."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from dsfc.diagnostics.file_error import file_error
from dsfc.emit.importing import import_module


def imported(file: Path) -> ModuleType:
    """Returns the module of a file, as `import_module` does.

    Raises:
        DiagnosticError: E-FILE, importing it raises an error.
        ImportError: torch is missing.
    """
    try:
        return import_module(file)
    except Exception as e:  # whatever the file raises
        if isinstance(e, ImportError) and e.name == "torch":
            raise
        raise file_error(file, f"importing it raises {type(e).__name__}: {e}") from e
