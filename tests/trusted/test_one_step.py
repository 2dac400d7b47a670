"""One token of a system as sums of terms with indices: what an update and an output sum over."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.trusted.claim import Claim
from dsfc.trusted.index_form import NoCount
from dsfc.trusted.one_step import OneStep, entries, nothing
from dsfc.trusted.small_model_bound import kinds_of

DELTA = "S = S[i-1] - k ⊗ (k · S[i-1]) + k ⊗ v"


def token(update: str, output: str, first: bool = False) -> OneStep:
    """One token of a mixer, along its keys; the states before are generators, or 0 at the first."""
    body = f"dims n, p\n input q, k : n; v : p\n state S : n × p\n {update}\n y = {output}"
    text = Source("m.dsf", f"mixer m {{ {body}\n}}\n")
    system = SpecText(Place(Path("m.dsf")), parse(text)).compilation("m").system
    claim = Claim(system, system, (), (("n", 2), ("p", 2)))
    old = nothing(system) if first else entries(system)
    return OneStep(claim, 0, False, kinds_of(claim), "n", old)


@pytest.mark.parametrize(
    ("update", "output", "summed"),
    [
        # Σ q_a S_ab has one index; with Σ q_a k_a k_c S_cb in it there are two.
        (DELTA, "q · S[i-1]", 1),
        (DELTA, "q · S", 2),
        (DELTA, "q · S + q · S[i-1]", 2),
        ("S = S[i-1] + k ⊗ v", "q · S", 1),
        ("S = S[i-1] + k ⊗ v", "q · S[i-1]", 1),
        (DELTA, "(q · S) * (k · S[i-1])", 3),
    ],
)
def test_an_output_sums_over_what_it_reads_of_states(update: str, output: str, summed: int) -> None:
    assert token(update, output).output().summed == summed


def test_an_update_sums_over_what_it_reads_of_the_states_before() -> None:
    assert token(DELTA, "q · S").after("S").summed == 1
    assert token("S = S[i-1] + k ⊗ v", "q · S").after("S").summed == 0
    with pytest.raises(NoCount, match="`R` is kept beside the states"):
        token(DELTA, "q · S").after("R")


def test_of_states_that_are_0_nothing_is_known_to_be_left() -> None:
    """Before the first token there are no terms, which any array hits."""
    system = token(DELTA, "q · S", first=True)
    (n,) = [a for b in system.system.blocks for a in b.axes if a.name == "n"]
    assert system.after("S").hits(n) and not token(DELTA, "q · S").after("S").hits(n)
