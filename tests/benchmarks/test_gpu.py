"""What is measured on a GPU runs to its end without one, and says so when a kernel is wrong."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("triton")

from interpreted import spoil_kernels

from benchmarks.gpu import clock, peers
from benchmarks.gpu.__main__ import PARTS, _arguments, _Run
from benchmarks.gpu.correct import check
from benchmarks.gpu.first import QUESTIONS
from benchmarks.gpu.interpreter import as_a_gpu
from benchmarks.gpu.material import Operator, Shape, operators, subject
from benchmarks.gpu.processes import documents
from dsfc.plan.scan_ir import Form

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

CPU = torch.device("cpu")


@pytest.mark.full
def test_what_a_call_costs_the_host_is_measured_without_a_gpu(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.gpu.host", "rg_lru", "--segments"],
        cwd=root,
        env={**os.environ, "TRITON_INTERPRET": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    figures = re.findall(r"(forward|backward|layer): ([\d.]+) µs", done.stdout)
    assert [name for name, _ in figures] == ["forward", "backward", "layer"]
    assert all(float(figure) > 0 for _, figure in figures)


@pytest.mark.ci
def test_it_runs_to_its_end_in_the_interpreter(root: Path, tmp_path: Path, tier: str) -> None:
    """The questions, which are of larger mixers, in the full tier alone."""
    asks = tier == "full"
    parts = [f"--only={part}" for part in PARTS if asks or part != "first"]
    command = [sys.executable, "-m", "benchmarks.gpu", "--tiny", "--spec", "rg_lru"]
    done = subprocess.run(
        [*command, "--dtype", "float32", "--out", str(tmp_path), *parts],
        cwd=root,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (file,) = tmp_path.glob("*.json")
    found = json.loads(file.read_text(encoding="utf-8"))
    questions = [f"{k}." for k in range(1, 9)] if asks else []
    assert [r["question"][:2] for r in found["first"]] == questions
    assert all("answers" in r or "skipped" in r for r in found["first"])
    asked = {r["question"][0] for r in found["first"] if "answers" in r}
    assert not asks or {"5", "8"} <= asked
    assert all(r["share of what is allowed"] <= 1 for r in found["correct"]) and found["correct"]
    ours = [r for r in found["speed"] if r.get("spec") == "rg_lru"]
    figures = ("graph", "eager", "host", "floor", "times the floor")
    assert ours and all(r[w][k] > 0 for r in ours for w in ("forward", "both") for k in figures)
    assert any("needs a GPU" in r.get("skipped", "") for r in found["speed"])
    (compiled,) = found["compile"]
    assert compiled["first call"] > 0 and "needs a GPU" in compiled["no peer"]
    assert found["versions"]["triton"] and found["date"] and found["device"]["name"]
    pictures = list(tmp_path.glob("*.png"))
    assert found["not run"] == [] and len(pictures) == 2
    assert all(path.stat().st_size > 10_000 for path in pictures)


def test_every_mixer_has_a_panel_with_a_line_for_each_number_of_rows() -> None:
    plot = pytest.importorskip("benchmarks.gpu.plot", exc_type=ImportError)
    records: list[dict[str, Any]] = [
        {"spec": spec, "shape": f"B{rows} L{length}", "length": length}
        | {"rows": rows, "both": {"best": 3.0, "floor": 2.0, "times the floor": 1.5}}
        for spec in ("ssd", "lru")
        for rows, length in ((1, 2048), (1, 512), (8, 2048))
    ]
    peer = {"peer": "fla", "beside": "ssd", "shape": "B8 L2048", "length": 2048, "rows": 8}
    figure = plot.panels([*records, peer | {"both": {"best": 8.0}}], "both")
    lru, ssd, *empty = figure.axes
    assert [lru.get_title(), ssd.get_title()] == ["lru", "ssd"]
    assert not any(axis.axison for axis in empty)
    drawn = [list(zip(*line.get_data(), strict=True)) for line in ssd.lines[:4]]
    assert drawn == [[(512, 1.5), (2048, 1.5)], [], [(2048, 1.5)], [(2048, 4.0)]]
    assert [len(line.get_xdata()) for line in lru.lines[:4]] == [2, 0, 1, 0]
    # Where nothing was measured there is nothing to see, and no fault.
    assert plot.panels(records, "forward").axes


def run(tmp_path: Path, *arguments: str) -> _Run:
    given = ["--tiny", "--spec", "qlstm", "--dtype", "float32", "--out", str(tmp_path)]
    return _Run(_arguments([*given, *arguments]))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--spec", "nonsense"), "--spec nonsense: .*no such file"),
        (("--spec", "s4"), "--spec s4: none of its scans has kernels"),
    ],
)
def test_a_mixer_that_cannot_be_measured_is_told(
    given: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    with pytest.raises(SystemExit, match=said):
        run(tmp_path, *given)


def test_without_a_gpu_it_says_what_can_be_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit, match="no GPU here; --tiny"):
        _Run(_arguments(["--spec", "qlstm"]))


def test_what_fails_stops_nothing_and_is_written(tmp_path: Path) -> None:
    made = run(tmp_path)

    def broken() -> object:
        raise MemoryError("full")

    made.step("speed", "one", broken)
    made.step("speed", "another", lambda: {"spec": "qlstm"})
    found = json.loads(made.file.read_text(encoding="utf-8"))
    assert found["speed"] == [
        {"title": "one", "failed": "MemoryError: full"},
        {"title": "another", "spec": "qlstm"},
    ]


def test_nothing_is_started_when_time_is_up(tmp_path: Path) -> None:
    made = run(tmp_path, "--minutes", "0")
    for part in PARTS:
        for title, step in getattr(made, f"{part}_steps")():
            made.step(part, title, step)
    assert len(made.document["not run"]) == 1 + 2 + 2 + 8
    assert not any(made.document[part] for part in PARTS)


def test_a_run_goes_on_where_one_of_the_day_stopped(tmp_path: Path) -> None:
    stopped = run(tmp_path)
    stopped.step("speed", "one", lambda: {"spec": "qlstm"})
    stopped.step("speed", "another", lambda: 1 / 0)
    taken = run(tmp_path, "--resume")
    assert [r["title"] for r in taken.document["speed"]] == ["one"]
    taken.step("speed", "one", lambda: {"spec": "measured twice"})
    taken.step("speed", "another", lambda: {"spec": "qlstm"})
    assert [r["spec"] for r in taken.document["speed"]] == ["qlstm", "qlstm"]


def test_of_other_versions_nothing_is_taken_up(tmp_path: Path) -> None:
    stopped = run(tmp_path)
    stopped.document["versions"]["triton"] = "of another day"
    stopped.write()
    with pytest.raises(SystemExit, match="measured with other versions"):
        run(tmp_path, "--resume")


@pytest.mark.full
def test_processes_side_by_side_check_a_mixer_each(tmp_path: Path) -> None:
    made = run(tmp_path, "--spec", "rg_lru", "--quick", "--jobs", "2", "--minutes", "5")
    made.side_by_side(["compile", "correct"])
    assert {r["spec"] for r in made.document["compile"]} == {"qlstm", "rg_lru"}
    assert len(made.document["correct"]) == 2 * 2 and made.document["not run"] == []
    assert all(r["share of what is allowed"] <= 1 for r in made.document["correct"])


@pytest.mark.full
def test_a_process_that_breaks_is_told_and_stops_no_other(tmp_path: Path) -> None:
    found = dict(documents(["nonsense"], ["--tiny"], tmp_path, 2, lambda: 60.0))
    (record,) = found["nonsense"]["correct"]
    assert "exit 1" in record["failed"] and "no such file" in record["failed"]


@pytest.mark.full
def test_a_mixer_that_was_checked_in_part_is_checked_again(tmp_path: Path) -> None:
    made = run(tmp_path, "--quick", "--jobs", "2", "--minutes", "5")
    title = next(made.correct_steps())[0]
    made.document["correct"] = [{"title": title, "spec": "of a run before"}]
    made.side_by_side(["correct"])
    first, second = made.document["correct"]
    assert first["spec"] == "of a run before" and second["spec"] == "qlstm"


def test_a_process_that_time_stops_has_not_failed(tmp_path: Path) -> None:
    left = iter([60.0, 0.0])
    found = dict(documents(["qlstm"], ["--tiny"], tmp_path, 1, lambda: next(left, 0.0)))
    assert found == {"qlstm": {"not run": ["qlstm, the rest"]}}


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore:Triton is not supported on current platform")
@pytest.mark.filterwarnings("ignore:Flash Attention is not installed")
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("spec", peers.PEERS)
def test_a_peer_takes_the_arguments_that_are_drawn_for_it(spec: str) -> None:
    pytest.importorskip("fla")
    peer = peers.PEERS[spec]
    call = getattr(importlib.import_module(peer.module), peer.name)
    given = peer.draws(Shape(1, 5, 2, 16), torch.randn)
    inspect.signature(call).bind(**given)


def test_what_no_time_is_left_for_is_not_started(tmp_path: Path) -> None:
    found = dict(documents(["qlstm", "gla"], ["--tiny"], tmp_path, 1, lambda: 0.0))
    assert found == {"qlstm": {"not run": ["qlstm"]}, "gla": {"not run": ["gla"]}}


def test_arguments_are_those_of_the_layer_at_any_shape() -> None:
    of = subject("rg_lru")
    assert of is not None and of.forms == {Form.ELEMENTWISE}
    (op,) = operators(of, Shape(3, 29, 2, 8), torch.float32, CPU)
    tensors = [x for x in op.given if isinstance(x, torch.Tensor)]
    assert [list(x.shape) for x in tensors] == [[3, 29, 16]] * 3 + [[3, 16]] * 4
    assert all(x.is_contiguous() for x in tensors)
    y, last = op.outputs()
    assert torch.equal(y[:, -1], last) and bool(torch.isfinite(y).all())
    # Three leaves, an output, three constants and two states, in float32; then twice that and two.
    assert op.floor(False) == 4 * (4 * 3 * 29 * 16 + 5 * 3 * 16)
    back = 4 * (8 * 3 * 29 * 16 + 9 * 3 * 16)
    assert op.floor(True) == op.floor(False) + back
    # The outputs that the backward operator takes are those of these tokens.
    assert any(isinstance(x, torch.Tensor) and torch.equal(x, y) for x in op.back)


def test_a_wrong_kernel_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    of = subject("qlstm")
    assert of is not None
    shape = Shape(1, 5, 1, 16)
    assert check(of, shape, torch.float32, CPU, 1)["share of what is allowed"] <= 1
    spoil_kernels(monkeypatch, "backward", 1.001)
    record = check(of, shape, torch.float32, CPU, 1)
    assert "gradient0 0 is off" in record["wrong"] and "share of what is allowed" not in record
    record = check(of, shape, torch.bfloat16, CPU, 1)
    assert record["share of what is allowed"] <= 1, "a thousandth is less than bfloat16 rounds"
    spoil_kernels(monkeypatch, "backward", 1.1)
    assert "times plain torch" in check(of, shape, torch.bfloat16, CPU, 1)["wrong"]


@pytest.mark.ci
@pytest.mark.share(1, ci=0)
@pytest.mark.parametrize("spec", ["mlstm", "ssd", "kda", "gla"])
def test_it_rounds_as_a_gpu_and_is_within_the_bar(
    spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = subject(spec)
    assert of is not None
    as_a_gpu(monkeypatch.setattr)
    for shape in (Shape(1, 1, 1, 16), Shape(2, 5, 1, 16), Shape(1, 37, 1, 32)):
        assert check(of, shape, torch.bfloat16, CPU).get("share of what is allowed", 9) <= 1


def test_every_scan_of_a_mixer_is_looked_at() -> None:
    of = subject("rwkv4")
    assert of is not None and len(operators(of, Shape(1, 5, 1, 16), torch.float32, CPU)) == 2
    assert check(of, Shape(1, 5, 1, 16), torch.float32, CPU, 2)["largest error"] < 1e-5


@pytest.mark.full
def test_exponentials_of_a_wide_layer_are_finite() -> None:
    of = subject("mlstm")
    assert of is not None
    record = check(of, Shape(1, 9, 2, 64), torch.float32, CPU)
    assert 0 < record["largest error"] < 1e-5


def test_nothing_is_learnt_where_torch_is_not_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    of = subject("linear_attn")
    assert of is not None

    def large(*args: Any) -> tuple[Operator, ...]:
        """Products of these have no float32."""
        (op,) = operators(*args)
        return (replace(op, given=tuple(1e30 * x if torch.is_tensor(x) else x for x in op.given)),)

    monkeypatch.setattr("benchmarks.gpu.correct.operators", large)
    record = check(of, Shape(1, 5, 1, 16), torch.float32, CPU, 1)
    assert "plain torch is not finite" in record["wrong"]


def test_torch_is_not_measured_in_place_of_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    of = subject("qlstm")
    assert of is not None
    monkeypatch.setattr(of.module, "triton", None)
    with pytest.raises(RuntimeError, match=r"no kernels of qlstm run .*: Triton is not installed"):
        operators(of, Shape(1, 5, 1, 16), torch.float32, CPU)


def test_what_has_no_kernels_is_no_subject() -> None:
    assert subject("s4") is None
    assert len(QUESTIONS) == 8
    with pytest.raises(LookupError, match="needs a GPU"):
        peers.works("kda", Shape(1, 5, 1, 16), torch.float32, CPU)
    with pytest.raises(LookupError, match="is not asked for s4"):
        peers.works("s4", Shape(1, 5, 1, 16), torch.float32, CPU)
    assert clock.peak(lambda: None, CPU) is None and clock.host(lambda: None, CPU) >= 0
