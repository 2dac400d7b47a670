"""What a mixer is, in a few lines."""

from __future__ import annotations

import pytest

import dsfc
from dsfc.api.locate import spec_names
from dsfc.api.shipped import Kind, shipped_line
from dsfc.structure.summary import summary

SAID = {
    "gla": "one decay for each key, from the token; below 1 in size, so it forgets",
    "normalized_attn": "no decay: its state keeps the sum of all it has seen",
    "retnet": "one fixed decay for each head; below 1 in size, so it forgets",
    "gateloop": "one complex decay for each head, from the token; below 1 in size, so it forgets",
    "deltanet": "a decay and a correction of low rank, from the token; of a size that its norms "
    "decide",
    "s4": "one fixed matrix; of a size that its norms decide",
    "softmax": "softmax attention: it weighs all tokens so far",
    "short_convolution": "no state: it reads the last tokens alone",
    "gsa": "K: one decay for each value channel, from the token; below 1 in size, so it forgets",
}


def said(name: str) -> list[str]:
    it = dsfc.load(name)
    return summary(it.structure, it.mixer.doc).split("\n")


@pytest.mark.parametrize("name", SAID)
def test_it_says_what_the_states_do(name: str) -> None:
    first, what, *_ = said(name)
    assert first.startswith(f"{name}: ") and what == f"  {SAID[name]}"


def test_it_says_what_a_token_costs() -> None:
    assert said("gla")[-1] == "  time linear in the length, a state of h * n * p numbers"
    assert said("softmax")[-1].startswith("  a token costs as much as there are tokens before it")
    assert said("linear_attn")[-1].endswith("and its output is divided by such a state")


@pytest.mark.full
def test_every_shipped_mixer_has_few_lines() -> None:
    for s in map(shipped_line, spec_names()):
        if s.kind is Kind.MIXER:
            assert 3 <= len(said(s.name)) <= 5, s.name
