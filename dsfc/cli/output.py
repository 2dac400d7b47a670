"""Files that commands write beside what they print."""

from __future__ import annotations

from pathlib import Path


def target(out: str, name: str) -> Path:
    """Returns the file that the word behind -o means; a folder that ends in a slash is made.

    Raises:
        DiagnosticError: E-FILE.
    """
    from dsfc import files
    from dsfc.diagnostics.file_error import file_error

    try:
        return files.target(out, name)
    except OSError as e:
        raise file_error(out, e) from None


def create(path: Path, data: str | bytes) -> None:
    """Writes a new file, whole or not at all.

    Raises:
        DiagnosticError: E-FILE; the file already exists.
    """
    from dsfc import files
    from dsfc.diagnostics.file_error import file_error

    try:
        files.create(path, data.encode() if isinstance(data, str) else data)
    except FileExistsError:
        raise file_error(path, "already exists; not overwritten") from None
    except OSError as e:
        raise file_error(path, e) from None
