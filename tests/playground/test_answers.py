"""The answers that the page gets from the compiler are those of the command line."""

from __future__ import annotations

import json
from html import unescape

import pytest

from dsfc.api.locate import shipped_names
from dsfc.api.pipeline import load, read

GLA = read("gla").spec.span.source.text


def ask(playground, name: str, **arguments):
    answer = json.loads(playground.answer(json.dumps({"ask": name, **arguments})))
    assert "fault" not in answer, answer["fault"]
    return answer["value"]


def test_a_text_of_ones_own_is_compiled_as_the_shipped_one(playground) -> None:
    assert ask(playground, "module", text=GLA) == {
        "file": "gla.py",
        "text": load("gla").module().text,
    }
    other = ask(playground, "module", text=GLA.replace("1/16", "1/8"))
    assert "^(1/8)" in other["text"]


def test_the_last_mixer_of_a_text_is_meant(playground) -> None:
    text = f"{GLA}\nmixer mine extends gla {{\n  α = sigmoid(b_α)\n}}\n"
    assert ask(playground, "module", text=text)["file"] == "mine.py"
    assert ask(playground, "system", text=text)["name"] == "mine"


def test_matrices_are_formulas_in_both_gauges(playground) -> None:
    text = read("normalized_attn").spec.span.source.text
    lowered, paper = (f["mathml"] for f in ask(playground, "system", text=text)["forms"])
    for mathml in (lowered, paper):
        assert mathml.startswith("<math") and "Λ" in unescape(mathml)
    assert lowered != paper
    assert len(ask(playground, "system", text=GLA)["forms"]) == 1


def test_mistakes_have_place_code_and_hint(playground) -> None:
    wrong = GLA.replace("sigmoid", "sigmod")
    for question in ("system", "module", "spectra"):
        assert ask(playground, question, text=wrong) is None
    (problem,) = ask(playground, "check", text=wrong)["diagnostics"]
    assert problem["code"].startswith("E-")
    line = next(k for k, row in enumerate(wrong.splitlines(), 1) if "sigmod" in row)
    assert problem["span"]["start"]["line"] == line
    assert problem["nearest"] == "sigmoid" or "sigmoid" in (problem["hint"] or "")


@pytest.mark.parametrize("text", ["", "mixer", "# nothing", "mixer ⊗ {", "\x00", "mixer a { y = "])
def test_no_text_is_a_fault(playground, text: str) -> None:
    assert ask(playground, "check", text=text)["diagnostics"]
    assert ask(playground, "module", text=text) is None


@pytest.mark.ci
def test_a_comparison_is_that_of_the_command_line(playground) -> None:
    text = GLA.replace("mixer gla", "mixer mine")
    answer = ask(playground, "equiv", text=text, other="gla", conditions=False)
    assert answer["code"] == 0 and answer["text"].startswith("mine = gla: proved")
    wrong = ask(playground, "equiv", text="mixer mine {", other="gla", conditions=False)
    assert wrong["code"] == 1 and "error[E-SYNTAX]" in wrong["text"]
    refused = playground.answer(
        json.dumps({"ask": "equiv", "text": text, "other": "/etc/x.py:A", "conditions": False})
    )
    assert "no shipped spec" in json.loads(refused)["fault"]


@pytest.mark.full
def test_all_shipped_specs_are_listed(playground) -> None:
    listed = ask(playground, "gallery")["specs"]
    assert [s["name"] for s in listed] == list(shipped_names())
    assert {"per_key", "low_rank", "lti"} <= {s["kind"] for s in listed}


def test_a_spectrum_is_told_in_words_and_drawn(playground) -> None:
    answer = ask(playground, "spectra", text=read("retnet").spec.span.source.text)
    (state,), (picture,) = answer["states"], answer["pictures"]
    assert state["state"] in picture["states"] and picture["svg"].startswith("<svg")
    assert "|λ| from 0.9688 to 0.9961, the same at every token" in picture["said"]
    fixed = ask(playground, "spectra", text=read("separable").spec.span.source.text)
    assert fixed["pictures"] == []
