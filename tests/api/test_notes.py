"""Notes about what is right and may not be meant: none about shipped specs but on softmax."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsfc.api.locate import Place, shipped_names
from dsfc.api.notes import notes
from dsfc.api.pipeline import SpecText, read
from dsfc.diagnostics.report import DiagnosticError
from dsfc.source import Source
from dsfc.syntax.parse import parse

NOT_LINEAR = {"lstm", "slstm"}


@pytest.mark.share(6)
@pytest.mark.parametrize("name", shipped_names())
def test_shipped_specs_have_no_note_of_a_mistake(name: str) -> None:
    text = read(name)
    for mixer in text.mixers:
        try:
            said = notes(text.compilation(mixer))
        except DiagnosticError as error:
            assert name in NOT_LINEAR or {d.code for d in error.diagnostics} == {"E-NO-OUTPUT"}
        else:
            assert {d.code for d in said} <= ({"N-CACHE"} if name == "softmax" else set())


def said_of(text: str, name: str | None = None) -> dict[str, str]:
    """The notes about a mixer of a text, by code."""
    spec = SpecText(Place(Path("mine.dsf")), parse(Source("mine.dsf", text)))
    return {d.code: d.message for d in notes(spec.compilation(name))}


def state_space(params: str, output: str = "Re(sum[n](C * x))") -> str:
    return (
        f"mixer mine {{\n dims d, n\n input u : d\n param a : n unit\n param {params}\n"
        f" state x : d × n complex\n x = a * x[i-1] + B * u\n y = {output}\n}}\n"
    )


def test_parameters_that_training_never_moves_are_noted() -> None:
    said = said_of(state_space("B, C : d × n complex"))
    assert said["N-START"].startswith("`B` and `C` start at 0, where the gradient is 0 too")
    skip = "B, C : d × n complex\n param D : d"
    assert said_of(state_space(skip, "Re(sum[n](C * x)) + D * u"))["N-START"].startswith(
        "`B` and `C` start"
    )


@pytest.mark.parametrize(
    ("params", "output"),
    [
        ("B : d × n complex;  C : d × n complex ~ normal(0, 1)", "Re(sum[n](C * x))"),
        ("B : d × n complex = 1;  C : d × n complex", "Re(sum[n](C * x))"),
        ("B : d × n complex;  C : d × n complex", "Re(sum[n]((C + 1) * x))"),
        ("B, C : d × n complex", "Re(sum[n](exp(C) * x))"),
        ("B, C : d × n complex", "Re(sum[n](C * x)) + Re(sum[n](C)) * u"),
    ],
)
def test_a_factor_that_is_not_zero_lets_the_others_train(params: str, output: str) -> None:
    assert "N-START" not in said_of(state_space(params, output))


def test_a_misspelt_override_is_noted_with_the_name_that_was_meant() -> None:
    said = said_of("mixer dead extends gla { alpa = sigmoid(W_2 W_1 u) }")
    assert said == {"N-UNREAD": "nothing reads `alpa`; did you mean `α`?"}
    assert said_of("mixer live extends gla { α = sigmoid(W_2 W_1 u) }") == {}


def test_what_another_mixer_or_a_claim_of_the_text_reads_is_not_idle() -> None:
    base = "mixer base { dims d; input u : d; param w : d; g = w * u; y = u }\n"
    assert said_of(base) == {"N-UNREAD": "nothing reads `g`"}
    assert said_of(base + "mixer more extends base { y = g }", "base") == {}
    assert said_of(base.replace("y = u", "y = u; claim g == g")) == {}
    unread = base.replace("g = w * u; ", "")
    assert said_of(unread) == {"N-UNREAD": "nothing reads `w`"}
