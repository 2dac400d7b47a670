"""Equality under conditions: labelled pairs, what is found, and what is printed."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from dsfc.check_proof.check import check, write
from dsfc.proof.equivalent import equivalent
from dsfc.proof.verdict import Conditionally

LABELS = tomllib.loads((Path(__file__).parent / "labels.toml").read_text(encoding="utf-8"))
PAIRS = [
    pytest.param(file, a, b, id=f"{file}-{a}-{b}")
    for file, table in LABELS.items()
    for a, b, _ in table.get("conditional", ())
]


@pytest.mark.parametrize("file, a, b", PAIRS)
def test_a_pair_that_is_equal_under_conditions(
    system: Callable, file: str, a: str, b: str
) -> None:
    verdict = equivalent(system(file, a), system(file, b), conditions=True)
    assert isinstance(verdict, Conditionally), verdict
    assert check(write(verdict.certificate)).claim == verdict.certificate.claim
    assert verdict.certificate.claim.conditions
