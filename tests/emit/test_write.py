"""Writing a module: whole or not at all, and never over what is not ours."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from dsfc.diagnostics.report import DiagnosticError
from dsfc.emit.backend import Identity
from dsfc.emit.module import ModuleText, Option, Origin, destination, head, origin, write


def text_of(body: str, mixer: str = "s6") -> ModuleText:
    identity = Identity("0" * 64, "1.0", f"{mixer}.dsf", f"dsfc_{mixer}_")
    return ModuleText(mixer, "S6", head(identity, "torch", body) + body, identity, "dsfc_s6_0")


ONE = text_of('"""One."""\n')
TWO = text_of('"""Two."""\n')


def code(write_it: Callable[[], object]) -> str:
    """The code of the one diagnostic that a call raises."""
    with pytest.raises(DiagnosticError) as raised:
        write_it()
    (only,) = raised.value.diagnostics
    return only.code


def test_a_new_file_has_the_text_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "s6.py"
    assert write(ONE, path) is True
    assert path.read_bytes() == ONE.text.encode()
    assert [p.name for p in tmp_path.iterdir()] == ["s6.py"]


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    write(ONE, tmp_path / "s6.py")
    (tmp_path / "plain").write_text("")
    modes = {stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()}
    assert len(modes) == 1


def test_the_same_bytes_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "s6.py"
    write(ONE, path)
    before = path.stat()
    assert write(ONE, path) is False
    after = path.stat()
    assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino)


def test_an_unedited_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "s6.py"
    write(ONE, path)
    assert write(TWO, path) is True
    assert path.read_text(encoding="utf-8") == TWO.text


def test_other_line_endings_are_no_edit(tmp_path: Path) -> None:
    path = tmp_path / "s6.py"
    path.write_bytes(ONE.text.replace("\n", "\r\n").encode())
    assert write(TWO, path) is True


@pytest.mark.parametrize(
    "there",
    [
        b"print('mine')\n",
        b"",
        b"\xff\xfe",
        ONE.text.encode() + b"# a note of mine\n",
        ONE.text.replace("One", "1").encode(),
        b"\n" + ONE.text.encode(),
    ],
)
def test_anything_else_is_kept_without_force(tmp_path: Path, there: bytes) -> None:
    path = tmp_path / "s6.py"
    path.write_bytes(there)
    assert code(lambda: write(TWO, path)) == "E-OUTPUT"
    assert path.read_bytes() == there
    assert write(TWO, path, force=True) is True
    assert path.read_text(encoding="utf-8") == TWO.text


def test_a_read_only_file_is_kept_without_force(tmp_path: Path) -> None:
    path = tmp_path / "s6.py"
    write(ONE, path)
    path.chmod(0o444)
    assert code(lambda: write(TWO, path)) == "E-OUTPUT"
    assert write(TWO, path, force=True) is True


@pytest.mark.parametrize("force", [False, True])
def test_a_link_is_never_written_through(tmp_path: Path, force: bool) -> None:
    aim = tmp_path / "precious"
    aim.write_text("precious", encoding="utf-8")
    path = tmp_path / "s6.py"
    path.symlink_to(aim)
    assert code(lambda: write(ONE, path, force)) == "E-OUTPUT"
    assert aim.read_text(encoding="utf-8") == "precious" and path.is_symlink()


@pytest.mark.parametrize("force", [False, True])
def test_a_dangling_link_is_refused(tmp_path: Path, force: bool) -> None:
    path = tmp_path / "s6.py"
    path.symlink_to(tmp_path / "nowhere")
    assert code(lambda: write(ONE, path, force)) == "E-OUTPUT"
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_is_refused(tmp_path: Path, force: bool) -> None:
    (tmp_path / "s6.py").mkdir()
    assert code(lambda: write(ONE, tmp_path / "s6.py", force)) == "E-FILE"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("force", [False, True])
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path, force: bool) -> None:
    os.mkfifo(tmp_path / "s6.py")
    assert code(lambda: write(ONE, tmp_path / "s6.py", force)) == "E-FILE"


def test_a_missing_folder_is_an_error_and_is_not_made(tmp_path: Path) -> None:
    assert code(lambda: write(ONE, tmp_path / "no" / "s6.py")) == "E-FILE"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    assert code(lambda: write(ONE, tmp_path / "s6.py")) == "E-FILE"
    tmp_path.chmod(0o755)


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: BaseException
) -> None:
    path = tmp_path / "s6.py"
    write(ONE, path)

    def fail(*_: object) -> None:
        raise fault

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises((DiagnosticError, KeyboardInterrupt)):
        write(TWO, path)
    assert path.read_text(encoding="utf-8") == ONE.text
    assert [p.name for p in tmp_path.iterdir()] == ["s6.py"]


def test_a_module_says_where_it_comes_from() -> None:
    found = origin(ONE.text.encode())
    assert found == Origin("1.0", "torch", "s6.dsf", "0" * 64, untouched=True)


def test_a_module_says_what_it_was_asked_to_be() -> None:
    asked = "layer, context parallel, tensor parallel"
    said = ONE.text.replace("backend)", f"backend, {asked})", 1)
    found = origin(said.encode())
    assert found is not None
    assert found.options == {Option.LAYER, Option.CONTEXT_PARALLEL, Option.TENSOR_PARALLEL}
    assert origin(said.replace("layer", "of later days").encode()) is None
    found = origin(said.replace(asked, "layer, signature fla").encode())
    assert found is not None and found.options == {Option.LAYER, Option.FLA}


def test_an_edit_is_told() -> None:
    found = origin(ONE.text.encode() + b" ")
    assert found is not None and not found.untouched


@pytest.mark.parametrize("data", [b"", b"x = 1\n", b"\xff", b"# Written by dsfc\n"])
def test_other_files_have_no_origin(data: bytes) -> None:
    assert origin(data) is None


def test_where_a_module_goes(tmp_path: Path) -> None:
    assert destination(ONE, None) == Path("s6.py")
    assert destination(ONE, tmp_path) == tmp_path / "s6.py"
    assert destination(ONE, tmp_path / "mine.py") == tmp_path / "mine.py"
    assert destination(text_of("", mixer="torch"), None) == Path("torch_.py")
