"""`dsfc doctor`."""

from __future__ import annotations

import importlib
import json
import subprocess
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

from dsfc.emit.backend import load_backend

doctor = importlib.import_module("dsfc.cli.doctor")
"""The module; in `dsfc.cli` its name is the command's."""

TORCH = {"version": "2.13.0", "threads": 2, "platform": "cuda", "devices": []}
GCC = {
    "outcome": "ok",
    "figure": "/usr/bin/gcc, gcc 12.2.0; OpenMP; kernels in .cache/dsfc",
}
H200 = ["NVIDIA H200", 9, 0, 150 << 30]
A100 = ["NVIDIA A100", 8, 0, 80 << 30]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes PyTorch and Triton answer as told; `None` breaks them."""

    def answer(
        torch: object = TORCH,
        triton: object = "3.9.0",
        numpy: str = "2.4.0",
        compiler: object = GCC,
    ) -> None:
        installed = {"numpy": numpy, "torch": "any", "triton": "any"}

        def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
            asked_torch = "import json, torch" in command[-1]
            found = torch if asked_torch else {"version": triton}
            if "compiler()" in command[-1]:
                return subprocess.CompletedProcess(command, 0, json.dumps(compiler), "")
            if (torch if asked_torch else triton) is None:
                said = "Traceback\nImportError: libcudart.so.12 is missing\n"
                return subprocess.CompletedProcess(command, 1, "", said)
            return subprocess.CompletedProcess(command, 0, json.dumps(found), "")

        monkeypatch.setattr(subprocess, "run", run)
        monkeypatch.setattr(doctor, "version", lambda name: installed.get(name, "1.0"))

    return answer


def findings(run: Callable) -> list[tuple[str, str, str]]:
    body = json.loads(run("doctor", "--format", "json").output)
    assert body["format"] == 1
    return [(f["outcome"], f["what"], f["figure"]) for f in body["findings"]]


@pytest.mark.ci
def test_this_machine_is_well(run: Callable) -> None:
    result = run("doctor")
    assert result.exit_code == 0, result.output
    assert f"dsfc         {version('dsfc')}; Python" in result.output
    assert f"torch {version('torch')}" in result.output


def test_a_machine_without_a_gpu(run: Callable, machine: Callable) -> None:
    machine()
    assert findings(run)[3:] == [
        ("ok", "run modules", "torch 2.13.0, 2 threads"),
        ("missing", "GPU", "no CUDA or ROCm device; modules run on the CPU"),
        ("ok", "C compiler", GCC["figure"]),
        ("ok", "kernels", "triton 3.9.0"),
    ]


def test_a_known_fault_of_the_device_is_named(run: Callable, machine: Callable) -> None:
    machine({**TORCH, "devices": [H200]}, "3.6.0", "2.3.5")
    *_, device, _, _, fault, triangle = findings(run)
    assert device == ("ok", "GPU", "NVIDIA H200, cuda 9.0, 150 GiB")
    assert fault[:2] == triangle[:2] == ("fault", "kernels")
    assert "Triton 3.7.1 has it mended" in fault[2] and "mended" not in triangle[2]
    assert run("doctor").exit_code == 1


def test_an_interpreter_that_breaks_is_named(run: Callable, machine: Callable) -> None:
    machine(triton="3.6.0")
    assert ("fault", "interpreter") in [found[:2] for found in findings(run)]
    machine(triton="3.6.0", numpy="2.3.5")
    assert "fault" not in [found[0] for found in findings(run)]


def test_a_package_that_does_not_import_is_a_finding(run: Callable, machine: Callable) -> None:
    machine(torch=None)
    said = "torch cannot be imported: ImportError: libcudart.so.12 is missing"
    assert findings(run)[-1] == ("fault", "run modules", said)
    machine(triton=None)
    assert findings(run)[-1][:2] == ("fault", "kernels")


@pytest.mark.parametrize(
    ("where", "architecture", "triton", "has"),
    [
        ("cuda", 90, "3.6.0", True),
        ("cuda", 90, "3.7.0", True),
        ("cuda", 90, "3.7.1", False),
        ("cuda", 90, "3.7.1+git12", False),
        ("cuda", 90, "3.3.1", False),
        ("cuda", 80, "3.6.0", False),
        ("hip", 90, "3.6.0", False),
    ],
)
def test_versions_are_compared_number_by_number(
    where: str, architecture: int, triton: str, has: bool
) -> None:
    fault = load_backend("triton").faults[0]
    assert (fault.first, fault.fixed) == ("3.4", "3.7.1")
    assert doctor.applies(fault, where, architecture, triton) is has


def of_module(run: Callable, backend: str) -> tuple[str, str]:
    """What is said of a module of a backend: the outcome, and how it ends."""
    assert run("compile", "rg_lru", "--backend", backend, "-o", f"{backend}.py").exit_code == 0
    body = json.loads(run("doctor", f"{backend}.py", "--format", "json").output)
    (found,) = (f for f in body["findings"] if f["what"] == "module")
    assert found["figure"].startswith(f"{backend}.py: {backend} backend, dsfc ")
    return found["outcome"], found["figure"].rpartition("; ")[2]


def test_a_module_of_torch_runs_wherever_torch_does(run: Callable, machine: Callable) -> None:
    machine()
    outcome, said = of_module(run, "torch")
    assert outcome == "ok" and said.startswith("modes recurrent")
    machine(torch=None)
    assert of_module(run, "torch") == ("missing", "it needs torch")


@pytest.mark.ci
def test_kernels_of_a_module_run_on_a_gpu_without_faults(run: Callable, machine: Callable) -> None:
    machine()
    assert of_module(run, "triton")[0] == "missing"
    machine(torch=TORCH | {"devices": [A100]})
    assert of_module(run, "triton") == ("ok", "its kernels run")
    machine(torch=TORCH | {"devices": [H200]}, triton="3.6.0", numpy="2.3.0")
    outcome, said = of_module(run, "triton")
    assert outcome == "missing" and "torch runs" in said


def test_kernels_in_c_run_where_a_compiler_is(run: Callable, machine: Callable) -> None:
    machine()
    assert of_module(run, "c") == ("ok", "its kernels run")
    machine(compiler={"outcome": "missing", "figure": "DSFC_C=0; torch runs instead"})
    outcome, said = of_module(run, "c")
    assert (outcome, said) == ("missing", "its kernels lack C compiler, torch runs instead")


@pytest.mark.full
def test_what_is_no_module_is_said(run: Callable, folder: Path) -> None:
    (folder / "other.py").write_text("x = 1\n")
    result = run("doctor", "other.py")
    assert result.exit_code == 1 and "E-FILE" in result.stderr
