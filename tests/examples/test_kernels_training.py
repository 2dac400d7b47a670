"""A layer around an emitted module, its kernel, a few steps, and the report of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

import dsfc

LENGTH = 16


@pytest.fixture(scope="module")
def layers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, type[torch.nn.Module]]:
    folder = tmp_path_factory.mktemp("generated")
    found = {}
    for name, title in (("dlr", "Dlr"), ("s4d", "S4d"), ("gla", "Gla")):
        path = dsfc.compile(name, out=folder / f"{name}.py")
        found[name] = getattr(dsfc.import_module(path), title)
    return found


@pytest.fixture(scope="module")
def kernels(
    example: Callable[[str], ModuleType], layers: dict[str, type[torch.nn.Module]]
) -> Iterator[Callable[[str], ModuleType]]:
    """The example, with small mixers and few sequences to measure on."""
    model, train = example("kernels.model"), example("kernels.train")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model, "mixer_class", lambda _, name: layers[name])
        for sizes in model.SIZES.values():
            patch.setitem(sizes, "n", 8)
        patch.setattr(train, "FINAL", train.HELD_OUT)
        yield lambda name: example(f"kernels.{name}")


def run(kernels: Callable[[str], ModuleType], mixer: str, name: str, steps: int) -> Any:
    task = kernels("task").Task(name, LENGTH)
    return kernels("train").Run(mixer, task, steps, 5e-3, 1e-3, seed=0)


@pytest.mark.parametrize("name", ["shift", "cumsum"])
@pytest.mark.parametrize("mixer", ["dlr", "s4d"])
def test_a_model_is_a_convolution_with_its_kernel(
    kernels: Callable[[str], ModuleType], mixer: str, name: str
) -> None:
    task = kernels("task").Task(name, LENGTH)
    torch.manual_seed(0)
    model = kernels("model").Model(mixer, task)
    x, _ = task.batch(4, torch.Generator().manual_seed(0))
    with torch.no_grad():
        made = model(x) - model(torch.zeros_like(x))
    wanted = torch.zeros_like(made)
    for lag, weight in enumerate(model.kernel()):
        wanted[:, lag:] += x[:, : LENGTH - lag, None] * weight
    wanted *= task.scale[:, None]
    # Two answers of size up to 10 are subtracted, in float32.
    torch.testing.assert_close(made, wanted, atol=1e-4, rtol=1e-4)


def test_every_parameter_is_trained_once(kernels: Callable[[str], ModuleType]) -> None:
    for mixer in ("dlr", "s4d", "gla"):
        chosen = run(kernels, mixer, "shift", 1)
        model = kernels("model").Model(mixer, chosen.task)
        own, others = kernels("train")._groups(model, chosen)
        counted = [id(p) for group in (own, others) for p in group["params"]]
        assert sorted(counted) == sorted(id(p) for p in model.parameters())
        assert len(own["params"]) == len(kernels("model").TRANSITION[mixer])
        assert (own["lr"], others["lr"]) == (1e-3, 5e-3)


@pytest.fixture(scope="module")
def results(kernels: Callable[[str], ModuleType]) -> list[Any]:
    return [
        kernels("train").train(run(kernels, mixer, name, 12), lambda _: None)
        for mixer in ("dlr", "s4d", "gla")
        for name in ("shift", "cumsum", "cummax")
    ]


@pytest.mark.full
def test_the_report_says_what_is_in_the_record(
    kernels: Callable[[str], ModuleType],
    example: Callable[[str], ModuleType],
    results: list[Any],
    tmp_path: Path,
) -> None:
    record = example("harness.record")
    file = record.write(tmp_path / "results.json", results, 1.5, workers=2)
    again, seconds = record.read(file, kernels("train").Result)
    assert again == results and seconds == 1.5
    assert [step for step, _ in again[0].curve] == [0, 10, 12]
    assert len(again[0].kernel) == 8 and {len(row) for row in again[0].kernel} == {LENGTH}
    assert again[-1].run.mixer == "gla" and again[-1].kernel == ()
    first, second = (dataclasses.replace(again[k], r_squared=k / 8) for k in (0, 1))
    table = kernels("report").table([first, second, *again[2:]], seconds)
    rows = {line.split(" | ")[0].strip("| "): line.split(" | ")[1:] for line in table.splitlines()}
    assert rows["SHIFT"][0] == "0.0000" and rows["CUMSUM"][0] == "0.1250"
    assert rows["SHIFT"][3] == "1.0000"
    assert rows["CUMMAX"][2] == f"{again[-1].r_squared:.4f}"
    assert "9 runs of 12 steps in 2 s" in table


@pytest.mark.ci
def test_pictures_are_drawn(
    kernels: Callable[[str], ModuleType], results: list[Any], tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    files = kernels("report").write(results, 1.5, tmp_path)
    names = ["table.md", "r_squared.png", "kernels.png", "errors.png", "curves.png"]
    assert [path.name for path in files] == names
    assert all(path.read_bytes()[:4] == b"\x89PNG" for path in files[1:])
