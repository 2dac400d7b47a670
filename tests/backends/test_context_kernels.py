"""Where processes share a sequence, kernels run the segments and what summarises them.

`torch/test_context.py` has the same of the torch form, in processes of their own.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from context_process import FAILED, HOW, SEGMENTS, Results, alone, check, drawn
from dsfc.backends.torch.context import crossing
from thread_group import ThreadGroup

import dsfc
from benchmarks.gpu.interpreter import as_a_gpu
from dsfc.emit.module import Option, origin
from dsfc.validate.run import deterministic_torch
from dsfc.validate.surface import Sample, Surface, surface

SUMMARIES = {
    "rg_lru": "_decayed",
    "retnet": "_decayed",
    "linear_attn": "_decayed",
    "mlstm": "_decayed",
    "gateloop": "_decayed",
    "mamba3": "_decayed",
    "gla": "_decayed",
    "s6": "_driven_by_none",
    "gated_deltanet": "_rewritten",
    "kda": "_rewritten",
    "rwkv7": "_rewritten",
    "lru": "_stopping",
    "s4d": "_convolved",
}
"""A mixer of each form of kernels → the function of the runtime that summarises its segments."""
FAST = ("rg_lru", "gla")
FEW = (1, 0, 0, 1)
"""Segments of fewer tokens than processes."""
SOME = (*((SEGMENTS[n][0], how) for n in (4, 2) for how in HOW), (FEW, "plain"), (FEW, "mask"))
ALL = (*SOME, *((SEGMENTS[n][1], how) for n in (4, 2) for how in HOW))
"""Lengths of segments, and what a layer is given besides tokens."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], ModuleType]:
    """Compiles a mixer for a backend, once, and gives the module."""
    folder = tmp_path_factory.mktemp("shared")

    @cache
    def make(name: str, backend: str) -> ModuleType:
        path = folder / f"{name}_{backend}_shared.py"
        dsfc.compile(name, backend, path, context_parallel=True)
        return dsfc.import_module(path)

    return make


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the kernels that Triton's interpreter starts, one at a time."""
    interpreter = pytest.importorskip("triton.runtime.interpreter")
    as_a_gpu(monkeypatch.setattr)
    names: list[str] = []
    call, alone = interpreter.GridExecutor.__call__, threading.Lock()

    def seen(self: Any, *args: Any, **kwargs: Any) -> None:
        with alone:  # the interpreter keeps the number of the program that it runs
            names.append(self.fn.__name__)
            call(self, *args, **kwargs)

    monkeypatch.setattr(interpreter.GridExecutor, "__call__", seen)
    torch.set_num_threads(1)
    with deterministic_torch():
        yield names


def started_in_c(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the kernels in C that a module starts, as they are started."""
    if why := module._NATIVE.why_never():
        pytest.skip(why)  # a machine without a C compiler starts no kernels in C
    names: list[str] = []
    run = module._NATIVE.run

    def seen(name: str, *args: Any) -> bool:
        ran: bool = run(name, *args)
        names.extend([name] * ran)
        return ran

    monkeypatch.setattr(module._NATIVE, "run", seen)
    return names


def compare(
    module: ModuleType,
    ways: tuple[tuple[tuple[int, ...], str], ...],
    started: list[str],
    monkeypatch: pytest.MonkeyPatch,
    dtype: torch.dtype = torch.float32,
) -> None:
    """Segments give what the whole sequence gives, by the kernels that run that.

    Args:
        module: whose sequences processes may share.
        ways: lengths of segments, and what the layer is given besides tokens.
        started: learns the names of kernels.
        monkeypatch: changes `torch.distributed` for the time of a test.
        dtype: of inputs and parameters.
    """
    about = surface(module)
    FAILED.clear()
    for lengths, how in ways:
        # Drawn once: threads share a generator.
        sample = drawn(about, sum(lengths), how, dtype)
        started.clear()
        one = alone(about, sample, lengths, how)
        by_one = set(started)
        started.clear()
        with monkeypatch.context() as patch:
            together(about, sample, lengths, how, one, patch)
        assert by_one and started, (lengths, how)
        # One token has a kernel of its own, and not every segment of a pack shares a sequence.
        cut = sum(length > 1 for length in lengths)
        for name in (name for name in by_one if cut and "step" not in name):
            # Forwards, once for the summary and once from the state that arrives.
            wanted = 1 if how == "pack" else cut * (2 if "forward" in name else 1)
            assert started.count(name) >= wanted, (lengths, how, name)
    assert not FAILED, "\n".join(FAILED[:20])


def together(
    about: Surface,
    sample: Sample,
    lengths: tuple[int, ...],
    how: str,
    one: tuple[Results, Results],
    patch: pytest.MonkeyPatch,
) -> None:
    """Compares threads that share a sequence with one that has it alone."""
    group = ThreadGroup(len(lengths))
    group.install(patch)
    group.run(lambda _: check(about, group, sample, lengths, how, f"{lengths}, {how}", one))


# --- what modules say -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("backend", "runs"),
    [
        ("c", "C on cpu: a kernel each way for h"),
        ("triton", "Triton on cpu: a kernel each way for h"),
        ("all", "C on cpu: a kernel each way for h"),
    ],
)
def test_a_module_says_what_runs_a_segment_and_what_crosses(
    backend: str, runs: str, made: Callable[[str, str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    if backend == "triton":
        pytest.importorskip("triton")
    module = made("rg_lru", backend)
    layer = surface(module).sample(5, state=False).layer.float()
    if backend == "all":
        monkeypatch.setattr(module, "triton", None)
    if hasattr(module, "_NATIVE"):
        monkeypatch.setattr(module._NATIVE, "why_never", lambda: "")
    (said,) = crossing(dsfc.load("rg_lru").plan)
    first, *_, last = layer.explain(5).splitlines()
    assert first.startswith(runs) and last == f"across ranks: {said}"
    found = origin(Path(module.__file__ or "").read_bytes())
    assert found is not None and found.options == {Option.CONTEXT_PARALLEL}
    assert (found.backend, found.untouched) == (backend, True)


@pytest.mark.share(1, ci=4)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in FAST else pytest.mark.ci) for n in SUMMARIES]
)
def test_summaries_are_made_by_the_operators_whose_kernels_run_a_segment(name: str) -> None:
    known = dsfc.load(name)
    shared = known.module("triton", context_parallel=True).text
    assert f"_summary = {SUMMARIES[name]}(" in shared
    started = re.compile(r"^def (_\w*_(?:kernel|launch)\w*)\(", re.MULTILINE)
    assert started.findall(shared) == started.findall(known.module("triton").text) != []


# --- what kernels compute -------------------------------------------------------------------------


@pytest.mark.ci
@pytest.mark.share(1, ci=2)
@pytest.mark.parametrize("name", FAST)
def test_kernels_for_gpus_run_the_segments(
    name: str,
    made: Callable[[str, str], ModuleType],
    started: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compare(made(name, "triton"), ((SEGMENTS[4][0], "mask"),), started, monkeypatch)


@pytest.mark.ci
@pytest.mark.parametrize("name", FAST)
def test_kernels_in_c_run_the_segments(
    name: str, made: Callable[[str, str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = made(name, "c")
    compare(module, ((SEGMENTS[4][0], "pack"),), started_in_c(module, monkeypatch), monkeypatch)


@pytest.mark.full
@pytest.mark.parametrize("name", SUMMARIES)
def test_kernels_for_gpus_run_segments_of_each_form(
    name: str,
    made: Callable[[str, str], ModuleType],
    started: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compare(made(name, "triton"), SOME, started, monkeypatch)
    compare(made(name, "triton"), SOME[1:2], started, monkeypatch, torch.bfloat16)


@pytest.mark.full
@pytest.mark.parametrize("name", SUMMARIES)
def test_kernels_in_c_run_segments_of_each_form(
    name: str, made: Callable[[str, str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = made(name, "c")
    started = started_in_c(module, monkeypatch)
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        compare(module, ALL, started, monkeypatch, dtype)
