"""`dsfc model`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

FILES = ["README.md", "config.json", "configuration_mixer.py", "gla.py", "modeling_mixer.py"]


@pytest.mark.ci
def test_a_folder_is_written_and_named(run: Callable, folder: Path) -> None:
    made = run("model", "gla", "-o", "it", "--width", 64, "--blocks", 3, "--size", "h=2,r=8")
    assert made.exit_code == 0
    assert sorted(made.output.split()) == [f"it/{name}" for name in (*FILES, "train.py")]
    config = json.loads((folder / "it" / "config.json").read_text())
    assert (config["hidden_size"], config["num_hidden_layers"]) == (64, 3)
    assert config["layer_arguments"]["gla"]["h"] == 2

    again = run("model", "gla", "-o", "it", "--width", 64, "--blocks", 3, "--size", "h=2,r=8")
    assert (again.exit_code, again.output) == (0, made.output)
    other = run("model", "gla", "-o", "it", "--width", 32)
    assert other.exit_code == 1 and "E-OUTPUT" in other.output
    assert json.loads((folder / "it" / "config.json").read_text()) == config
    assert run("model", "gla", "-o", "it", "--width", 32, "--force").exit_code == 0
    assert json.loads((folder / "it" / "config.json").read_text())["hidden_size"] == 32


@pytest.mark.share(4)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["gla", "gla"], "two of the specs"),
        (["gla", "--pattern", "gla,s6"], "names s6"),
        (["gla", "s6", "--pattern", "gla"], "leaves s6 out"),
        (["gla", "--size", "x=3"], "gives x"),
        (["gla", "--size", "norm=3"], "gives norm"),
    ],
)
def test_words_that_do_not_fit_are_wrong_usage(
    run: Callable, folder: Path, words: list[str], said: str
) -> None:
    result = run("model", *words, "-o", "it")
    assert result.exit_code == 2 and said in result.output
    assert list(folder.iterdir()) == []


def test_every_spec_that_has_no_next_token_is_told(run: Callable, folder: Path) -> None:
    result = run("model", "dlr_bidirectional", "nosuch", "-o", "it")
    assert result.exit_code == 1 and "E-STEP" in result.output and "E-FILE" in result.output
    assert list(folder.iterdir()) == []
