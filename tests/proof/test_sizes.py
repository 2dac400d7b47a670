"""The sizes at which systems are compared."""

from __future__ import annotations

import pytest

import dsfc
from dsfc.proof.sizes import chosen


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
