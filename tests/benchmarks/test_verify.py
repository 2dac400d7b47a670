"""What `dsfc verify --fast` takes is kept for shipped specs, and is below what is promised."""

from __future__ import annotations

import json

import pytest

from benchmarks import verify


def test_figures_are_of_shipped_specs_and_below_10_seconds_of_work() -> None:
    found = json.loads(verify.FILE.read_text(encoding="utf-8"))["specs"]
    assert set(found) <= set(verify.compiled()) and len(found) >= 30
    for name, row in found.items():
        assert row["kept"] == row["checks"] == 11, name
        assert row["processor_seconds"] < 10, name


@pytest.mark.ci
def test_one_is_measured() -> None:
    row = verify.measured("qlstm")
    assert row["kept"] == row["checks"] == 11 and row["longest"] == "modes"
