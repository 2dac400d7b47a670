"""Compiles every spec that can be, once, and gives its module beside its oracle.

Fresh memory holds NaN in all tests of emitted modules: what reads it before writing it shows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch

import dsfc
from dsfc.validate.run import deterministic_torch

sys.path.insert(0, str(Path(__file__).parent))

import emitted

torch.set_num_threads(1)  # the tensors are small; threads would only wait for each other


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`name` is every spec that compiles, where a test does not say which."""
    marked = {arg for m in metafunc.definition.iter_markers("parametrize") for arg in _named(m)}
    if "name" in metafunc.fixturenames and "name" not in marked:
        metafunc.parametrize("name", emitted.soon(emitted.compiled()))


def _named(mark: pytest.Mark) -> tuple[str, ...]:
    names = mark.args[0]
    return tuple(names.split(",")) if isinstance(names, str) else tuple(names)


@pytest.fixture(scope="session")
def load(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], ModuleType]:
    """Imports the module of a spec from a file of its own."""
    folder = tmp_path_factory.mktemp("emitted")

    def imported(name: str) -> ModuleType:
        path = folder / f"{name}_.py"
        if not path.exists():
            made = emitted.text(name)
            assert made is not None, f"{name} does not compile"
            path.write_text(made.text, encoding="utf-8")
        return dsfc.import_module(path)

    return imported


@pytest.fixture
def module(name: str, load: Callable[[str], ModuleType]) -> ModuleType:
    """The emitted module of a spec."""
    return load(name)


@pytest.fixture
def beside(name: str, module: ModuleType, oracle: Callable[[str], ModuleType]) -> emitted.Beside:
    """The emitted module of a spec beside its oracle."""
    return emitted.Beside(module, oracle(name))


@pytest.fixture(autouse=True)
def fresh_memory_is_nan() -> Iterator[None]:
    """What is not written before it is read is NaN."""
    with deterministic_torch():
        yield


@pytest.fixture(scope="session")
def load_target(
    tmp_path_factory: pytest.TempPathFactory, own_operators: Callable[[str, str], str]
) -> Callable[..., ModuleType]:
    """Imports the module of a spec for a target, with operators of its own."""
    folder = tmp_path_factory.getbasetemp() / "steps"
    folder.mkdir(exist_ok=True)

    def imported(name: str, target: str) -> ModuleType:
        path = folder / f"{name}_{target}.py"
        if not path.exists():
            text = dsfc.load(emitted.SPECS / f"{name}.dsf").module(target).text
            path.write_text(own_operators(text, f"steps_{target}"), encoding="utf-8")
        module = dsfc.import_module(path)
        if hasattr(module, "_NATIVE") and (why := module._NATIVE.why_never()):
            pytest.skip(why)  # a machine without a C compiler runs torch, which other tests compare
        return module

    return imported


@pytest.fixture
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder for compiled kernels that all tests of a process share."""
    folder = tmp_path_factory.getbasetemp() / "kernels"
    folder.mkdir(exist_ok=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))


@pytest.fixture
def without_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield
