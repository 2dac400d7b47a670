"""Ranges of values on a domain."""

from __future__ import annotations

import pytest

from dsfc.bounds.pair import Pair, Range
from dsfc.bounds.search import _Finder as Finder
from dsfc.expr.interval import REALS, Interval
from dsfc.expr.tree import Now, Ref, Time


def range_of(question, name: str) -> Interval:
    body = Pair(question).side(False).body(name)
    ref = Ref(name, frozenset(body.axes), body.field, Time.STATE, Now(0))
    out = Finder(Pair(question)).get(Range(False, ref))
    assert isinstance(out, Interval)
    return out


def test_a_state_of_a_decay_is_at_most_its_drive_over_what_it_loses(ask) -> None:
    question = ask("recurrent", "recurrent", "abs(u) <= 3")
    assert range_of(question, "x").high == pytest.approx(6)
    assert range_of(question, "x").low == pytest.approx(-6)


def test_a_state_that_is_only_added_to_stays_positive(ask) -> None:
    question = ask("recurrent", "recurrent", "1 <= u <= 3")
    assert range_of(question, "x").low == 1


def test_a_mean_lies_between_its_values(ask) -> None:
    assert range_of(ask("softmax", "softmax", "abs(v) <= 2"), "y") == Interval(-2.0, 2.0)


def test_a_norm_bounds_an_inner_product(ask) -> None:
    where = "abs(k) <= 1, norm[n](q) <= 1, norm[n](k) <= 1, abs(q) <= 1, abs(v) <= 1"
    short = range_of(ask("decay", "decay", where, n=16), "y")
    long = range_of(ask("decay", "decay", where.replace("norm[n](q) <= 1, ", ""), n=16), "y")
    assert short.high == pytest.approx(10)
    assert long.high == pytest.approx(40)


def test_bounds_that_exclude_each_other_are_refused(ask) -> None:
    with pytest.raises(ValueError, match="never in its bounds"):
        Pair(ask("average", "average", "λ >= 2"))


def test_a_state_without_bound_is_any_number(ask) -> None:
    assert range_of(ask("average", "average", "abs(u) <= 1"), "x") == REALS
