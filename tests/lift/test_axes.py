"""Axes are split by views and paired by operations; two axes of one tensor stay two."""

from __future__ import annotations

import pytest

from dsfc.lift.axes import Axes, Axis, Batch, Mismatch, Time, regroup, resolve, resolved


def test_a_view_splits_an_axis_in_every_tensor_that_has_it() -> None:
    axis = Axis(12)
    (_, _, heads, keys) = regroup(((Batch(5),), (Time(7),), (axis,)), (5, 7, 3, 4))
    assert resolve(axis) == (*heads, *keys)
    assert [a.size for a in resolve(axis)] == [3, 4]


def test_a_view_may_join_batch_and_time() -> None:
    layout = ((Batch(5),), (Time(7),), (Axis(3),))
    assert regroup(layout, (35, 3))[0] == (Batch(5), Time(7))


def test_no_view_cuts_time() -> None:
    with pytest.raises(Mismatch):
        regroup(((Time(7),), (Axis(6),)), (6, 7))


def test_pairing_splits_the_longer_axis() -> None:
    axes, whole, parts = Axes(), Axis(6), (Axis(2), Axis(3))
    assert axes.pair((whole,), parts) == []
    assert resolved((whole,)) == resolved(parts)


def test_two_axes_of_one_tensor_stay_two() -> None:
    axes, a, b = Axes(), Axis(4), Axis(4)
    axes.note(((a,), (b,)))
    assert axes.pair((a,), (b,)) == [(a, b)]
    assert resolve(a) != resolve(b)
