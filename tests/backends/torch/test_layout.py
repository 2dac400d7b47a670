"""Emitted text is as a formatter would leave it, and no line is long."""

from __future__ import annotations

import ast
import random
import subprocess
import sys
from pathlib import Path

import pytest
from dsfc.backends.torch.layout import WIDTH, fitted, rule
from unusual_specs import COMPILED

import dsfc
from dsfc.diagnostics.report import DiagnosticError
from dsfc.locate import shipped_names
from dsfc.validate.compare import EXACT, agree
from dsfc.validate.surface import surface
from dsfc.validate.values import defined, outcome

pytestmark = pytest.mark.ci


@pytest.fixture(scope="module")
def folder(load, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every shipped spec that compiles and every unusual one, as modules."""
    folder = tmp_path_factory.mktemp("layout")
    for name in shipped_names():
        try:
            text = dsfc.load(name).module().text
        except DiagnosticError:
            continue
        (folder / f"shipped_{name}.py").write_text(text, encoding="utf-8")
    for name, body in COMPILED.items():
        (folder / f"{name}.py").write_text(load(name, body).module().text, encoding="utf-8")
    return folder


def test_no_line_is_long(folder: Path) -> None:
    long = [
        (path.name, line)
        for path in sorted(folder.glob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if len(line) > 100
    ]
    assert not long


@pytest.mark.parametrize(
    "command",
    [("format", "--check"), ("check", "--select", "F,E7,E9,W"), ("check", "--select", "I")],
)
def test_the_formatter_has_nothing_to_do(folder: Path, command: tuple[str, ...]) -> None:
    run = [sys.executable, "-m", "ruff", *command, "--isolated", "--line-length", "100"]
    done = subprocess.run([*run, str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-300:]


LONG = "a_name_that_is_rather_long"


@pytest.mark.parametrize(
    "line",
    [
        "    return x.to(dtype),",
        "    given = x.to(dtype),",
        f"def {LONG}({', '.join(f'{x}: int' for x in 'ABCDEFG')}) -> tuple[float, ...]:",
        f"def {LONG}({', '.join(f'{x}{LONG}: int' for x in 'ABCDEFG')}) -> tuple[float, ...]:",
        f"    return {LONG}({LONG}, {LONG}), {LONG}({LONG}, {LONG})",
        f"    return *{LONG}.apply(*tensors, {LONG}, {LONG}), None, None, None, None",
        f"    given = {', '.join([LONG] * 5)}",
        f"    given = {LONG}({LONG}({LONG}, {LONG}({LONG}))),",
        f"    given = a * b * c * (0.5 + 0.5 * (({LONG} > 0).to(float) - ({LONG} < 0).to(float)))",
        f"    given = H * ({' + '.join([LONG] * 3)})",
        f"    given = H * ({' + '.join([f'{LONG} * {LONG}'] * 3)})",
        f"    given = a - {LONG}({', '.join([LONG] * 5)})",
        f"    given = {LONG}(a * {LONG} - {LONG}({', '.join([LONG] * 5)}), {LONG})",
        f"    given = {LONG}(a, b=a * {LONG} - {LONG}({', '.join([LONG] * 5)}))",
        f"    given = H * (K + L * {LONG}({', '.join([LONG] * 5)}))",
        f"    given = -({' + '.join([LONG] * 5)})",
        f"    given += {' - '.join([f'{LONG}({LONG})'] * 3)}",
        f"    return {' * '.join([f'{LONG}({LONG})'] * 2)} * {LONG}",
        f"    return {LONG}({', '.join([LONG] * 3)}) + {LONG}",
        f"    return {LONG} * ({LONG} + {LONG}) - {LONG} / {LONG} + (-{LONG} * {LONG} + {LONG})",
    ],
)
def test_a_line_is_as_a_formatter_leaves_it(line: str, tmp_path: Path) -> None:
    head, body = ("def f():\n", "") if line.startswith(" ") else ("", "    pass\n")
    path = tmp_path / "line.py"
    path.write_text(f"{head}{fitted(line)}\n{body}", encoding="utf-8")
    run = [sys.executable, "-m", "ruff", "format", "--check", "--isolated", "--line-length", "100"]
    done = subprocess.run([*run, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, path.read_text(encoding="utf-8") + done.stderr


WORDS = ("a", "H", "value", "b_part_2", LONG, f"{LONG}_too")


def drawn(rng: random.Random, depth: int, binds: int = 0) -> str:
    """An expression: calls, methods, sums and products inside one another."""
    kind = rng.choice(("name", "call", "sign", "sum", "sum", "product", "product"))
    if depth == 0 or kind == "name":
        return rng.choice(WORDS)
    if kind == "call":
        inside = ", ".join(drawn(rng, depth - 1) for _ in range(rng.randint(1, 3)))
        return f"{rng.choice(WORDS)}({inside})"
    if kind == "sign":
        return f"({drawn(rng, depth - 1)} {rng.choice('<>')} 0).to({rng.choice(WORDS)})"
    level, signs = (1, "+-") if kind == "sum" else (2, "*/")
    parts = [drawn(rng, depth - 1, level + (k > 0)) for k in range(rng.randint(2, 4))]
    text = "".join(f" {rng.choice(signs)} {x}" if k else x for k, x in enumerate(parts))
    return f"({text})" if binds >= level else text


def test_any_statement_is_as_a_formatter_leaves_it(tmp_path: Path) -> None:
    rng, lines = random.Random(0), []
    while len(lines) < 300:
        line = f"    {rng.choice(('return', 'given =', 'given +='))} {drawn(rng, 4)}"
        if 100 < len(line) < 400:
            lines.append(line)
    path = tmp_path / "lines.py"
    functions = (f"def f{k}():\n{fitted(line)}\n" for k, line in enumerate(lines))
    path.write_text("\n\n".join(functions), encoding="utf-8")
    run = [sys.executable, "-m", "ruff", "format", "--diff", "--isolated", "--line-length", "100"]
    done = subprocess.run([*run, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[:3000] + done.stderr


@pytest.mark.parametrize("length", [1, 14, 40, 64])
def test_a_heading_with_a_long_name_is_a_comment(length: int, load) -> None:
    heading = rule(f"mode: chunked of {'a' * length} (the state carried from chunk to chunk)")
    assert all(line.startswith("# ") and len(line) <= WIDTH for line in heading.split("\n"))
    name = "a" * length
    body = f"""dims d
      input u : d
      param w : d unit
      state {name}, z : d
      {name} = w * {name}[i-1] + u
      z = sigmoid(u) * z[i-1] + {name}
      y = {name} + z"""
    ast.parse(load(f"named_by_{length}", body).module().text)


def test_a_filter_reads_a_name_with_a_past_however_long_it_is(build) -> None:
    name = "a_name_of_a_value_that_is_rather_long_for_one_of_them"
    body = f"""dims d, t = 3
      input u : d
      param w : d × t
      {name} = tanh(u)
      y = silu(fir[t](w, {name}) * {name}) + {name} * {name}[i-1] + fir[t](w, {name})"""
    found = surface(build("filters_a_long_name", body).module)
    sample = found.sample(7, state=False)
    agree(outcome(found, sample, "auto", 3, output_only=True), defined(found, sample), EXACT, name)
