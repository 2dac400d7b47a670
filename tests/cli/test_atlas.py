"""`dsfc atlas`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE

import pytest

PAIR = """\
mixer one { dims d
  input u : d
  y = u + u
}
mixer two { dims d
  input u : d
  y = 2 * u
}
"""


def test_an_atlas_of_a_text(run: Callable, spec: Callable, folder: Path) -> None:
    spec(PAIR)
    result = run("atlas", "mine.dsf", "--cache", "kept")
    assert result.exit_code == 0 and "(1)\n  one = two\n" in result.output
    assert len(list((folder / "kept").glob("*.json"))) == 1
    document = json.loads(run("atlas", "mine.dsf", "--no-cache", "--format", "json").stdout)
    assert [p["verdict"] for p in document["pairs"]] == ["proved"]


def test_pictures_are_new_files(run: Callable, spec: Callable, folder: Path) -> None:
    spec(PAIR)
    (folder / "there.png").write_text("mine")
    assert run("atlas", "mine.dsf", "--picture", "there.png").exit_code == 2
    assert run("atlas", "mine.dsf", "--picture", "atlas.txt").exit_code == 2
    assert (folder / "there.png").read_text() == "mine"


def test_mistakes_in_a_spec_are_said(run: Callable, spec: Callable) -> None:
    spec("mixer m { y = x }\n")
    assert run("atlas", "mine.dsf", "--no-cache").exit_code == 1


def test_two_mixers_of_one_name(run: Callable, spec: Callable) -> None:
    spec(PAIR)
    spec(PAIR, "again.dsf")
    result = run("atlas", "mine.dsf", "again.dsf", "--no-cache")
    assert result.exit_code == 1 and "E-NAME" in result.output


def test_reports_are_new_files_in_the_form_of_their_names(run: Callable, spec: Callable) -> None:
    spec(PAIR)
    forms = {
        "html": "<td>one</td><td>=</td><td>two</td><td>equal, for all sizes</td>",
        "md": "| one = two |  | for all sizes |",
        "json": '"family": "equal, for all sizes"',
        "txt": " equal, for all sizes (1)\n  one = two\n",
    }
    for ending, line in forms.items():
        result = run("atlas", "mine.dsf", "--no-cache", "-o", f"atlas.{ending}")
        assert result.exit_code == 0 and result.stdout == ""
        assert line in Path(f"atlas.{ending}").read_text(encoding="utf-8")
    assert json.loads(Path("atlas.json").read_text(encoding="utf-8"))["complete"] is True
    assert run("atlas", "mine.dsf", "-o", "atlas.md").exit_code == 2
    assert run("atlas", "mine.dsf", "-o", "atlas.doc").exit_code == 2


def test_texts_of_a_spec_are_texts_of_a_page(run: Callable, spec: Callable) -> None:
    spec(PAIR.replace("mixer one {", 'mixer one "<script>alert(1)</script>" {'))
    assert run("atlas", "mine.dsf", "--no-cache", "-o", "atlas.html").exit_code == 0
    assert "alert(1)" not in Path("atlas.html").read_text(encoding="utf-8")


@pytest.mark.full
@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C is another thing there")
def test_an_interrupted_run_gives_what_it_has(folder: Path) -> None:
    # A test may run where interrupts are ignored, as in the background.
    program = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    program += "from dsfc.cli import main; main()"
    words = ("atlas", "gla", "ssd", "retnet", "mamba3", "rwkv6", "hgrn2", "--conditions")
    command = [sys.executable, "-c", program, *words, "--limit", "60", "--jobs", "2"]
    with subprocess.Popen([*command, "--cache", "kept"], text=True, stdout=PIPE, stderr=PIPE) as it:
        while len(list(folder.glob("kept/*.json"))) < 5:
            assert it.poll() is None
            time.sleep(0.1)
        it.send_signal(signal.SIGINT)
        out, err = it.communicate(timeout=120)
    assert it.returncode == 130 and "interrupted" in err and "Traceback" not in err
    assert "not asked: the run was interrupted" in out and "6 mixers" in out
