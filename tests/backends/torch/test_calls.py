"""Layouts of a scan's arguments: groups of axes become one axis each, and are undone."""

from __future__ import annotations

from math import prod

import pytest
import torch
from dsfc.backends.torch.grouping import regrouped, ungrouped
from hypothesis import given
from hypothesis import strategies as st

from dsfc.expr.tree import Axis

AXES = tuple(Axis(k, name) for k, name in enumerate("hknp"))
SIZE = {a: k + 2 for k, a in enumerate(AXES)}


@st.composite
def groups(draw: st.DrawFn) -> tuple[tuple[Axis, ...], ...]:
    """Some axes in any order, cut into groups; a group may be empty."""
    order = draw(st.permutations(AXES))
    cuts = sorted(draw(st.lists(st.integers(0, 4), min_size=1, max_size=3)))
    return tuple(tuple(order[a:b]) for a, b in zip([0, *cuts], cuts, strict=False))


@pytest.mark.ci
@given(groups(), st.integers(0, 2))
def test_a_group_is_one_axis_and_its_axes_again(
    found: tuple[tuple[Axis, ...], ...], lead: int
) -> None:
    axes = tuple(sorted(a for g in found for a in g))
    front = (5, 7)[:lead]
    x = torch.arange(prod(front) * prod(SIZE[a] for a in axes))
    x = x.reshape((*front, *(SIZE[a] for a in axes)))
    text = regrouped("x", axes, found, lead)
    grouped = eval(text, {"x": x})  # our own text
    assert grouped.shape == (*front, *(prod(SIZE[a] for a in g) for g in found))
    order = [axes.index(a) for g in found for a in g]
    want = x.permute((*range(lead), *(lead + k for k in order))).reshape(grouped.shape)
    assert torch.equal(grouped, want)
    back = ungrouped("y", axes, found, lead, lambda a: str(SIZE[a]))
    assert torch.equal(eval(back, {"y": grouped}), x)  # our own text
    # Nothing is done that changes nothing: a permutation in order, a group of one axis.
    in_order = order == sorted(order)
    assert (".permute(" in text) is (not in_order) and (".permute(" in back) is (not in_order)
    assert text.count(".flatten(") == sum(len(g) > 1 for g in found)
    assert text.count(".unsqueeze(") == sum(not g for g in found)


def test_groups_stand_behind_the_lead() -> None:
    h, k, n, _ = AXES
    assert regrouped("x", (h, k, n), ((h, k), (n,)), 2) == "x.flatten(2, 3)"
    assert ungrouped("x", (h, k, n), ((), (h, k), (n,)), 1, lambda a: a.name) == (
        "x.unflatten(2, (h, k)).squeeze(1)"
    )
