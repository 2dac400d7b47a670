"""`dsfc atlas`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

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
    assert result.exit_code == 0 and "proved (1)\n  one = two\n" in result.output
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
