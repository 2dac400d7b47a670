"""Functions of the header err by a few units of the last place; special values are NumPy's."""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Callable

import numpy as np
import pytest
import torch
from dsfc.backends.c.reserved_names import header

from dsfc.expr.table import TABLE

LARGEST = {
    "abs": 0, "sqrt": 0.5, "exp": 1, "expm1": 1.5, "log": 1, "log1p": 1, "sigmoid": 2.5,
    "softplus": 2, "logsigmoid": 2, "tanh": 3.5, "elu": 1.5, "erf": 1, "sin": 1, "cos": 1,
    "relu": 0, "sign": 0, "step": 0, "exprel": 3,
}  # fmt: skip
"""Units of the last place, the same in float and double."""
SPECIAL = [math.inf, -math.inf, math.nan, 0.0, -0.0, 1.0, -1.0]
DTYPE = {False: np.float32, True: np.float64}
WIDE = {False: np.float64, True: np.longdouble}
Build = Callable[..., ctypes.CDLL]
both = pytest.mark.parametrize("is_double", [False, True], ids=["float", "double"])


def run(build: Build, name: str, x: np.ndarray) -> np.ndarray:
    text = f"""void all(int64_t n, const real *restrict x, real *restrict y) {{
    #pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] = {TABLE[name].printers["c"].format("x[i]")};
    }}"""
    y = np.empty_like(x)
    library = build(text, x.dtype == np.float64)
    library.all(ctypes.c_int64(len(x)), *(ctypes.c_void_p(z.ctypes.data) for z in (x, y)))
    return y


def points(is_double: bool) -> np.ndarray:
    """Numbers of all sizes, subnormal ones and those where a function ends too."""
    draw = np.random.default_rng(0)
    end = 700 if is_double else 87
    around = [draw.uniform(-s, s, 20000) for s in (1, 20, end)]
    sizes = np.exp(draw.uniform(-end - 15 * (not is_double), end, 20000))
    about = np.finfo(DTYPE[is_double])
    ends = [about.tiny, -about.tiny, about.tiny / 4, -about.tiny / 4]
    return np.concatenate([*around, sizes, -sizes, ends, SPECIAL]).astype(DTYPE[is_double])


def wanted(name: str, x: np.ndarray) -> np.ndarray:
    if name == "erf":  # NumPy has none; math's is that of the C library
        return np.array([math.erf(float(v)) for v in x]).astype(x.dtype)
    if name == "exprel":
        return np.where(x == 0, 1, np.expm1(x) / np.where(x == 0, 1, x))
    return TABLE[name].value(x)


@pytest.mark.share(4)
@both
@pytest.mark.parametrize("name", LARGEST)
def test_functions_err_by_few_units_of_the_last_place(build: Build, name, is_double):
    x = points(is_double)
    if name == "exprel":  # it overflows as exp does
        x = x[np.abs(x) < (700 if is_double else 87)]
    with np.errstate(all="ignore"):
        want = wanted(name, x.astype(WIDE[is_double]))
        rounded = want.astype(x.dtype)
    y = run(build, name, x)
    finite = np.isfinite(rounded)
    error = np.abs(y[finite] - want[finite]) / np.spacing(np.abs(rounded[finite]))
    assert error.max() <= LARGEST[name], x[finite][error.argmax()]
    np.testing.assert_array_equal(y[~finite], rounded[~finite])


@pytest.mark.share(3)
@both
@pytest.mark.parametrize("name", ["silu", "gelu", "exprel_slope"])
def test_products_with_rounded_factors_err_by_few_roundings_of_them(build: Build, name, is_double):
    x = points(is_double)
    x = x[np.abs(x) < (700 if is_double else 87)]
    want = TABLE[name].value(x.astype(WIDE[is_double] if name == "exprel_slope" else np.float64))
    eps = np.finfo(x.dtype).eps
    # gelu and silu multiply x by a factor of which all roundings are of numbers up to 1;
    # exprel_slope takes two numbers of size e^x / x from each other: nine times its at x = 1/4.
    size = 9 * np.abs(want) if name == "exprel_slope" else np.abs(x)
    assert (np.abs(run(build, name, x) - want) <= 8 * eps * size + np.finfo(x.dtype).tiny).all()


TEXT = """
void take(int64_t n, const given *x, real *y) {
  for (int64_t i = 0; i < n; i++) y[i] = widen(x[i]);
}
void give(int64_t n, const real *x, given *y) {
  for (int64_t i = 0; i < n; i++) y[i] = narrow(x[i]);
}
"""
STORED = pytest.mark.parametrize(
    ("macro", "dtype"), [("HALF_", torch.float16), ("BRAIN_", torch.bfloat16)]
)


def call(function: Callable[..., None], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    pointers = (ctypes.c_void_p(z.data_ptr()) for z in (x, y))
    function(ctypes.c_int64(len(x)), *pointers)
    return y


@STORED
def test_all_numbers_of_16_bits_are_widened_as_torch_does(build: Build, macro, dtype):
    x = torch.arange(-(2**15), 2**15).to(torch.int16).view(dtype)
    y = call(build(TEXT, False, macro).take, x, torch.empty(2**16))
    assert torch.equal(y.isnan(), x.isnan())
    assert torch.equal(y[~x.isnan()].view(torch.int32), x.float()[~x.isnan()].view(torch.int32))


@STORED
def test_numbers_are_narrowed_as_torch_does(build: Build, macro, dtype):
    draw = torch.Generator().manual_seed(0)
    any_bits = torch.randint(-(2**31), 2**31, (200_000,), generator=draw).to(torch.int32)
    near = torch.randn(100_000, generator=draw) * 2.0 ** torch.randint(
        -26, 17, (100_000,), generator=draw
    )
    every = torch.arange(-(2**15), 2**15).to(torch.int16).view(dtype).float()
    ties = (every[:-1] + every[1:]) / 2
    x = torch.cat([any_bits.view(torch.float32), near, every, ties, torch.tensor(SPECIAL)])
    y = call(build(TEXT, False, macro).give, x, torch.empty(len(x), dtype=dtype))
    want = x.to(dtype)
    assert torch.equal(y.isnan(), x.isnan())
    known = ~x.isnan()
    assert torch.equal(y[known].view(torch.int16), want[known].view(torch.int16))


def test_every_primitive_that_kernels_compute_is_a_function_of_the_header() -> None:
    printed = [r.printers["c"] for r in TABLE.values() if "c" in r.printers]
    called = {name for text in printed for name in re.findall(r"\b(real_\w+)\(", text)}
    assert called
    assert called <= set(re.findall(r"\b(real_\w+)\(", header()))
