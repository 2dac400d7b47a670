"""Counts of the kernels of a complex matrix scan, whose phases torch applies around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dsfc.expr.build import add, mul, neg, num
from dsfc.expr.tree import Expr
from dsfc.fused.ir import PrologueEpilogue, halves
from dsfc.plan.scan_ir import Scan

from .counts import FLOAT, Sizes, Way, bytes_of, scaled
from .matrix import matrix

_ROTATIONS = 4 + 8 + 2 * 8 + 8 + 16 + 16 + 8
"""Bytes of a token and head: phases added up, in double precision, and their sine and cosine."""


def phased(scan: Scan, features: PrologueEpilogue | None, sizes: Sizes) -> Iterator[Way]:
    """A complex state of real keys and reads: both planes are channels of one real scan.

    Backwards its kernels run twice, the second time for the gradient of the phases. Operations of
    torch rotate what goes in and what comes out, in front of the kernels and behind them: their
    bytes are counted too, of launches only those of kernels.
    """
    heads, keys, channels = sizes
    first, second = halves(scan)
    values = 1 + any(c.value is not None for c in second.columns)
    outs = 2 - scan.real
    (_, (compulsory_bytes, back_floor)) = next(matrix(first, features, sizes))
    more = values + outs - 2
    compulsory_bytes = add(compulsory_bytes, mul(heads, _planes_moved(more, sizes, FLOAT)))
    more = 2 * (values - 1) + outs - 1
    back_floor = add(back_floor, mul(heads, _planes_moved(more, sizes, 2 * FLOAT)))
    around = _around(values, outs, sizes)
    for (forward, backward), _ in matrix(scan, features, (heads, keys, scaled(2, channels))):
        yield (
            (
                replace(forward, bytes=add(forward.bytes, mul(heads, around[0]))),
                replace(
                    backward,
                    bytes=add(scaled(2, backward.bytes), mul(heads, around[1])),
                    redundant_reads=scaled(2, backward.redundant_reads),
                    operations=scaled(2, backward.operations),
                    exponentials=scaled(2, backward.exponentials),
                    launches=2 * backward.launches,
                ),
            ),
            (compulsory_bytes, back_floor),
        )


def _planes_moved(count: int, sizes: Sizes, floats: int) -> Expr:
    """Bytes of planes as wide as the inputs, and of numbers a token and head."""
    return add(bytes_of(count, sizes[2]), num(floats))


def _around(values: int, outs: int, sizes: Sizes) -> tuple[Expr, Expr]:
    """Bytes that operations of torch move around the kernels of a complex scan, of one head.

    A plane of a real value is read, and its product written. Of a complex one the first product is
    written and read in float32 before the second is added to it. What kernels make is float32 until
    it has been rotated, which is twice the bytes that are counted of them.
    """
    numbers, floats = bytes_of(1, sizes[2]), scaled(FLOAT, sizes[2])

    def rotated(made: int, *given: Expr) -> Expr:
        products = 2 * made if len(given) > 1 else 0
        return add(
            scaled(made, numbers), scaled(products, floats), *(scaled(made, g) for g in given)
        )

    def planes_of(count: int, each: Expr) -> tuple[Expr, ...]:
        return (each,) * count

    into = rotated(2, *planes_of(values, numbers))
    wider = add(scaled(2, floats), neg(scaled(2, numbers)))
    forward = add(into, wider, rotated(outs, floats, floats))
    # The values rotated, and i times that: one plane negated, and both put side by side; the
    # gradients of values are written twice.
    backward = add(
        *(into, rotated(2, *planes_of(outs, numbers)), scaled(6, numbers)),
        *(scaled(2, wider), rotated(values, floats, floats)),
    )
    return add(forward, num(_ROTATIONS)), add(backward, num(_ROTATIONS))
