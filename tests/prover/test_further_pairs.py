"""Pairs as one asks them who reads a paper beside another: how many are decided, and as what.

The labels of further.toml were decided by hand before the prover saw the pairs. A verdict that
contradicts one is wrong; "unknown" is not, but the few that there are have their reason here, so
that a change of them is seen.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from dsfc.prover.equivalent import equivalent
from dsfc.prover.subsumes import subsumes
from dsfc.prover.verdict import (
    Conditionally,
    Equal,
    Instance,
    NotAnInstance,
    ProvedWhereDefined,
    Refuted,
    Unknown,
)
from dsfc.system.ir import System
from dsfc.trusted.check import check, write

LABELS = tomllib.loads((Path(__file__).parent / "further.toml").read_text(encoding="utf-8"))

UNDECIDED = {
    (
        "decay_past",
        "decay_gauged",
    ): "a state of products that starts at `first` is not known positive",
    (
        "decay_gauged",
        "token_gauge",
    ): "a state of products that starts at `first` is not known positive",
    ("turning", "adding"): "no point is evaluated where i stands in an exponent",
    ("softmax_layer", "softmax_shifted"): "a sum over the past without a finite state",
    (
        "decay_logistic",
        "decay_doubly",
    ): "the logarithm of softplus(-b), which is not known positive",
    ("decay_fixed", "decay_doubly"): "the logarithm of log(32 / 31), which is not known positive",
    ("shifted_keys", "filtered_keys"): "the filter may have any number of taps",
}
"""Pair → what no rule says of it."""


def decide(kind: str, a: System, b: System) -> object:
    """What the prover says of a pair that is asked about as its kind is."""
    if kind in ("case", "no_case"):
        return subsumes(a, b, (), True)
    return equivalent(a, b, conditions=kind == "conditional")


EXPECTED = {
    "equal": Equal,
    "different": Refuted,
    "conditional": Conditionally,
    "case": Instance,
    "no_case": NotAnInstance,
}

ROWS = [
    (file, kind, a, b)
    for file, table in LABELS.items()
    for kind, rows in table.items()
    for a, b, _ in rows
]


def test_two_of_five_pairs_at_least_are_equal_or_cases_and_few_are_undecided() -> None:
    alike = sum(kind in ("equal", "conditional", "case") for _, kind, *_ in ROWS)
    assert len(set(ROWS)) == len(ROWS) >= 140 and alike >= 0.4 * len(ROWS)
    assert set(UNDECIDED) <= {(a, b) for *_, a, b in ROWS}
    assert len(UNDECIDED) <= 0.05 * len(ROWS)


@pytest.mark.ci
@pytest.mark.share(1, ci=72)
@pytest.mark.parametrize("file, kind, a, b", ROWS, ids=lambda value: value)
def test_a_pair_is_decided_as_labelled(
    system: Callable, file: str, kind: str, a: str, b: str
) -> None:
    found = decide(kind, system(file, a), system(file, b))
    if (a, b) in UNDECIDED:
        # A refutation stands where conditions were asked for and none were found.
        assert isinstance(found, Refuted if kind == "conditional" else Unknown), found
        return
    assert isinstance(found, EXPECTED[kind] | ProvedWhereDefined), found
    assert kind == "equal" or not isinstance(found, ProvedWhereDefined)
    check(write(found.certificate))
