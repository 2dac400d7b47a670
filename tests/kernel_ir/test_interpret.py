"""The interpreter computes what plain NumPy does, and reads and writes only what is there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from operations import ONE, OPERATIONS, R, pairs, part
from small_kernels import SIZES, Array, S, T, run

from dsfc.kernel_ir.build import KernelBuilder, Tile
from dsfc.kernel_ir.interpret import KernelError, interpret
from dsfc.kernel_ir.ir import (
    Access,
    Along,
    Argument,
    Int,
    Integer,
    Part,
    Symbol,
    ceil_div,
    least,
    minus,
    plus,
    times,
)


@pytest.mark.parametrize("what", OPERATIONS)
def test_an_operation_is_that_of_numpy(what: str) -> None:
    compute, want = OPERATIONS[what]
    got = run(compute)
    assert got.shape == want.shape or got.T.shape == want.shape
    assert np.allclose(got if got.shape == want.shape else got.T, want, rtol=1e-11, atol=1e-11)


ROWS = arrays(np.float64, (8, 3), elements=st.floats(-2, 2))


@given(ROWS)
def test_sums_with_and_without_the_entry_differ_by_it(x: Array) -> None:
    own = run(lambda k, x, _: k.cumulate("sum", x, T), x)
    before = run(lambda k, x, _: k.cumulate("sum", x, T, exclusive=True), x)
    assert np.allclose(own - before, x, atol=1e-12)


@given(ROWS)
def test_products_between_are_those_of_the_ends(x: Array) -> None:
    """Π_{j < t ≤ i} Π_{t ≤ j} = Π_{t ≤ i}, for j ≤ i."""
    between = run(lambda k, x, _: k.between(x, T, T, S), x)
    so_far = run(lambda k, x, _: k.cumulate("product", x, T), x)
    for j in range(8):
        assert np.allclose(between[j:, j] * so_far[j], so_far[j:], atol=1e-9)
        assert (between[:j, j] == 0).all()


@given(ROWS, ROWS)
def test_the_levels_of_blocks_are_the_strict_triangle(x: Array, y: Array) -> None:
    """Each pair of different tokens is in one level."""

    def levels(k: KernelBuilder, x: Tile, y: Tile) -> Tile:
        one, two, four = (pairs(k, x, y, out=part(Part.LOWER, block)) for block in (1, 2, 4))
        return one + two + four

    strict = run(lambda k, x, y: pairs(k, x, y, out=part(Part.STRICTLY_LOWER)), x, y)
    assert np.array_equal(run(levels, x, y), strict)


@given(ROWS, ROWS)
def test_an_inverse_times_what_was_inverted_is_one(x: Array, y: Array) -> None:
    def product(k: KernelBuilder, x: Tile, y: Tile) -> Tile:
        lower = pairs(k, x / 8.0, y, out=part(Part.STRICTLY_LOWER))
        one = k.where(k.equal(k.index(T), k.index(S)), lower + 1.0, lower)
        turned = k.rename(k.rename(one, S, R), T, S)
        return k.rename(k.dot(k.inverse_unit(lower, T, S), turned, S), R, S)

    assert np.allclose(run(product, x, y), np.eye(8), atol=1e-9)


# --- loops and memory -----------------------------------------------------------------------------


def test_a_loop_carries_tiles_in_order_and_in_reverse() -> None:
    def horner(reverse: bool) -> Array:
        k = KernelBuilder("loop", "S ← 2 S + x_i.")
        x = k.argument("x", (4,))
        o = k.argument("o", (), Access.WRITE)
        with k.loop("i", 4, reverse=reverse, S=k.const(1.0)) as loop:
            loop.next(S=loop["S"] * 2.0 + k.load(x, loop.counter))
        k.store(o, value=loop.last("S"))
        return interpret(k.kernel(), {"x": np.array([1.0, 2, 3, 4])}, {})["o"]

    assert horner(False) == 16 + 8 + 8 + 6 + 4
    assert horner(True) == 16 + 32 + 12 + 4 + 1


def test_a_loop_of_no_iterations_gives_what_it_got() -> None:
    k = KernelBuilder("loop", "Nothing.")
    count = k.dynamic("L")
    o = k.argument("o", (), Access.WRITE)
    with k.loop("i", count, S=k.const(5.0)) as loop:
        loop.next(S=loop["S"] * 2.0)
    k.store(o, value=loop.last("S"))
    assert interpret(k.kernel(), {}, {"L": 0})["o"] == 5


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 16])
def test_chunks_cover_a_length(length: int) -> None:
    assert (copied(length) == 1 + np.arange(length)).all()


def copied(length: int, start: int = 0, step: int = 8, bound: Int | None = None) -> Array:
    """x, copied by one program a chunk of eight."""
    k = KernelBuilder("copy", "o = x.")
    size = k.dynamic("L")
    at = k.grid("chunk", ceil_div(size, 8))
    x, o = k.argument("x", (size,)), k.argument("o", (size,), Access.WRITE)
    place = Along(T, plus(times(at, step), start), size if bound is None else bound)
    k.store(o, place, value=k.load(x, place))
    return interpret(k.kernel(), {"x": 1.0 + np.arange(length)}, {"L": length})["o"]


def test_what_lies_beyond_the_bound_counts_as_nothing() -> None:
    k = KernelBuilder("sum", "The sum of x.")
    size = k.dynamic("L")
    x, o = k.argument("x", (size,)), k.argument("o", (), Access.WRITE)
    k.store(o, value=k.sum(k.load(x, Along(T, 2, size)), T))
    assert interpret(k.kernel(), {"x": np.arange(5.0)}, {"L": 5})["o"] == 2 + 3 + 4


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"step": 4}, "second store"),
        ({"step": 0}, "second store"),
        ({"start": -1}, "-1 to 16 of 16"),
        ({"bound": 17}, "of 16 entries"),
        ({"start": 1}, r"no store writes entry \(0,\)"),
        ({"bound": 12}, r"no store writes entry \(12,\)"),
    ],
)
def test_each_entry_of_a_result_is_written_once(wrong: dict[str, int], message: str) -> None:
    with pytest.raises(KernelError, match=message):
        copied(16, **wrong)


def test_one_program_does_not_write_twice_either() -> None:
    k = KernelBuilder("twice", "o = 1, then 2.")
    o = k.argument("o", (8,), Access.WRITE)
    k.store(o, k.all(T), value=k.const(1.0))
    k.store(o, 3, value=k.const(2.0))
    with pytest.raises(KernelError, match="o: a second store"):
        interpret(k.kernel(), {}, {})


def scratch_kernel(build: Callable[[KernelBuilder, Argument, Symbol], None]) -> Array:
    """Runs a kernel of two programs with scratch of eight entries, which gives their sum."""
    k = KernelBuilder("scratch", "The sum of scratch.")
    at = k.grid("i", 2)
    o = k.argument("o", (2,), Access.WRITE)
    s = k.argument("s", (8,), Access.SCRATCH)
    build(k, s, at)
    k.store(o, at, value=k.sum(k.load(s, k.all(T)), T))
    return interpret(k.kernel(), {}, {})["o"]


def test_scratch_keeps_what_was_stored_last() -> None:
    def build(k: KernelBuilder, s: Argument, at: Symbol) -> None:
        k.store(s, k.all(T), value=k.const(1.0))
        k.store(s, 3, value=k.const(5.0))

    assert (scratch_kernel(build) == 12).all()


def test_scratch_that_no_store_wrote_is_not_loaded() -> None:
    def build(k: KernelBuilder, s: Argument, at: Symbol) -> None:
        k.store(s, Along(T, 0, 7), value=k.const(1.0))

    with pytest.raises(KernelError, match="s: a load of entries that no store wrote"):
        scratch_kernel(build)


def test_scratch_of_one_program_is_not_that_of_the_next() -> None:
    def build(k: KernelBuilder, s: Argument, at: Symbol) -> None:
        with k.loop("j", minus(1, at)):
            k.store(s, k.all(T), value=k.const(1.0))

    with pytest.raises(KernelError, match="no store wrote"):
        scratch_kernel(build)


def test_an_argument_has_the_shape_that_the_kernel_says() -> None:
    k = KernelBuilder("shape", "Reads x.")
    k.argument("x", (k.static("N"),))
    with pytest.raises(KernelError, match=r"x has shape \(4,\), not \(3,\)"):
        interpret(k.kernel(), {"x": np.zeros(4)}, SIZES)


def test_a_position_outside_is_an_error() -> None:
    k = KernelBuilder("outside", "Reads x_9.")
    k.load(k.argument("x", (8,)), 9)
    with pytest.raises(KernelError, match="x: entry 9 of 8"):
        interpret(k.kernel(), {"x": np.zeros(8)}, {})


@pytest.mark.ci
@given(st.integers(0, 5), st.integers(0, 5), st.integers(1, 5))
def test_integers_are_those_of_python(a: int, b: int, c: int) -> None:
    k = KernelBuilder("integers", "Each operator.")
    x, y, z = k.dynamic("X"), k.dynamic("Y"), k.dynamic("Z")
    rows = {
        plus(x, y): a + b,
        minus(x, y): a - b,
        times(x, y): a * b,
        ceil_div(x, z): -(-a // c),
        Integer("//", minus(x, y), z): (a - b) // c,
        least(x, y): min(a, b),
        Integer("max", x, y): max(a, b),
    }
    o = k.argument("o", (len(rows), 48), Access.WRITE)
    for i, e in enumerate(rows):
        with k.loop("j", 48) as loop:
            here = k.equal(k.index(ONE, loop.counter), minus(e, -16))
            value = k.sum(k.where(here, k.const(1.0), 0.0), ONE)
            k.store(o, i, loop.counter, value=value)
    got = interpret(k.kernel(), {}, {"X": a, "Y": b, "Z": c})["o"]
    want = [[j == value + 16 for j in range(48)] for value in rows.values()]
    assert (got == np.array(want)).all()
