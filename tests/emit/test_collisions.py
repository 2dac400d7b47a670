"""A spec may call anything by any word of the emitted module; the module computes the same."""

from __future__ import annotations

import ast
import inspect
import keyword
import re
from pathlib import Path
from types import ModuleType

import pytest

import dsfc

torch = pytest.importorskip("torch")

SPEC = """\
mixer collide {{
  dims {axis}, kk = 3
  input {input} : {axis}
  param {param} : {axis} = 1/2
  param {linear} : {axis} -> kk ~ normal(0, 1)
  buffer {buffer} : kk = 2
  state {state} : {axis} × kk
  {let} = sigmoid({param} · {input})
  {state} = {let} * {state}[i-1] + {input} ⊗ {linear} {input}
  y = {buffer} · {state}
}}
"""
ROLES = {
    "axis": "dd",
    "input": "xx",
    "param": "pp",
    "linear": "WW",
    "buffer": "bb",
    "state": "SS",
    "let": "gg",
}
# Words of the language keep their meaning; the compiler says so, and what follows from that.
SAID = {"E-KEYWORD", "E-SYNTAX", "E-CLASH", "E-JUXTA", "E-NAME"}


def build(folder: Path, stem: str, **names: str) -> ModuleType:
    spec = folder / f"{stem}.dsf"
    spec.write_text(SPEC.format(**{**ROLES, **names}), encoding="utf-8")
    return dsfc.import_module(dsfc.compile(spec, out=folder / f"{stem}.py"))


def results(module: ModuleType) -> list[object]:
    """Outputs in every mode, a streamed token, and all gradients."""
    (layer_class,) = (
        it
        for it in vars(module).values()
        if isinstance(it, type) and issubclass(it, torch.nn.Module)
    )
    size = next(iter(inspect.signature(layer_class).parameters))
    torch.manual_seed(0)
    layer = layer_class(**{size: 4})
    layer.reset_parameters()
    u = (torch.arange(24.0) / 24).reshape(2, 3, 4)
    out = [layer(u, mode=mode) for mode in module.MODES]
    y, state = layer(u, return_state=True)
    out += [y, layer.step(u[:, 0], state)[0]]
    layer.explain(5)
    sum(x.sum() for x in out).backward()
    return [*out, *(p.grad for p in layer.parameters())]


def words(folder: Path) -> list[str]:
    """Every name in a module's text, what layers have already, and Python's own words."""
    module = build(folder, "plain")
    tree = ast.parse(inspect.getsource(module))
    found = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    found |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    found |= {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    found |= {*keyword.kwlist, *keyword.softkwlist, *dir(torch.nn.Module()), "cls", "len", "type"}
    names = {w for w in found if re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", w)}
    return sorted(names - {*ROLES.values(), "kk", "y", "sigmoid"})


def same(a: list[object], b: list[object]) -> bool:
    return len(a) == len(b) and all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


EVERY = [
    pytest.param(97, id="some", marks=pytest.mark.ci),
    pytest.param(1, id="all", marks=pytest.mark.full),
]


@pytest.mark.share(1, ci=9)
@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("role", ROLES)
def test_no_name_of_a_spec_meets_one_of_the_module(tmp_path: Path, role: str, every: int) -> None:
    want = results(build(tmp_path, "plain"))
    # Each role meets other words where not all are tried.
    first = list(ROLES).index(role) * every // len(ROLES)
    wrong = []
    for number, word in enumerate(words(tmp_path)[first::every]):
        try:
            module = build(tmp_path, f"m{number}", **{role: word})
        except dsfc.DiagnosticError as e:
            if not {d.code for d in e.diagnostics} & SAID:
                wrong.append((word, str(e)))
            continue
        try:
            kept = same(results(module), want)
        except Exception as e:
            wrong.append((word, repr(e)))
        else:
            wrong += [] if kept else [(word, "other numbers")]
    assert wrong == []


@pytest.mark.share(9)
@pytest.mark.parametrize("role", ROLES)
def test_names_like_the_mixer_its_class_and_its_operators(tmp_path: Path, role: str) -> None:
    want = results(build(tmp_path, "plain"))
    for number, word in enumerate(("collide", "Collide", "self")):
        assert same(results(build(tmp_path, f"m{number}", **{role: word})), want), word


def test_the_backend_knows_what_layers_have_already() -> None:
    from dsfc.emit.backend import load_backend
    from dsfc.emit.names import identifier

    reserved = load_backend("torch").reserved
    taken = [w for w in dir(torch.nn.Module()) if not w.startswith("_")]
    spelt = {*taken, *(w.rstrip("_") for w in taken)}
    assert [w for w in spelt if identifier(w, reserved) in taken] == []
