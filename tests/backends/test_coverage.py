"""The table of kernels says what modules do, and commands, `explain` and pages say what it says."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from click.testing import CliRunner
from dsfc.backends.torch.operators import skeletons
from emitted import compiled

import dsfc
from dsfc.api.coverage import Call, Coverage, Reason, Runs, coverage, notes
from dsfc.api.pipeline import Compilation
from dsfc.cli import commands
from dsfc.validate.surface import ends, loss, pull_back, surface

EXTENSIONS = Path(__file__).parents[2] / "docs" / "_ext"
LAUNCHES = {
    "c": r"def (?!\w*_planes)_(forward|backward)_native(\w*)\(",
    "triton": r"def (?!\w*_planes)(?=\w*_launch)(?:_launch)?_(forward|backward)(?:_launch)?(\w*)\(",
}
"""Names of the functions that start the kernels of a scan: direction, suffix of the scan.

Those of the real scans in rotating frames are called by these.
"""

LOAD = cache(dsfc.load)
PARTS = "read|columns|keys|summary|pairs|states|outputs|futures|gradients"
KERNELS = re.compile(rf"_?(?P<pass>forward|backward|step)(?:_(?:{PARTS}))*(?:_kernel)?(?:_planes)?")
FIRST = ("rg_lru", "gla", "retnet", "s4d", "gsa", "linear_rnn", "softmax", "taylor_softmax")
"""A mixer of each form, those that kernels run in part, and two that have none."""
RUN = ("rg_lru", "retnet", "gsa", "linear_rnn")
"""Of these, what a few seconds run: tokens, chunks, printed kernels in part, none."""


def cases(first: tuple[str, ...]) -> list[Any]:
    return [pytest.param(n, marks=() if n in first else pytest.mark.ci) for n in compiled()]


def by_kernels(it: Compilation, covered: Coverage, call: Call) -> set[str]:
    """The scans that kernels run in a call, as the table has them."""
    if covered.of(call).runs in (Runs.TORCH, Runs.UNCUT, Runs.REFUSED):
        return set()
    rest = {s for r in covered.of(call).reasons for s in r.scans}
    return {s.scan.name for s in skeletons(it.plan)} - rest


# --- what the table says --------------------------------------------------------------------------


@pytest.mark.ci
@pytest.mark.parametrize("backend", ["c", "triton", "all"])
def test_what_torch_runs_has_a_reason_and_what_kernels_run_has_none(backend: str) -> None:
    for name in compiled():
        for covered in coverage(LOAD(name), backend):
            assert [c.call for c in covered.calls] == list(Call)
            for c in covered.calls:
                assert (c.runs is Runs.KERNELS) == (not c.reasons), (name, c)
                assert all(len(r.why) > 10 and '"' not in r.why for r in c.reasons), (name, c)
                assert not any("fits this scan" in r.why for r in c.reasons), (name, c)


def test_the_torch_backend_has_no_kernels_and_refuses_steps_of_what_reads_the_future() -> None:
    (covered,) = coverage(LOAD("dlr_bidirectional"), "torch")
    runs = [c.runs for c in covered.calls]
    assert runs == [Runs.TORCH, Runs.TORCH, Runs.REFUSED, Runs.TORCH, Runs.TORCH]
    assert covered.device == ""


def test_a_mixer_of_several_scans_says_which_have_none() -> None:
    (gpu,) = coverage(LOAD("gsa"), "triton")
    forward = gpu.of(Call.FORWARD)
    assert forward.runs is Runs.SOME and [r.scans for r in forward.reasons] == [("K",)]
    assert gpu.of(Call.STEP) == replace(forward, call=Call.STEP)


def test_all_has_what_both_targets_have() -> None:
    for name in ("gateloop", "s4d", "gla", "softmax"):
        one_by_one = [c for backend in ("c", "triton") for c in coverage(LOAD(name), backend)]
        both = coverage(LOAD(name), "all")
        assert [c.calls for c in both] == [c.calls for c in one_by_one]
        assert [c.device for c in both] == ["CPU", "GPU"]


# --- what modules, commands and pages say ---------------------------------------------------------


@pytest.mark.share(4, ci=13)
@pytest.mark.parametrize("backend", ["c", "triton"])
@pytest.mark.parametrize("name", cases(FIRST))
def test_the_text_of_a_module_starts_the_kernels_of_the_table(name: str, backend: str) -> None:
    it = LOAD(name)
    (covered,) = coverage(it, backend)
    text = it.module(backend).text
    starts = re.findall(LAUNCHES[backend], text)
    for call, direction in ((Call.FORWARD, "forward"), (Call.BACKWARD, "backward")):
        scans = by_kernels(it, covered, call)
        suffixes = {s.suffix for s in skeletons(it.plan) if s.scan.name in scans}
        assert {suffix for d, suffix in starts if d == direction} == suffixes
    cut = {m[1] for m in re.finditer(r"^def _forward_summary_kernel(\w*)\(", text, re.MULTILINE)}
    scans = by_kernels(it, covered, Call.SEGMENTS)
    assert cut == {s.suffix for s in skeletons(it.plan) if s.scan.name in scans}


def explained(text: str) -> str:
    """All literals of the method `explain`."""
    found = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)]
    (method,) = (n for n in found if n.name == "explain")
    literals = (n.value for n in ast.walk(method) if isinstance(n, ast.Constant))
    return "\n".join(x for x in literals if isinstance(x, str))


@pytest.mark.share(24, ci=0)
@pytest.mark.parametrize("backend", ["c", "triton", "all"])
@pytest.mark.parametrize("name", cases(FIRST))
def test_explain_names_the_scans_without_kernels_and_why(name: str, backend: str) -> None:
    said = explained(LOAD(name).module(backend).text)
    reasons = {r for c in coverage(LOAD(name), backend) for r in c.of(Call.FORWARD).reasons}
    assert all(said_of(r) in said for r in reasons)
    assert ("no kernel for " in said) == any(r.scans for r in reasons)


def said_of(reason: Reason) -> str:
    return f"no kernel for {', '.join(reason.scans)}: {reason.why}" if reason.scans else reason.why


@pytest.mark.share(6)
@pytest.mark.parametrize("backend", ["torch", "c", "triton", "all"])
def test_compile_names_the_scans_without_kernels_and_why(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = ["gla", "softmax", "gsa", "linear_rnn", "gateloop", "s4d", "taylor_softmax"]
    done = CliRunner().invoke(commands, ["compile", *names, "--backend", backend, "-o", "."])
    said = [
        f"note: {n}: --backend {backend} has {note}"
        for n in names
        for note in notes(coverage(LOAD(n), backend))
    ]
    assert done.exit_code == 0 and done.stderr.splitlines() == said
    assert {line.split(": ")[1] for line in said} == {
        "torch": set(),
        "c": {"linear_rnn", "taylor_softmax"},
        "triton": {"gsa", "linear_rnn", "taylor_softmax"},
        "all": {"gsa", "linear_rnn", "taylor_softmax"},
    }[backend]


def test_show_says_what_runs_each_call() -> None:
    shown = CliRunner().invoke(
        commands, ["show", "gsa", "--stage", "plan", "--backend", "all"], catch_exceptions=False
    )
    by_kernels = "calls on a {}\n  forward, backward, step, packs: kernels"
    assert f"{by_kernels.format('CPU')}\n  segments: not cut, K, V: " in shown.output
    assert f"{by_kernels.format('GPU')} and torch, K: " in shown.output
    plain = CliRunner().invoke(commands, ["show", "gsa", "--stage", "plan", "--backend", "torch"])
    assert "calls on" not in plain.output


@pytest.fixture(scope="module")
def pages() -> Iterator[ModuleType]:
    """What the pages of mixers are made with; Sphinx imports it from a folder of its own."""
    sys.path.insert(0, str(EXTENSIONS))
    try:
        yield importlib.import_module("mixer_pages")
    finally:
        sys.path.remove(str(EXTENSIONS))


@pytest.mark.full
def test_the_page_of_a_mixer_and_the_table_of_all_say_why(pages: ModuleType) -> None:
    table = pages.kernels()
    rows = {m[1]: m[0] for m in re.finditer(r"^\| \[(\w+)\].*$", table, re.MULTILINE)}
    assert set(rows) == set(compiled())
    numbers = {m[2]: m[1] for m in re.finditer(r"^(\d+)\. (.*)\.$", table, re.MULTILINE)}
    for name, row in rows.items():
        section = pages.kernel_table.section(LOAD(name))
        for backend, title in pages.kernel_table.TARGETS.items():
            (covered,) = coverage(LOAD(name), backend)
            runs = covered.of(Call.FORWARD).runs
            assert (title in row.split("|")[2]) == (runs in (Runs.KERNELS, Runs.SOME)), name
            for reason in covered.of(Call.FORWARD).reasons:
                assert reason.why in section, name
                number = numbers[f"{reason.why[0].upper()}{reason.why[1:]}"]
                assert re.search(rf"\b{number}\b", row.split("|")[-2]), name
    assert "## Kernels\n\nWhat runs its scans" in pages.page("s4d")


# --- what modules do ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def imported(
    tmp_path_factory: pytest.TempPathFactory, own_operators: Callable[[str, str], str]
) -> Callable[[str, str], ModuleType]:
    folder = tmp_path_factory.mktemp("covered")

    @cache
    def load(name: str, backend: str) -> ModuleType:
        path = folder / f"{name}_{backend}_covered.py"
        text = own_operators(LOAD(name).module(backend).text, "covered")
        path.write_text(text, encoding="utf-8")
        return dsfc.import_module(path)

    return load


def spied(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the kernels that a module starts, in order, as they are started."""
    names: list[str] = []
    of, method = (module._NATIVE, "run") if hasattr(module, "_NATIVE") else (module, "_launch")
    start = getattr(of, method)

    def seen(kernel: Any, *args: Any) -> Any:
        names.append(kernel if isinstance(kernel, str) else kernel.__name__)
        return start(kernel, *args)

    monkeypatch.setattr(of, method, seen)
    for tokens in ("SEGMENT", "SPAN"):  # a segment of a matrix scan backwards is whole spans
        if hasattr(module, tokens):
            monkeypatch.setattr(module, tokens, 32)
    return names


@pytest.mark.share(4, ci=0)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy speaks of what is never stored
@pytest.mark.parametrize("backend", ["c", "triton"])
@pytest.mark.parametrize("name", cases(RUN))
def test_calls_start_the_kernels_of_the_table(
    name: str,
    backend: str,
    imported: Callable[[str, str], ModuleType],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    pytest.importorskip("triton")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "kernels"))
    module = imported(name, backend)
    if hasattr(module, "_NATIVE") and (why := module._NATIVE.why_never()):
        pytest.skip(why)  # a machine without a C compiler starts no kernels in C
    it, (covered,) = LOAD(name), coverage(LOAD(name), backend)
    of = {s.suffix: s.scan.name for s in skeletons(it.plan)}
    described = surface(module)
    sample = described.sample(40, batch=1, dtype=torch.float32, state=False)
    names = (
        spied(module, monkeypatch)
        if hasattr(module, "_NATIVE") or hasattr(module, "_launch")
        else []
    )

    def started(direction: str, *, cut: bool = False) -> set[str]:
        passes = {"forward": ("forward", "step")}.get(direction, (direction,))
        found = [(m, n) for n in names if (m := KERNELS.match(n)) and m["pass"] in passes]
        return {of[n[m.end() :]] for m, n in found if ("summary" in m[0]) is cut}

    def expected(call: Call) -> set[str]:
        return by_kernels(it, covered, call)

    given = dict(sample.inputs)
    if described.causal:
        given["state"] = sample.layer.initial_state(1, dtype=torch.float32)
        for x in described.tensors(given["state"]).values():  # what is driven by 1 has this alone
            x.requires_grad_(x.is_floating_point() or x.is_complex())
    y, _ = ends(sample.layer(**given))
    assert started("forward") == expected(Call.FORWARD)
    assert started("forward", cut=True) == expected(Call.SEGMENTS)
    pull_back(loss(y))
    assert started("backward") == expected(Call.BACKWARD)
    assert started("backward", cut=True) == expected(Call.SEGMENTS)
    given["mask"] = torch.arange(40)[None] != 3
    names.clear()
    pull_back(loss(ends(sample.layer(**given))[0]))
    assert started("forward") == started("backward") == expected(Call.PACKS)
    names.clear()
    sample.layer(**sample.inputs, cu_seqlens=torch.tensor([0, 17, 40]))
    assert started("forward") == expected(Call.PACKS)
    names.clear()
    if described.causal:
        with torch.no_grad():  # with gradients torch runs a token
            sample.layer.step(*(x[:, 0] for x in sample.inputs.values()), given["state"])
    assert started("forward") == expected(Call.STEP)
