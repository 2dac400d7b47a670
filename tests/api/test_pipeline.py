"""The stages in order: each value on demand, once, verified; mistakes and faults told apart."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import dsfc.api.pipeline as pipeline
from dsfc.api.compile import compile_spec
from dsfc.api.locate import block_names, locate, shipped_names, spec_names
from dsfc.api.pipeline import load, read
from dsfc.diagnostics.report import DiagnosticError
from dsfc.limits import Limits
from dsfc.matrices.latex import display
from dsfc.mixer.ir import Mixer
from dsfc.plan.flow import PlanError
from dsfc.plan.ir import Plan
from dsfc.plan.scan_ir import Scan
from dsfc.structure.ir import Structure
from dsfc.system.ir import System

RUNNING = """\
mixer running {
  dims d
  input u : d
  state s : d
  s = sigmoid(u) * s[i-1] + u
  y = s
}
"""


def codes(do: Callable[[], object]) -> list[str]:
    with pytest.raises(DiagnosticError) as raised:
        do()
    return [d.code for d in raised.value.diagnostics]


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "running.dsf"
    path.write_text(RUNNING, encoding="utf-8")
    return path


def test_every_stage_has_its_value(spec: Path) -> None:
    it = load(spec)
    assert it.name == "running"
    assert isinstance(it.mixer, Mixer)
    assert isinstance(it.system, System)
    assert isinstance(it.structure, Structure)
    assert isinstance(it.plan, Plan)
    assert it.module().mixer == "running"


def test_every_stage_is_one_line_in_a_terminal(spec: Path) -> None:
    it = load(spec)
    assert repr(it.mixer) == "<Mixer running: inputs u; states s; output y>"
    assert repr(it.system) == "<System running: inputs u; states s; outputs y>"
    assert repr(it.structure) == "<Structure running: class elementwise (TV-1)>"
    kernels = len(it.plan.kernels)
    modes = "recurrent, chunked, scan"
    assert repr(it.plan) == f"<Plan running: {kernels} kernels; modes {modes}>"
    said = "<Matrices Λ, B, C, D of running: Kronecker form, lowered gauge>"
    assert repr(it.matrices()) == said


def test_each_stage_runs_once_and_when_asked_for(
    spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def counted(name: str) -> None:
        stage = getattr(pipeline, name)
        monkeypatch.setattr(
            pipeline,
            name,
            lambda *args, **options: (calls.append(name), stage(*args, **options))[1],
        )

    for name in ("parse", "resolve", "derive", "classify", "plan"):
        counted(name)
    it = load(spec)
    assert calls == ["parse"]
    assert it.plan is it.plan
    assert calls == ["parse", "resolve", "derive", "classify", "plan"]
    assert it.system is it.system and len(calls) == 5


def test_a_compilation_cannot_be_changed(spec: Path) -> None:
    with pytest.raises(AttributeError):
        load(spec).name = "other"  # type: ignore[misc]


def test_a_plan_is_always_verified_and_the_other_values_when_asked_for(
    spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    for name in ("verify_mixer", "verify_system", "verify_plan", "settle", "compare"):
        monkeypatch.setattr(pipeline, name, lambda *_, name=name: seen.append(name))
    monkeypatch.setenv("DSFC_CHECK", "0")
    _ = load(spec).plan
    assert seen == ["verify_plan", "settle", "compare"]
    monkeypatch.setenv("DSFC_CHECK", "1")
    _ = load(spec).plan
    assert seen[3:] == ["verify_mixer", "verify_system", "verify_plan", "settle", "compare"]


def test_a_wrong_plan_is_a_fault_of_the_compiler(
    spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgetful(*args: object) -> Plan:
        made = planned(*args)
        scans = (replace(k, decay=None) if isinstance(k, Scan) else k for k in made.kernels)
        return replace(made, kernels=tuple(scans))

    planned = pipeline.plan
    monkeypatch.setattr(pipeline, "plan", forgetful)
    monkeypatch.setenv("DSFC_CHECK", "0")
    with pytest.raises(PlanError, match="diagonal is not in the plan"):
        _ = load(spec).plan


@pytest.mark.parametrize("stage", ["resolve", "derive", "classify", "plan", "emit"])
def test_a_fault_carries_the_name_of_its_stage(
    spec: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(pipeline, stage, fail)
    with pytest.raises(ZeroDivisionError) as raised:
        load(spec).module()
    assert raised.value.__notes__ == [f"in stage {stage}"]


def test_mistakes_carry_no_stage(spec: Path) -> None:
    spec.write_text(RUNNING.replace("+ u", "+ x"), encoding="utf-8")
    with pytest.raises(DiagnosticError) as raised:
        _ = load(spec).mixer
    assert not hasattr(raised.value, "__notes__")


def test_which_mixer_is_meant(tmp_path: Path) -> None:
    two = RUNNING + RUNNING.replace("running", "other")
    (tmp_path / "two.dsf").write_text(two, encoding="utf-8")
    (tmp_path / "other.dsf").write_text(two, encoding="utf-8")
    (tmp_path / "none.dsf").write_text("# nothing\n", encoding="utf-8")
    assert read(tmp_path / "two.dsf").mixers == ("running", "other")
    assert load(tmp_path / "other.dsf").name == "other"
    assert load(tmp_path / "two.dsf", "running").name == "running"
    assert codes(lambda: load(tmp_path / "two.dsf")) == ["E-MIXER"]
    assert codes(lambda: load(tmp_path / "two.dsf", "thrid")) == ["E-MIXER"]
    assert codes(lambda: load(tmp_path / "none.dsf")) == ["E-MIXER"]
    assert codes(lambda: load("gate")) == ["E-MIXER"]


def test_limits_go_to_every_stage(spec: Path) -> None:
    assert codes(lambda: load(spec, limits=Limits(bytes=10))) == ["E-LIMIT"]
    assert codes(lambda: load(spec, limits=Limits(tokens=10))) == ["E-LIMIT"]


def test_compiling_writes_where_it_is_told(
    spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert compile_spec(spec) == Path("running.py")
    (tmp_path / "out").mkdir()
    assert compile_spec(str(spec), out="out") == Path("out", "running.py")
    assert compile_spec(spec, out=tmp_path / "mine.py") == tmp_path / "mine.py"
    assert Path("running.py").read_bytes() == Path("mine.py").read_bytes()


def test_a_spec_that_does_not_compile_writes_nothing(tmp_path: Path) -> None:
    assert codes(lambda: compile_spec("separable", out=tmp_path)) == ["E-UNSUPPORTED"]
    assert list(tmp_path.iterdir()) == []


def test_shipped_specs_have_names(root: Path) -> None:
    assert shipped_names() == tuple(sorted(p.stem for p in (root / "specs").glob("*.dsf")))
    assert block_names() == tuple(sorted(p.stem for p in (root / "specs/blocks").glob("*.dsf")))
    assert spec_names() == tuple(sorted({*shipped_names(), *block_names()}))
    assert (
        locate("mamba_block").shipped
        and locate("s6").shipped
        and locate("s6").file.name == "s6.dsf"
    )


def test_a_file_comes_before_a_shipped_spec(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s6").write_text(RUNNING, encoding="utf-8")
    Path("retnet").mkdir()
    assert not locate("s6").shipped
    assert locate("retnet").shipped


@pytest.mark.parametrize("path", ["specs/s6", "./s6", "s6.dsf", "../s6", "/s6", "s 6", ""])
def test_only_a_bare_name_means_a_shipped_spec(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert codes(lambda: load(path)) == ["E-FILE"]


def test_a_shipped_spec_does_not_look_into_the_folder_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("qkv.dsf").write_text(RUNNING.replace("running", "qkv"), encoding="utf-8")
    assert "W_Q" in {p.name for p in load("linear_attn").system.params}


def test_the_pipeline_has_nothing_but_the_stages(root: Path) -> None:
    tree = ast.parse((root / "dsfc" / "api" / "pipeline.py").read_text(encoding="utf-8"))
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    classes = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    assert functions == ["read", "load"]
    assert classes == ["SpecText", "Compilation"]


def test_an_lstm_without_declared_states_has_all_its_faults_said_in_one_run(tmp_path: Path) -> None:
    text = locate("lstm").file.read_text("utf-8")
    path = tmp_path / "lstm.dsf"
    path.write_text(text.replace("state c, y : d", ""), "utf-8")
    with pytest.raises(DiagnosticError) as caught:
        load(path).structure  # noqa: B018
    assert [(d.code, d.span.text) for d in caught.value.diagnostics] == [
        ("E-NONLINEAR-STATE", "c"),
        ("E-RECURSION", "c"),
        ("E-NONLINEAR-STATE", "y"),
        ("E-RECURSION", "y"),
    ]
    assert "U_f = U_i = U_o = U_u = 0" in str(caught.value.diagnostics[0].hint)


def test_undeclared_states_that_would_be_linear_have_one_fault(tmp_path: Path) -> None:
    path = tmp_path / "mean.dsf"
    path.write_text("mixer mean {\ndims d\ninput u : d\ny = 1/2 * y[i-1] + u\n}", "utf-8")
    with pytest.raises(DiagnosticError) as caught:
        load(path).plan  # noqa: B018
    assert [d.code for d in caught.value.diagnostics] == ["E-RECURSION"]


@pytest.mark.parametrize("name", ["s6", "normalized_attn", "rwkv7", "dlr_bidirectional"])
def test_a_notebook_shows_mixer_system_and_class(name: str) -> None:
    it = load(name)
    head, _, equations = it._repr_markdown_().partition("\n\n")
    assert head.startswith(f"**{name}**, ") and it.structure.title in head
    assert equations == display(it.system)
    assert equations.startswith("$$\n\\begin{split}") and equations.endswith("\n$$")
    assert r"\Lambda_i" in equations and equations.count("\n") < 30
    html = it.mixer._repr_html_()
    assert html.count("<") == html.count(">") == 4 and f"<b>mixer {name} " in html


def test_a_notebook_shows_what_is_wrong(tmp_path: Path) -> None:
    spec = tmp_path / "running.dsf"
    spec.write_text(RUNNING.replace("y = s", "y = t"), encoding="utf-8")
    assert "E-UNKNOWN-NAME" in load(spec)._repr_markdown_()


def test_a_plan_is_fused_once_for_each_backend() -> None:
    compilation = load("normalized_attn")
    assert compilation.fused("triton") is compilation.fused("triton")
    assert compilation.fused("triton") != compilation.fused("torch")
