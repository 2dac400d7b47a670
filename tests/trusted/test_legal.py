"""Sizes of a claim keep what both mixers declare of their axes."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.prover.equivalent import equivalent
from dsfc.prover.verdict import AtSizes
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import Certificate, Claim, Invariant, Same, Witness
from dsfc.trusted.legal import NUMBERS, SMALL, _options, facts, kept
from dsfc.trusted.rejected import Rejected

SHARED = """
mixer first {{ dims {dims}
  input u : d
  param w : d -> r
  y = u * sum[r]({own} * ones[r])
}}
"""
DIMS = "d, r = d / 16"


def mixer(dims: str = DIMS, own: str = "1") -> System:
    text = SHARED.format(dims=dims, own=own)
    return SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", text))).compilation().system


A, TWICE = mixer(), mixer(own="2")


def different(d: int, r: int, b: System = TWICE, a: System = A) -> str:
    """What the kernel says of a point of all ones, at which the outputs are apart."""
    one = (1, 1, 0, 1)
    values = (("u", (one,) * d), ("w", (one,) * d * r))
    claim = Claim(a, b, (), (("d", d), ("r", r)), equal=False)
    try:
        check(write(Certificate(claim, Witness(1, values, 0, (0,)))))
    except Rejected as e:
        return str(e)
    return ""


def test_a_witness_has_sizes_that_a_spec_can_have() -> None:
    """d = 1 is excluded by r = d / 16, whatever is computed there."""
    assert different(16, 1) == ""
    assert different(1, 1) == "the sizes do not keep r = 1/16 * d"
    assert different(32, 1) == "the sizes do not keep r = 1/16 * d"


@pytest.mark.parametrize("swapped", [False, True])
def test_what_either_of_the_two_declares_is_kept(swapped: bool) -> None:
    pair = (A, mixer("d, r", "2"))
    a, b = pair[::-1] if swapped else pair
    assert different(16, 1, b, a) == ""
    assert different(2, 2, b, a) == "the sizes do not keep r = 1/16 * d"
    free = mixer("d, r"), mixer("d, r", "2")
    assert different(2, 2, *free[::-1]) == ""


def test_a_number_is_a_default_and_no_fact() -> None:
    assert different(1, 3, mixer("d = 4, r = 2", "2"), mixer("d = 4, r = 2")) == ""


def equal(
    sizes: tuple[tuple[str, int], ...], every: tuple[str, ...], b: System = A, a: System = A
) -> str:
    try:
        check(write(Certificate(Claim(a, b, (), sizes, every=every), Same())))
    except Rejected as e:
        return str(e)
    return ""


def test_an_equality_speaks_of_sizes_that_there_are() -> None:
    """Sizes of axes that it has for all may be any; those of others have some that go with them."""
    small = (("d", 1), ("r", 1))
    assert equal(small, ("d", "r")) == equal(small, ("d",)) == ""
    assert equal(small, ()) == "the sizes do not keep r = 1/16 * d"
    assert "there are no sizes that keep" in equal(small, ("r",))
    other = dataclasses.replace(A, axes=mixer("d, r = d").axes)
    both = "there are no sizes that keep r = 1/16 * d and r = d"
    assert equal(small, ("d", "r"), other) == both


def test_an_axis_has_one_size() -> None:
    """Two would be printed, and the last one alone looked at."""
    free = mixer("d, r")
    assert equal((("d", 1), ("r", 1)), (), free, free) == ""
    assert equal((("d", 1), ("r", 7), ("r", 1)), (), free, free) == "an axis has two sizes"


def test_sizes_that_are_derived_in_turn_are_found() -> None:
    """One mixer derives n of d, the other d of n."""
    a, b = mixer("d, h = 4, r = d / h"), mixer("d = 2 * r, r")
    assert [f.text for f in facts(a, b)] == ["r = d / h", "d = 2 * r"]
    assert kept(a, b, {}, 1) == {"d": 2, "h": 2, "r": 1}
    assert kept(a, b, {"h": 4}, 1) is None
    assert kept(A, A, {}, 1) == {"d": 16, "r": 1}
    assert kept(A, A, {}, 2) == {"d": 32, "r": 2}
    assert kept(A, A, {}, 2, ("r",)) == {"d": 16, "r": 1}
    assert kept(a, a, {"h": 4, "r": 64}, 1) == {"d": 256, "h": 4, "r": 64}
    assert kept(mixer("d, r = (d - 3) / 2"), A, {}, 1) is None
    assert kept(mixer("d, r = d^(1/2)"), mixer("d, r"), {"r": 3}, 1) == {"d": 9, "r": 3}


def test_sizes_to_try_are_small_ones_times_the_numbers_that_are_there() -> None:
    small = set(range(1, SMALL + 1))
    assert _options((), {}) == _options((), {"h": 1}) == sorted(small)
    assert _options((), {"h": 3, "n": 5}) == sorted({k * f for k in small for f in (1, 3, 5, 15)})
    assert _options(facts(A, A), {}) == sorted(small | {16 * k for k in small})
    # Of many numbers the least are multiplied.
    many = {f"n{k}": k for k in range(11, 11 + NUMBERS + 2)}
    product = 11 * 12 * 13 * 14 * 15
    assert max(_options((), many)) == SMALL * product
    assert {11, 15} <= set(_options((), many)) and 17 not in _options((), many)


RENAMED = """
mixer renamed {{ dims n, m
  input u : n;  v : m
  y = {value}
}}
"""


def test_an_axis_that_is_renamed_to_another_has_its_size() -> None:
    """With three entries of v and two of u, one of u is read that is not there."""
    a, b = (
        SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", RENAMED.format(value=value))))
        .compilation()
        .system
        for value in ("sum[m](max(rename[n, m](u), v))", "sum[n](max(rename[m, n](v), u))")
    )
    assert [f.text for f in facts(a, b)] == ["n = m"]
    assert kept(a, b, {"n": 2}, 1) == {"m": 2, "n": 2} and kept(a, b, {"m": 3, "n": 2}, 1) is None
    claim = Claim(a, a, (), (("m", 3), ("n", 2)))
    with pytest.raises(Rejected, match="the sizes do not keep n = m"):
        check(write(Certificate(claim, Invariant((), entries=False))))
    # Nothing larger is looked at than there is.
    found = equivalent(a, b)
    assert isinstance(found, AtSizes) and dict(found.fixed) == {"m": 2, "n": 2}
