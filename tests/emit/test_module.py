"""Plan → text: a function of the plan, and nothing of the spec is ever run on the way."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dsfc
from dsfc.emit import RUNTIMES
from dsfc.emit import module as emission
from dsfc.emit.audit import EmissionError
from dsfc.emit.backend import backend_names, load_backend
from dsfc.emit.module import digest, emit, origin
from dsfc.fused.ir import FusedPlan

# One spec per form of scan, a ratio, and one with two scans.
SPECS = ("normalized_attn", "linear_attn", "s6", "rg_lru", "retnet")


@pytest.fixture(scope="module", params=SPECS)
def fused(request: pytest.FixtureRequest) -> FusedPlan:
    return dsfc.load(request.param).fused("torch")


def test_the_head_says_where_the_text_comes_from(fused: FusedPlan) -> None:
    module = emit(fused, "torch", "mine.dsf")
    said = origin(module.text.encode())
    assert said is not None and said.untouched
    assert (said.backend, said.source, said.plan) == ("torch", "mine.dsf", digest(fused.original))


def test_the_same_plan_gives_the_same_bytes(fused: FusedPlan) -> None:
    assert emit(fused, "torch", "a.dsf") == emit(fused, "torch", "a.dsf")


def test_the_namespace_is_of_mixer_and_text(fused: FusedPlan) -> None:
    one = emit(fused, "torch", "a.dsf").namespace
    assert one.startswith(f"dsfc_{fused.plan.name}_") and one.isidentifier()
    assert one in emit(fused, "torch", "a.dsf").text


def test_two_texts_have_two_namespaces() -> None:
    names = {emit(dsfc.load(s).fused("torch"), "torch", "a.dsf").namespace for s in SPECS}
    assert len(names) == len(SPECS)


def test_a_module_is_rendered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = load_backend("torch")
    times = []

    class Counting:
        name, reserved, computes = torch.name, torch.reserved, torch.computes
        runtime = torch.runtime

        def render(self, *arguments: Any) -> tuple[str, str]:
            times.append(arguments)
            return torch.render(*arguments)

    compiled = dsfc.load("s6")
    module = compiled.module()
    monkeypatch.setattr(emission, "load_backend", lambda name: Counting())
    papers = compiled.mixer.papers
    assert emit(compiled.fused("torch"), "torch", "s6.dsf", papers=papers) == module
    assert len(times) == 1


HOLDS = """mixer λ "{doc}" {{
  dims d
  input u : d
  a = sigmoid(u)   "{doc}"
  y = a * u
}}
"""


@pytest.mark.parametrize("doc", ["dsfc_λ_00000000", "dsfc_λ_00000000 and dsfc_λ_00000001"])
def test_a_text_that_looks_like_the_namespace_stays(doc: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.dsf"
    file.write_text(HOLDS.format(doc=doc), "utf-8")
    module = dsfc.load(file).module()
    file.write_text(HOLDS.format(doc="another text"), "utf-8")
    other = dsfc.load(file).module()
    assert module.text.count(doc) == other.text.count("another text") > 0
    named = module.text.count(module.namespace)
    assert named == other.text.count(other.namespace) > 0


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "source", ["a\nimport os\n.dsf", 'a""".dsf', "\\", "", "é.dsf", "x" * 500, "{{ 7 * 7 }}.dsf"]
)
def test_the_name_of_a_file_cannot_write_code(source: str) -> None:
    fused = dsfc.load("s6").fused("torch")
    text = emit(fused, "torch", source).text
    said = origin(text.encode())
    assert said is not None and re.fullmatch(r"[A-Za-z0-9_.-]{1,80}", said.source)
    assert len(text.splitlines()) == len(emit(fused, "torch", "s6.dsf").text.splitlines())


CITED = """mixer mine {
  paper "De \\, Gu et al.", 2024, "Whose\\title\\x00 is this?", url "https://a.org/b?c=d"  "§2 \\"
  dims d
  input u : d
  y = 2 * u
}
"""


def test_the_papers_of_a_spec_stand_in_the_docstring(tmp_path: Path) -> None:
    file = tmp_path / "mine.dsf"
    file.write_text(CITED, "utf-8")
    said = ast.get_docstring(ast.parse(dsfc.load(file).module().text))
    title = "Whose?title?x00 is this?"
    line = f"- De ?, Gu et al. 2024: {title}, https://a.org/b?c=d, §2 ?"
    assert said is not None and f"Papers:\n\n{line}\n\nDerived from mine.dsf:" in said
    file.write_text(re.sub(r"  paper.*\n", "", CITED), "utf-8")
    assert "Papers" not in dsfc.load(file).module().text


def test_what_a_backend_may_not_write_is_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Backend:
        name = "torch"
        reserved: frozenset[str] = frozenset()
        runtime = load_backend("torch").runtime
        computes = None

        def render(self, *_: object) -> tuple[str, str]:
            return "import os\n", ""

    monkeypatch.setattr(emission, "load_backend", lambda name: Backend())
    with pytest.raises(EmissionError, match="imports os"):
        emit(dsfc.load("s6").fused("torch"), "torch", "s6.dsf")


def test_backends_are_found_by_name() -> None:
    assert "torch" in backend_names()
    assert load_backend("torch").name == "torch"


SEEDED = """\
import hashlib, dsfc
for name in {specs!r}:
    for backend in {backends!r}:
        text = dsfc.load(name).module(backend).text
        print(name, backend, hashlib.sha256(text.encode()).hexdigest())
"""


@pytest.mark.full
def test_the_same_bytes_under_any_hash_seed() -> None:
    def sums(seed: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", SEEDED.format(specs=SPECS, backends=backend_names())],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    assert sums("1") == sums("4321")


LINTED = "E4,E7,E9,F,I"
"""What ruff checks unless told otherwise, and the order of imports."""


@pytest.mark.full
def test_a_linter_finds_nothing(tmp_path: Path) -> None:
    pytest.importorskip("ruff")
    for name in ("gla", "rg_lru", "s6", "rwkv4", "short_convolution", "normalized_attn"):
        for backend in backend_names():
            for runtime in RUNTIMES:
                (tmp_path / runtime).mkdir(exist_ok=True)
                out = tmp_path / runtime / f"{name}_{backend}.py"
                dsfc.compile(name, backend, out, runtime=runtime)
    command = [sys.executable, "-m", "ruff", "check", "--isolated", f"--select={LINTED}"]
    # Kernels for GPUs load what some of their variants do not use.
    gpus = (f"{tmp_path}/*/*_{backend}.py:F841" for backend in ("all", "triton"))
    command.append(f"--per-file-ignores={','.join(gpus)}")
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[:2000] + done.stderr[-500:]


CANARIES = """\
# canary_comment __import__("os").system("canary_comment_run")
mixer canary_mixer "canary_doc \'\'\' \\\\ \\N {{ 7 * 7 }} {% import os %} '+__import__('os')+'" {
  dims canary_dim
  input canary_input : canary_dim
  param canary_param : canary_dim = 1/2   # canary_note
  buffer canary_buffer : canary_dim = 2
  state canary_state : canary_dim
  canary_const = 3
  canary_fun(canary_arg) = canary_arg * canary_arg
  canary_gate = sigmoid(canary_param * canary_input)   "canary_paper __import__('os') \\"
  canary_state = canary_gate * canary_state[i-1] + canary_fun(canary_input)   "canary_eq {x!r}"
  y = canary_buffer * canary_state
}
"""

WATCHED = """\
import ast, sys, types

events = []

def strings(code):
    yield from code.co_names + code.co_varnames + (code.co_name,)
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            yield from strings(c)
        elif isinstance(c, str):
            yield c

def hook(event, args):
    if event == "compile":
        source = args[0]
        if isinstance(source, (bytes, str)):
            text = source.decode() if isinstance(source, bytes) else source
            frame, callers = sys._getframe(1), []
            while frame is not None:
                callers.append(frame.f_code.co_filename)
                frame = frame.f_back
            # The audit parses what was emitted; it does not run it.
            audited = len(callers) > 1 and callers[1].endswith("python_text.py")
            if "canary" in text and not audited:
                events.append((event, callers[0]))
        elif isinstance(source, ast.AST) and "canary" in ast.dump(source):
            events.append((event, "tree"))
    elif event == "exec":
        if any("canary" in s for s in strings(args[0])):
            events.append((event, args[0].co_filename))
    elif event in ("import", "os.system", "os.exec", "os.posix_spawn", "subprocess.Popen"):
        if "canary" in repr(args) or not event == "import":
            events.append((event, repr(args)))

sys.addaudithook(hook)
import dsfc

it = dsfc.load(sys.argv[1])
for value in (it.mixer, it.system, it.structure, it.plan):
    pass
print(it.module().text)
print("EVENTS", events)
"""


@pytest.mark.ci
def test_no_text_of_a_spec_reaches_an_evaluator(tmp_path: Path) -> None:
    spec = tmp_path / "canary_file.dsf"
    spec.write_text(CANARIES, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, str(spec)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    text, events = done.stdout.rsplit("EVENTS ", 1)
    assert events.strip() == "[]"
    assert "canary_state" in text and "{{ 7 * 7 }}" in text
    assert_only_docstrings_hold(text, ("__import__", "{{", "{%", "{x!r}"))


@pytest.mark.ci
def test_the_watch_sees_an_evaluator(tmp_path: Path) -> None:
    spec = tmp_path / "canary_file.dsf"
    spec.write_text(CANARIES, encoding="utf-8")
    spoilt = WATCHED.replace("it = dsfc", "eval('str(\\'canary\\')'); it = dsfc")
    done = subprocess.run(
        [sys.executable, "-c", spoilt, str(spec)], capture_output=True, text=True, check=True
    )
    assert "('compile', " in done.stdout.rsplit("EVENTS ", 1)[1]


def assert_only_docstrings_hold(text: str, words: tuple[str, ...]) -> None:
    """The words stand in docstrings and comments, never in code."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            node.body = node.body[1:] or [ast.Pass()]
    code = ast.unparse(tree)
    assert [word for word in words if word in code] == []


@pytest.mark.parametrize(
    ("name", "most"), [("normalized_attn", 680), ("softmax", 601), ("s6", 792)]
)
def test_most_of_a_module_is_about_its_mixer_up_to_the_runtime(name: str, most: int) -> None:
    own, runtime = dsfc.load(name).module("torch").text.split("\n# --- runtime ---", 1)
    assert len(own.split("\n")) <= most
    assert len(runtime.split("\n")) <= 2_557
