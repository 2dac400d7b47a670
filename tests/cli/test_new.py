"""`dsfc new`."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from dsfc.api.pipeline import read
from dsfc.cli.new import FORMS
from dsfc.diagnostics.report import Reporter
from dsfc.limits import DEFAULT_LIMITS
from dsfc.source import Source
from dsfc.syntax.ast import ModifierUnit
from dsfc.syntax.lex import comments, legal_tokens


def test_every_starter_is_a_form(root: Path) -> None:
    assert {f.stem for f in (root / "dsfc" / "starters").glob("*.dsf")} == set(FORMS)


@pytest.mark.parametrize("form", ["gla", "mamba_block"])
def test_a_shipped_spec_is_written_under_another_name(run: Callable, form: str) -> None:
    assert run("new", "fresh", "--form", form).exit_code == 0
    fresh, shipped = (read(name).compilation().system for name in ("fresh.dsf", form))
    assert fresh.name == "fresh" and dataclasses.replace(fresh, name=form) == shipped


@pytest.mark.share(2)
@pytest.mark.parametrize("form", FORMS)
def test_a_starter_compiles_as_it_is(run: Callable, folder: Path, form: str) -> None:
    made = run("new", "fresh", "--form", form)
    assert made.exit_code == 0 and made.output.startswith("written: fresh.dsf\n")
    assert [p.name for p in folder.iterdir()] == ["fresh.dsf"]
    text = read("fresh.dsf")
    assert text.spec.units[0].name.text == "fresh" and "mine" not in text.spec.span.source.text
    for name in text.mixers:
        assert text.compilation(name).module("torch").text
    assert run("check", "--strict", "fresh.dsf").exit_code == 0
    assert run("fmt", "--check", "fresh.dsf").exit_code == 0


QUOTED = re.compile(r"`([^`]+)`")


def quoted(root: Path, form: str) -> list[str]:
    """What the comments of a starter have in backquotes."""
    text = (root / "dsfc" / "starters" / f"{form}.dsf").read_text(encoding="utf-8")
    return QUOTED.findall("\n".join(c.text for c in comments(Source("starter", text))))


@pytest.mark.parametrize("form", FORMS)
def test_every_command_that_a_starter_quotes_runs(
    run: Callable, folder: Path, root: Path, form: str
) -> None:
    run("new", "mine", "--form", form)
    for words in (w.split() for w in quoted(root, form) if w.startswith("dsfc ")):
        arguments = ["mine.dsf"] if words == ["dsfc", "check"] else []
        result = run(*words[1:], *arguments)
        assert result.exit_code == 0 and result.output, words


def test_starters_quote_commands_and_spellings_of_the_language(root: Path) -> None:
    everything = [text for form in FORMS for text in quoted(root, form)]
    assert sum(text.startswith("dsfc ") for text in everything) >= 3
    for text in everything:
        reporter = Reporter()
        legal_tokens(Source("quoted", text), DEFAULT_LIMITS, reporter)
        assert not reporter.errors, text


def test_the_variant_names_the_modifiers_that_are_shipped(root: Path) -> None:
    kinds = {name: type(read(name).spec.units[0]) for name in quoted(root, "variant")[-5:]}
    assert set(kinds.values()) == {ModifierUnit}


def test_the_modifier_and_the_attention_say_what_they_define(run: Callable, folder: Path) -> None:
    run("new", "mine", "--form", "attention")
    output = read("mine.dsf").compilation("mine").system.outputs[0]
    assert [axis.name for axis in output.axes] == ["h", "p"]
    assert "N-OUTPUT" not in run("check", "mine.dsf", "--format", "short").output


@pytest.mark.share(3)
@pytest.mark.parametrize("form", ["recurrence", "qkv", "gla", "gate", *FORMS[1:]])
def test_what_it_says_to_do_next_can_be_done(run: Callable, folder: Path, form: str) -> None:
    last = run("new", "fresh", "--form", form).output.splitlines()[-1].strip()
    commands, _, advice = last.partition(", then ")
    steps = [commands, advice] if advice.startswith("dsfc ") else [commands]
    for step in steps:
        assert run(*step.split()[1:]).exit_code == 0, step
    assert (len(steps) == 2) == (form not in ("qkv", "gate"))


@pytest.mark.parametrize("mixer", ["gla", "normalized_attn", "dlr", "gate"])
def test_a_shipped_mixer_is_a_form(run: Callable, folder: Path, mixer: str) -> None:
    assert run("new", "fresh", "--form", mixer).exit_code == 0
    assert read("fresh.dsf").spec.units[0].name.text == "fresh"
    assert run("check", "fresh.dsf").exit_code == 0


def test_what_is_no_form_is_refused_with_what_is_near(run: Callable, folder: Path) -> None:
    result = run("new", "fresh", "--form", "glaa")
    assert result.exit_code == 2 and "did you mean gla?" in result.output
    assert "dsfc list" in run("new", "fresh", "--form", "0123456").output
    assert list(folder.iterdir()) == []


def test_a_slash_makes_a_folder(run: Callable, folder: Path) -> None:
    assert "written: a/b/fresh.dsf" in run("new", "fresh", "-o", "a/b/").output
    (folder / "file").write_text("")
    refused = run("new", "fresh", "-o", "file/")
    assert refused.exit_code == 1 and "error[E-FILE]" in refused.output


def test_it_is_said_what_comes_next(run: Callable) -> None:
    result = run("new", "fresh")
    assert result.output.endswith("  dsfc check fresh.dsf, then dsfc compile fresh.dsf\n")


def test_what_exists_is_left_alone(run: Callable, spec: Callable) -> None:
    path = spec("# mine\n", "fresh.dsf")
    for out in ([], ["-o", "."], ["-o", "fresh.dsf"]):
        result = run("new", "fresh", *out)
        assert result.exit_code == 1 and "already exists; not overwritten" in result.output
    assert path.read_text() == "# mine\n"
    assert "there is no folder none" in run("new", "fresh", "-o", "none/fresh.dsf").output


@pytest.mark.parametrize("name", ["", "a b", "state", "a-b", "1a", "a.b", "a/../b", "a {} mixer b"])
def test_what_is_no_name_is_refused(run: Callable, folder: Path, name: str) -> None:
    result = run("new", name)
    assert (
        result.exit_code == 2 and "a name is letters, digits and _, a letter first" in result.output
    )
    assert list(folder.iterdir()) == []


def test_it_goes_to_standard_output(run: Callable, folder: Path) -> None:
    assert run("new", "α", "-o", "-").output.startswith("# A recurrence")
    assert list(folder.iterdir()) == []
