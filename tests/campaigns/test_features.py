"""The table of features has all cells, none failed, and running a cell again gives what it says."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest
from features import DATA, FEATURES, MIXERS, column, every, read

REFUSED = {
    ("softmax", "context parallel"): "no finite",
}
"""Cells that are refused, and a part of the reason."""


def test_every_cell_was_run_and_none_failed() -> None:
    cells = read()
    assert list(cells) == list(every()) and len(cells) == len(MIXERS) * len(FEATURES)
    assert {at for at, one in cells.items() if one["outcome"] != "green"} == set(REFUSED)
    for at, said in REFUSED.items():
        assert cells[at]["outcome"] == "refused" and said in cells[at]["said"]


@pytest.fixture
def pages(root: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """What the tables of the documentation are made with."""
    pytest.importorskip("docutils")
    folder = root / "docs" / "_ext"
    monkeypatch.syspath_prepend(str(folder))
    spec = importlib.util.spec_from_file_location("campaign_pages", folder / "campaigns.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_shows_each_cell_and_each_reason(pages: ModuleType, root: Path) -> None:
    text = pages.features(pages.read("features"))
    shown = [line for line in text.splitlines() if line.startswith("| [")]
    assert [line.split("](")[0].removeprefix("| [") for line in shown] == list(MIXERS)
    assert sum(line.count("✓") for line in shown) == len(MIXERS) * len(FEATURES) - len(REFUSED)
    assert all(said in text for said in REFUSED.values()) and "failed" not in text
    source = (root / "docs" / "reference" / "features.md").read_text(encoding="utf-8")
    assert all(f"\n| {feature} | " in source for feature in FEATURES)
    assert DATA.name in source


def test_a_cell_that_was_not_run_or_failed_is_shown(pages: ModuleType) -> None:
    cells = pages.read("features")
    gla = next(k for k, one in enumerate(cells) if one["mixer"] == "gla")
    (_, *rest), failed = cells, {**cells[gla], "outcome": "failed", "said": "an [odd] end"}
    text = pages.features([*rest[: gla - 1], failed, *rest[gla:]])
    assert Counter(text.split())["failed"] == 1 and ". an \\[odd\\] end" in text
    assert text.count("not run") == 1


@pytest.mark.full
@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("mixer", MIXERS)
def test_a_cell_run_again_is_what_the_table_says(mixer: str, feature: str) -> None:
    for module in ("transformers", "onnxruntime"):
        pytest.importorskip(module)
    (again,) = column(feature, [mixer])
    known = read()[mixer, feature]
    assert (again["outcome"], again["said"]) == (known["outcome"], known["said"])
