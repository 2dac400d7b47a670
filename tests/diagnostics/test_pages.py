"""The examples on the pages of the codes: the wrong one raises the code, the right one does not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from dsfc.diagnostics.catalogue import CODES, examples

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def pages() -> Iterator[ModuleType]:
    """What the pages are made with; Sphinx imports it from a folder of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(ROOT / "docs" / "_ext"), *sys.path])
        import error_pages

        yield error_pages


@pytest.mark.share(3)
@pytest.mark.parametrize("code", [code for code in CODES if examples(code)])
def test_the_wrong_spec_raises_the_code_and_the_right_one_nothing(
    code: str, pages: ModuleType
) -> None:
    wrong, right = examples(code) or ("", "")
    found = [d for d in pages.said(code, wrong) if d.code == code]
    assert found
    assert pages.said(code, right) == ()
    assert all(d.message in pages.page(code) for d in found)


@pytest.mark.full
@pytest.mark.parametrize("code", [code for code in CODES if examples(code, "console")])
def test_the_wrong_commands_raise_the_code_and_the_right_ones_nothing(
    code: str, tmp_path: Path
) -> None:
    # Commands of the environment that runs the tests, whatever else is installed.
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    ends = []
    for number, text in enumerate(examples(code, "console") or ()):
        folder = tmp_path / str(number)
        folder.mkdir()
        script = "set -e\n" + "".join(
            line.removeprefix("$ ").removeprefix("  ") for line in text.splitlines(keepends=True)
        )
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=folder,
            env=os.environ | {"PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        ends.append((done.returncode != 0, code in done.stdout + done.stderr))
    assert ends == [(True, True), (False, False)]


def test_every_code_is_linked(pages: ModuleType) -> None:
    assert all(f"[{code}](#{code.lower()})" in pages.index() for code in CODES)
