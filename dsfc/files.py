"""Files: only regular ones are read, and they are written whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows, which deletes no file that is open, and leaves none to be told apart
    fcntl = None  # type: ignore[assignment]

_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISDIR, "a directory"),
)


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Opens a regular file for reading.

    Reading anything else may never end, or do something: a named pipe waits for who writes to it,
    a device may be a tape. It is looked at before it is opened and again when it is open, since
    another file may have taken its place; opening does not wait.

    Raises:
        OSError: there is no such file, it cannot be read, or it is not a regular one.
        ValueError: there is a null character in the path.
    """
    _demand_regular(path, os.stat(path))
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(handle, "rb") as file:
        _demand_regular(path, os.fstat(handle))
        yield file


def read(path: Path, most: int = -1) -> bytes:
    """Returns the bytes of a regular file.

    Args:
        path: the file.
        most: bytes to read at most; all if negative.

    Raises:
        OSError: there is no such file, it cannot be read, or it is not a regular one.
        ValueError: there is a null character in the path.
    """
    with opened(path) as file:
        return file.read(most)


def _demand_regular(path: Path, status: os.stat_result) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    kind = next((name for is_one, name in _KINDS if is_one(status.st_mode)), "a device")
    raise OSError(errno.EINVAL, f"is {kind}, not a regular file", str(path))


@contextmanager
def draft(path: Path) -> Iterator[Path]:
    """Gives a new, empty file in the folder of `path`, which is gone afterwards.

    In the same folder, so that it can take the place of `path` in one step. Only its owner may
    read it. A process that is killed leaves its draft behind; the next draft for the same path
    removes it.

    Raises:
        OSError: the folder cannot be written.
    """
    _remove_abandoned(path)
    handle, part = _locked(path)
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)
        if handle is not None:
            os.close(handle)


def _prefix(path: Path) -> str:
    """How drafts for a path begin: a hash of the name, which may be as long as any name can be."""
    return f".dsfc-{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:16]}-"


def _locked(path: Path) -> tuple[int | None, Path]:
    """A new draft and the descriptor that holds its lock, which ends with the process."""
    while True:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=_prefix(path), suffix=".part")
        part = Path(name)
        if fcntl is None:
            os.close(handle)
            return None, part
        with suppress(OSError):  # a file system without locks, where nobody gets one
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return handle, part
        os.close(handle)  # somebody took it for abandoned before it was locked


def _remove_abandoned(path: Path) -> None:
    """Removes the drafts for a path that nobody has under way: those that are not locked."""
    if fcntl is None:
        return
    own = re.compile(re.escape(_prefix(path)) + r"[a-z0-9_]{8}\.part")
    with suppress(OSError):
        for entry in os.scandir(path.parent):
            if own.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError):
                    _remove_unlocked(entry.path)


def _remove_unlocked(part: str) -> None:
    handle = os.open(part, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(part)
    finally:
        os.close(handle)


def target(out: str | os.PathLike[str], name: str) -> Path:
    """Returns the file that a word for an output means; a folder that ends in a slash is made.

    Args:
        out: a file, a folder, or the name of a new folder with a slash behind it.
        name: of the file, in a folder.

    Raises:
        OSError: the folder cannot be made.
    """
    if os.fspath(out).endswith(("/", os.sep)):
        os.makedirs(out, exist_ok=True)
    # Of a name that no file can have nothing is raised here: writing says what is wrong with it.
    return Path(out) / name if os.path.isdir(out) else Path(out)


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
