"""Files, and other bytes, to sources."""

from __future__ import annotations

from pathlib import Path

from dsfc import files
from dsfc.diagnostics.catalogue import Limit
from dsfc.diagnostics.file_error import file_error
from dsfc.diagnostics.report import DiagnosticError
from dsfc.limits import DEFAULT_LIMITS, Limits
from dsfc.source import Source

_PYTHON = (
    "a Python file, and a spec is a .dsf file; `dsfc verify` and `dsfc info` take a module, "
    "`dsfc lift FILE.py:CLASS` a layer"
)


def read_source(path: Path, name: str | None = None, limits: Limits = DEFAULT_LIMITS) -> Source:
    """The text of a spec file, line endings untouched; never more than `limits.bytes` are read.

    Only a regular file is read: a named pipe would be waited for.

    Args:
        path: the file.
        name: what messages call it; the path by default.
        limits: bounds on the size.

    Raises:
        DiagnosticError: `E-FILE` if it cannot be read, is Python or is not UTF-8, `E-LIMIT` if too
            large.
    """
    called = str(path) if name is None else name
    try:
        data = files.read(path, limits.bytes + 1)
    except OSError as error:
        raise file_error(called, error) from None
    except ValueError:  # a null character in the path
        raise file_error(called, "no such file") from None
    if path.suffix == ".py":
        raise file_error(called, _PYTHON)
    return decoded(data, called, limits)


def decoded(data: bytes, name: str, limits: Limits = DEFAULT_LIMITS) -> Source:
    """The text that some bytes are.

    Args:
        data: the bytes; of a longer text at least one more than `limits.bytes` allows.
        name: what messages call it.
        limits: bounds on the size.

    Raises:
        DiagnosticError: `E-FILE` if they are not UTF-8, `E-LIMIT` if they are too many.
    """
    nowhere = Source(name, "").span()
    if len(data) > limits.bytes:
        bound = str(limits.bytes)
        raise DiagnosticError([Limit(nowhere, what="bytes of the file", size="more", bound=bound)])
    try:
        return Source(name, data.decode("utf-8"))
    except UnicodeDecodeError as error:
        problem = f"not a text in UTF-8 (byte {error.start})"
        raise file_error(name, problem) from None
