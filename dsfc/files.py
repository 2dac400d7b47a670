"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def draft(path: Path) -> Iterator[Path]:
    """Gives a new, empty file in the folder of `path`, which is gone afterwards.

    In the same folder, so that it can take the place of `path` in one step. Only its owner may
    read it.

    Raises:
        OSError: the folder cannot be written.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(handle)
    part = Path(name)
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)


def create(path: Path, data: bytes) -> None:
    """Writes a new file.

    Raises:
        FileExistsError: there is one, a link to nothing included.
        OSError: nothing was written.
    """
    with draft(path) as part:
        part.write_bytes(data)
        part.chmod(_usual())
        os.link(part, path)  # unlike a rename this does not replace what is there


def replace(path: Path, data: bytes, mode: int | None = None) -> None:
    """Writes a file, new or in place of an old one; who reads it meanwhile sees one of the two.

    Args:
        path: the file.
        data: all that it holds.
        mode: permissions; those that the process gives new files by default.

    Raises:
        OSError: nothing was written.
    """
    with draft(path) as part:
        with part.open("wb") as f:
            f.write(data)
            f.flush()
            os.fsync(f.fileno())
        part.chmod(_usual() if mode is None else mode)
        os.replace(part, path)


def _usual() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
