"""Counts of the kernels of a scan without keys."""

from __future__ import annotations

from collections.abc import Iterator

from dsfc.expr.build import ZERO, add, div, mul, num, walk
from dsfc.expr.tree import Expr
from dsfc.fused.ir import Prologue, real_imag
from dsfc.plan.scan_ir import Form
from dsfc.plan.sizes import BATCH, LENGTH

from .counts import (
    FLOAT,
    INSTRUCTIONS,
    SEGMENT,
    TILE,
    Pass,
    Sizes,
    Way,
    bytes_of,
    counted,
    scaled,
    segment_bytes,
)


def elementwise(gates: Prologue, sizes: Sizes) -> Iterator[Way]:
    """Each leaf of the gates once, each gradient of one once; the states are the output."""
    heads, _, channels = sizes
    count, width = len(gates.tokens), mul(heads, channels)
    parts_of = len(real_imag(gates.value))  # two where the state is complex
    read = {r.name for r in walk(gates.decay) if hasattr(r, "name")}
    of_decay = len([n for n in gates.tokens if n in read])
    compulsory_bytes = bytes_of(count + parts_of, width), bytes_of(2 * (count + parts_of), width)
    fixed = len(gates.constants)
    for split in (False, True):
        rows = mul(BATCH, div(width, TILE), div(LENGTH, SEGMENT) if split else num(1))
        passes = []
        for name, whole, again, states, made, made_again in (
            (
                "forward",
                compulsory_bytes[0],
                count,
                1,
                (gates.decay, gates.value),
                (gates.decay, gates.value),
            ),
            (
                "backward",
                compulsory_bytes[1],
                of_decay + parts_of,
                2,
                (gates.decay, *gates.gradients),
                (gates.decay,),
            ),
        ):
            each: Expr = num(counted(*made) + split * counted(*made_again))
            moved: Expr = whole
            redundant_reads: Expr = ZERO
            if split:
                # Both launches read the constants.
                start = scaled(FLOAT * (states * parts_of + 2 * fixed), width)
                slices = scaled(FLOAT * fixed * (name == "backward"), width)
                ends, redundant_reads = segment_bytes(
                    scaled(2 * FLOAT * parts_of, width), start, slices
                )
                moved = add(whole, bytes_of(again, width), ends)
                first = counted(*made, fixed=True) + counted(*made_again, fixed=True)
                each = add(each, div(num(first), SEGMENT))
            done = scaled(parts_of * INSTRUCTIONS[Form.ELEMENTWISE, name], width)
            passes.append(
                Pass(name, moved, redundant_reads, ZERO, mul(each, width),
                     scaled(2, done) if split else done, 1 + split, rows,
                     SEGMENT if split else LENGTH)
            )  # fmt: skip
        yield (passes[0], passes[1]), compulsory_bytes
