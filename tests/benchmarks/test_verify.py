"""What `dsfc verify --fast` takes is kept for shipped specs, and is below what is promised."""

from __future__ import annotations

import json

import pytest

from benchmarks import verify
from dsfc.api.locate import shipped_names


def figures() -> dict[str, dict]:
    return json.loads(verify.FILE.read_text(encoding="utf-8"))["specs"]


@pytest.mark.ci
def test_figures_are_of_specs_that_compile() -> None:
    assert set(figures()) <= set(verify.compiled())


def test_figures_are_of_shipped_specs_and_below_10_seconds_of_work() -> None:
    found = figures()
    assert set(found) <= set(shipped_names()) and len(found) >= 30
    for name, row in found.items():
        assert row["kept"] == row["checks"] == 11, name
        assert row["processor_seconds"] < 10, name


@pytest.mark.full
def test_one_is_measured() -> None:
    row = verify.measured("qlstm")
    assert row["kept"] == row["checks"] == 11 and row["longest"] == "modes"
