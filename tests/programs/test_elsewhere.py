"""What is exported runs in a process that has neither dsfc nor the emitted module.

What came of every mixer and target is kept as data; here it comes out again.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from elsewhere import CASES, CLOSE, Case, outcome, recorded


def cases(to: str, step: bool) -> pytest.MarkDecorator:
    """Cases of a target by the names of their mixers."""
    of = [case for case in CASES if (case.to, case.step) == (to, step)]
    return pytest.mark.parametrize("case", of, ids=[case.mixer for case in of])


def check(case: Case, folder: Path) -> None:
    came = outcome(case, folder)
    kept = recorded()["mixers"][case.mixer].get(case.to, {}).get(case.takes, {"error": 0.0})
    if "refused" in kept:
        # What is refused, and why; the figures after that depend on the machine.
        assert came["refused"].split(":")[:2] == kept["refused"].split(":")[:2]
    else:
        assert came["error"] < CLOSE


@pytest.mark.ci
@pytest.mark.share(1, ci=22)
@cases("torch", step=False)
def test_a_program_of_torch_export_loads_without_the_module(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


@pytest.mark.ci
@pytest.mark.share(1, ci=0)
@cases("torch", step=True)
def test_a_step_of_torch_export_loads_without_the_module(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


@pytest.mark.ci
@pytest.mark.share(1, ci=19)
@cases("onnx", step=False)
def test_an_onnx_file_runs_without_torch(case: Case, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    check(case, tmp_path)


@pytest.mark.ci
@pytest.mark.share(1, ci=0)
@cases("onnx", step=True)
def test_a_step_in_onnx_runs_without_torch(case: Case, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    check(case, tmp_path)


@pytest.mark.full
@cases("aoti", step=False)
def test_machine_code_loads_without_the_module(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


@pytest.mark.full
@cases("aoti", step=True)
def test_machine_code_of_a_step_loads_without_the_module(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)
