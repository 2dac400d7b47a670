"""Kernels that are printed as Triton compute what the NumPy interpreter of the kernel IR does."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dsfc.backends.triton.blocks import bound_at_once
from dsfc.backends.triton.printer import NotPrintable, print_kernel
from numpy.typing import NDArray
from printed import run

import dsfc
from dsfc.kernel_ir.build import KernelBuilder, Tile
from dsfc.kernel_ir.interpret import interpret, value_of
from dsfc.kernel_ir.ir import Access, Along, Axis, Kernel, Part, Storage, Triangle
from dsfc.kernels.chunkwise import CHUNK, backward, forward
from dsfc.plan.scan_ir import Adjoint, Scan

pytest.importorskip("triton")
# What a kernel computes of places beyond the end is never stored, but NumPy speaks of it.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

Array = NDArray[Any]
HEADS = frozenset({"H"})
ROUNDED = 1e-6
"""Largest relative error in float32: a dozen roundings of 6e-8 each, all one way."""


def scan_of(spec: str) -> tuple[Scan, Adjoint]:
    plan = dsfc.load(spec).plan
    (scan,) = (k for k in plan.kernels if isinstance(k, Scan))
    return scan, next(a for a in plan.adjoints if a.scan == scan.name)


def sizes_of(scan: Scan, length: int) -> dict[str, int]:
    """Few heads, keys and channels, of odd numbers; spans as long as they are many."""
    chunks = -(-length // CHUNK[scan.form])
    span = max(math.isqrt(chunks), 1)
    spans = {"SPAN": span, "SPANS": -(-chunks // span)}
    return {"B": 1, "L": length, "H": 2, "N": 5, "P": 3, "PT": 16, **spans}


def drawn(kernel: Kernel, sizes: dict[str, int], strong: bool) -> dict[str, Array]:
    """Arguments; among strong decays, log λ of minus infinity and of -60."""
    draw = np.random.default_rng(0)
    out = {}
    for a in kernel.arguments:
        if a.access is Access.READ:
            x = draw.normal(size=[value_of(s, sizes) for s in a.shape], scale=0.5)
            if a.name == "g":
                x = -np.abs(x)
                if strong:
                    x[draw.random(x.shape) < 0.1] = -np.inf
                    x[draw.random(x.shape) < 0.1] = -60
            out[a.name] = x
    return out


def agrees(kernel: Kernel, folder: Path, sizes: dict[str, int], strong: bool, **more: Any) -> None:
    given = drawn(kernel, sizes, strong)
    want = interpret(kernel, given, sizes)
    for name, x in run(kernel, folder, given, sizes, **more).items():
        assert np.isfinite(want[name]).all()
        bar = ROUNDED * float(np.abs(want[name]).max(initial=0)) + 1e-30
        assert np.abs(x - want[name]).max(initial=0) <= bar, name


FORMS = ("gla", "gated_deltanet", "deltanet", "kda", "rwkv7")


@pytest.mark.ci
@pytest.mark.share(1, ci=7)
@pytest.mark.parametrize("strong", [False, True])
@pytest.mark.parametrize("length", [0, 1, 17])
@pytest.mark.parametrize("spec", FORMS)
def test_forward_chunks_are_those_of_the_ir(
    spec: str, length: int, strong: bool, tmp_path: Path
) -> None:
    scan, _ = scan_of(spec)
    kernel = forward(scan, False)
    sizes = sizes_of(scan, length)
    agrees(kernel, tmp_path, sizes, strong, fixed=HEADS, tiles=frozenset({"PT"}))


@pytest.mark.ci
@pytest.mark.share(1, ci=21)
@pytest.mark.parametrize("strong", [False, True])
@pytest.mark.parametrize("length", [0, 15, 33])
@pytest.mark.parametrize("spec", FORMS)
def test_backward_chunks_are_those_of_the_ir(
    spec: str, length: int, strong: bool, tmp_path: Path
) -> None:
    scan, adjoint = scan_of(spec)
    kernel = backward(scan, adjoint, False)
    agrees(kernel, tmp_path, sizes_of(scan, length), strong, fixed=HEADS)


def test_heads_that_share_keys_read_them_once_a_token(tmp_path: Path) -> None:
    scan, _ = scan_of("retnet")
    kernel = forward(scan, True)
    agrees(kernel, tmp_path, sizes_of(scan, 33), False, fixed=HEADS, tiles=frozenset({"PT"}))


T, S, N = Axis("t", 16), Axis("s", 16), Axis("n", "N")


def one(compute: Callable[[KernelBuilder, Tile, Tile], Tile]) -> Kernel:
    """A kernel of one program that computes something of x [16] and of y [16, N]."""
    k = KernelBuilder("one", "One operation.")
    size = k.static("N")
    k.grid("i", 1)
    x = k.load(k.argument("x", (16,)), k.all(T))
    y = k.load(k.argument("y", (16, size)), k.all(T), k.all(N))
    result = compute(k, x, y)
    sizes = {T: 16, S: 16, N: size}
    o = k.argument("o", tuple(sizes[a] for a in result.axes), Access.WRITE, Storage.WIDE)
    k.store(o, *(k.all(a) for a in result.axes), value=result)
    return k.kernel()


def of_x(**how: Any) -> Callable[[KernelBuilder, Tile, Tile], Tile]:
    return lambda k, x, _: k.cumulate(axis=T, tile=x, **how)


LOWER = Triangle(T, S, Part.LOWER)
BLOCKS = Triangle(T, S, Part.LOWER, 4)
OPERATIONS: dict[str, Callable[[KernelBuilder, Tile, Tile], Tile]] = {
    "sum": of_x(function="sum"),
    "sum of what follows": of_x(function="sum", reverse=True, exclusive=True),
    "product of what is before": of_x(function="product", exclusive=True),
    "products in blocks": of_x(function="product", reverse=True, block=4),
    "blocks of one": of_x(function="sum", exclusive=True, block=1),
    "products in blocks of columns": lambda k, _, y: k.cumulate(
        "product", y, T, exclusive=True, block=8
    ),
    "running sums of rows": lambda k, _, y: k.cumulate("sum", y, T),
    "running sums of later rows": lambda k, _, y: k.cumulate(
        "sum", y, T, reverse=True, exclusive=True
    ),
    "sums to a middle": lambda k, _, y: k.to_middle(y, T, 4),
    "sums to a middle without the place": lambda k, _, y: k.to_middle(y, T, 1, exclusive=True),
    "sums from a middle": lambda k, _, y: k.to_middle(y, T, 8, back=True),
    "sums from a middle without the place": lambda k, _, y: k.to_middle(
        y, T, 2, exclusive=True, back=True
    ),
    "a part of blocks": lambda k, _, y: k.dot(y, k.rename(y, T, S), N, out=BLOCKS),
    "zeros": lambda k, x, y: k.zeros(T) + x,
    "product of all": lambda k, _, y: k.product(y, T),
    "product of a padded axis": lambda k, _, y: k.product(y, N),
    "largest of a padded axis": lambda k, _, y: k.max(-k.map("exp", y, free=True), N),
    "sum of what padding would add to": lambda k, _, y: k.sum(k.map("exp", y, free=True), N),
    "product of matrices that padding would add to": lambda k, _, y: k.dot(
        k.map("exp", y, free=True), k.rename(k.map("exp", y, free=True), T, S), N
    ),
    "lower triangle of a product": lambda k, _, y: k.dot(y, k.rename(y, T, S), N, out=LOWER),
    "product of a lower triangle": lambda k, _, y: k.dot(
        k.dot(y, k.rename(y, T, S), N), k.rename(y, T, S), S, left_part=LOWER
    ),
    "product of a vector and a matrix": lambda k, x, y: k.dot(x, y, T),
    "between": lambda k, x, _: k.between(x, T, T, S),
    "strictly between": lambda k, x, _: k.between(x, T, T, S, True),
    "a matrix of one number a lag": lambda k, x, _: k.shift(x, T, S, 1),
    "one number a lag, from the end": lambda k, x, _: k.shift(x, T, S, back=True),
    "rows shifted by their place": lambda k, _, y: k.shift(k.dot(y, k.rename(y, T, S), N), S, T),
    "columns shifted back": lambda k, _, y: k.shift(
        k.dot(y, k.rename(y, T, S), N), T, S, 2, back=True
    ),
    "transposed sum": lambda k, x, y: (
        k.dot(y, k.rename(y, T, S), N) + k.rename(k.dot(k.rename(y, T, S), y, N), S, S)
    ),
    "choice": lambda k, x, y: k.where(k.less(k.index(T), 5), y, k.map("min", x, 0.0)),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_is_that_of_the_ir(name: str, tmp_path: Path) -> None:
    kernel = one(OPERATIONS[name])
    draw = np.random.default_rng(1)
    given = {"x": draw.normal(size=16), "y": draw.normal(size=(16, 5))}
    given["x"][3] = 0
    want = interpret(kernel, given, {"N": 5})["o"]
    got = run(kernel, tmp_path, given, {"N": 5})["o"]
    assert np.allclose(got, want, rtol=3e-6, atol=3e-6)


def test_sums_without_the_entry_itself_keep_infinities_apart(tmp_path: Path) -> None:
    kernel = one(of_x(function="sum", exclusive=True))
    x = np.zeros(16)
    x[5] = -np.inf
    got = run(kernel, tmp_path, {"x": x, "y": np.zeros((16, 5))}, {"N": 5})["o"]
    assert (got[:6] == 0).all() and (got[6:] == -np.inf).all()


def test_the_inverse_of_a_triangle_does_not_grow_its_powers(tmp_path: Path) -> None:
    """The 16th power of a triangle of twos has entries of 10^12; the inverse has none beyond 2."""
    kernel = one(
        lambda k, x, y: k.inverse_unit(k.where(k.less(k.index(S), k.index(T)), 2.0, 0.0), T, S)
    )
    given = {"x": np.zeros(16), "y": np.zeros((16, 5))}
    want = interpret(kernel, given, {"N": 5})["o"]
    assert np.allclose(run(kernel, tmp_path, given, {"N": 5})["o"], want, rtol=1e-5)


def test_threads_wait_where_one_reads_what_another_stored() -> None:
    scan, adjoint = scan_of("gla")
    text = print_kernel(backward(scan, adjoint, False), "kernel").text
    before_reverse, span = text.split("for span_2_back", 1)
    assert before_reverse.rstrip().splitlines()[-3].strip() == "tl.debug_barrier()"
    computed_again, backwards = span.split("for chunk_3_back", 1)
    # States of the span before are read until then; those of this one are read behind it.
    assert computed_again.count("tl.debug_barrier()") == 2
    assert "tl.debug_barrier()" not in backwards


def test_what_has_no_block_is_refused() -> None:
    kernel = one(lambda k, x, y: k.dot(y, y, N))
    with pytest.raises(NotPrintable, match="no batch"):
        print_kernel(kernel, "kernel")
    kernel = one(lambda k, x, y: k.shift(y, N, T))
    with pytest.raises(NotPrintable, match="padding of n"):
        print_kernel(kernel, "kernel")
    odd = Axis("odd", 5)
    k = KernelBuilder("odd", "Five entries.")
    k.grid("i", 1)
    k.load(k.argument("x", (5,)), Along(odd, 0, 5))
    with pytest.raises(NotPrintable, match="power of two"):
        print_kernel(k.kernel(), "kernel")


def test_what_a_loop_carries_is_bound_at_once_where_one_is_read_in_another() -> None:
    names = ["first_of_two", "second_of_two"]
    assert bound_at_once(names, ["a", "b"], 40) == ["first_of_two, second_of_two = a, b"]
    apart = ["first_of_two = a + 1", "second_of_two = b"]
    assert bound_at_once(names, ["a + 1", "b"], 30) == apart
    swapped = ["first_of_two, second_of_two = (", "    second_of_two,", "    first_of_two,", ")"]
    assert bound_at_once(names, ["second_of_two", "first_of_two"], 32) == swapped
