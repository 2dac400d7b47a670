"""What docs/extending.md promises: how many files it takes to add something.

A copy of the package gets a mixer, a primitive and a backend, and nothing else; a new process uses
them. What a class and a form of scan take is counted in the sources.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dsfc.plan.scan_ir import Form
from dsfc.structure.ir import ClassName

ROW = """\
    Primitive("cube", 1, _R, lambda x: x * x * x,
              adjoints.partials(lambda a, y: adjoints.mul(adjoints.num(3), a[0], a[0])),
              _within(REALS), _UP, "",
              {"torch": "({0} * {0} * {0})", "triton": "({0} * {0} * {0})"},
              meaning="x^3"),
"""
MIXER = """\
mixer cubic {
  dims d
  input u : d
  param w : d
  state s : d
  s = sigmoid(w * u) * s[i-1] + cube(u)
  y = s
}
"""
BACKEND = '''\
"""Prints what a plan computes, in order."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Listing:
    """Prints a module without any torch."""

    name: str = "listing"
    reserved: frozenset = frozenset({"KERNELS"})
    faults: tuple = ()
    runtime: None = None
    computes: None = None

    def costs(self, fused):
        """Returns nothing: there are no kernels."""
        return ""

    def render(self, fused, identity, identifier, class_name, function_name):
        """Returns the text."""
        return f"KERNELS = {[type(kernel).__name__ for kernel in fused.original.kernels]!r}\\n"


BACKEND = Listing()
'''
PROGRAM = """
import dsfc

assert dsfc.__file__.startswith(FOLDER), dsfc.__file__
file = dsfc.compile("cubic", out=OUT)
import numpy as np, torch

module = dsfc.import_module(file)
layer = module.Cubic(d=3, dtype=torch.float64)
torch.nn.init.normal_(layer.w)
u = torch.randn(2, 5, 3, dtype=torch.float64, requires_grad=True)
y = layer(u)
state, rows = np.zeros((2, 3)), []
for x in u.detach().numpy().swapaxes(0, 1):
    state = state / (1 + np.exp(-layer.w.detach().numpy() * x)) + x**3
    rows.append(state)
np.testing.assert_allclose(y.detach().numpy(), np.stack(rows, 1), rtol=1e-10)
torch.autograd.gradcheck(lambda u: layer(u), (u,))
triton = dsfc.load("cubic").module("triton").text
assert "cubic" in triton
listing = dsfc.import_module(dsfc.compile("cubic", backend="listing", out=OUT, force=True))
assert "Scan" in listing.KERNELS, listing.KERNELS
print("all used")
"""


@pytest.fixture(scope="module")
def copy(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as it is installed, in a folder of its own."""
    folder = tmp_path_factory.mktemp("copy")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(root / "dsfc", folder / "dsfc", ignore=ignored)
    for part in ("grammar", "backends", "specs"):
        shutil.copytree(root / part, folder / "dsfc" / part, ignore=ignored)
    return folder


def used(folder: Path, out: Path) -> subprocess.CompletedProcess[str]:
    """Uses in a new process what was added to a copy."""
    names = f"import sys\nFOLDER, OUT = {str(folder)!r}, {str(out)!r}\nsys.path.insert(0, FOLDER)\n"
    return subprocess.run(
        [sys.executable, "-P", "-c", names + PROGRAM], capture_output=True, text=True, check=False
    )


@pytest.mark.ci
def test_a_mixer_is_one_file_a_primitive_one_row_a_backend_one_package(
    copy: Path, tmp_path: Path
) -> None:
    assert used(copy, tmp_path).returncode != 0
    (copy / "dsfc" / "specs" / "cubic.dsf").write_text(MIXER, encoding="utf-8")
    package = copy / "dsfc" / "backends" / "listing"
    package.mkdir()
    (package / "__init__.py").write_text(BACKEND, encoding="utf-8")
    table = copy / "dsfc" / "expr" / "table.py"
    text = table.read_text(encoding="utf-8")
    first = text.index('    Primitive("tanh", ')
    table.write_text(text[:first] + ROW + text[first:], encoding="utf-8")
    done = used(copy, tmp_path)
    assert done.stdout == "all used\n", done.stderr


CLASSES = {"structure/classes.py", "structure/classify.py", "plan/readings.py", "plan/build.py"}
"""Files of the compiler that may name a class, besides `structure/ir.py`, which lists them."""

FORMS = {
    "dsfc/plan": {
        "adjoint",
        "dense",
        "modes",
        "real_parts",
        "pairs_ir",
        "readings",
        "recurrence_ir",
        "scans",
        "verify",
    },
    "dsfc/fused": {"expand", "ir", "prologue", "prologue_epilogue", "real_imag", "verify"},
    "dsfc/kernels": {"chunks", "tokens"},
    "backends/c": {"skeletons"},
    "backends/torch": {"calls", "cost", "layer", "modes", "operators"},
    "backends/triton": {"printed", "render", "skeletons", "tiles", "toolchains"},
    "backends/triton/cost": {"counts", "elementwise", "scans", "selective"},
}
"""Files that may name a form of scan, besides `plan/scan_ir.py`, which lists them."""


def naming(root: Path, kind: str, name: str) -> set[str]:
    """Files in which a member of an enumeration is named."""
    files = (p for top in ("dsfc", "backends") for p in (root / top).rglob("*.py"))
    word = re.compile(rf"\b{kind}\.{name}\b")
    return {
        p.relative_to(root).as_posix() for p in files if word.search(p.read_text(encoding="utf-8"))
    }


@pytest.mark.share(2)
@pytest.mark.parametrize("name", [c.name for c in ClassName])
def test_a_class_is_named_in_three_files_at_most(name: str, root: Path) -> None:
    found = naming(root, "ClassName", name)
    assert "dsfc/structure/classes.py" in found
    assert len(found) <= 3 and found <= {f"dsfc/{f}" for f in CLASSES}


@pytest.mark.share(2)
@pytest.mark.parametrize("name", [f.name for f in Form])
def test_a_form_of_scan_is_named_where_the_table_says(name: str, root: Path) -> None:
    places = {f"{folder}/{file}.py" for folder, files in FORMS.items() for file in files}
    found = naming(root, "Form", name) - {"dsfc/plan/scan_ir.py"}
    assert found
    assert found <= places


def test_the_page_says_the_same(root: Path) -> None:
    page = (root / "docs" / "extending.md").read_text(encoding="utf-8")
    form, kind = (
        next(row for row in page.splitlines() if row.startswith(f"| {what} |"))
        for what in ("a form of scan", "a class")
    )
    said = {folder: set(re.findall(rf"`{folder}/(\w+)\.py`", form)) for folder in FORMS}
    assert said == {
        f: files | ({"scan_ir"} if f == "dsfc/plan" else set()) for f, files in FORMS.items()
    }
    named = set(re.findall(r"`dsfc/([\w/]+\.py)`", kind))
    assert named == CLASSES | {"structure/ir.py"}
