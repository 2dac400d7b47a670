"""Whether kernels are trusted: known faults of Triton, and a trial on first use."""

from __future__ import annotations

import re
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from dsfc.backends.triton import render
from dsfc.backends.triton.toolchains import FAULTS, Fault, faults
from interpreted import Run, around_kernels, spoil_kernels
from tiling import tiled

import dsfc
from dsfc.plan.scan_ir import Form

triton = pytest.importorskip("triton")
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

KEY = torch.device("cpu"), torch.float32
MADE_UP = Fault(
    *("3.4", "3.7.1", "cuda", (90,), frozenset({Form.ELEMENTWISE})),
    "sums are differences",
    "example.org/1",
    "2026-01-02",
)


@pytest.fixture
def module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[ModuleType]:
    """A module of its own, in which the interpreter's device is a GPU with a fault to its name."""
    spec = getattr(request, "param", "qlstm")
    monkeypatch.setattr(render, "faults", lambda forms: (MADE_UP,))
    text = dsfc.load(spec).module("triton").text
    path = tmp_path / f"{spec}_.py"
    path.write_text(text.replace(f"dsfc_{spec}_", f"dsfc_{tmp_path.name}_"), encoding="utf-8")
    made = dsfc.import_module(path)
    made.DEVICES = ("cuda", "cpu")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    monkeypatch.setattr(made, "FAULTS", ())
    tiled(made, (16, 64, 1, 2), monkeypatch)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    yield made


def layer(module: ModuleType, dtype: torch.dtype = torch.float32) -> torch.nn.Module:
    torch.manual_seed(1)
    return module.Qlstm(d=4).to(dtype)


def tokens() -> torch.Tensor:
    return torch.rand(1, 5, 4, generator=torch.Generator().manual_seed(3))


def mixed(module: ModuleType, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return layer(module, dtype)(tokens().to(dtype))


# --- what is known --------------------------------------------------------------------------------


def test_every_fault_has_a_source_and_a_date_and_concerns_what_it_says() -> None:
    version = torch.torch_version.TorchVersion
    for f in FAULTS:
        assert f.source and f.what and f.architectures and f.platform in ("cuda", "hip")
        assert re.fullmatch(r"\d{4}", f.dated) or date.fromisoformat(f.dated)
        assert not f.fixed or version(f.first) < version(f.fixed)
    assert faults({Form.ELEMENTWISE, Form.SELECTIVE}) == ()
    (hopper,) = (f for f in faults({Form.MATRIX}) if f.architectures == (90,))
    assert (hopper.first, hopper.fixed) == ("3.4", "3.7.1")
    assert any("64 keys" in f.what and 100 in f.architectures for f in faults({Form.MATRIX}))


@pytest.mark.share(2, ci=0)
@pytest.mark.parametrize(
    ("version", "capability", "known"),
    [
        ("3.3.1", (9, 0), False),
        ("3.4.0", (9, 0), True),
        ("3.6.0+git1234", (9, 0), True),
        ("3.7.0", (9, 0), True),
        ("3.7.1", (9, 0), False),
        ("3.10.0", (9, 0), False),
        ("3.6.0", (8, 0), False),
        ("3.6.0", (10, 0), False),
    ],
)
def test_a_fault_is_of_versions_and_architectures(
    version: str,
    capability: tuple[int, int],
    known: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(render, "faults", lambda forms: (MADE_UP, replace(MADE_UP, platform="hip")))
    path = tmp_path / "qlstm_.py"
    path.write_text(dsfc.load("qlstm").module("triton").text, encoding="utf-8")
    module = dsfc.import_module(path)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(module.triton, "__version__", version)
    want = f"with Triton {version} sums are differences (example.org/1, 2026-01-02)"
    assert module._fault(torch.device("cuda", 0)) == (want if known else "")


@pytest.mark.parametrize(
    ("platform", "capability", "declined"),
    [
        ("cuda", (7, 5), True),
        ("cuda", (8, 0), False),
        ("cuda", (12, 0), False),
        ("hip", (7, 0), False),
    ],
)
def test_torch_runs_on_devices_that_triton_has_nothing_for(
    platform: str,
    capability: tuple[int, int],
    declined: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "qlstm_.py"
    path.write_text(dsfc.load("qlstm").module("triton").text, encoding="utf-8")
    module = dsfc.import_module(path)
    monkeypatch.setattr(torch.version, "hip", "7.0" if platform == "hip" else None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    want = "Triton is for compute capabilities from 8.0 on, not 7.5" if declined else ""
    assert module._fault(torch.device("cuda", 0)) == want


def test_a_fault_makes_torch_run_and_is_said_once(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = ("0", "", "cuda", (90,), "sums are differences", "a report")
    monkeypatch.setattr(module, "FAULTS", (fault,))
    why = r"with Triton \S+ sums are differences \(a report\)"
    with pytest.warns(UserWarning, match=f"no kernels on cpu in torch.float32, torch runs: {why}"):
        got = mixed(module)
    assert module.TILES.asked == []  # no kernel ran
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mixed(module)
    torch.testing.assert_close(got, mixed(module, torch.float64).float(), rtol=1e-5, atol=1e-6)
    said = module.Qlstm(d=4).explain(5)
    assert re.search(rf"torch on cpu \({why}\)", said)


# --- the trial ------------------------------------------------------------------------------------


@pytest.mark.ci
@pytest.mark.share(1, ci=5)
@pytest.mark.parametrize("where", ["plain", "no_grad", "inference", "autocast", "vmap"])
def test_a_trial_is_made_once_in_the_middle_of_anything(module: ModuleType, where: str) -> None:
    made: list[tuple[torch.device, torch.dtype]] = []
    trial = module.trial
    module.trial = lambda *at: (made.append(at), trial(*at))[1]
    layer, u = module.Qlstm(d=4), torch.rand(2, 5, 4)
    before = torch.random.get_rng_state()
    contexts = {
        "plain": lambda: layer(u),
        "no_grad": lambda: torch.no_grad()(layer)(u),
        "inference": lambda: torch.inference_mode()(layer)(u),
        "autocast": lambda: torch.autocast("cpu", torch.bfloat16)(layer)(u),
        "vmap": lambda: torch.vmap(layer)(u.unsqueeze(1)),
    }
    for _ in range(2):
        contexts[where]()
    dtype = torch.bfloat16 if where == "autocast" else torch.float32
    assert made == [(torch.device("cpu"), dtype)]
    assert module.TRUST[torch.device("cpu"), dtype] == ""
    assert torch.equal(before, torch.random.get_rng_state())
    assert ", tried beside torch" in layer.explain(5)


@pytest.mark.parametrize("wrong", ["output", pytest.param("gradient", marks=pytest.mark.ci)])
def test_a_trial_finds_wrong_kernels(
    module: ModuleType, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil_kernels(monkeypatch, {"output": "forward", "gradient": "backward"}[wrong])
    with pytest.warns(UserWarning, match=rf"in a trial (the )?{wrong}.* was off by \d"):
        got = mixed(module)
    torch.testing.assert_close(got, mixed(module, torch.float64).float(), rtol=1e-5, atol=1e-6)
    assert "was off by" in module.Qlstm(d=4).explain(5)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_kernels_that_do_not_compile_are_not_trusted(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(name: str, args: tuple[Any, ...], run: Run) -> None:
        if "backward" in name:
            raise RuntimeError("out of resource: shared memory")
        run()

    around_kernels(monkeypatch, broken)
    with pytest.warns(UserWarning, match="torch runs: a trial failed"):
        mixed(module).sum().backward()


@pytest.mark.parametrize("how", ["capturing", "off"])
def test_no_trial(module: ModuleType, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if how == "off":
        module.TRIAL = False
    else:
        monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    module.trial = lambda *_: pytest.fail("a trial")
    mixed(module)
    # What a graph captured untried is tried afterwards.
    assert module.TRUST == ({KEY: ""} if how == "off" else {})
    assert "not tried beside torch" in module.Qlstm(d=4).explain(5)


def test_threads_wait_for_one_trial(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    trials: list[str] = []
    launches: list[str] = []
    trial = module.trial

    def slow(*at: Any) -> str:
        time.sleep(0.2)  # long enough that all have asked
        trials.append(trial(*at))
        return "off by 1%"

    def watched(name: str, args: tuple[Any, ...], run: Run) -> None:
        launches.append(threading.current_thread().name)
        run()

    module.trial = slow
    around_kernels(monkeypatch, watched)
    # Threads that draw parameters share torch's generator: one layer, drawn before they start.
    mixer, u = layer(module), tokens()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with ThreadPoolExecutor(3, "user") as pool:
            got = list(pool.map(lambda _: mixer(u), range(3)))
    assert trials == [""]
    assert launches and not any(name.startswith("user") for name in launches)
    want = mixed(module, torch.float64).float()
    for y in got:
        torch.testing.assert_close(y, want, rtol=1e-5, atol=1e-6)


@pytest.mark.ci
@pytest.mark.parametrize(
    "module", ["qlstm", pytest.param("s6", marks=pytest.mark.full)], indirect=True
)
def test_a_trial_is_made_while_a_graph_is_traced(module: ModuleType) -> None:
    made: list[tuple[torch.device, torch.dtype]] = []
    trial = module.trial
    module.trial = lambda *at: (made.append(at), trial(*at))[1]
    layer = module.Qlstm(d=4) if hasattr(module, "Qlstm") else module.S6(d=4, n=3, r=2)
    u = torch.rand(2, 5, 4)
    got = torch.compile(layer, backend="eager", fullgraph=True)(u)
    assert made == [KEY]
    torch.testing.assert_close(got, layer(u))


def test_devices_and_dtypes_are_tried_apart(module: ModuleType) -> None:
    module.trial = lambda device, dtype: "" if dtype == torch.float32 else "off by 1%"
    mixed(module)
    with pytest.warns(UserWarning, match="torch.bfloat16"):
        mixed(module, torch.bfloat16)
    assert module.TRUST == {KEY: "", (torch.device("cpu"), torch.bfloat16): "off by 1%"}


@pytest.mark.full
def test_every_module_with_kernels_passes_its_trial(build: Callable[..., ModuleType]) -> None:
    for name in ("rg_lru", "rwkv4"):
        assert build(name).trial(*KEY) == ""


def test_a_layer_without_sizes_is_tried(build: Callable[..., ModuleType]) -> None:
    body = "input u\n state s\n s = sigmoid(u) * s[i-1] + u; y = s"
    assert build("without_sizes", body).trial(*KEY) == ""
