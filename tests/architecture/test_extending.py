"""What docs/extending.md promises: how many files it takes to add something.

A copy of the package gets a mixer, a primitive and a backend, and nothing else; a new process uses
them; other copies get a form of scan, which is trained, and a target, which prints. What a class
takes is counted in the sources.
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
    computes: None = None

    def runtime(self, fused):
        """Returns no section: its modules have nothing in common."""

    def costs(self, fused):
        """Returns nothing: there are no kernels."""
        return ""

    def render(self, fused, identity, identifier, class_name, function_name, beside, whole):
        """Returns the text and the namespace of its operators, of which it has none."""
        return f"KERNELS = {[type(kernel).__name__ for kernel in fused.original.kernels]!r}\\n", ""


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


def copied(root: Path, folder: Path) -> Path:
    """Copies the package as it is installed into a folder."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(root / "dsfc", folder / "dsfc", ignore=ignored)
    for part in ("grammar", "backends", "specs"):
        shutil.copytree(root / part, folder / "dsfc" / part, ignore=ignored)
    return folder


def used(folder: Path, out: Path, program: str) -> subprocess.CompletedProcess[str]:
    """Uses in a new process what was added to a copy."""
    names = f"import sys\nFOLDER, OUT = {str(folder)!r}, {str(out)!r}\nsys.path.insert(0, FOLDER)\n"
    return subprocess.run(
        [sys.executable, "-P", "-c", names + program], capture_output=True, text=True, check=False
    )


@pytest.mark.ci
def test_a_mixer_is_one_file_a_primitive_one_row_a_backend_one_package(
    root: Path, tmp_path: Path
) -> None:
    copy = copied(root, tmp_path / "copy")
    assert used(copy, tmp_path, PROGRAM).returncode != 0
    (copy / "dsfc" / "specs" / "cubic.dsf").write_text(MIXER, encoding="utf-8")
    package = copy / "dsfc" / "backends" / "listing"
    package.mkdir()
    (package / "__init__.py").write_text(BACKEND, encoding="utf-8")
    table = copy / "dsfc" / "expr" / "table.py"
    text = table.read_text(encoding="utf-8")
    first = text.index('    Primitive("tanh", ')
    table.write_text(text[:first] + ROW + text[first:], encoding="utf-8")
    done = used(copy, tmp_path, PROGRAM)
    assert done.stdout == "all used\n", done.stderr


CLASSES = {"structure/classes.py", "structure/classify.py", "plan/readings.py", "plan/build.py"}
"""Files of the compiler that may name a class, besides `structure/ir.py`, which lists them."""

FORMS = {
    "dsfc/plan": {"dense", "pairs_ir", "readings", "real_parts", "recurrence_ir", "scans"},
    "dsfc/fused": {"expand", "ir", "prologue", "prologue_epilogue", "real_imag", "verify"},
    "dsfc/kernels": {"chunkwise", "convolution", "layout", "operands", "tokens"},
    "backends/c": {"skeletons"},
    "backends/torch": {"modes", "operators", "rotating_frame"},
    "backends/triton": {"coverage", "printed", "render", "skeletons", "tiles", "toolchains"},
    "backends/triton/cost": {"counts", "elementwise", "scans", "selective"},
}
"""Files that may name a form that exists, besides those of rows and `plan/scan_ir.py`, which lists
them. A new form goes into none of them, but where it is to have kernels."""


def naming(root: Path, kind: str, name: str) -> set[str]:
    """Files in which a member of an enumeration is named."""
    files = (p for top in ("dsfc", "backends") for p in (root / top).rglob("*.py"))
    word = re.compile(rf"\b{kind}\.{name}\b")
    return {
        p.relative_to(root).as_posix() for p in files if word.search(p.read_text(encoding="utf-8"))
    }


@pytest.mark.share(4)
@pytest.mark.parametrize("name", [c.name for c in ClassName])
def test_a_class_is_named_in_three_files_at_most(name: str, root: Path) -> None:
    found = naming(root, "ClassName", name)
    assert "dsfc/structure/classes.py" in found
    assert len(found) <= 3 and found <= {f"dsfc/{f}" for f in CLASSES}


@pytest.mark.share(4)
@pytest.mark.parametrize("form", Form)
def test_a_form_of_scan_is_named_where_the_table_says(form: Form, root: Path) -> None:
    places = {f"{folder}/{file}.py" for folder, files in FORMS.items() for file in files}
    rows = {f"{plan}/forms/{form.value}.py" for plan in ("dsfc/plan", "backends/torch")}
    found = naming(root, "Form", form.name)
    assert f"dsfc/plan/forms/{form.value}.py" in found
    others = {f for f in found - places - rows - {"dsfc/plan/scan_ir.py"} if "/forms/" not in f}
    assert not others


def test_the_page_says_the_same(root: Path) -> None:
    page = (root / "docs" / "extending.md").read_text(encoding="utf-8")
    kind = next(row for row in page.splitlines() if row.startswith("| a class |"))
    named = set(re.findall(r"`dsfc/([\w/]+\.py)`", kind))
    assert named == CLASSES | {"structure/ir.py"}
    form = next(row for row in page.splitlines() if row.startswith("| a form of scan |"))
    files = {
        name.replace("<form>", "sum") for name in re.findall(r"`((?:dsfc|backends)/[^`]+)`", form)
    }
    assert files == set(SUM)


SUM = {
    "dsfc/plan/scan_ir.py": (
        '    STEPPED = "stepped"\n',
        '    STEPPED = "stepped"\n    SUM = "sum"\n',
    ),
    "dsfc/plan/forms/sum.py": '''\
"""Scans without keys that forget nothing: out_i = out_{i-1} + value_i."""

from dsfc.expr.build import is_zero
from dsfc.plan.forms.row import FormRow
from dsfc.plan.forms.scans import ScanCheck, state
from dsfc.plan.scan_ir import Form, Scan

ROW = FormRow(
    Form.SUM,
    Scan,
    frozenset({"recurrent", "parallel"}),
    ScanCheck(keyed=False),
    state,
    narrows=frozenset({Form.ELEMENTWISE}),
    takes=lambda block: is_zero(block.log),
)
''',
    "backends/torch/forms/sum.py": '''\
"""Sums over time, printed by the templates of elementwise scans."""

from dsfc.expr.build import ZERO, mul, num
from dsfc.plan.sizes import LENGTH

from ..counts import Counts
from ..skeletons import ElementwiseSkeleton
from .row import Layout, TorchForm


class SumSkeleton(ElementwiseSkeleton):
    """A sum over time."""

    @property
    def form(self):
        """Name of the template."""
        return "elementwise"


def _counts(scan, mode, keys, channels):
    calls = mul(num(2), LENGTH) if mode == "recurrent" else num(20)
    return Counts(calls, ZERO, mul(num(3), keys, channels))


ROW = TorchForm(Layout.ENTRIES, SumSkeleton, _counts, chunk=64)
''',
}
"""A form of scan: file → its text, or what of it is replaced by what."""
SUM_SPEC = """\
mixer sums {
  dims d
  input u : d
  param w, g : d
  state s, h : d
  s = s[i-1] + w * u
  h = sigmoid(g * u) * h[i-1] + s
  y = tanh(s) + h
}
"""
SUM_PROGRAM = """
import dsfc, numpy as np, torch
assert dsfc.__file__.startswith(FOLDER), dsfc.__file__
spec = dsfc.load(SPEC)
forms = [k.form.value for k in spec.plan.kernels if hasattr(k, "form")]
assert forms == ["sum", "elementwise"], forms
assert [m.name for m in spec.plan.modes if m.legal] == ["recurrent"], spec.plan.modes
for backend in ("c", "triton"):
    assert "sums" in spec.module(backend).text
torch.manual_seed(0)
layer = dsfc.import_module(dsfc.compile(SPEC, out=OUT)).Sums(d=3, dtype=torch.float64)
for p in layer.parameters():
    torch.nn.init.normal_(p)
u = torch.randn(2, 7, 3, dtype=torch.float64, requires_grad=True)
w, g = (p.detach().numpy() for p in (layer.w, layer.g))
x = u.detach().numpy()
s, h, rows = np.zeros((2, 3)), np.zeros((2, 3)), []
for i in range(7):
    s = s + w * x[:, i]
    h = h / (1 + np.exp(-g * x[:, i])) + s
    rows.append(np.tanh(s) + h)
np.testing.assert_allclose(layer(u).detach().numpy(), np.stack(rows, 1), rtol=1e-10)
torch.autograd.gradcheck(lambda u: layer(u), (u,))
target, losses = torch.randn(2, 7, 3, dtype=torch.float64), []
optimizer = torch.optim.SGD(layer.parameters(), lr=1e-3)
for _ in range(20):
    optimizer.zero_grad()
    loss = (layer(u.detach()) - target).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < losses[0], losses
print("trained")
"""


@pytest.mark.full
def test_a_form_of_scan_is_three_files(root: Path, tmp_path: Path) -> None:
    folder = copied(root, tmp_path / "copy")
    spec, out = tmp_path / "sums.dsf", tmp_path / "out"
    spec.write_text(SUM_SPEC, encoding="utf-8")
    out.mkdir()
    program = f"SPEC = {str(spec)!r}\n{SUM_PROGRAM}"
    assert used(folder, out, program).returncode != 0
    for name, text in SUM.items():
        file = folder / ("dsfc" if name.startswith("backends") else "") / name
        if isinstance(text, tuple):
            held = file.read_text(encoding="utf-8")
            assert held.count(text[0]) == 1
            text = held.replace(*text)
        file.write_text(text, encoding="utf-8")
    done = used(folder, out, program)
    assert done.stdout == "trained\n", done.stderr
    assert len(SUM) <= 3


LISTING = '''\
"""Prints a plan, and what kernels may compute inside, as text."""

from dataclasses import dataclass

from dsfc.fused.render import render


@dataclass(frozen=True)
class Listing:
    """Prints a module without any torch."""

    name: str = "text"
    reserved: frozenset = frozenset({"PLAN"})
    faults: tuple = ()
    probes: tuple = ()
    needs: tuple = ()

    def runtime(self, fused):
        """Returns no section: its modules have nothing in common."""

    def computes(self, primitive):
        """Returns that a kernel may compute every function."""
        return True

    def costs(self, fused):
        """Returns nothing: there are no kernels."""
        return ""

    def kernels(self, fused):
        """Returns no kernels of the kernel IR."""
        return ()

    def render(self, fused, identity, identifier, class_name, function_name, beside, whole):
        """Returns the text and the namespace of its operators, of which it has none."""
        return f"PLAN = {render(fused)!r}\\n", ""


BACKEND = Listing()
'''
LISTING_PROGRAM = """
import dsfc
assert dsfc.__file__.startswith(FOLDER), dsfc.__file__
plan = dsfc.import_module(dsfc.compile("rg_lru", backend="text", out=OUT)).PLAN
assert "scan h computes" in plan and "sigmoid(W_r_u + b_r)" in plan, plan
print("printed")
"""


@pytest.mark.ci
def test_a_target_is_one_folder(root: Path, tmp_path: Path) -> None:
    folder, out = copied(root, tmp_path / "copy"), tmp_path / "out"
    out.mkdir()
    assert used(folder, out, LISTING_PROGRAM).returncode != 0
    package = folder / "dsfc" / "backends" / "text"
    package.mkdir()
    (package / "__init__.py").write_text(LISTING, encoding="utf-8")
    done = used(folder, out, LISTING_PROGRAM)
    assert done.stdout == "printed\n", done.stderr
