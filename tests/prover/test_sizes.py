"""The sizes at which systems are compared."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

import dsfc
from dsfc.prover.closure import Differs, close
from dsfc.prover.sizes import at_counts, chosen, enough
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import Certificate, Claim, Invariant
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.statement import state

LABELS = tomllib.loads((Path(__file__).parent / "labels.toml").read_text(encoding="utf-8"))


LEFT_OUT = ("laws", "modes", "dense")
WITHOUT_COUNT = {("rule", "with_gram"): ("n", 3)}
"""Pairs that are equal at small sizes of an axis without a count, and a size where they differ."""
LATER = ("delta", "theorems", "couplings", "members")


def pairs(kind: str) -> list:
    """Labelled pairs without laws of outer functions that are not compared otherwise.

    The tables in `LATER` have a mark.
    """
    tables = [(file, table) for file, table in LABELS.items() if file not in LEFT_OUT]
    return [
        pytest.param(file, a, b, marks=[pytest.mark.ci] * (file in LATER))
        for file, table in tables
        for a, b, _ in table.get(kind, ())
    ]


@pytest.mark.parametrize("name", ["normalized_attn", "s6", "h3", "rwkv4", "taylor_softmax"])
@pytest.mark.parametrize("least", [1, 2])
def test_every_axis_has_a_size_and_derived_ones_are_kept(name: str, least: int) -> None:
    system = dsfc.load(name).system
    sizes = dict(chosen(system, system, least))
    assert sizes.keys() == {d.axis.name for d in system.axes}
    assert min(sizes.values()) >= least
    if name == "normalized_attn":
        assert sizes["n"] * sizes["h"] == sizes["d"]


def test_copies_of_an_axis_have_its_size() -> None:
    sizes = dict(chosen(*[dsfc.load("taylor_softmax").system] * 2, 2))
    assert sizes["n_2"] == sizes["n"]


def shown(claim: Claim) -> bool:
    """Whether the kernel accepts what the closure gives, for all sizes that the claim names."""
    try:
        rows = close(state(claim, False))
        if isinstance(rows, Differs):
            return False
        check(write(Certificate(claim, Invariant(rows, False))))
    except (Rejected, Obstacle):
        return False
    return True


@pytest.mark.share(18)
@pytest.mark.parametrize("file, a, b", pairs("equal"))
def test_what_is_proved_of_all_sizes_holds_at_others(
    system: Callable, file: str, a: str, b: str
) -> None:
    left, right = system(file, a), system(file, b)
    *_, least = enough(Claim(left, right, (), chosen(left, right, 1)), False)
    assert shown(least)
    for more in least.every:
        sizes = tuple((n, k + (n == more)) for n, k in least.sizes)
        assert shown(dataclasses.replace(least, sizes=sizes))


@pytest.mark.share(18)
@pytest.mark.parametrize("file, a, b", pairs("different") + pairs("conditional"))
def test_what_differs_at_some_size_differs_at_the_counts(
    system: Callable, file: str, a: str, b: str
) -> None:
    left, right = system(file, a), system(file, b)
    *_, least = enough(Claim(left, right, (), chosen(left, right, 2)), False)
    axis, size = WITHOUT_COUNT.get((a, b), ("", 0))
    assert shown(least) == bool(axis)
    if axis:
        assert axis not in least.every and dict(least.sizes)[axis] < size
        everywhere = dataclasses.replace(least, every=(*least.every, axis))
        larger = tuple((n, size if n == axis else k) for n, k in least.sizes)
        assert not shown(everywhere) and not shown(dataclasses.replace(least, sizes=larger))


def test_the_first_sizes_to_try_are_not_below_the_given_ones(system: Callable) -> None:
    ratio = system("attention", "ratio")
    one = Claim(ratio, ratio, (), chosen(ratio, ratio, 1))
    (at_counts,) = enough(one, False)
    assert dict(at_counts.sizes)["n"] == 2 and set(at_counts.every) == {"h", "n", "p"}
    larger, least = enough(dataclasses.replace(one, sizes=(("h", 3), ("n", 1), ("p", 1))), False)
    assert (dict(larger.sizes)["h"], dict(least.sizes)["h"]) == (3, 1)


def test_an_axis_that_cannot_have_more_entries_keeps_its_own(system: Callable) -> None:
    """n = h / h has one entry, whatever h is; n = 1 is a default, and may have the count."""
    a, b = (system("further_layers", name) for name in ("square_of_sum", "sum_of_squares"))
    claim = at_counts(Claim(a, b, (), chosen(a, b, 2)), entries=False)
    assert dict(claim.sizes)["n"] == 1 and "n" not in claim.every
    a, b = (system("further_layers", name) for name in ("alone", "pairwise"))
    claim = at_counts(Claim(a, b, (), chosen(a, b, 1)), entries=False)
    assert dict(claim.sizes)["n"] > 1
