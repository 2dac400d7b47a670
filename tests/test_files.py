"""Files are written whole or not at all."""

from __future__ import annotations

import os
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
