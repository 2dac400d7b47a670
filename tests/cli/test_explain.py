"""`dsfc explain`: pages for people, of codes, words, classes and shipped mixers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from dsfc.cli import commands
from dsfc.diagnostics.catalogue import CODES, examples
from dsfc.mixer.words import WORDS
from dsfc.structure.classes import CLASSES


@pytest.mark.parametrize("code", CODES)
def test_a_page_is_rendered(run: Callable, code: str) -> None:
    page = run("explain", code).output
    assert page.startswith(f"{code}: ") and "```" not in page
    assert page.count("\nwrong:\n    ") == page.count("\nright:\n    ") == 1
    for text in examples(code) or examples(code, "console") or ():
        assert all(f"    {line}\n" in page for line in text.splitlines() if line)


def test_a_terminal_shows_titles_and_code_in_colour(folder: Path) -> None:
    page = CliRunner().invoke(commands, ["explain", "E-SHAPE-MUL"], color=True).output
    assert page.startswith("\x1b[1mE-SHAPE-MUL: ") and "\x1b[36m`*`\x1b[0m" in page
    assert "    \x1b[36m  y = q · S\x1b[0m" in page


def test_a_word_of_the_language_is_explained_with_an_example(run: Callable) -> None:
    page = run("explain", "mean").output
    assert page.startswith("mean, a form: mean along an axis, `mean[n](x)`\n")
    assert "\nexample:\n    mixer m {\n" in page and "    y = u - mean[d](u)\n" in page
    assert page.endswith("more: language/shapes in the docs\n")
    for sign in ("->", "-", "⊗", "'", "~"):
        assert run("explain", sign).output.startswith(f"{sign}, a sign: ")
    assert "  called: tanh(x)\n" in run("explain", "tanh").output


def test_a_word_of_several_meanings_has_all_of_them(run: Callable) -> None:
    page = run("explain", "softmax").output
    starts = "softmax, a function: ", "softmax, a structure class: ", "softmax, a shipped mixer: "
    assert [line for line in page.splitlines() if line.startswith(starts)] == [
        line for line in page.splitlines() if line.startswith("softmax, ")
    ]
    assert page.count("\nsoftmax, ") + 1 == len(starts)


@pytest.mark.parametrize(
    "name, said",
    [
        ("gla", "gla, a shipped mixer: Gated linear attention (GLA)\n  class: per_key\n"),
        (
            "mamba_block",
            "mamba_block, a shipped block, a mixer with what stands around it in a model: Block of "
            "Mamba\n  class: selective\n",
        ),
        ("qkv", "qkv, a shipped base, which mixers extend: "),
        ("short_conv", "short_conv, a shipped modifier, which mixers use: "),
        ("lstm", "lstm, a shipped mixer that this version does not compile: "),
    ],
)
def test_a_shipped_spec_is_explained(run: Callable, name: str, said: str) -> None:
    page = run("explain", name).output
    assert page.startswith(said) and page.endswith(f"more: reference/mixers/{name} in the docs\n")


@pytest.mark.parametrize(
    "word, near", [("sofmax", "softmax"), ("HEADS", "heads"), ("E-SINTAX", "E-SYNTAX")]
)
def test_an_unknown_word_names_the_nearest(run: Callable, word: str, near: str) -> None:
    refused = run("explain", word)
    said = (
        f"error: no code, word of the language or shipped mixer is {word}; did you mean `{near}`?"
    )
    assert refused.exit_code == 2 and refused.stderr.startswith(said)
    assert "`dsfc explain` lists all" in run("explain", "qqqqqqqq").stderr


def test_without_a_word_all_are_listed(run: Callable) -> None:
    listed = [line.split()[0] for line in run("explain").output.splitlines() if line[:2] == "  "]
    classes = [name.value for name in CLASSES]
    assert listed == [*sorted(CODES), *WORDS, *classes]
