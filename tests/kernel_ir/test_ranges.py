"""An exponential is proved to be of nothing positive, or it is refused unless the spec has it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_kernels import N, S, T

from dsfc.expr.interval import INF, NONNEG, Interval
from dsfc.kernel_ir.build import KernelBuilder, Tile
from dsfc.kernel_ir.interpret import interpret
from dsfc.kernel_ir.ir import Access, Kernel, Part, Store, Triangle
from dsfc.kernel_ir.ranges import ranges_of
from dsfc.kernel_ir.verify import InvalidKernel

LOG = Interval(-INF, 0.0)
Compute = Callable[[KernelBuilder, Tile, Tile, Tile], Tile]


def kernel_of(compute: Compute) -> Kernel:
    """A kernel that computes something of g ≤ 0, of r ≥ 0 and of any x, all over (t, n)."""
    k = KernelBuilder("one", "One value.")
    size = k.static("N")
    at = k.all(T), k.all(N)
    g = k.load(k.argument("g", (8, size), promise=LOG), *at)
    r = k.load(k.argument("r", (8, size), promise=NONNEG), *at)
    x = k.load(k.argument("x", (8, size)), *at)
    result = compute(k, g, r, x)
    sizes = {T: 8, S: 8, N: size}
    o = k.argument("o", tuple(sizes[a] for a in result.axes), Access.WRITE)
    k.store(o, *(k.all(a) for a in result.axes), value=result)
    return k.kernel()


def looped(k: KernelBuilder, first: Tile, step: Callable[[Tile], Tile]) -> Tile:
    """What a loop makes of a tile."""
    with k.loop("i", 3, S=first) as loop:
        loop.next(S=step(loop["S"]))
    return loop.last("S")


def columns(k: KernelBuilder, tile: Tile) -> Tile:
    return k.rename(tile, T, S)


PROVED: dict[str, Compute] = {
    "a log decay": lambda k, g, r, x: g,
    "its sum": lambda k, g, r, x: k.sum(g, T),
    "sums so far": lambda k, g, r, x: k.cumulate("sum", g, T, exclusive=True),
    "sums to a middle": lambda k, g, r, x: k.to_middle(g, T, 2),
    "two of them": lambda k, g, r, x: g + k.sum(g, T),
    "times a rate": lambda k, g, r, x: g * r,
    "over a rate": lambda k, g, r, x: g / (r + 1.0),
    "minus a rate": lambda k, g, r, x: g - r,
    "the negative of a rate": lambda k, g, r, x: -k.max(r, T),
    "the negative of a square": lambda k, g, r, x: -(x * x),
    "a product of matrices": lambda k, g, r, x: k.dot(g, columns(k, r), N),
    "a choice of two": lambda k, g, r, x: k.where(k.less(k.index(T), 3), g, 0.0),
    "the smaller of two": lambda k, g, r, x: k.map("min", x, 0.0),
    "a primitive": lambda k, g, r, x: -k.map("softplus", x),
    "products of decays": lambda k, g, r, x: k.product(k.map("exp", g), T) - 1.0,
    "products between": lambda k, g, r, x: k.between(k.map("exp", g), T, T, S) - 1.0,
    "what a loop adds up": lambda k, g, r, x: looped(k, g, lambda s: s + g),
    "the negative of a product of rates": lambda k, g, r, x: -k.product(r, T),
}
REFUSED: dict[str, Compute] = {
    "any number": lambda k, g, r, x: x,
    "a rate": lambda k, g, r, x: r,
    "a difference of sums": lambda k, g, r, x: k.cumulate("sum", g, T) - k.sum(g, T),
    "a product of two log decays": lambda k, g, r, x: g * g,
    "a number above 0": lambda k, g, r, x: k.const(1e-300),
    "infinity": lambda k, g, r, x: k.const(INF),
    "a product of any numbers": lambda k, g, r, x: k.product(x, T),
    "the negative of one": lambda k, g, r, x: -k.product(x, T),
    "products of rates": lambda k, g, r, x: k.product(r, T) - 1.0,
    "products of rates between": lambda k, g, r, x: k.between(r, T, T, S) - 1.0,
    "the larger of two": lambda k, g, r, x: k.map("max", x, g),
    "an inverse": lambda k, g, r, x: k.inverse_unit(
        k.dot(g, columns(k, r), N, out=Triangle(T, S, Part.STRICTLY_LOWER)), T, S
    ),
    "what a loop turns round": lambda k, g, r, x: looped(k, g, lambda s: -s),
    "what a loop makes positive late": lambda k, g, r, x: looped(k, g, lambda s: s + 1.0),
}


@pytest.mark.parametrize("what", PROVED)
def test_an_exponent_is_proved(what: str) -> None:
    assert kernel_of(lambda k, g, r, x: k.map("exp", PROVED[what](k, g, r, x))).body


@pytest.mark.parametrize("what", REFUSED)
def test_an_exponent_is_refused(what: str) -> None:
    with pytest.raises(InvalidKernel, match="value exp: exp of what may be positive"):
        kernel_of(lambda k, g, r, x: k.map("exp", REFUSED[what](k, g, r, x)))


def test_an_exponent_in_a_loop_is_that_of_every_iteration() -> None:
    def compute(step: Callable[[Tile], Tile], k: KernelBuilder, g: Tile) -> Tile:
        with k.loop("i", 3, S=k.const(0.0) * g, E=g) as loop:
            loop.next(S=step(loop["S"]), E=k.map("exp", loop["S"] + loop["S"]))
        return loop.last("E")

    assert kernel_of(lambda k, g, r, x: compute(lambda s: s + g, k, g)).body
    with pytest.raises(InvalidKernel, match="value exp: exp of what may be positive"):
        kernel_of(lambda k, g, r, x: compute(lambda s: s + r, k, g))


@pytest.mark.parametrize("what", REFUSED)
def test_a_free_exponent_may_be_of_anything(what: str) -> None:
    assert kernel_of(lambda k, g, r, x: k.map("exp", REFUSED[what](k, g, r, x), free=True)).body


def test_scratch_is_not_what_a_caller_promises() -> None:
    k = KernelBuilder("scratch", "exp of scratch.")
    s = k.argument("s", (8,), Access.SCRATCH, promise=LOG)
    k.store(s, k.all(T), value=k.const(1.0))
    k.store(k.argument("o", (8,), Access.WRITE), k.all(T), value=k.map("exp", k.load(s, k.all(T))))
    with pytest.raises(InvalidKernel, match="may be positive"):
        k.kernel()


@given(st.sampled_from(sorted(PROVED | REFUSED)), st.integers(0, 2**32 - 1))
def test_entries_lie_in_their_interval(what: str, seed: int) -> None:
    kernel = kernel_of((PROVED | REFUSED)[what])
    draw = np.random.default_rng(seed)
    g, r, x = (
        -draw.exponential(size=(8, 3)),
        draw.exponential(size=(8, 3)),
        draw.normal(size=(8, 3)),
    )
    got = interpret(kernel, {"g": g, "r": r, "x": x}, {"N": 3})["o"]
    (store,) = (s for s in kernel.body if isinstance(s, Store))
    range_of_result = ranges_of(kernel)[store.value]
    assert all(float(e) in range_of_result for e in got.ravel())
