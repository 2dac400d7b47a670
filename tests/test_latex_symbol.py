"""Symbols of LaTeX: what papers name a quantity by, and nothing that could be markup."""

from __future__ import annotations

import pytest

from dsfc.latex_symbol import Symbol, parsed_symbol


@pytest.mark.parametrize(
    ("latex", "parts"),
    [
        ("S", ("S", "", "")),
        ("W_Q", ("W", "Q", "")),
        (r"\Lambda_1", (r"\Lambda", "1", "")),
        (r"\bar{W}_\Delta", (r"\bar{W}", r"\Delta", "")),
        (r"\boldsymbol{\alpha}", (r"\boldsymbol{\alpha}", "", "")),
        (r"\tilde{\mathbf{x}}", (r"\tilde{\mathbf{x}}", "", "")),
        (r"k_{h, 1}^{\prime}", ("k", "h, 1", r"\prime")),
        (r"W^\top", ("W", "", r"\top")),
        (r"k^{(h)}_1", ("k", "1", "(h)")),
        (r"(\log \Lambda)_{\mathrm{re}}", (r"(\log \Lambda)", r"\mathrm{re}", "")),
    ],
)
def test_a_symbol_is_a_letter_with_what_stands_below_and_above(
    latex: str, parts: tuple[str, str, str]
) -> None:
    assert parsed_symbol(latex) == Symbol(*parts)


@pytest.mark.parametrize(
    "latex",
    [
        "",
        "ab",
        "two words",
        "x_",
        "x_a_b",
        "x_{a_b}",
        "x}",
        "{x",
        "$x$",
        "<b>",
        "x&y",
        "x%",
        "α",
        r"\alphabet",
        r"\exp",
        r"\href{javascript:0}{x}",
        r"\mathrm{<script>}",
        r"\text{x}",
        r"\bar",
        r"\\",
        "x_t h",
    ],
)
def test_nothing_else_is_one(latex: str) -> None:
    assert parsed_symbol(latex) is None


def test_a_long_text_that_is_no_symbol_is_read_once() -> None:
    assert parsed_symbol("x_{" + r"\bar{a}(a)\hat{\mathbf{b}}" * 200 + "!}") is None
    assert parsed_symbol(r"\bar{" + r"\mathbf{a}" * 200) is None


def test_indices_stand_behind_the_symbol_s_own() -> None:
    assert Symbol("S").at() == "S" and Symbol("S").at("t-1") == "S_{t-1}"
    assert Symbol("W", "Q").at("t") == "W_{Q, t}"
    assert Symbol("k", "", "(h)").at("t") == "k_{t}^{(h)}"
