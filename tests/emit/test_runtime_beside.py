"""Modules that import their runtime from a file in their folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from torch.utils.flop_counter import FlopCounterMode

import dsfc
from dsfc.cli import commands
from dsfc.diagnostics.report import DiagnosticError
from dsfc.emit.audit import EmissionError, audit
from dsfc.emit.backend import backend_names, load_backend

RUN = """
import torch
torch.manual_seed(0)
print(float({module}.RgLru(d=4)(torch.ones(1, 3, 4)).sum()) > -9)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A package that holds two modules and the runtime of both."""
    package = tmp_path / "mixers"
    package.mkdir()
    (package / "__init__.py").touch()
    for name in ("rg_lru", "retnet"):
        dsfc.compile(name, out=package, runtime="beside")
    return package


def runtime_of(folder: Path) -> Path:
    (file,) = folder.glob("dsfc_runtime_*.py")
    return file


def output(code: str, path: Path) -> str:
    """What Python prints, from a folder where neither dsfc nor its environment is in the way."""
    head = f"import sys; sys.path.insert(0, {str(path)!r})\n"
    done = subprocess.run(
        [sys.executable, "-I", "-c", head + code], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or done.stderr


def test_modules_of_a_folder_share_one_runtime(folder: Path) -> None:
    names = {p.name for p in folder.iterdir()}
    assert names == {"__init__.py", "rg_lru.py", "retnet.py", runtime_of(folder).name}
    assert len((folder / "rg_lru.py").read_text().splitlines()) < 900
    audit(runtime_of(folder).read_text())


@pytest.mark.ci
def test_python_finds_the_runtime_in_a_package_and_on_its_path(folder: Path) -> None:
    in_package = "from mixers import rg_lru, retnet" + RUN.format(module="rg_lru")
    assert output(in_package, folder.parent) == "True"
    assert output("import rg_lru" + RUN.format(module="rg_lru"), folder) == "True"


def test_a_module_computes_what_one_with_its_runtime_inside_does(
    folder: Path, tmp_path: Path
) -> None:
    inside = dsfc.import_module(dsfc.compile("retnet", out=tmp_path))
    beside = dsfc.import_module(folder / "retnet.py")
    u = torch.randn(2, 70, 8)
    layers = []
    for module in (inside, beside):
        torch.manual_seed(1)
        layers.append(module.Retnet(d=8, h=2))
    assert torch.equal(layers[0](u), layers[1](u))
    beside.register_flops()
    with FlopCounterMode(display=False) as counted:
        layers[1](u).sum().backward()
    assert any(beside.NAMESPACE in str(op) for op in counted.get_flop_counts()["Global"])


@pytest.mark.ci
@pytest.mark.share(1, ci=2)
@pytest.mark.parametrize("backend", ["c", "all"])
def test_what_starts_kernels_in_c_stands_in_the_runtime(backend: str, tmp_path: Path) -> None:
    for name in ("rg_lru", "retnet"):
        dsfc.compile(name, out=tmp_path, backend=backend, runtime="beside")
    text = runtime_of(tmp_path).read_text()
    audit(text, load_backend(backend).runtime(dsfc.load("retnet").fused(backend)))
    own = (tmp_path / "retnet.py").read_text()
    assert "import ctypes" in text and "INLINE void dot_tile" in text
    assert "ctypes" not in own and "dot_tile" not in own and "int forward(" in own
    u, layers = torch.randn(2, 70, 8), []
    for path in (tmp_path / "retnet.py", dsfc.compile("retnet", out=tmp_path / "torch.py")):
        torch.manual_seed(1)
        layers.append(dsfc.import_module(path).Retnet(d=8, h=2))
    torch.testing.assert_close(layers[0](u), layers[1](u))


def test_targets_of_a_folder_have_a_runtime_each(folder: Path) -> None:
    dsfc.compile("retnet", out=folder, backend="c", runtime="beside", force=True)
    # A mixer whose scans have no kernels in C takes the runtime of torch.
    dsfc.compile("linear_rnn", out=folder, backend="c", runtime="beside")
    torch_file, c_file = sorted(folder.glob("dsfc_runtime_*.py"), key=lambda p: p.stat().st_size)
    imported = {f.stem: f.read_text() for f in folder.iterdir()}
    assert all(torch_file.stem in imported[n] for n in ("rg_lru", "linear_rnn"))
    assert c_file.stem in imported["retnet"]


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.ci
def test_a_compiled_graph_holds_its_operators(folder: Path) -> None:
    layer = dsfc.import_module(folder / "retnet.py").Retnet(d=8, h=2)
    u = torch.randn(2, 70, 8, requires_grad=True)
    torch.testing.assert_close(
        torch.compile(layer, backend="aot_eager", fullgraph=True)(u), layer(u)
    )


def test_an_edited_runtime_is_kept_unless_forced(folder: Path) -> None:
    runtime = runtime_of(folder)
    text = runtime.read_text()
    runtime.write_text(text + "# edited\n")
    with pytest.raises(DiagnosticError, match="E-OUTPUT"):
        dsfc.compile("hgrn", out=folder, runtime="beside")
    assert not (folder / "hgrn.py").exists()
    dsfc.compile("hgrn", out=folder, runtime="beside", force=True)
    assert runtime.read_text() == text


@pytest.mark.ci
def test_a_missing_runtime_is_named(folder: Path) -> None:
    runtime = runtime_of(folder)
    runtime.unlink()
    with pytest.raises(ImportError, match=f"{runtime.name} is not beside it; compile it again"):
        dsfc.import_module(folder / "rg_lru.py")


def test_the_module_cannot_stand_in_place_of_its_runtime(folder: Path) -> None:
    with pytest.raises(DiagnosticError, match="the runtime of the module has this name"):
        dsfc.compile("hgrn", out=runtime_of(folder), runtime="beside", force=True)


def test_another_place_is_refused() -> None:
    with pytest.raises(ValueError, match="'inside' or 'beside', not 'outside'"):
        dsfc.load("rg_lru").module(runtime="outside")


def test_the_command_writes_both_files_and_refuses_standard_output(tmp_path: Path) -> None:
    runner = CliRunner()
    done = runner.invoke(commands, ["compile", "s6", "-o", str(tmp_path), "--runtime", "beside"])
    assert done.output == f"{tmp_path / 's6.py'}\n"
    assert len([*tmp_path.iterdir()]) == 2
    done = runner.invoke(commands, ["compile", "s6", "-o", "-", "--runtime", "beside"])
    assert (done.exit_code, "needs a folder" in done.output) == (2, True)


@pytest.mark.parametrize(
    "line", ["from .other import x", "from ..r import x", "from r import open"]
)
def test_nothing_else_is_imported_from_the_folder(line: str) -> None:
    audit("from .r import x\nfrom r import x\n", beside="r")
    with pytest.raises(EmissionError):
        audit(f"{line}\n", beside="r")
    with pytest.raises(EmissionError):
        audit("from .r import x\n")


@pytest.mark.full
def test_a_formatter_changes_nothing(tmp_path: Path) -> None:
    pytest.importorskip("ruff")
    for name in ("gla", "s6", "normalized_attn"):
        for backend in backend_names():
            dsfc.compile(name, backend, tmp_path / f"{name}_{backend}.py", runtime="beside")
    command = [sys.executable, "-m", "ruff", "format", "--check", "--isolated", "--line-length=100"]
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[:2000] + done.stderr[-500:]
