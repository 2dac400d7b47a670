"""What `dsfc doctor` says of the compiler is what modules find out for themselves."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from dsfc.backends.c.probe import compiler
from dsfc.backends.c.runtime.native import _Native


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("DSFC_C", raising=False)


def script(folder: Path, lines: str) -> str:
    """A compiler that is a script around the real one."""
    path = next((p for p in map(shutil.which, ("gcc", "clang", "cc")) if p), None)
    if path is None:
        pytest.skip("no C compiler is there")
    (folder / "cc").write_text(f'#!/bin/sh\n{lines}\nexec {path} "$@"\n')
    (folder / "cc").chmod(0o755)
    return str(folder / "cc")


def test_a_compiler_is_named_with_its_version_and_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = script(tmp_path, "")
    monkeypatch.setenv("DSFC_CC", path)
    said = compiler()
    assert said["outcome"] == "ok"
    assert said["figure"].startswith(f"{path}, ")
    assert said["figure"].endswith(f"kernels in {tmp_path.resolve()}/dsfc")
    assert list((tmp_path / "dsfc").iterdir()) == []


@pytest.mark.parametrize(("option", "threads"), [("", "OpenMP"), ("-fopenmp", "no OpenMP")])
def test_openmp_is_said_where_the_compiler_has_it(
    option: str, threads: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse = f'for x in "$@"; do [ "$x" = "{option or "never"}" ] && exit 1; done'
    monkeypatch.setenv("DSFC_CC", script(tmp_path, refuse))
    assert f"; {threads}" in compiler()["figure"]


@pytest.mark.parametrize("variable", [("DSFC_C", "0"), ("DSFC_CC", "no-such-compiler")])
def test_the_reason_is_that_of_modules(
    variable: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(*variable)
    why = _Native("", {}).why_never()
    assert why
    assert compiler() == {"outcome": "missing", "figure": f"{why}; torch runs instead"}


def test_a_compiler_that_compiles_nothing_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DSFC_CC", script(tmp_path, '[ "$1" = --version ] || exit 1'))
    said = compiler()
    assert said["outcome"] == "fault" and "does not compile the kernel" in said["figure"]
