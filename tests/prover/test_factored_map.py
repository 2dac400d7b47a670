"""A map of one mixer as two of another, one after the other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.prover.closure import Differs, close
from dsfc.prover.factored_map import factored_map
from dsfc.prover.sizes import modest
from dsfc.prover.subsumes import subsumes
from dsfc.prover.verdict import Instance
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.trusted.alpha_rename import alpha_rename
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import Claim
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.statement import state

TEXT = """
mixer one {{ dims d, h, n
  input u : d;  v : h × n
  param w : d -> h
        b : h
  state s : h × n
  s = sigmoid(w u + b) * s[i-1] + v
  y = s
}}
mixer two {{ dims d, h, n, r{}
  input u : d;  v : h × n
  param W_1 : d -> r
        W_2 : r -> h × n
        b   : h × n
  state s : h × n
  s = sigmoid({}) * s[i-1] + v
  y = s
}}
"""
WHOLE = "W_2 W_1 u + b"


def pair(size: str, gate: str) -> tuple[System, System]:
    text = TEXT.format(size, gate)
    read = SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", text)))
    return read.compilation("one").system, read.compilation("two").system


@pytest.mark.share(2)
@pytest.mark.parametrize("size", ["", " = 2 * h"])
def test_a_map_goes_through_an_axis_that_has_room_for_it(size: str) -> None:
    a, b = pair(size, WHOLE)
    found = subsumes(a, b, (), True)
    assert isinstance(found, Instance)
    assert "W_2" in {c.solved.partition("[")[0] for c in found.certificate.claim.conditions}
    check(write(found.certificate))
    claim = found.certificate.claim
    # Each value is needed: an entry that is another one is another map.
    wrong = next(c for c in claim.conditions if c.solved.startswith("W_2"))
    for conditions in (
        tuple(replace(c, polynomial=((c.polynomial[0][0], 2), *c.polynomial[1:]))
              if c.solved == "W_2[0,0,0]" else c for c in claim.conditions),
        tuple(c for c in claim.conditions if c is not wrong),
    ):  # fmt: skip
        changed = replace(found.certificate, claim=replace(claim, conditions=conditions))
        with pytest.raises(Rejected):
            check(write(changed))


@pytest.mark.parametrize(
    "gate, why",
    [
        ("W_2 W_1 u", "no bias"),
        ("W_2 W_1 u[i-1] + b", "a token late"),
        ("W_2 relu(W_1 u) + b", "what is cut off"),
    ],
)
def test_near_misses_are_no_cases(gate: str, why: str) -> None:
    a, b = pair("", gate)
    claims = list(factored_map(Claim(a, b, (), modest(a, b), case=True)))
    assert claims
    for at in claims:
        assert isinstance(close(state(alpha_rename(at), False)), Differs), why


def test_there_is_no_value_where_the_axis_has_no_room() -> None:
    a, b = pair("", WHOLE)
    assert not list(factored_map(Claim(a, b, (), modest(a, b, {"h": 2, "r": 1}), case=True)))
