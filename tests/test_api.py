"""What `import dsfc` offers."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import networkx as nx
import pytest
import sympy as sp

import dsfc

NAMES = {
    *("DiagnosticError", "__version__", "compile", "export", "import_module", "load", "verify"),
}


def test_the_public_names() -> None:
    assert set(dsfc.__all__) == set(dir(dsfc)) == NAMES
    assert all(getattr(dsfc, name) is not None for name in NAMES)


def test_the_version_is_that_of_the_distribution() -> None:
    assert dsfc.__version__ == version("dsfc")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        dsfc.lode  # noqa: B018


def test_mistakes_are_one_exception_with_all_of_them(tmp_path: Path) -> None:
    spec = tmp_path / "m.dsf"
    spec.write_text("mixer m {\n  dims d\n  input u : d\n  a = x\n  y = z\n}\n", encoding="utf-8")
    with pytest.raises(dsfc.DiagnosticError) as raised:
        _ = dsfc.load(spec).mixer
    assert [d.span.line for d in raised.value.diagnostics] == [4, 5]
    assert f"{spec}:4:7: E-UNKNOWN-NAME" in str(raised.value)


def test_mixers_give_matrices() -> None:
    mixer = dsfc.load("normalized_attn")
    sizes = {"d": 2, "h": 1, "n": 2, "p": 2}
    lowered = mixer.matrices(gauge="lowered", sizes=sizes)
    paper = mixer.matrices(gauge="paper", sizes=sizes)
    assert lowered.Lambda(2) == sp.eye(4)
    assert isinstance(paper.Phi(2, 1), sp.MatrixBase)
    assert sp.simplify(paper.Phi(2, 1) - lowered.Phi(2, 1)) == sp.zeros(2, 2)


def test_plans_give_graphs() -> None:
    graph = dsfc.load("s6").plan.to_networkx()
    assert isinstance(graph, nx.DiGraph) and nx.is_directed_acyclic_graph(graph)
    assert "u" in graph and graph.nodes["u"]["kind"] == "input"


def test_from_a_spec_to_a_module(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = dsfc.compile("normalized_attn", out=tmp_path)
    assert path == tmp_path / "normalized_attn.py"
    module = dsfc.import_module(path)
    layer = module.NormalizedAttn(d=8, h=2)
    assert layer(torch.randn(3, 5, 8)).shape == (3, 5, 2, 4)
    assert dsfc.import_module(path) is module


SILENT = """\
import sys, dsfc
it = dsfc.load("s6")
it.mixer, it.system, it.structure, it.plan
dsfc.compile("s6", out=sys.argv[1])
print([m for m in ("torch", "sympy", "networkx") if m in sys.modules])
it.plan.to_networkx(); it.matrices()
print([m for m in ("torch", "sympy", "networkx") if m in sys.modules])
"""


@pytest.mark.ci
def test_heavy_libraries_are_imported_where_their_objects_are_asked_for(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SILENT, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["[]", "['sympy', 'networkx']"]
