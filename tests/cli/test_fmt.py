"""`dsfc fmt`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from dsfc.cli import commands

MESSY = """\
# a comment
mixer m {
  dims  d; input u:d   # of its own

  y = u*2
}
"""
CANONICAL = """\
# a comment
mixer m {
  dims d
  input u : d  # of its own

  y = u * 2
}
"""
WRONG = "mixer m { y = }\n"


def test_a_file_is_written_in_canonical_form_once(run: Callable, spec: Callable) -> None:
    path = spec(MESSY)
    path.chmod(0o640)
    first, second = run("fmt", "mine.dsf"), run("fmt", "mine.dsf")
    assert (first.exit_code, first.output) == (0, "mine.dsf: formatted\n1 file, 1 formatted\n")
    assert (second.exit_code, second.output) == (0, "1 file, 0 formatted\n")
    assert path.read_text(encoding="utf-8") == CANONICAL
    assert path.stat().st_mode & 0o777 == 0o640
    assert [p.name for p in path.parent.iterdir()] == ["mine.dsf"]


def test_line_ends_of_another_system_become_plain_ones(run: Callable, folder: Path) -> None:
    (folder / "mine.dsf").write_bytes(MESSY.replace("\n", "\r\n").encode())
    assert run("fmt", "mine.dsf").exit_code == 0
    assert (folder / "mine.dsf").read_bytes() == CANONICAL.encode()


def test_check_and_diff_write_nothing(run: Callable, spec: Callable) -> None:
    path = spec(MESSY)
    checked, shown = run("fmt", "--check", "mine.dsf"), run("fmt", "--diff", "mine.dsf")
    both = run("fmt", "--check", "--diff", "mine.dsf")
    assert checked.exit_code == both.exit_code == 1 and shown.exit_code == 0
    assert checked.output == "mine.dsf: not in canonical form\n1 file, 1 to format\n"
    assert shown.output == both.output
    assert shown.output.startswith("--- mine.dsf\n+++ mine.dsf, formatted\n@@ ")
    assert "-  y = u*2\n+  y = u * 2\n" in shown.output
    assert path.read_text(encoding="utf-8") == MESSY


def test_a_canonical_file_passes_the_check(run: Callable, spec: Callable) -> None:
    spec(CANONICAL)
    result = run("fmt", "--check", "mine.dsf")
    assert (result.exit_code, result.output) == (0, "1 file, 0 to format\n")
    assert run("fmt", "--diff", "mine.dsf").output == ""


def test_a_folder_stands_for_what_is_below_it(run: Callable, folder: Path) -> None:
    (folder / "of" / "mine").mkdir(parents=True)
    (folder / "of" / "a.dsf").write_text(MESSY)
    (folder / "of" / "mine" / "b.dsf").write_text(CANONICAL)
    (folder / "of" / "c.txt").write_text(MESSY)
    result = run("fmt", "of", "of/a.dsf")
    assert result.output == "of/a.dsf: formatted\n2 files, 1 formatted\n"
    assert (folder / "of" / "c.txt").read_text() == MESSY


def test_standard_input_goes_to_standard_output(folder: Path) -> None:
    result = CliRunner().invoke(commands, ["fmt", "-"], input=MESSY)
    assert (result.exit_code, result.output) == (0, CANONICAL)
    assert list(folder.iterdir()) == []


def test_a_text_with_mistakes_is_left_alone_and_the_others_are_not(
    run: Callable, spec: Callable
) -> None:
    wrong, good = spec(WRONG, "a.dsf"), spec(MESSY, "b.dsf")
    result = run("fmt", "a.dsf", "b.dsf", "none.dsf")
    assert result.exit_code == 1
    assert "a.dsf:1:15" in result.output and "error[E-FILE]" in result.output
    assert result.output.endswith("3 files, 1 formatted, 2 not changed\n")
    assert wrong.read_text() == WRONG and good.read_text(encoding="utf-8") == CANONICAL


def test_a_read_only_file_is_left_alone(run: Callable, spec: Callable) -> None:
    path = spec(MESSY)
    path.chmod(0o444)
    result = run("fmt", "mine.dsf")
    assert result.exit_code == 1 and "it is read-only" in result.output
    assert path.read_text(encoding="utf-8") == MESSY


def test_a_link_stays_a_link(run: Callable, spec: Callable) -> None:
    path = spec(MESSY)
    link = path.with_name("link.dsf")
    link.symlink_to(path)
    assert run("fmt", "link.dsf").exit_code == 0
    assert link.is_symlink() and path.read_text(encoding="utf-8") == CANONICAL


def test_letters_are_spelled_out_on_request(run: Callable, spec: Callable) -> None:
    path = spec("mixer m { dims d; input u : d; λ = 1/2; y = λ * u · u }\n")
    run("fmt", "--ascii", "mine.dsf")
    assert path.read_text(encoding="utf-8").isascii()
    run("fmt", "mine.dsf")
    assert "λ = 1/2\n  y = λ * u · u\n" in path.read_text(encoding="utf-8")


def test_a_form_that_means_something_else_is_a_fault_of_dsfc(
    run: Callable, spec: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = spec(MESSY)
    monkeypatch.setattr("dsfc.syntax.format.format_spec", lambda *_, **__: "mixer m { y = 1 }\n")
    result = run("fmt", "mine.dsf")
    assert result.exit_code == 3 and "This is a fault of dsfc" in result.output
    assert path.read_text(encoding="utf-8") == MESSY


def test_shipped_specs_are_in_canonical_form(run: Callable, root: Path) -> None:
    result = run("fmt", "--check", root / "specs")
    assert result.exit_code == 0, result.output


def test_a_python_file_is_left_alone(run: Callable, folder: Path) -> None:
    (folder / "mine.py").write_text("y = 1\n", encoding="utf-8")
    result = run("fmt", "mine.py")
    assert result.exit_code == 1
    assert "mine.py: a Python file, and a spec is a .dsf file; `dsfc verify`" in result.output
    assert (folder / "mine.py").read_text(encoding="utf-8") == "y = 1\n"
