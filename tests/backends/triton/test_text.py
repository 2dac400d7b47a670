"""The text of modules with kernels, and that they stand beside those without."""

from __future__ import annotations

import ast
import dataclasses
import difflib
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch
from emitted import compiled
from kernel_specs import SIZES, SPECS, UNUSUAL

import dsfc

Build = Callable[..., ModuleType]
WIDTH = 100

ALONE = """
import importlib.util, sys
sys.modules["dsfc"] = sys.modules["triton"] = None  # importing them is an error from here on
import torch
spec = importlib.util.spec_from_file_location("emitted", sys.argv[1])
module = sys.modules["emitted"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
layer = getattr(module, module.__all__[0])(d=4, **{n: 8 for n in sys.argv[2:]})
layer(torch.rand(2, 5, 4)).sum().backward()
print(layer.explain(5))
"""


TOP = re.compile(r"^(?:def|class) (_\w+)|^(_\w+)(?:: [^=\n]+)? = ", re.MULTILINE)
ROOT = Path(__file__).parents[3] / "backends"


def names_of(*files: Path) -> Counter[str]:
    """How often each name is bound at the left margin of some files."""
    pairs = (pair for f in files for pair in TOP.findall(f.read_text(encoding="utf-8")))
    return Counter(first or second for first, second in pairs)


def test_no_function_of_kernels_has_the_name_of_one_of_the_runtime_or_of_another() -> None:
    runtime = names_of(*(ROOT / "shared" / "runtime").glob("*.py"))
    in_c = ROOT / "c" / "native.py.j2", *(ROOT / "c" / "runtime").glob("*.py")
    for_gpus = *(ROOT / "triton").glob("*_shared.py.j2"), ROOT / "triton" / "functions.py"
    ours = names_of(*for_gpus, *in_c)
    assert len(runtime) > 50 and len(ours) > 40
    assert {name for name in ours if name in runtime or ours[name] > 1} == set()


def text(name: str) -> str:
    return dsfc.load(name).module("triton").text


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("texts")
    out = []
    for name in SPECS:
        out.append(folder / f"{name}_.py")
        out[-1].write_text(text(name), encoding="utf-8")
    for name, body in UNUSUAL.items():
        spec = folder / f"{name}.dsf"
        spec.write_text(f"mixer {name} {{\n{body}\n}}\n", encoding="utf-8")
        out.append(folder / f"{name}_.py")
        out[-1].write_text(dsfc.load(spec).module("triton").text, encoding="utf-8")
    return out


@pytest.mark.full
def test_a_formatter_changes_nothing(files: list[Path]) -> None:
    pytest.importorskip("ruff")
    command = [sys.executable, "-m", "ruff", "format", "--isolated", f"--line-length={WIDTH}"]
    done = subprocess.run(
        [*command, "--diff", *map(str, files)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[:2000] + done.stderr[-500:]


@pytest.mark.full
def test_every_line_fits_and_no_name_is_given_twice(files: list[Path]) -> None:
    for path in files:
        source = path.read_text(encoding="utf-8")
        for number, line in enumerate(source.splitlines(), 1):
            assert len(line) <= WIDTH and line == line.rstrip(), f"{path.name}, {number}: {line}"
        body = ast.parse(source).body
        names = Counter(n.name for n in body if isinstance(n, ast.FunctionDef | ast.ClassDef))
        assert [n for n, count in names.items() if count > 1] == []


@pytest.mark.full
@pytest.mark.parametrize("name", ["rg_lru", "rwkv4", "retnet", "lru"])
def test_a_module_runs_without_triton_and_says_so(name: str, files: list[Path]) -> None:
    path = next(p for p in files if p.stem == f"{name}_")
    done = subprocess.run(
        [sys.executable, "-P", "-c", ALONE, str(path), *SIZES.get(name, {})],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "torch on cpu (Triton is not installed)" in done.stdout


def beside_torch(name: str) -> tuple[list[str], list[str]]:
    """The lines that a module of torch alone has, and those of the module for Triton."""
    texts = (dsfc.load(name).module(b).text.splitlines()[1:] for b in ("torch", "triton"))
    lines = list(difflib.unified_diff(*texts, n=0, lineterm=""))
    own = [x for x in lines[2:] if not x[1:].startswith(("# sha256 ", "NAMESPACE"))]
    first, second = ([x[1:].strip() for x in own if x[0] == sign] for sign in "-+")
    return first, second


def test_what_has_no_kernel_is_the_torch_module_and_says_why() -> None:
    assert beside_torch("short_convolution") == ([], [])  # there is no recurrence
    (said,), (*why, where, now) = beside_torch("linear_rnn")
    assert now == said.replace("torch on {device}", "{where}")
    assert where == 'where = f"torch on {device} ({why})"'
    assert ast.literal_eval(" ".join(why).removeprefix("why = ")) == (
        "no kernel for x: its Λ is a full matrix, "
        "and kernels have one λ for each entry of the state"
    )


PRINTED = ("deltanet", "gated_deltanet", "gla", "gla_block", "gsa", "hgrn2", "kda", "lln", "lnssm")
PRINTED += ("lnssm_block", "mamba3", "performer", "retnet_rope", "rwkv5", "rwkv6", "rwkv7")
"""Specs whose kernels are printed from the kernel IR; `test_printer` holds one of each form."""

CONVOLUTIONS = ("dlr", "dlr_bidirectional", "dlr_kronecker", "dlr_prod", "dlr_real", "dss_exp")
CONVOLUTIONS += ("h3", "mega_ema", "s4d")


@pytest.mark.full
def test_shipped_specs_with_kernels_are_those_tested() -> None:
    kernel = re.compile(r"^def _forward_([a-z]+_)?kernel", re.MULTILINE)
    have = {n for n in compiled() if kernel.search(text(n))}
    assert have == {*SPECS, *PRINTED, *CONVOLUTIONS}


@pytest.mark.ci
def test_states_go_from_one_module_to_the_other(build: Build) -> None:
    import torch

    both = [build("rg_lru", None, backend) for backend in ("torch", "triton")]
    one, other = (m.RgLru(d=3, dtype=torch.float64) for m in both)
    other.load_state_dict(one.state_dict())
    u = torch.randn(2, 7, 3, dtype=torch.float64)
    y, state = one(u, return_state=True)
    _, before = one(u[:, :4], return_state=True)
    got, after = other(u[:, 4:], both[1].State.from_dict(before.to_dict()), return_state=True)
    torch.testing.assert_close(got, y[:, 4:])
    for f in dataclasses.fields(state):
        torch.testing.assert_close(getattr(after, f.name), getattr(state, f.name))


@pytest.mark.parametrize(
    ("device", "dtype", "mode", "why"),
    [
        ("cpu", "float64", "auto", "no kernel computes in torch.float64"),
        ("cuda", "float32", "scan", "mode scan was named"),
        ("cuda", "bfloat16", "auto", ""),
    ],
)
def test_explain_says_what_runs_and_why(
    device: str, dtype: str, mode: str, why: str, build: Build
) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("triton")
    layer = build("rg_lru").RgLru(d=4, dtype=getattr(torch, dtype))
    said = layer.explain(64, device=device, mode=mode)
    assert (f"torch on {device} ({why})" in said) if why else said.startswith(f"Triton on {device}")


def test_a_convolution_keeps_its_modes_where_no_kernel_runs(build: Build) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("triton")
    modules = [build("lru", None, backend) for backend in ("torch", "triton")]
    assert modules[0].MODES == modules[1].MODES
    layer = modules[1].Lru(d=4, n=8, dtype=torch.bfloat16)
    assert layer.explain(64, device="cuda").startswith("Triton on cuda: a kernel each way for x")
    assert layer.explain(64, device="cuda", masked=True).startswith("Triton on cuda")
    said = layer.explain(64, device="cuda", mode="fft")
    assert said.startswith("mode fft") and "torch on cuda (mode fft was named)" in said


def test_explain_says_which_states_are_too_large(build: Build) -> None:
    pytest.importorskip("triton")
    layer = build("mlstm").Mlstm(d=8, n=300)
    said = layer.explain(64, device="cuda")
    assert "torch on cuda (kernels have at most 256 keys and channels, not 300, 2)" in said


def test_explain_says_that_complex_keys_have_no_kernel(build: Build) -> None:
    pytest.importorskip("triton")
    body = """
      dims heads h = 2, n = 3, p = 5
      input q, k, t : h × n; v : h × p; f, g : h
      state S : h × n × p complex
      S = sigmoid(f) * cis(g) * S[i-1] + (cis(t) * k) ⊗ v
      y = Re(q · S)
    """
    layer = build("complex_keys", body).ComplexKeys()
    said = layer.explain(64, device="cuda")
    assert "torch on cuda (no kernel for S: no kernel has complex keys or reads)" in said
    layer = build("gateloop").Gateloop(d=512, h=2, p=129)
    said = layer.explain(64, device="cuda")
    assert "torch on cuda (kernels have at most 256 keys and channels, not 256, 258)" in said
    layer = build("gateloop").Gateloop(d=256, h=2)
    assert layer.explain(64, device="cuda").startswith("Triton on cuda: a kernel each way for S")


def test_explain_says_which_complex_selective_scans_have_no_kernel(build: Build) -> None:
    pytest.importorskip("triton")
    body = """
      dims d, n
      input u : d; b, c : n
      param a, θ : d × n
      state S : d × n complex
      S = exp(u * cplx(-exp(a), θ)) * S[i-1] + u ⊗ b
      y = Re(c · S){}
    """
    turned = build("turned_channels", body.format("")).TurnedChannels
    said = turned(d=4, n=17).explain(64, device="cuda")
    assert "torch on cuda (kernels have at most 16 complex states of a channel, not 17)" in said
    said = turned(d=4, n=16).explain(64, device="cuda")
    assert said.startswith("Triton on cuda: a kernel each way for S")
    both = build("both_parts", body.format(" + Im(c · S)")).BothParts
    said = both(d=4, n=2).explain(64, device="cuda")
    assert "have real values, and of outputs the real part" in said


def test_gates_stand_in_the_kernel_as_the_spec_has_them() -> None:
    kernel = re.search(r"def _forward_kernel.*?\n\n\n", text("rg_lru"), re.DOTALL)
    assert kernel is not None
    for line in (
        "b_r = tl.sigmoid(b_W_r_u + b_b_r)",
        "b_a = tl.exp2(-(11.541560327111707 * b_softplus_zeta * b_r))",
        "b_g = tl.sigmoid(b_W_g_u + b_b_g)",
        "b_h_value = tl.sqrt(1 - b_a * b_a) * b_g * b_u",
    ):
        assert f"            {line}\n" in kernel[0]
    assert "atomic" not in text("rg_lru")


@pytest.mark.ci
def test_two_processes_print_the_same(root: Path) -> None:
    code = "import dsfc, sys; sys.stdout.write(dsfc.load('rg_lru').module('triton').text)"
    texts = {
        subprocess.run(
            [sys.executable, "-P", "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1


FUSED = {
    "output_is_a_state": "input u : d; state y : d; y = sigmoid(u) * y[i-1] + u",
    "complex_backward": """input u : d; param W : d -> n; a, th : d × n
        state T : d × n complex backward
        T = exp(softplus(u) * cplx(-exp(a), th)) * T[i+1] + u ⊗ W u; y = Re(W u · T)""",
    "divided_by_a_later_scan": """input u : d; param W : d -> h × n; b : d -> h × p; W_e : d -> h
        state S : h × n × p; z : h × n
        S = S[i-1] + W u ⊗ b u; z = sigmoid(W_e u) * z[i-1] + W u
        y = (W u · S) / (1 + abs(W u · z))""",
}


@pytest.mark.share(4)
@pytest.mark.parametrize("name", FUSED)
def test_what_kernels_compute_inside_has_its_values_where_torch_runs(
    name: str, build: Build
) -> None:
    body = f"dims d = 3, heads h = 2, n = 2, p = 4\n{FUSED[name]}"
    modules = [build(name, body, backend) for backend in ("torch", "triton")]
    plain, fused = (getattr(m, m.__all__[0])().double() for m in modules)
    fused.load_state_dict(plain.state_dict())
    u = torch.randn(2, 5, 3).double()
    torch.testing.assert_close(fused(u), plain(u))
