"""Pictures of results: every row is in them, and bars that differ a thousandfold are all seen."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from benchmarks import record
from benchmarks.contender import Work
from benchmarks.record import Document

pytest.importorskip("matplotlib")

from benchmarks import plots


@pytest.fixture(scope="module")
def document(root: Path) -> Document:
    found = record.read(root / "benchmarks" / "results" / "amd-epyc-2-threads.json")
    assert found is not None
    return found


@pytest.mark.full
def test_every_row_has_a_line_of_panels(document: Document, tmp_path: Path) -> None:
    figure = plots._peers(document["rows"])
    assert len(figure.axes) == 3 * len(document["rows"])
    titles = [axis.get_title(loc="left").split(":")[0] for axis in figure.axes[::3]]
    assert titles == [row["name"] for row in document["rows"]]
    made = plots.draw(document, tmp_path / "results.json")
    assert made and all(path.stat().st_size > 10_000 for path in made)


def test_a_row_without_memory_has_an_empty_panel(document: Document) -> None:
    row = copy.deepcopy(document["rows"][0])
    row["memory"] = {}
    forward, _, memory = plots._peers([row]).axes
    assert forward.patches and not memory.patches and not memory.axison


def test_bars_that_differ_a_thousandfold_are_all_seen(document: Document) -> None:
    row = copy.deepcopy(document["rows"][0])
    peer = next(name for name in row["seconds"] if name != "dsfc")
    ours = row["seconds"]["dsfc"][Work.TRAINING.value]
    row["seconds"][peer][Work.TRAINING.value] = [1000 * s for s in ours]
    forward, training, _ = plots._peers([row]).axes
    assert (forward.get_xscale(), training.get_xscale()) == ("linear", "log")
    low, high = training.get_xlim()
    for bar in training.patches:
        assert low < bar.get_width() < high
