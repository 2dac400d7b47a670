"""Compiling a row's spec, and calling what came out as the row does."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from benchmarks import emitted
from benchmarks.contender import OURS, Work
from benchmarks.process import Conditions, MeasurementError, Worker
from benchmarks.table import ROWS, Row
from benchmarks.worker import Stage
from dsfc.validate.compare import relative_error


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emitted, "MODULES", tmp_path)


@pytest.mark.share(6)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_runs_its_module_or_says_why_it_cannot(row: Row) -> None:
    try:
        module = emitted.compile_spec(row.spec)
    except emitted.UnsupportedError as why:
        assert row.structure in str(why)
        return
    job = {"row": row.name, "module": str(module), "quick": True, "length": 80}
    stage = Stage.of(job)
    tensors, cotangent = stage.tensors()
    wide = {k: v.to(torch.promote_types(v.dtype, torch.float64)) for k, v in tensors.items()}
    got = stage.ours(tensors).results(tensors, cotangent)
    want = stage.ours(tensors, "recurrent").results(wide, cotangent.double())
    assert (
        set(got)
        == set(want)
        == {"y", *(f"d{name}" for name in tensors)} - {f"d{name}" for name in row.work.for_peers}
    )
    assert max(relative_error(got[name], want[name]) for name in want) <= row.tolerance


def test_a_recurrence_with_other_arguments_is_refused() -> None:
    module = emitted.load(emitted.compile_spec("rg_lru"))
    with pytest.raises(TypeError, match="takes v, g, S"):
        emitted.recurrence(module)(v=torch.zeros(1, 2, 3), decay=torch.zeros(1, 2, 3))


@pytest.mark.full
def test_a_process_runs_when_told_and_says_what_went_wrong() -> None:
    module = str(emitted.compile_spec("rg_lru"))
    conditions = Conditions(threads=1, quick=True)
    job = {"job": "serve", "row": "elementwise", "module": module}
    with Worker(conditions, contender=OURS, **job) as worker:
        assert worker.answer() == {"ready": True}
        assert worker.run(Work.TRAINING).seconds > 0
    with Worker(conditions, contender="nobody", **job) as worker:
        with pytest.raises(MeasurementError, match="nobody"):
            worker.answer()
