"""Files are written whole or not at all, and only regular ones are read."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dsfc import files


def test_a_file_is_new_or_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for data in (b"first", b"second"):
        files.replace(path, data)
        assert path.read_bytes() == data
    assert list(tmp_path.iterdir()) == [path]


def test_permissions_are_those_of_new_files_or_as_told(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        files.replace(tmp_path / "usual", b"")
        files.replace(tmp_path / "own", b"", 0o600)
    finally:
        os.umask(before)
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("usual", "own")]
    assert modes == [0o640, 0o600]


def test_nothing_is_left_of_a_file_that_could_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError):
        files.replace(path, b"new")
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


def test_a_draft_is_gone_afterwards(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), files.draft(tmp_path / "a") as part:
        assert part.parent == tmp_path and part.stat().st_mode & 0o077 == 0
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_a_new_file_never_takes_the_place_of_another(tmp_path: Path) -> None:
    path, link = tmp_path / "a", tmp_path / "link"
    files.create(path, b"first")
    link.symlink_to(tmp_path / "nothing")
    for there in (path, link):
        with pytest.raises(FileExistsError):
            files.create(there, b"second")
    assert path.read_bytes() == b"first" and len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("name", ["a" * 255, "ä" * 127, "." * 200])
def test_a_name_may_be_as_long_as_the_system_allows(tmp_path: Path, name: str) -> None:
    for data in (b"first", b"second"):
        files.replace(tmp_path / name, data)
    assert (tmp_path / name).read_bytes() == b"second"


KILLED = """\
import os, sys
from pathlib import Path
from dsfc import files
with files.draft(Path(sys.argv[1])) as part:
    part.write_bytes(b"half")
    os.kill(os.getpid(), 9)
"""


def killed(path: Path) -> list[str]:
    """What a process leaves behind that is killed while it writes a file."""
    done = subprocess.run([sys.executable, "-c", KILLED, path], timeout=60)
    assert done.returncode == -signal.SIGKILL
    return [it.name for it in path.parent.iterdir() if it.name.endswith(".part")]


@pytest.mark.skipif(sys.platform == "win32", reason="no locks of files, no signals")
@pytest.mark.parametrize("write", [files.replace, files.create])
def test_the_next_write_removes_what_a_killed_one_left(
    tmp_path: Path, write: Callable[[Path, bytes], None]
) -> None:
    path = tmp_path / "a"
    assert len(killed(path)) == 1
    write(path, b"whole")
    assert [it.name for it in tmp_path.iterdir()] == ["a"]


@pytest.mark.skipif(sys.platform == "win32", reason="no locks of files, no signals")
def test_what_others_have_under_way_and_other_files_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a"
    strange = [tmp_path / name for name in (".part", ".a.part", ".dsfc-mine.part")]
    for it in strange:
        it.write_bytes(b"mine")
    of_another = killed(tmp_path / "b")
    with files.draft(path) as first, files.draft(path) as second:
        files.replace(path, b"whole")
        assert first.exists() and second.exists() and first != second
    left = sorted(it.name for it in tmp_path.iterdir())
    assert left == sorted({"a", *of_another, *(it.name for it in strange)})


def special(folder: Path) -> dict[str, Path]:
    """A file of each kind that is none to read."""
    os.mkfifo(folder / "pipe")
    (folder / "directory").mkdir()
    (folder / "link").symlink_to(folder / "pipe")
    (folder / "loop").symlink_to(folder / "loop")
    bound = socket.socket(socket.AF_UNIX)
    bound.bind(str(folder / "socket"))
    bound.close()
    names = ("pipe", "directory", "link", "loop", "socket")
    return {**{name: folder / name for name in names}, "device": Path("/dev/zero")}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.timeout(60)
def test_only_regular_files_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket has at most 107 bytes
    said = {}
    for kind, path in special(Path()).items():
        with pytest.raises(OSError) as raised:
            files.read(path)
        said[kind] = raised.value.strerror
    assert said == {
        "pipe": "is a named pipe, not a regular file",
        "directory": "is a directory, not a regular file",
        "link": "is a named pipe, not a regular file",
        "loop": "Too many levels of symbolic links",
        "socket": "is a socket, not a regular file",
        "device": "is a device, not a regular file",
    }


def test_no_more_is_read_than_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(bytes(1000))
    assert len(files.read(path)) == len(files.read(path, 1000)) == 1000
    assert len(files.read(path, 10)) == 10
