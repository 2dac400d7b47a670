"""A renamed kernel has other names for what is no axis and no static size, and is else the same."""

from __future__ import annotations

import numpy as np
from small_kernels import N, S, T

from dsfc.kernel_ir.build import KernelBuilder
from dsfc.kernel_ir.interpret import interpret
from dsfc.kernel_ir.ir import Access, Along, Kernel, times
from dsfc.kernel_ir.rename import renamed
from dsfc.kernel_ir.uses import bound
from dsfc.kernel_ir.verify import verify


def sums_of_chunks() -> Kernel:
    """A kernel whose names stand in values, loops, comparisons, positions and sizes."""
    k = KernelBuilder("sums", "o = 3 Σ_{s ≤ t} x_s, of chunks of eight.")
    keys, length = k.static("N"), k.dynamic("L")
    chunk = k.grid("chunk", 2)
    x = k.argument("x", (length, keys))
    o = k.argument("o", (length, keys), Access.WRITE)
    rows = Along(T, times(chunk, 8), length)
    tile = k.load(x, rows, k.all(N))
    before = k.where(k.less(k.index(S), k.index(T), or_equal=True), 1.0, 0.0)
    far = k.where(k.less(k.index(T, times(chunk, 8)), length), before, 0.0)
    total = k.dot(far, k.rename(tile, T, S), S)
    with k.loop("step", 3, S=k.const(0.0) * total) as loop:
        loop.next(S=loop["S"] + total)
    k.store(o, rows, k.all(N), value=loop.last("S"))
    return k.kernel()


def test_a_renamed_kernel_computes_the_same() -> None:
    kernel = sums_of_chunks()
    other = verify(renamed(kernel, lambda name: f"{name}_"))
    x = np.random.default_rng(0).normal(size=(13, 3))
    want = np.concatenate([3 * x[:8].cumsum(0), 3 * x[8:].cumsum(0)])
    assert np.allclose(interpret(kernel, {"x": x}, {"N": 3, "L": 13})["o"], want)
    assert np.allclose(interpret(other, {"x_": x}, {"N": 3, "L_": 13})["o_"], want)


def test_axes_static_sizes_and_the_kernel_keep_their_names() -> None:
    kernel = sums_of_chunks()
    other = renamed(kernel, lambda name: f"{name}_")
    assert (other.name, other.static, other.order) == (kernel.name, ("N",), kernel.order)
    assert [a.name for a in other.arguments] == ["x_", "o_"]
    assert other.dynamic == ("L_",) and [g.index for g in other.grid] == ["chunk_"]
    assert [*bound(other.body)] == [f"{name}_" for name in bound(kernel.body)]
