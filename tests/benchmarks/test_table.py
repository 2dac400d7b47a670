"""Every row is about something that exists."""

from __future__ import annotations

from pathlib import Path

import pytest

import dsfc
from benchmarks.contender import OURS
from benchmarks.table import ROWS, Row, chosen

each = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)


def test_names_are_unique() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_rows_are_chosen_by_name_or_together() -> None:
    assert [row.name for row in chosen(["step"])] == ["step_op", "step_layer"]
    assert [row.name for row in chosen(["step_op", "scalar"])] == ["scalar", "step_op"]
    assert chosen([]) == list(ROWS)


@each
def test_the_spec_is_of_the_class_that_the_row_names(row: Row, root: Path) -> None:
    assert dsfc.load(root / "specs" / f"{row.spec}.dsf").structure.title == row.structure


@each
def test_bars_are_beside_peers_of_the_row_that_must_run(row: Row) -> None:
    peers = {peer.name: peer for peer in row.peers}
    assert OURS not in peers and len(peers) == len(row.peers)
    assert row.bars and all(not peers[bar.peer].context for bar in row.bars)


@each
def test_every_peer_says_where_it_comes_from(row: Row) -> None:
    assert all(peer.source for peer in row.peers)


@each
def test_a_quick_row_is_shorter_in_everything(row: Row) -> None:
    quick = row.quick()
    assert {**quick.sizes, "L": 0} == {**row.sizes, "L": 0}
    if row.growth is None:
        assert quick.growth is None and quick.sizes["L"] == row.sizes["L"] == 1
    else:
        assert quick.growth is not None and quick.sizes["L"] < row.sizes["L"]
        assert max(quick.growth.lengths) < max(row.growth.lengths)
    assert quick.effort.rounds < row.effort.rounds
