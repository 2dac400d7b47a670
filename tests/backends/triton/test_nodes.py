"""Triton prints what the primitive table says, values and derivatives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from dsfc.backends.triton.cost.counts import counted
from dsfc.backends.triton.functions import FUNCTIONS, functions_of
from dsfc.backends.triton.nodes import KernelPrinter, computes
from dsfc.backends.triton.statements import statements

import dsfc
from dsfc.expr.build import div, mul, num, power, prim
from dsfc.expr.derivative import pull
from dsfc.expr.table import TABLE
from dsfc.expr.tree import Axis, Expr, Field, Now, Prim, Ref, Time

pytest.importorskip("triton")
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

N = frozenset({Axis(0, "n")})
X, Y, OUT = (Ref(n, N, Field.REAL, Time.TOKEN, Now()) for n in ("x", "y", "out"))
POINTS = np.array(
    [-30.0, -3.0, -0.7, -0.1, -1e-3, -1e-9, 0.0, 1e-9, 0.04, 0.3, 0.7, 2.5, 9, 30, 40, 1]
)
KERNEL = """
import triton
import triton.language as tl
_kernel = triton.jit
{functions}


@_kernel
def run(p_x, p_y, p_out, out, N: tl.constexpr):
    o = tl.arange(0, N)
    x = tl.load(p_x + o)
    y = tl.load(p_y + o)
    out_bar = tl.load(p_out + o)
{lines}
    tl.store(out + o, {result} + 0 * x)
"""
NAMES = {"x": "x", "y": "y", "out": "out_bar"}
ROWS = [r for r in TABLE.values() if "triton" in r.printers and r.arity]


@pytest.fixture
def run(tmp_path: Path) -> Callable[[Expr, np.ndarray, np.ndarray], np.ndarray]:
    """Prints an expression into a kernel and runs it, in float32."""

    def made(e: Expr, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        printed = statements([("r", e)], [], KernelPrinter(NAMES.__getitem__), str, "    ")
        code = "\n".join((*printed.lines, *printed.results))
        text = KERNEL.format(
            functions="\n\n\n".join(functions_of(code)),
            lines="\n".join(printed.lines),
            result=printed.results[0],
        )
        path = tmp_path / "kernel.py"
        path.write_text(text, encoding="utf-8")
        module: ModuleType = dsfc.import_module(path)
        x_, y_ = (torch.tensor(v, dtype=torch.float32) for v in (x, y))
        out = torch.full_like(x_, float("nan"))
        module.run[(1,)](x_, y_, torch.ones_like(x_), out, len(x))
        return out.double().numpy()

    return made


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.name)
def test_a_primitive_is_what_numpy_computes(row, run) -> None:
    x = POINTS.astype(np.float32).astype(np.float64)
    y = x[::-1].copy()
    got = run(prim(row.name, *(X, Y)[: row.arity]), x, y)
    with np.errstate(all="ignore"):
        want = np.asarray(row.value(*(x, y)[: row.arity]))
    defined = np.isfinite(want) & (np.abs(want) < 1e30)
    # Ten roundings of 6e-8 beside 1, and of the value itself.
    np.testing.assert_allclose(got[defined], want[defined], rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.name)
def test_the_cost_model_knows_what_a_primitive_asks_of_the_special_units(row, run, traffic) -> None:
    e, numbers = prim(row.name, *(X, Y)[: row.arity]), np.ones(16)
    for at in (e, div(X, e)):
        before = traffic.powers
        run(at, numbers, numbers)
        assert traffic.powers - before == 16 * counted(at), at


@pytest.mark.parametrize("name", ["log1p", "expm1", "exprel", "tanh"])
def test_small_arguments_keep_their_digits(name, run) -> None:
    x = np.geomspace(1e-9, 1, 32).astype(np.float32).astype(np.float64)
    for sign in (1, -1) if name != "log1p" else (1, -0.9):
        at = (sign * x).astype(np.float32).astype(np.float64)
        want = np.asarray(TABLE[name].value(at))
        np.testing.assert_allclose(run(prim(name, X), at, at), want, rtol=2e-6)


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_large_angles_are_turned_back(name, run) -> None:
    x = np.concatenate([np.linspace(-1.2e4, 1.2e4, 48), np.arange(-8, 8) * np.pi / 2])
    at = x.astype(np.float32).astype(np.float64)
    want = np.asarray(TABLE[name].value(at))
    np.testing.assert_allclose(run(prim(name, X), at, at), want, rtol=0, atol=3e-7)


@pytest.mark.parametrize(
    "row", [r for r in ROWS if r.name not in ("step", "exprel", "abs")], ids=lambda r: r.name
)
def test_derivatives_are_those_of_the_table(row, run) -> None:
    x = np.array([0.2, 0.9, 1.3, 2.1, 0.05, 0.6, 0.33, 3.0])
    y = x[::-1].copy() + 0.01
    e = prim(row.name, *(X, Y)[: row.arity])
    gradient = pull([(e, OUT)]).refs.get(X)
    if gradient is None:
        return
    step = 1e-6
    values = [row.value(*(v, y)[: row.arity]) for v in (x + step, x - step)]
    want = (np.asarray(values[0]) - np.asarray(values[1])) / (2 * step)
    np.testing.assert_allclose(run(gradient, x, y), want, rtol=3e-5, atol=1e-6)


def test_what_is_used_twice_has_a_name_and_numbers_have_none() -> None:
    gate = prim("sigmoid", X)
    printed = statements(
        [("a", mul(gate, Y)), ("b", mul(gate, gate))],
        [("g", gate)],
        KernelPrinter(NAMES.__getitem__),
        lambda n: f"b_{n}",
        "",
    )
    assert printed.lines == ("b_g = tl.sigmoid(x)", "a = b_g * y", "b = b_g * b_g")
    assert printed.results == ("a", "b")


def test_what_is_the_same_at_all_tokens_stands_before_the_loop() -> None:
    c = Ref("c", N, Field.REAL, Time.CONST, None)
    fixed, rate = prim("exp", c), mul(num(2), prim("exp", c))
    printed = statements(
        [("decay", fixed), ("r", mul(rate, X))],
        [],
        KernelPrinter((NAMES | {"c": "c"}).__getitem__),
        lambda n: f"b_{n}",
        "        ",
        once="    ",
    )
    # A loop before may have written what is called as it was asked for.
    assert printed.once == ("    fixed_decay = tl.exp(c)",)
    assert printed.lines == ("        r = 2 * fixed_decay * x",)
    assert printed.results == ("fixed_decay", "r")


def test_later_statements_leave_the_variables_of_earlier_ones() -> None:
    printer = KernelPrinter(NAMES.__getitem__)
    gate, other = prim("sigmoid", X), prim("sigmoid", Y)
    wanted = ([("a", mul(gate, gate))], [("b", mul(other, other, gate))])
    first, second = (statements(w, [], printer, lambda n: f"b_{n}", "") for w in wanted)
    assert first.lines == ("b_part_1 = tl.sigmoid(x)", "a = b_part_1 * b_part_1")
    assert second.lines[0] == "b_part_2 = tl.sigmoid(y)"


def test_a_factor_of_an_exponent_takes_the_change_of_base() -> None:
    printer = KernelPrinter(NAMES.__getitem__)
    assert printer.print(prim("exp", mul(num(-8), X))).text == "tl.exp2(-(11.541560327111707 * x))"
    assert printer.print(prim("exp", X)).text == "tl.exp(x)"
    assert printer.print(power(X, num(2))).text == "x * x"
    assert printer.print(mul(prim("sqrt", num(2)), X)).text == "1.4142135623730951 * x"


def test_what_no_kernel_computes_is_known() -> None:
    z = Ref("z", N, Field.COMPLEX, Time.TOKEN, Now())
    assert computes(Prim("exp", (X,), Field.REAL))
    assert not computes(Prim("exp", (z,), Field.COMPLEX))
    with pytest.raises(TypeError, match="no Triton form"):
        KernelPrinter(NAMES.__getitem__).print(Prim("cis", (X,), Field.COMPLEX))


def test_every_function_that_the_table_calls_is_there_with_what_it_calls() -> None:
    called = " ".join(r.printers["triton"] for r in TABLE.values() if "triton" in r.printers)
    assert set(functions_of(called)) == set(FUNCTIONS.values())
    assert functions_of("_tanh(x)") == (FUNCTIONS["_expm1"], FUNCTIONS["_tanh"])
    assert functions_of("my_tanh(x)") == ()
