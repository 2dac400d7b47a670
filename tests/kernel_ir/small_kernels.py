"""Small kernels of one program, and how to run them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsfc.kernel_ir.build import KernelBuilder, Tile
from dsfc.kernel_ir.interpret import interpret
from dsfc.kernel_ir.ir import Access, Axis, Kernel

Array = NDArray[Any]

T, S, N = Axis("t", 8), Axis("s", 8), Axis("n", "N")
SIZES = {"N": 3}
X = np.random.default_rng(0).normal(size=(8, 3))
Y = np.random.default_rng(1).normal(size=(8, 3))
Compute = Callable[[KernelBuilder, Tile, Tile], Tile]


def kernel_of(compute: Compute) -> Kernel:
    """A kernel that computes something of x and y, both over (t, n)."""
    k = KernelBuilder("one", "One operation.")
    size = k.static("N")
    sizes = {T: 8, S: 8, N: size}
    x = k.load(k.argument("x", (8, size)), k.all(T), k.all(N))
    y = k.load(k.argument("y", (8, size)), k.all(T), k.all(N))
    result = compute(k, x, y)
    o = k.argument("o", tuple(sizes[a] for a in result.axes), Access.WRITE)
    k.store(o, *(k.all(a) for a in result.axes), value=result)
    return k.kernel()


def run(compute: Compute, x: Array = X, y: Array = Y) -> Array:
    """What the kernel writes, in float64."""
    return interpret(kernel_of(compute), {"x": x, "y": y}, SIZES)["o"]
