"""The page about export: its table is the data of what ran, and its programs run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from elsewhere import CASES, CLOSE, MIXERS, recorded


@pytest.fixture(scope="module")
def export_table(root: Path) -> Iterator[ModuleType]:
    """What the table is made with; Sphinx imports it from a folder of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(root / "docs" / "_ext"), *sys.path])
        import export_table

        yield export_table


@pytest.fixture
def page(root: Path) -> str:
    return (root / "docs/how_to/export.md").read_text(encoding="utf-8")


def test_every_case_is_right_or_refused_and_what_was_not_run_is_machine_code() -> None:
    mixers = recorded()["mixers"]
    assert tuple(mixers) == MIXERS
    for case in CASES:
        if case.to == "aoti" and "aoti" not in mixers[case.mixer]:
            continue
        came = mixers[case.mixer][case.to][case.takes]
        assert "refused" in came or 0 <= came["error"] < CLOSE, case
        assert case.to != "torch" or "error" in came, case


def test_the_table_of_the_page_is_the_data(page: str, export_table: ModuleType) -> None:
    assert page.count("```{export-table}") == 1 and "\n| " not in page
    mixers = recorded()["mixers"]
    assert export_table.read() == mixers
    text = export_table.table(mixers)
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in text.splitlines() if line.startswith("| ")]  # fmt: skip
    assert rows[0] == [
        "mixer", "torch.export", "torch.export, a step", "AOTInductor", "AOTInductor, a step",
        "ONNX", "ONNX, a step",
    ]  # fmt: skip
    of = {row[0].strip("`"): dict(zip(rows[0][1:], row[1:], strict=True)) for row in rows[2:]}
    assert tuple(of) == MIXERS
    for case in CASES:
        title = {"torch": "torch.export", "aoti": "AOTInductor", "onnx": "ONNX"}[case.to]
        cell = of[case.mixer][f"{title}, a step" if case.step else title]
        came = mixers[case.mixer].get(case.to, {}).get(case.takes)
        if came is None:
            assert cell == "not run"
        elif "refused" in came:
            assert cell == "refused" and came["refused"] in text
        else:
            assert cell == f"{came['error']:.0e}"


def test_what_is_refused_and_what_was_not_run_is_told(export_table: ModuleType) -> None:
    runs = {"whole": {"error": 1e-7}, "step": {"error": 0.0}}
    when = {"date": "2026-01-02", "versions": {"torch": "9"}}
    one = {"torch": {**runs, **when}, "onnx": {**runs, "step": {"refused": "no step"}, **when}}
    text = export_table.table({"mine": one})
    assert "| `mine` | 1e-07 | 0e+00 | not run | not run | 1e-07 | refused |" in text
    assert "- `mine`, ONNX, a step: no step\n" in text
    assert text.endswith("Run on 2026-01-02 with torch 9.\n")


PYTHON = re.compile(r"^```(?:\{code-cell\} python3|python)\n(.*?)^```$", re.M | re.S)


def started(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    environment = os.environ | {"PATH": path}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.ci
def test_a_program_of_the_page_runs_in_onnx(page: str, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    made, run, onnx = (c for c in PYTHON.findall(page) if "step" not in c and "lru" not in c)
    check = "torch.testing.assert_close(torch.from_numpy(y), layer(u))"
    program = "\n".join(["import onnxruntime", made, run, onnx, check])
    done = started([sys.executable, "-W", "ignore", "-c", program], tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.full
def test_all_programs_of_the_page_run(page: str, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    checks = """
torch.testing.assert_close(torch.from_numpy(y), layer(u))
torch.testing.assert_close(torch.from_numpy(read), turning(u))
assert exported.parts == ("x", "x_next") and x_next.shape == (3, 8, 2)
torch.save(layer.state_dict(), "ssd.pt")
"""
    program = "\n".join(["import onnxruntime", *PYTHON.findall(page)]) + checks
    done = started([sys.executable, "-W", "ignore", "-c", program], tmp_path)
    assert done.returncode == 0, done.stderr
    (command,) = re.findall(r"^```bash\n(.*?)^```$", page, re.M | re.S)
    done = started(["bash", "-c", command], tmp_path)
    assert done.returncode == 0 and done.stdout.startswith("ssd.pt2\n"), done.stderr
