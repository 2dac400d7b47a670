"""`dsfc show`."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

import dsfc
from dsfc.source import Source
from dsfc.syntax.parse import parse


def test_the_system_in_index_form_by_default(run: Callable) -> None:
    result = run("show", "normalized_attn")
    assert result.exit_code == 0
    assert "    S = S[i-1] + k ⊗ v\n" in result.output
    assert "  y : h × p = q · S / eta\n" in result.output
    assert "structure of normalized_attn\n  class       scalar (ID)\n" in result.output


@pytest.mark.parametrize("stage", ["ast", "mixer", "system", "structure", "plan"])
def test_every_stage_is_text_and_json(run: Callable, stage: str) -> None:
    plain = run("show", "s6", "--stage", stage)
    document = run("show", "s6", "--stage", stage, "--form", "json")
    assert plain.exit_code == document.exit_code == 0
    assert plain.output.strip() and not plain.output.endswith("\n\n")
    json.loads(document.output)


def test_the_tree_is_shown_as_canonical_text(run: Callable) -> None:
    shown = run("show", "s6", "--stage", "ast").output
    assert parse(Source("shown", shown)) == dsfc.load("s6").spec


def test_the_adjoint_is_a_system(run: Callable) -> None:
    result = run("show", "normalized_attn", "--stage", "adjoint")
    assert result.exit_code == 0
    assert "backward" in result.output


def test_the_module_is_what_compile_writes(run: Callable) -> None:
    shown = run("show", "s6", "--stage", "module")
    assert shown.exit_code == 0
    assert shown.output == run("compile", "s6", "-o", "-").output


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["s6", "retnet"],
        ["s6", "--stage", "kernel"],
        ["s6", "--form", "svg"],
        ["s6", "--gauge", "mine"],
        ["s6", "--stage", "plan", "--form", "latex"],
        ["s6", "--stage", "plan", "--gauge", "paper"],
        ["s6", "--stage", "module", "--form", "json"],
    ],
)
def test_wrong_usage(run: Callable, args: list[str]) -> None:
    assert run("show", *args).exit_code == 2


def test_mistakes_go_to_standard_error(run: Callable) -> None:
    result = run("show", "lstm")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "error[E-NONLINEAR-STATE]" in result.stderr
