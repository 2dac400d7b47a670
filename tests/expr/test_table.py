"""The primitive table: fields, values, ranges and printers agree with each other."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dsfc.expr.build import num, prim
from dsfc.expr.evaluate import NamedArray, evaluate
from dsfc.expr.interval import Interval
from dsfc.expr.table import SPELLINGS, TABLE, Monotone
from dsfc.expr.tree import Axis, Field, Now, Ref, Time

N = Axis(0, "n")
X = Ref("x", frozenset({N}), Field.REAL, Time.TOKEN, Now())
Z = Ref("z", frozenset({N}), Field.COMPLEX, Time.TOKEN, Now())

POINTS = np.array([-3.0, -0.7, -1e-9, 0.0, 1e-9, 0.4, 2.5, 30.0])
ROWS = list(TABLE.values())


def printed(row, *args):
    """Runs the row's own torch text: it is data of the compiler, never of a spec."""
    names = {f"x{k}": a for k, a in enumerate(args)}
    text = row.printers["torch"].format(*names, dim=-1, size=f"{len(POINTS)}")
    return eval(text, {"torch": torch}, names)


@pytest.mark.parametrize("row", [r for r in ROWS if r.arity], ids=lambda r: r.name)
def test_torch_prints_what_numpy_computes(row):
    args = [POINTS, POINTS[::-1].copy()][: row.arity]
    with np.errstate(all="ignore"):
        want = row.value(*args, **({"axis": -1} if row.along_axis else {}))
    if row.name == "im":  # of a real tensor, torch has none
        args = [a + 0j for a in args]
    got = printed(row, *(torch.from_numpy(a) for a in args))
    got = got.numpy() if isinstance(got, torch.Tensor) else got
    np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(
    "row", [r for r in ROWS if r.fields.takes_complex and r.arity == 1], ids=lambda r: r.name
)
def test_complex_values_agree_and_have_the_stated_field(row):
    z = POINTS[1:6] + 1j * np.array([0.3, -0.2, 0.0, 1.0, -2.0])
    with np.errstate(all="ignore"):
        want = row.value(z)
    got = printed(row, torch.from_numpy(z)).numpy()
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-15)
    assert np.iscomplexobj(want) == (row.fields.result(False) is Field.COMPLEX)


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "row",
    [r for r in ROWS if r.arity and r.fields.result(True) is Field.REAL],
    ids=lambda r: r.name,
)
@given(data=st.data())
def test_values_lie_in_the_range_of_the_interval(row, data):
    point = st.floats(-50, 50)
    ends = [sorted((data.draw(point), data.draw(point))) for _ in range(row.arity)]
    inside = [data.draw(st.floats(lo, hi)) for lo, hi in ends]
    with np.errstate(all="ignore"):
        args = [np.array([x, 1.0]) if row.along_axis else np.array([x]) for x in inside]
        value = float(row.value(*args, **({"axis": -1} if row.along_axis else {}))[0])
    if math.isnan(value) or math.isinf(value):
        return
    bounds = row.range(*(Interval(lo, hi) for lo, hi in ends))
    # The value itself is rounded; the interval bounds the exact one.
    slack = 4 * np.spacing(abs(value))
    assert bounds.low - slack <= value <= bounds.high + slack


NEAR_ZERO = [0.0, 5e-324, -5e-324, 1e-310, -1e-300, 1e-8, -1e-8, 9e-5, -1.1e-4, 1.3e-4, 0.2, -0.3]


def exact_exprel(x, order=0):
    """Σ x^k / (k + 1)! in exact arithmetic, or its derivative: for |x| < 1."""
    x, out = Fraction(x), Fraction(0)
    for k in range(order, 25):
        out += x ** (k - order) * math.perm(k, order) / math.factorial(k + 1)
    return float(out)


class TestExprel:
    """(e^x − 1) / x and its derivative, where the quotient loses its digits or is 0 / 0."""

    @pytest.mark.parametrize(("name", "order"), [("exprel", 0), ("exprel_slope", 1)])
    @pytest.mark.parametrize("x", NEAR_ZERO)
    def test_real_values_near_zero(self, name, order, x):
        want = exact_exprel(x, order)
        (got,) = TABLE[name].value(np.array([x]))
        assert abs(got - want) <= 8 * np.spacing(want)
        (got,) = printed(TABLE[name], torch.tensor([x], dtype=torch.float64)).tolist()
        assert abs(got - want) <= 8 * np.spacing(want)
        low, high = TABLE[name].range(Interval(x, x)).low, TABLE[name].range(Interval(x, x)).high
        assert low <= want <= high and high - low <= 1e-14

    @pytest.mark.parametrize("name", ["exprel", "exprel_slope"])
    @pytest.mark.parametrize("x", NEAR_ZERO)
    def test_imaginary_values_near_zero(self, name, x):
        # Re and Im of Σ c_k (ix)^k have the even and the odd terms.
        order = 0 if name == "exprel" else 1
        size = Fraction(x)
        terms = [
            Fraction(math.perm(k, order), math.factorial(k + 1)) * size ** (k - order)
            for k in range(order, 25)
        ]
        want = complex(
            sum(t * (1, -1)[k // 2 % 2] for k, t in enumerate(terms) if k % 2 == 0),
            sum(t * (1, -1)[k // 2 % 2] for k, t in enumerate(terms) if k % 2 == 1),
        )
        (got,) = TABLE[name].value(np.array([1j * x]))
        assert abs(got - want) <= 2e-15
        (got,) = printed(TABLE[name], torch.tensor([1j * x], dtype=torch.complex128)).tolist()
        assert abs(got - want) <= 2e-15

    @pytest.mark.parametrize("name", ["exprel", "exprel_slope"])
    @pytest.mark.parametrize("x", [0.3, -1.0, 3.0, -20.0, 80.0, -800.0, 1 + 2j, -3 - 0.1j, 0.2j])
    def test_values_away_from_zero(self, name, x):
        near = np.exp(x) * (x - 1) + 1 if name == "exprel_slope" else np.exp(x) - 1
        want = near / x**2 if name == "exprel_slope" else near / x
        (got,) = TABLE[name].value(np.array([x]))
        assert abs(got - want) <= 2e-14 * abs(want)

    @pytest.mark.parametrize("x", [*NEAR_ZERO, 4.0, -30.0, -2000.0])
    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
    def test_the_derivative_of_what_is_printed(self, dtype, x):
        if dtype is torch.float32 and abs(x) < 1e-300:
            x *= 1e280  # a denormal of this type
        at = torch.tensor([x], dtype=dtype, requires_grad=True)
        (got,) = torch.autograd.grad(printed(TABLE["exprel"], at).sum(), at)
        (want,) = TABLE["exprel_slope"].value(np.array([float(at.detach())]))
        tolerance = torch.finfo(dtype).eps ** 0.75 * 4
        assert abs(float(got) - want) <= tolerance * want


def test_open_ends_are_kept():
    assert TABLE["exp"].range(Interval(-math.inf, 0.0, open_high=True)) == Interval(
        0.0, 1.0, True, True
    )
    assert TABLE["sigmoid"].range(Interval(-math.inf, math.inf)) == Interval(0.0, 1.0, True, True)
    assert 0.0 in TABLE["relu"].range(Interval(-1.0, 0.0, open_high=True))


@pytest.mark.parametrize(
    "row", [r for r in ROWS if r.monotone is not Monotone.NONE], ids=lambda r: r.name
)
def test_monotone_rows_are_monotone(row):
    with np.errstate(all="ignore"):
        value = row.value(POINTS, *(np.zeros_like(POINTS) for _ in range(row.arity - 1)))
    steps = np.diff(value[~np.isnan(value)])
    assert (steps >= 0).all() if row.monotone is Monotone.INCREASING else (steps <= 0).all()


def test_spellings_are_unique_and_only_those_of_specs():
    assert SPELLINGS["Re"] == "re" and SPELLINGS["exp"] == "exp"
    assert "step" not in SPELLINGS


def test_prim_checks_its_arguments():
    with pytest.raises(KeyError):
        prim("unheard", X)
    with pytest.raises(TypeError, match="takes 2"):
        prim("max", X)
    with pytest.raises(TypeError, match="needs axis"):
        prim("softmax", X)
    with pytest.raises(TypeError, match="takes no"):
        prim("exp", X, axis=N)
    with pytest.raises(TypeError, match="real"):
        prim("sigmoid", Z)


def test_the_field_of_the_result_comes_from_the_row():
    assert prim("exp", Z).field is Field.COMPLEX
    assert prim("abs", Z).field is Field.REAL
    assert prim("cis", X).field is Field.COMPLEX
    assert prim("conj", X) is X and prim("re", X) is X
    assert prim("conj", Z).field is Field.COMPLEX


def test_norms_are_zero_at_zero():
    class Zeros:
        def size(self, axis):
            return 3

        def ref(self, ref):
            return NamedArray((N,), np.zeros(3))

    for name in ("l2norm", "rmsnorm"):
        assert not evaluate(prim(name, X, axis=N), Zeros()).data.any()
    assert evaluate(num(2), Zeros()).data == 2.0
