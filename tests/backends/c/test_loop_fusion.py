"""Statements of a kernel change places, its numbers do not; a run is one nest of loops."""

from __future__ import annotations

import numpy as np
import pytest
from dsfc.backends.c import BACKEND
from dsfc.backends.c.loop_fusion import Run, reordered, runs
from dsfc.backends.c.printer import print_kernel
from dsfc.backends.c.schedule import schedule

import dsfc
from dsfc.kernel_ir.build import KernelBuilder
from dsfc.kernel_ir.interpret import interpret
from dsfc.kernel_ir.ir import Access, Axis, Kernel, Let, Load, Reduce, Storage, Store
from dsfc.kernel_ir.verify import verify

FORMS = ("retnet", "gla", "deltanet", "kda", "rg_lru", "s6")
SIZES = {"B": 2, "H": 2, "N": 3, "P": 3, "PT": 2, "BLOCK": 2}
"""A part of a head's channels, and a part of it that is not full; other sizes are 3."""
C = Axis("c", 4)


def kernels(spec: str) -> tuple[Kernel, ...]:
    """The kernels of the scans of a spec."""
    return BACKEND.kernels(dsfc.load(spec).fused("c"))


def sizes_of(kernel: Kernel) -> dict[str, int]:
    """Sizes with two spans, the second of them short."""
    if kernel.name == "step":
        tokens = {"L": 1}
    else:
        tokens = {"L": 5, "SPANS": 2, "SPAN": 3} if "BLOCK" in kernel.static else {}
    tokens = tokens or {"L": 37, "SPANS": 2, "SPAN": 2 if "16" in str(kernel.order) else 1}
    return {n: 3 for n in kernel.static} | SIZES | tokens


@pytest.mark.share(6)
@pytest.mark.parametrize("spec", FORMS)
def test_another_order_of_statements_gives_the_same_numbers(spec: str) -> None:
    for kernel in kernels(spec):
        sizes = sizes_of(kernel)
        sizes = {n: sizes[n] for n in (*kernel.static, *kernel.dynamic)}
        draw = np.random.default_rng(0)
        arguments = {
            a.name: -np.abs(
                draw.normal(size=[s if isinstance(s, int) else sizes[s.name] for s in a.shape])
            )
            for a in kernel.arguments
            if a.access is Access.READ
        }
        plan = schedule(kernel)
        other = verify(reordered(kernel, plan))
        assert other != kernel or kernel.name in ("forward", "step", "steps")
        want, got = interpret(kernel, arguments, sizes), interpret(other, arguments, sizes)
        assert want.keys() == got.keys()
        assert all(np.array_equal(want[n], got[n]) for n in want)


def test_a_token_of_an_elementwise_scan_is_one_loop() -> None:
    forward, backward, *_ = kernels("rg_lru")
    text = print_kernel(forward)
    assert text.count("#pragma omp simd") == 1
    # The new state lies in memory, and is the output: no loop stores it once more.
    assert text.count(" store_row(") == text.count(" store_wide(") == 1
    # Starts, their next tokens, their copies; states, the last one; tokens, the copy.
    assert print_kernel(backward).count("#pragma omp simd") == 7


def small() -> tuple[KernelBuilder, object, object, object]:
    k = KernelBuilder("small", "A small kernel.")
    x = k.argument("x", (4,), storage=Storage.WIDE)
    y = k.argument("y", (4,), Access.WRITE, Storage.WIDE)
    return k, x, y, k.argument("kept", (4,), Access.SCRATCH, Storage.WIDE)


def printed_runs(kernel: Kernel) -> list[Run]:
    plan = schedule(kernel)
    return [r for r in runs(reordered(kernel, plan).body, plan) if isinstance(r, Run)]


def test_what_reads_a_sum_is_not_computed_in_its_loops() -> None:
    k, x, y, _ = small()
    tile = k.load(x, k.all(C))
    k.store(y, k.all(C), value=tile * k.sum(tile * tile, C))
    first, second = printed_runs(k.kernel())
    assert isinstance(first.statements[-1], Let)
    assert isinstance(first.statements[-1].operation, Reduce)
    assert isinstance(second.statements[-1], Store)


def test_a_scratch_tile_is_loaded_between_its_stores() -> None:
    k, x, y, kept = small()
    tile = k.load(x, k.all(C))
    k.store(kept, k.all(C), value=tile + 1.0)
    before = k.load(kept, k.all(C))
    k.store(y, k.all(C), value=before * before)
    kernel = k.kernel()
    order = [s for s in reordered(kernel, schedule(kernel)).body]
    stored, loaded, written = (
        next(i for i, s in enumerate(order) if test(s))
        for test in (
            lambda s: isinstance(s, Store) and s.argument == "kept",
            lambda s: isinstance(s, Let) and s.operation == Load("kept", (k.all(C),)),
            lambda s: isinstance(s, Store) and s.argument == "y",
        )
    )
    assert stored < loaded < written
    assert len(printed_runs(kernel)) == 2


def test_a_tile_that_lies_in_scratch_memory_is_read_before_it_is_overwritten() -> None:
    k, x, y, kept = small()
    tile = k.load(x, k.all(C))
    k.store(kept, k.all(C), value=tile)
    before = k.load(kept, k.all(C))
    k.store(y, k.all(C), value=before * 2.0)
    k.store(kept, k.all(C), value=tile * 3.0)
    stores = [
        s.argument for r in printed_runs(k.kernel()) for s in r.statements if isinstance(s, Store)
    ]
    assert stores == ["kept", "y", "kept"]
    assert len(printed_runs(k.kernel())) == 3
