"""Every operation of kernels is in C what NumPy makes of the same arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from dsfc.backends.c.printer import print_kernel
from operations import ONE, OPERATIONS, R
from small_kernels import SIZES, N, S, T, X, Y, kernel_of

from dsfc.kernel_ir.build import KernelBuilder
from dsfc.kernel_ir.ir import Access, Along, Axis, Grid, Kernel, Storage, times

NOT_PRINTED = (
    "sums along the last axis", "between", "strictly between", "product over rows",
    "upper triangle", "strictly upper triangle",
    "product of a triangle", "product with a triangle",
    "sums to a middle", "sums from a middle", "sums to a middle without the place",
    "rows shifted by their place", "rows shifted back", "a matrix of one number a lag",
)  # fmt: skip
"""What no kernel needs: sums along an axis of any size, batches of products, upper triangles,
triangles that the kernel does not show to be ones, sums that tensor cores of GPUs add up, and
shifts of tiles."""

PRINTED = [what for what in OPERATIONS if what not in NOT_PRINTED]


def program(what: str) -> Kernel:
    """The kernel of an operation, of one program, under a name of its own."""
    name = f"operation_{[*OPERATIONS].index(what)}"
    kernel = kernel_of(OPERATIONS[what][0])
    return replace(kernel, name=name, grid=(Grid("program", 1),), order=(T, S, R, ONE, N))


@pytest.fixture(scope="module")
def library(build: Callable[..., ctypes.CDLL]) -> ctypes.CDLL:
    """All operations in one library, for float64."""
    sizes = [f"#define {name} {size}" for name, size in SIZES.items()]
    return build("\n".join([*sizes, *map(print_kernel, map(program, PRINTED))]), True)


@pytest.mark.share(6)
@pytest.mark.parametrize("what", PRINTED)
def test_an_operation_is_that_of_numpy(what: str, library: ctypes.CDLL) -> None:
    want = OPERATIONS[what][1]
    axes = [p.axis for p in program(what).body[-1].at]
    memory = np.full(want.size + 2, -77.0)
    out = memory[1:-1]
    numbers = []
    for x in (X, Y):
        numbers += [x.ctypes.data, *(s // x.itemsize for s in x.strides)]
    numbers += [out.ctypes.data, 1]
    assert getattr(library, program(what).name)((ctypes.c_int64 * len(numbers))(*numbers)) == 0
    got = out.reshape([SIZES.get(str(a.size), a.size) for a in axes])
    want = want if got.shape == want.shape and axes != [S, T] else want.T
    assert np.allclose(got, want, rtol=1e-11, atol=1e-11)
    assert memory[0] == memory[-1] == -77


def test_each_program_stores_its_number(build: Callable[..., ctypes.CDLL]) -> None:
    k = KernelBuilder("totals", "The sum of each row.")
    row = k.grid("row", 3)
    x, o = k.argument("x", (3, 8)), k.argument("o", (3,), Access.WRITE)
    k.order(T)
    k.store(o, row, value=k.sum(k.load(x, row, k.all(T)), T))
    given, out = np.arange(24.0).reshape(3, 8), np.full(3, -77.0)
    numbers = [given.ctypes.data, 8, 1, out.ctypes.data, 1]
    totals = build(print_kernel(k.kernel()), True).totals
    assert totals((ctypes.c_int64 * len(numbers))(*numbers)) == 0
    assert (out == given.sum(1)).all()


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0)])
@pytest.mark.parametrize("given", ["REAL_", "SINGLE_"])
def test_a_tile_of_three_axes_is_loaded_from_any_strides(
    given: str, order: tuple[int, ...], build: Callable[..., ctypes.CDLL]
) -> None:
    """Columns are cut into blocks of 4, the last of which has 1."""
    axes = Axis("a", 2), Axis("b", 3), Axis("c", 4)
    k = KernelBuilder("three", "A tile of three axes.")
    start = times(k.grid("part", 2), 4)
    x = k.argument("x", (2, 3, 5))
    o = k.argument("o", (2, 3, 5), Access.WRITE, Storage.WIDE)
    k.order(*axes)
    at = *map(k.all, axes[:2]), Along(axes[2], start, 5)
    k.store(o, *at, value=k.load(x, *at) * 2.0)
    array = np.arange(30, dtype="f4" if given == "SINGLE_" else "f8").reshape(2, 3, 5)
    array = array.transpose(order).copy().transpose(order)
    out = np.full((2, 3, 5), -77.0)
    strides = [s // array.itemsize for s in array.strides]
    numbers = [array.ctypes.data, *strides, out.ctypes.data, 1]
    three = build(print_kernel(k.kernel()), True, given).three
    assert three((ctypes.c_int64 * len(numbers))(*numbers)) == 0
    assert (out == 2 * array).all()


@pytest.mark.parametrize("what", PRINTED)
def test_what_a_kernel_allocates_it_frees(what: str) -> None:
    text = print_kernel(program(what))
    assert text.count("allocate(") == text.count("free(memory)") == 1


@pytest.mark.parametrize("what", NOT_PRINTED)
def test_what_no_kernel_needs_is_refused(what: str) -> None:
    with pytest.raises(AssertionError):
        print_kernel(program(what))
