"""`verify` runs every check, reports what breaks, and leaves PyTorch as it found it."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from dsfc.validate import run as running
from dsfc.validate.compare import BrokenPromiseError
from dsfc.validate.report import Outcome
from dsfc.validate.run import CHECKS, Check, deterministic_torch, validate
from dsfc.validate.surface import Surface, SurfaceError


def fine(surface: Surface) -> str:
    """All is well."""
    return f"d = {surface.sizes['d']}"


def broken(surface: Surface) -> str:
    """Nothing is lost.

    The rest of this text is no promise.
    """
    raise BrokenPromiseError("y is lost")


def crashing(surface: Surface) -> str:
    """It runs."""
    raise RuntimeError("first line\nsecond line")


@pytest.fixture
def module(text: Callable[[str], str], imported: Callable[[str], ModuleType]) -> ModuleType:
    return imported(text("qlstm"))


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three checks in place of all."""
    three = (Check("fine", fine), Check("broken", broken), Check("crashing", crashing, slow=True))
    monkeypatch.setattr(running, "CHECKS", three)


@pytest.mark.usefixtures("checks")
def test_a_row_for_each_check(module: ModuleType) -> None:
    report = validate(module, quick=False)
    found = [(row.name, row.promise, row.outcome, row.figure) for row in report.rows]
    assert found == [
        ("fine", "All is well", Outcome.KEPT, "d = 6"),
        ("broken", "Nothing is lost", Outcome.BROKEN, "y is lost"),
        ("crashing", "It runs", Outcome.BROKEN, "RuntimeError: first line"),
    ]
    assert not report.kept
    assert report.mixer == "qlstm" and report.namespace == module.NAMESPACE


@pytest.mark.usefixtures("checks")
def test_a_quick_run_leaves_slow_checks_out_and_progress_is_told(module: ModuleType) -> None:
    seen: list[tuple[int, int, str]] = []
    report = validate(module, sizes={"d": 5}, progress=lambda *step: seen.append(step))
    assert [row.name for row in report.rows] == ["fine", "broken"]
    assert report.rows[0].figure == "d = 5"
    assert seen == [(0, 2, "fine"), (1, 2, "broken"), (2, 2, "")]


@pytest.mark.usefixtures("checks")
def test_a_fast_run_has_fast_checks_alone(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    three = (Check("fine", fine), Check("broken", broken, fast=True))
    monkeypatch.setattr(running, "CHECKS", three)
    assert [row.name for row in validate(module, fast=True).rows] == ["broken"]
    assert [row.name for row in validate(module).rows] == ["fine", "broken"]


def test_fast_checks_compare_values_and_gradients() -> None:
    fast = [check.name for check in CHECKS if check.fast]
    assert fast == [
        "definition", "modes", "segments", "past", "steps", "causality", "layouts", "rows",
        "fused", "masks", "packs",
    ]  # fmt: skip
    assert not any(check.slow for check in CHECKS if check.fast)


@pytest.mark.full
def test_fast_checks_make_few_operations(module: ModuleType) -> None:
    """165,000 of them; of the shipped specs the largest take about three times as many."""
    with Counted() as count:
        assert validate(module, fast=True).kept
    assert count.calls < 180_000


class Counted(TorchDispatchMode):
    """Counts the operations of torch."""

    calls = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls += 1
        return func(*args, **(kwargs or {}))


def test_what_is_no_module_is_refused() -> None:
    with pytest.raises(SurfaceError):
        validate(torch)


def test_every_check_has_a_name_and_a_promise_of_its_own() -> None:
    assert len({check.name for check in CHECKS}) == len(CHECKS)
    promises = {check.promise for check in CHECKS if not check.name.endswith("long")}
    assert len(promises) == len(CHECKS) - 1
    assert all(promise and len(promise) < 100 for promise in promises)


def test_fresh_memory_is_nan_and_settings_come_back() -> None:
    before = torch.are_deterministic_algorithms_enabled()
    state = torch.random.get_rng_state()
    with deterministic_torch():
        assert torch.empty(4).isnan().all()
        assert torch.ones(3).new_empty(5, 2).isnan().all()
        torch.rand(3)
    assert torch.are_deterministic_algorithms_enabled() == before
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.full
def test_a_whole_module_of_two_inputs_registers_and_scans(
    tmp_path, imported: Callable[[str], ModuleType]
) -> None:
    import dsfc

    path = tmp_path / "several.dsf"
    path.write_text(SEVERAL, encoding="utf-8")
    report = validate(imported(dsfc.load(path).module().text))
    assert report.kept, report.render()


SEVERAL = """\
mixer several "two inputs, two states of two classes, a short convolution, an earlier token" {
  dims  d, heads h = 2, n, p = d / h, t = 3
  input u : d
        g : h
  param W_q, W_k : d -> h × n ~ normal(0, 0.5)
        W_v : d -> h × p ~ normal(0, 0.5)
        W_e : d -> h × p ~ normal(0, 0.5)
        w : d × t ~ uniform(-1, 1)
        a : h unit = 1/2
        W_f : d -> d ~ normal(0, 0.5)
  state S : h × n × p;  e : d
  x = u + fir[t](w, u)
  q = W_q x;  k = W_k x;  v = W_v u[i-1]
  S = sigmoid(g) * a * S[i-1] + k ⊗ v
  e = sigmoid(W_f u) * e[i-1] + x
  y = q · S + W_e e
}
"""
