"""Definitions that have a value everywhere, so that no point is looked for where they have none."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.prover.total import total
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System


def mixer(output: str) -> System:
    text = f"""mixer m {{ dims n
  input u, v : n
  param a : n positive
        b : n nonneg
  state S : n
  S = sigmoid(u) * S[i-1] + u
  f = sigmoid(v)
  y = {output}
}}"""
    return SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", text))).compilation().system


@pytest.mark.parametrize(
    "output",
    [
        "S / (1 + u^2)",
        "S / a + log(a) + a^(1/3) + a^u",
        "S + log(f) + sqrt(2 - f)",
        "S / max(abs(S), exp(v))",
        "tanh(S / softplus(v))",
    ],
)
def test_ranges_show_that_a_value_is_there(output: str) -> None:
    assert total(mixer(output))


@pytest.mark.parametrize(
    "output",
    [
        "S / u",
        "S / b",
        "S / S",
        "S + log(b)",
        "S + sqrt(u)",
        "S + b^u",
        "S / f[i-1]",
        "S / sum[j < i](a * exp(u[j]))",
        "u * (1 / (v - v))",
    ],
)
def test_what_may_have_no_value_is_looked_into(output: str) -> None:
    assert not total(mixer(output))
