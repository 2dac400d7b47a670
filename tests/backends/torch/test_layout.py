"""Emitted text is as a formatter would leave it, and no line is long."""

from __future__ import annotations

import ast
import random
import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from drawn_expressions import BATCH, LENGTH, SIZES, SPACE, Maker, arrays, printer, wanted
from dsfc.backends.torch.code import Code
from dsfc.backends.torch.layout import WIDTH, assign, fitted, fitted_lines, rule
from unusual_specs import COMPILED, thirds

import dsfc
from dsfc.api.locate import shipped_names
from dsfc.diagnostics.report import DiagnosticError
from dsfc.expr.build import add
from dsfc.validate.compare import EXACT, agree
from dsfc.validate.surface import surface
from dsfc.validate.values import defined, outcome

RUFF = [sys.executable, "-m", "ruff"]
HOW = ["--isolated", "--line-length", "100"]
LINTS = ("check", "--select", "F,E7,E9,W,I")


def objections(text: str, *command: str) -> str:
    """What a formatter or linter has to say of a text."""
    run = [*RUFF, *command, *HOW, "-"]
    done = subprocess.run(run, input=text, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def check_layout(text: str) -> None:
    assert [line for line in text.splitlines() if len(line) > WIDTH] == []
    assert objections(text, "format", "--diff") == ""
    assert objections(text, *LINTS) == ""


@pytest.mark.share(32, ci=75)
@pytest.mark.parametrize("name", thirds((), pytest.mark.ci))
def test_a_module_is_as_a_formatter_leaves_it(name: str, build) -> None:
    check_layout(build(name, COMPILED[name]).text)


@pytest.mark.ci
@pytest.mark.share(1, ci=9)
@pytest.mark.parametrize("name", shipped_names())
def test_a_shipped_module_is_as_a_formatter_leaves_it(name: str) -> None:
    try:
        text = dsfc.load(name).module().text
    except DiagnosticError:
        pytest.skip("a base, a modifier, or outside the language")
    check_layout(text)


LONG = "a_name_that_is_rather_long"


@pytest.mark.share(2)
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
        f"    given = {LONG}({', '.join([LONG] * 3)}) * {LONG}[..., None]",
        f"    return {LONG}({', '.join([LONG] * 3)}) + {LONG}",
        f"    return {LONG} * ({LONG} + {LONG}) - {LONG} / {LONG} + (-{LONG} * {LONG} + {LONG})",
    ],
)
def test_a_line_is_as_a_formatter_leaves_it(line: str) -> None:
    head, body = ("def f():\n", "") if line.startswith(" ") else ("", "    pass\n")
    assert objections(f"{head}{fitted(line)}\n{body}", "format", "--diff") == ""


WORDS = ("a", "H", "value", "b_part_2", LONG, f"{LONG}_too")


def drawn(rng: random.Random, depth: int, binds: int = 0) -> str:
    """An expression: calls, methods, indices, sums and products inside one another."""
    kind = rng.choice(("name", "call", "sign", "index", "sum", "sum", "product", "product"))
    if depth == 0 or kind == "name":
        return rng.choice(WORDS)
    if kind == "call":
        inside = ", ".join(drawn(rng, depth - 1) for _ in range(rng.randint(1, 3)))
        return f"{rng.choice(WORDS)}({inside})"
    if kind == "index":
        return f"{rng.choice(WORDS)}[{rng.choice(('..., None', ':, None', '0'))}]"
    if kind == "sign":
        return f"({drawn(rng, depth - 1)} {rng.choice('<>')} 0).to({rng.choice(WORDS)})"
    level, signs = (1, "+-") if kind == "sum" else (2, "*/")
    parts = [drawn(rng, depth - 1, level + (k > 0)) for k in range(rng.randint(2, 4))]
    text = "".join(f" {rng.choice(signs)} {x}" if k else x for k, x in enumerate(parts))
    return f"({text})" if binds >= level else text


def test_any_statement_is_as_a_formatter_leaves_it() -> None:
    rng, lines = random.Random(0), []
    while len(lines) < 300:
        line = f"    {rng.choice(('return', 'given =', 'given +='))} {drawn(rng, 4)}"
        if 100 < len(line) < 400:
            lines.append(line)
    functions = (f"def f{k}():\n{fitted(line)}\n" for k, line in enumerate(lines))
    assert objections("\n\n".join(functions), "format", "--diff")[:3000] == ""


def assigned(seed: int, lead: bool, target: str) -> list[str]:
    """The lines of a long value, checked to compute it from parts, each named before it is read."""
    rng = random.Random(seed)
    expr = add(*(Maker(rng.randrange(2**32)).expression(rng.choice((2, 3))) for _ in range(6)))
    data, axes, taken = arrays(seed, lead), tuple(sorted(expr.axes)), list[str]()

    def fresh(name: str) -> str:
        taken.append(f"{name}_{len(taken) + 1}")
        return taken[-1]

    def whole(code: Code) -> str:
        return code.aligned(axes, lead)

    lines = assign(target, expr, printer(lead), fresh, "", whole)
    assert [line.partition(" = ")[0] for line in lines] == [*taken, target]
    base = target if len(target) <= 16 else "part"
    assert taken == [f"{base}_{k + 1}" for k in range(len(taken))]
    with np.errstate(all="ignore"):
        want = wanted(expr, data, lead, axes)
    if np.isfinite(want).all() and np.abs(want).max() < 1e8:
        names = {name: torch.from_numpy(np.asarray(x)) for name, x in data.items()}
        exec("\n".join(lines), SPACE, names)  # our own text
        got = torch.as_tensor(names[target], dtype=torch.float64).numpy()
        shape = (*((BATCH, LENGTH) if lead else ()), *(SIZES[a] for a in axes))
        room = 1e-11 * max(1.0, np.abs(want).max())  # roundings of some hundred operations
        np.testing.assert_allclose(np.broadcast_to(got, shape), want, rtol=0, atol=room)
    return lines


@pytest.mark.ci
def test_a_long_value_is_assigned_in_parts_that_fit() -> None:
    lines: list[str] = []
    for seed in range(80):
        lines += assigned(seed, seed % 2 == 0, "y" if seed % 3 else "a_rather_long_target")
    # Names alone may be too many for a line, and a call that has no name of its own too long.
    assert sum(len(line) > WIDTH for line in lines) <= len(lines) / 100
    # A part is worth a line, and half of a line is not left empty for want of a larger one.
    parts = [line for line in lines if re.match(r"\w+_\d+ = ", line)]
    assert sum(map(len, parts)) / len(parts) > WIDTH / 2


@pytest.mark.share(2)
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


def test_programs_in_raw_strings_are_not_laid_out_as_python() -> None:
    long = "    call(" + ", ".join(f"argument_{k}" for k in range(12)) + ")"
    assert fitted(long) != long
    raw = f'_TEXT = r"""{long}\n{long}\n"""'
    assert fitted_lines(f"{raw}\n{long}") == f"{raw}\n{fitted(long)}"
    assert fitted_lines(f'r"""{long}"""\n{long}') == f'r"""{long}"""\n{fitted(long)}'
