"""Tiles by form, direction, width of the numbers in memory and architecture: data, not code.

Nothing here was timed: the tiles are those whose kernels keep the most loads in flight without a
spill, as compiled ahead of time (`tests/backends/triton/resources.json`). No length is a key.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from dsfc.plan.scan_ir import Form

from .cost.devices import DEVICES


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile and what works on it.

    Attributes:
        tokens: rows; all are in registers at once.
        channels: columns; one thread, or a few, to each. Of a matrix scan the columns, or
            backwards also keys, of a state that a program has.
        warps: of a program, of 32 threads (64 on gfx9).
        stages: tiles that are loaded ahead, and the one that is worked on.
    """

    tokens: int
    channels: int
    warps: int
    stages: int


_WIDE = 4  # bytes of a number in float32; the others have 2
_NARROW = 2

TILES: dict[tuple[Form, str, int, str, int], Tile] = {
    (Form.ELEMENTWISE, "forward", _NARROW, "cuda", 80): Tile(32, 64, 2, 4),
    (Form.ELEMENTWISE, "forward", _NARROW, "hip", 94): Tile(16, 128, 2, 2),
    (Form.ELEMENTWISE, "forward", _WIDE, "cuda", 80): Tile(16, 64, 2, 4),
    (Form.ELEMENTWISE, "forward", _WIDE, "hip", 94): Tile(16, 128, 2, 2),
    (Form.ELEMENTWISE, "backward", _NARROW, "cuda", 80): Tile(16, 64, 2, 3),
    (Form.ELEMENTWISE, "backward", _NARROW, "hip", 94): Tile(16, 128, 2, 2),
    (Form.ELEMENTWISE, "backward", _WIDE, "cuda", 80): Tile(16, 64, 2, 3),
    (Form.ELEMENTWISE, "backward", _WIDE, "hip", 94): Tile(16, 128, 2, 2),
    # Of a complex state each channel has two numbers.
    (Form.ELEMENTWISE, "forward of pairs", _NARROW, "cuda", 80): Tile(16, 64, 2, 4),
    (Form.ELEMENTWISE, "forward of pairs", _NARROW, "hip", 94): Tile(16, 128, 2, 2),
    (Form.ELEMENTWISE, "forward of pairs", _WIDE, "cuda", 80): Tile(16, 64, 2, 3),
    (Form.ELEMENTWISE, "forward of pairs", _WIDE, "hip", 94): Tile(16, 64, 2, 2),
    (Form.ELEMENTWISE, "backward of pairs", _NARROW, "cuda", 80): Tile(16, 64, 2, 2),
    (Form.ELEMENTWISE, "backward of pairs", _NARROW, "cuda", 90): Tile(16, 64, 2, 3),
    (Form.ELEMENTWISE, "backward of pairs", _NARROW, "cuda", 100): Tile(8, 64, 2, 3),
    (Form.ELEMENTWISE, "backward of pairs", _NARROW, "hip", 94): Tile(16, 64, 2, 2),
    (Form.ELEMENTWISE, "backward of pairs", _WIDE, "cuda", 80): Tile(16, 64, 2, 2),
    (Form.ELEMENTWISE, "backward of pairs", _WIDE, "hip", 94): Tile(16, 64, 2, 2),
    (Form.MATRIX, "forward 64", _NARROW, "cuda", 80): Tile(32, 64, 4, 2),
    (Form.MATRIX, "forward 64", _NARROW, "cuda", 90): Tile(64, 64, 4, 3),
    (Form.MATRIX, "forward 64", _NARROW, "cuda", 100): Tile(64, 64, 8, 2),
    (Form.MATRIX, "forward 64", _NARROW, "hip", 94): Tile(64, 64, 4, 1),
    (Form.MATRIX, "forward 64", _WIDE, "cuda", 80): Tile(16, 32, 8, 1),
    (Form.MATRIX, "forward 64", _WIDE, "hip", 94): Tile(32, 32, 4, 1),
    (Form.MATRIX, "forward 64 decay", _NARROW, "cuda", 80): Tile(32, 64, 4, 2),
    (Form.MATRIX, "forward 64 decay", _NARROW, "cuda", 90): Tile(64, 64, 4, 3),
    (Form.MATRIX, "forward 64 decay", _NARROW, "cuda", 100): Tile(64, 64, 8, 2),
    (Form.MATRIX, "forward 64 decay", _NARROW, "hip", 94): Tile(64, 64, 4, 1),
    (Form.MATRIX, "forward 64 decay", _WIDE, "cuda", 80): Tile(16, 32, 8, 1),
    (Form.MATRIX, "forward 64 decay", _WIDE, "hip", 94): Tile(32, 32, 4, 1),
    (Form.MATRIX, "forward 128", _NARROW, "cuda", 80): Tile(32, 64, 4, 2),
    (Form.MATRIX, "forward 128", _NARROW, "cuda", 90): Tile(64, 64, 4, 2),
    (Form.MATRIX, "forward 128", _NARROW, "cuda", 100): Tile(64, 64, 8, 2),
    (Form.MATRIX, "forward 128", _NARROW, "hip", 94): Tile(64, 64, 4, 1),
    (Form.MATRIX, "forward 128", _WIDE, "cuda", 80): Tile(16, 16, 8, 1),
    (Form.MATRIX, "forward 128", _WIDE, "hip", 94): Tile(16, 32, 4, 1),
    (Form.MATRIX, "forward 128 decay", _NARROW, "cuda", 80): Tile(32, 32, 4, 2),
    (Form.MATRIX, "forward 128 decay", _NARROW, "cuda", 90): Tile(64, 32, 4, 2),
    (Form.MATRIX, "forward 128 decay", _NARROW, "cuda", 100): Tile(64, 64, 8, 2),
    (Form.MATRIX, "forward 128 decay", _NARROW, "hip", 94): Tile(64, 64, 4, 1),
    (Form.MATRIX, "forward 128 decay", _WIDE, "cuda", 80): Tile(16, 16, 8, 1),
    (Form.MATRIX, "forward 128 decay", _WIDE, "hip", 94): Tile(16, 32, 4, 1),
    (Form.MATRIX, "forward 256", _NARROW, "cuda", 80): Tile(32, 32, 8, 1),
    (Form.MATRIX, "forward 256", _NARROW, "cuda", 90): Tile(64, 32, 8, 1),
    (Form.MATRIX, "forward 256", _NARROW, "cuda", 100): Tile(64, 32, 8, 1),
    (Form.MATRIX, "forward 256", _NARROW, "hip", 94): Tile(32, 32, 4, 1),
    (Form.MATRIX, "forward 256", _WIDE, "cuda", 80): Tile(16, 8, 8, 1),
    (Form.MATRIX, "forward 256", _WIDE, "hip", 94): Tile(16, 16, 4, 1),
    (Form.MATRIX, "forward 256 decay", _NARROW, "cuda", 80): Tile(32, 32, 8, 1),
    (Form.MATRIX, "forward 256 decay", _NARROW, "cuda", 90): Tile(32, 32, 8, 1),
    (Form.MATRIX, "forward 256 decay", _NARROW, "cuda", 100): Tile(64, 32, 8, 1),
    (Form.MATRIX, "forward 256 decay", _NARROW, "hip", 94): Tile(32, 32, 4, 1),
    (Form.MATRIX, "forward 256 decay", _WIDE, "cuda", 80): Tile(16, 8, 8, 1),
    (Form.MATRIX, "forward 256 decay", _WIDE, "hip", 94): Tile(16, 16, 4, 1),
    (Form.MATRIX, "backward 64", _NARROW, "cuda", 80): Tile(32, 64, 4, 2),
    (Form.MATRIX, "backward 64", _NARROW, "cuda", 90): Tile(64, 64, 4, 2),
    (Form.MATRIX, "backward 64", _NARROW, "cuda", 100): Tile(64, 64, 8, 2),
    (Form.MATRIX, "backward 64", _NARROW, "hip", 94): Tile(64, 64, 4, 1),
    (Form.MATRIX, "backward 64", _WIDE, "cuda", 80): Tile(16, 32, 8, 1),
    (Form.MATRIX, "backward 64", _WIDE, "hip", 94): Tile(32, 32, 4, 1),
    (Form.MATRIX, "backward 64 decay", _NARROW, "cuda", 80): Tile(32, 64, 4, 2),
    (Form.MATRIX, "backward 64 decay", _NARROW, "cuda", 90): Tile(32, 64, 8, 2),
    (Form.MATRIX, "backward 64 decay", _NARROW, "cuda", 100): Tile(64, 64, 8, 2),
    (Form.MATRIX, "backward 64 decay", _NARROW, "hip", 94): Tile(64, 64, 4, 1),
    (Form.MATRIX, "backward 64 decay", _WIDE, "cuda", 80): Tile(16, 32, 8, 1),
    (Form.MATRIX, "backward 64 decay", _WIDE, "hip", 94): Tile(32, 32, 4, 1),
    (Form.MATRIX, "backward 128", _NARROW, "cuda", 80): Tile(32, 32, 4, 2),
    (Form.MATRIX, "backward 128", _NARROW, "cuda", 90): Tile(32, 64, 4, 2),
    (Form.MATRIX, "backward 128", _NARROW, "cuda", 100): Tile(64, 64, 8, 2),
    (Form.MATRIX, "backward 128", _NARROW, "hip", 94): Tile(32, 64, 4, 1),
    (Form.MATRIX, "backward 128", _WIDE, "cuda", 80): Tile(16, 16, 8, 1),
    (Form.MATRIX, "backward 128", _WIDE, "hip", 94): Tile(16, 32, 4, 1),
    (Form.MATRIX, "backward 128 decay", _NARROW, "cuda", 80): Tile(32, 64, 8, 2),
    (Form.MATRIX, "backward 128 decay", _NARROW, "cuda", 90): Tile(32, 64, 8, 2),
    (Form.MATRIX, "backward 128 decay", _NARROW, "cuda", 100): Tile(32, 64, 8, 2),
    (Form.MATRIX, "backward 128 decay", _NARROW, "hip", 94): Tile(32, 64, 4, 1),
    (Form.MATRIX, "backward 128 decay", _WIDE, "cuda", 80): Tile(16, 16, 8, 1),
    (Form.MATRIX, "backward 128 decay", _WIDE, "hip", 94): Tile(16, 32, 4, 1),
    (Form.MATRIX, "backward 256", _NARROW, "cuda", 80): Tile(32, 32, 8, 1),
    (Form.MATRIX, "backward 256", _NARROW, "cuda", 90): Tile(32, 32, 8, 1),
    (Form.MATRIX, "backward 256", _NARROW, "cuda", 100): Tile(16, 32, 8, 1),
    (Form.MATRIX, "backward 256", _NARROW, "hip", 94): Tile(32, 32, 4, 1),
    (Form.MATRIX, "backward 256", _WIDE, "cuda", 80): Tile(16, 8, 8, 1),
    (Form.MATRIX, "backward 256", _WIDE, "hip", 94): Tile(16, 16, 4, 1),
    (Form.MATRIX, "backward 256 decay", _NARROW, "cuda", 80): Tile(16, 32, 8, 1),
    (Form.MATRIX, "backward 256 decay", _NARROW, "cuda", 90): Tile(16, 32, 8, 1),
    (Form.MATRIX, "backward 256 decay", _NARROW, "cuda", 100): Tile(16, 32, 8, 1),
    (Form.MATRIX, "backward 256 decay", _NARROW, "hip", 94): Tile(32, 32, 4, 1),
    (Form.MATRIX, "backward 256 decay", _WIDE, "cuda", 80): Tile(16, 8, 8, 1),
    (Form.MATRIX, "backward 256 decay", _WIDE, "hip", 94): Tile(16, 16, 4, 1),
    # One thread holds all states of a channel, or of two; more states than 16 are one tile.
    # Four bytes are not loaded ahead: on CUDA every number of every key would be copied through
    # shared memory by itself, which did not compile in eight minutes; on gfx942 they spilled.
    (Form.SELECTIVE, "forward", _NARROW, "cuda", 80): Tile(8, 64, 1, 2),
    (Form.SELECTIVE, "forward", _NARROW, "cuda", 100): Tile(8, 64, 1, 3),
    (Form.SELECTIVE, "forward", _NARROW, "hip", 94): Tile(8, 64, 1, 2),
    (Form.SELECTIVE, "forward", _WIDE, "cuda", 80): Tile(8, 64, 1, 1),
    (Form.SELECTIVE, "forward", _WIDE, "hip", 94): Tile(8, 64, 1, 1),
    (Form.SELECTIVE, "forward of many", _NARROW, "cuda", 80): Tile(8, 128, 4, 2),
    # Loads ahead would take the registers that 64 states need.
    (Form.SELECTIVE, "forward of many", _NARROW, "cuda", 90): Tile(8, 128, 4, 1),
    (Form.SELECTIVE, "forward of many", _NARROW, "cuda", 100): Tile(4, 128, 4, 2),
    (Form.SELECTIVE, "forward of many", _NARROW, "hip", 94): Tile(8, 128, 4, 2),
    (Form.SELECTIVE, "forward of many", _WIDE, "cuda", 80): Tile(8, 128, 4, 1),
    (Form.SELECTIVE, "forward of many", _WIDE, "hip", 94): Tile(8, 128, 4, 1),
    # Sums over channels are products of matrices, which several warps would each repeat.
    (Form.SELECTIVE, "backward", _NARROW, "cuda", 80): Tile(4, 32, 1, 2),
    (Form.SELECTIVE, "backward", _NARROW, "hip", 94): Tile(4, 64, 1, 2),
    (Form.SELECTIVE, "backward", _WIDE, "cuda", 80): Tile(4, 32, 1, 1),
    (Form.SELECTIVE, "backward", _WIDE, "hip", 94): Tile(4, 64, 1, 1),
    # All complex states of a channel are a tile forwards.
    (Form.SELECTIVE, "forward of pairs", _NARROW, "cuda", 80): Tile(4, 64, 2, 2),
    (Form.SELECTIVE, "forward of pairs", _NARROW, "hip", 94): Tile(4, 64, 1, 2),
    (Form.SELECTIVE, "forward of pairs", _WIDE, "cuda", 80): Tile(4, 64, 2, 1),
    (Form.SELECTIVE, "forward of pairs", _WIDE, "hip", 94): Tile(4, 64, 1, 1),
    (Form.SELECTIVE, "backward of pairs", _NARROW, "cuda", 80): Tile(4, 32, 1, 2),
    (Form.SELECTIVE, "backward of pairs", _NARROW, "hip", 94): Tile(4, 64, 1, 2),
    (Form.SELECTIVE, "backward of pairs", _WIDE, "cuda", 80): Tile(4, 32, 1, 1),
    (Form.SELECTIVE, "backward of pairs", _WIDE, "hip", 94): Tile(4, 64, 1, 1),
}
"""By form, direction, bytes of a number, platform and capability (94 is gfx942), from which on.

A matrix scan's direction also says the most keys, backwards keys or channels, whether states
decay, whether more is computed inside (queries or keys, or where states decay a weight of values),
and whether there is a column of one channel besides.
"""

_FEATURES = " features"
_TILES_OF_FEATURES: dict[tuple[Form, str, int, str, int], Tile] = {
    (Form.MATRIX, "forward 128 features", _NARROW, "cuda", 90): Tile(32, 64, 8, 2),
    (Form.MATRIX, "forward 256 features", _NARROW, "cuda", 80): Tile(16, 32, 8, 1),
    (Form.MATRIX, "forward 256 features", _NARROW, "cuda", 90): Tile(16, 32, 8, 1),
    (Form.MATRIX, "forward 64 decay features", _NARROW, "cuda", 90): Tile(64, 64, 8, 2),
    (Form.MATRIX, "backward 64 features", _NARROW, "cuda", 90): Tile(32, 64, 8, 2),
    (Form.MATRIX, "backward 128 features", _NARROW, "cuda", 80): Tile(16, 32, 4, 2),
    (Form.MATRIX, "backward 128 features", _NARROW, "cuda", 90): Tile(16, 64, 8, 2),
    (Form.MATRIX, "backward 256 features", _NARROW, "cuda", 80): Tile(16, 16, 8, 1),
    (Form.MATRIX, "backward 256 features", _NARROW, "cuda", 90): Tile(16, 16, 8, 1),
    (Form.MATRIX, "backward 256 features", _NARROW, "cuda", 100): Tile(16, 16, 8, 1),
    # Two tiles ahead of mLSTM's would be 16 bytes of stack.
    (Form.MATRIX, "backward 128 decay features", _NARROW, "cuda", 100): Tile(32, 64, 8, 1),
}
_COLUMN = " column"
_TILES_WITH_A_COLUMN: dict[tuple[Form, str, int, str, int], Tile] = {
    (Form.MATRIX, "forward 64 features column", _NARROW, "cuda", 90): Tile(64, 64, 8, 3),
    (Form.MATRIX, "forward 256 features column", _NARROW, "cuda", 100): Tile(16, 32, 8, 1),
    (Form.MATRIX, "forward 256 features column", _NARROW, "hip", 94): Tile(16, 32, 4, 1),
    (Form.MATRIX, "backward 256 features column", _NARROW, "cuda", 100): Tile(16, 32, 8, 1),
    (Form.MATRIX, "backward 256 features column", _NARROW, "hip", 94): Tile(16, 32, 4, 1),
    (Form.MATRIX, "backward 256 features column", _WIDE, "cuda", 90): Tile(16, 32, 8, 1),
    (Form.MATRIX, "backward 128 decay features column", _WIDE, "cuda", 80): Tile(16, 8, 8, 1),
    (Form.MATRIX, "backward 128 features column", _WIDE, "cuda", 100): Tile(16, 8, 8, 1),
    (Form.MATRIX, "forward 64 decay features column", _NARROW, "cuda", 90): Tile(32, 64, 8, 2),
    (Form.MATRIX, "forward 128 features column", _NARROW, "cuda", 80): Tile(32, 64, 8, 2),
    (Form.MATRIX, "forward 128 features column", _NARROW, "cuda", 100): Tile(16, 64, 8, 2),
    (Form.MATRIX, "forward 128 decay features column", _NARROW, "cuda", 90): Tile(32, 32, 8, 2),
    (Form.MATRIX, "forward 128 decay features column", _NARROW, "cuda", 100): Tile(32, 64, 8, 2),
    (Form.MATRIX, "forward 128 decay features column", _NARROW, "hip", 94): Tile(32, 64, 4, 1),
    (Form.MATRIX, "backward 128 features column", _NARROW, "cuda", 100): Tile(16, 64, 8, 1),
    (Form.MATRIX, "backward 128 decay features column", _NARROW, "cuda", 80): Tile(16, 64, 8, 2),
}
PRINTED_CHUNK = {
    Form.KEYED: 64,
    Form.LOW_RANK: 64,
    Form.KEYED_LOW_RANK: 32,
    Form.DELTA: 64,
    Form.KEYED_DELTA: 64,
}
"""Tokens of a chunk of printed kernels, by form."""

_PRINTED: dict[tuple[str, int, str, int], tuple[int, int]] = {
    ("pairs", _NARROW, "cuda", 80): (32, 8),
    ("pairs", _NARROW, "cuda", 90): (64, 8),
    ("pairs", _NARROW, "hip", 94): (64, 4),
    ("pairs", _WIDE, "cuda", 80): (16, 8),
    ("pairs", _WIDE, "hip", 94): (32, 4),
    ("states", _NARROW, "cuda", 80): (64, 8),
    ("states", _NARROW, "hip", 94): (64, 4),
    ("states", _WIDE, "cuda", 80): (16, 8),
    ("states", _WIDE, "hip", 94): (32, 4),
    ("outputs", _NARROW, "cuda", 80): (64, 4),
    ("outputs", _NARROW, "hip", 94): (64, 4),
    ("outputs", _WIDE, "cuda", 80): (32, 4),
    ("outputs", _WIDE, "hip", 94): (32, 4),
    ("futures", _NARROW, "cuda", 80): (32, 8),
    ("futures", _NARROW, "cuda", 90): (64, 8),
    ("futures", _NARROW, "hip", 94): (64, 4),
    ("futures", _WIDE, "cuda", 80): (16, 8),
    ("futures", _WIDE, "hip", 94): (16, 4),
    ("gradients", _NARROW, "cuda", 80): (32, 8),
    ("gradients", _NARROW, "cuda", 90): (64, 8),
    ("gradients", _NARROW, "hip", 94): (32, 4),
    ("gradients", _WIDE, "cuda", 80): (16, 8),
    ("gradients", _WIDE, "hip", 94): (32, 4),
}
"""Keys or channels of a part, and warps, of printed kernels, from an architecture on.

A chunk has the rows of four warps in a product of matrices: eight compute some of it twice, and
each holds half as much. On sm_80 a thread holds what it multiplies.
"""

_PRINTED_OF: dict[tuple[Form, str, int, str, int], tuple[int, int]] = {
    (Form.KEYED, "futures", _NARROW, "cuda", 80): (64, 8),
    (Form.KEYED, "gradients", _NARROW, "cuda", 80): (32, 8),
    (Form.KEYED, "gradients", _NARROW, "cuda", 90): (16, 8),
    (Form.KEYED, "gradients", _NARROW, "cuda", 100): (32, 8),
    (Form.KEYED_DELTA, "pairs", _NARROW, "cuda", 80): (32, 8),
    (Form.KEYED_DELTA, "pairs", _NARROW, "cuda", 100): (64, 8),
    (Form.KEYED_DELTA, "pairs", _NARROW, "hip", 94): (32, 4),
    (Form.KEYED_DELTA, "futures", _NARROW, "hip", 94): (32, 4),
    (Form.KEYED_DELTA, "gradients", _NARROW, "cuda", 80): (16, 8),
    (Form.KEYED_DELTA, "gradients", _NARROW, "cuda", 100): (32, 8),
    (Form.KEYED_DELTA, "gradients", _NARROW, "hip", 94): (16, 4),
    (Form.KEYED_LOW_RANK, "pairs", _NARROW, "cuda", 80): (16, 4),
    (Form.KEYED_LOW_RANK, "pairs", _NARROW, "hip", 94): (16, 4),
    (Form.KEYED_LOW_RANK, "futures", _NARROW, "hip", 94): (32, 4),
    (Form.KEYED_LOW_RANK, "gradients", _NARROW, "cuda", 80): (64, 8),
    (Form.KEYED_LOW_RANK, "gradients", _NARROW, "hip", 94): (16, 4),
}
"""Where a form has others: then these are all that it has of a kernel, width and platform."""


def _printed(
    form: Form, kernel: str, size: int, platform: str, version: int
) -> tuple[int, int] | None:
    """Width and warps of a row of a form, or of all; None where an older row is the last one."""
    own = {key for key in _PRINTED_OF if key[:4] == (form, kernel, size, platform)}
    if own:
        return _PRINTED_OF.get((form, kernel, size, platform, version))
    return _PRINTED.get((kernel, size, platform, version))


# States of 256 keys take twice the registers of those of 128.
TILES |= {
    (form, f"{way} {kernel} {keys}", size, platform, version): Tile(
        PRINTED_CHUNK[form], min(part[0], 8192 // keys), part[1], 1
    )
    for form in PRINTED_CHUNK
    for way, kernel in (
        *(("forward", x) for x in ("pairs", "states", "outputs")),
        *(("backward", x) for x in ("pairs", "states", "futures", "gradients")),
    )
    for keys in (64, 128, 256)
    for size in (_NARROW, _WIDE)
    for platform, version in (("cuda", 80), ("cuda", 90), ("cuda", 100), ("hip", 94))
    if (part := _printed(form, kernel, size, platform, version)) is not None
}
TOEPLITZ_ROWS = 16
"""Rows of the batch of a program of a convolution: as few as a product of matrices has."""

TOEPLITZ_KEYS = {False: 64, True: 16}
"""Numbers of a state of a convolution at most, by whether its values are complex."""

# Longer chunks are more tables than registers hold in the loop, of wide numbers even these.
_TOEPLITZ: dict[tuple[str, int, str, int], Tile] = {
    (f"{direction} {keys}", size, platform, version): Tile(
        tokens, TOEPLITZ_ROWS, 8 if (platform, keys) == ("cuda", 64) else 4, stages
    )
    for direction in ("forward", "backward")
    for keys in (16, 32, 64)
    for size, tokens, platform, version, stages in (
        *((_NARROW, 32, "cuda", 80, 3), (_NARROW, 32, "hip", 94, 2)),
        *((_WIDE, 16, "cuda", 80, 2), (_WIDE, 16, "hip", 94, 2)),
    )
}

# A convolution without keys has the kernels of an elementwise scan.
TILES |= {
    (Form.CONVOLUTION, direction, size, platform, version): tile
    for (form, direction, size, platform, version), tile in TILES.items()
    if form is Form.ELEMENTWISE
}
TILES |= {
    (form, direction + _FEATURES, size, platform, version): tile
    for (form, direction, size, platform, version), tile in TILES.items()
    if form is Form.MATRIX
} | _TILES_OF_FEATURES
TILES |= {
    (form, direction + _COLUMN, size, platform, version): tile
    for (form, direction, size, platform, version), tile in TILES.items()
    if form is Form.MATRIX
} | _TILES_WITH_A_COLUMN


def chips() -> tuple[str, ...]:
    """Returns the rows of a module's table of GPUs."""
    out = []
    for (platform, version), d in DEVICES.items():
        rates = d.bytes, d.operations, d.clock, d.special, d.lanes, d.launch, d.step, d.token
        texts = (re.sub(r"e([+-])0?", r"e\1", f"{x:.4g}").replace("e+", "e") for x in rates)
        out.append(f'("{platform}", {version}): ({", ".join(texts)}),  # {d.name}')
    return tuple(out)


def rows(forms: Collection[Form], kinds: Collection[str]) -> tuple[str, ...]:
    """Returns the rows of some forms as a module's table, of a matrix scan those of some kinds."""
    return tuple(
        f'("{form.value}", "{direction}", {size}, "{platform}", {version}): '
        f"({tile.tokens}, {tile.channels}, {tile.warps}, {tile.stages}),"
        for (form, direction, size, platform, version), tile in TILES.items()
        if form in forms and (form is not Form.MATRIX or _kind(direction) in kinds)
    )


def toeplitz_rows() -> tuple[str, ...]:
    """Returns the rows of convolutions with keys, as a module's table has them."""
    return tuple(
        f'("toeplitz", "{direction}", {size}, "{platform}", {version}): '
        f"({tile.tokens}, {tile.channels}, {tile.warps}, {tile.stages}),"
        for (direction, size, platform, version), tile in _TOEPLITZ.items()
    )


def _kind(direction: str) -> str:
    """What a matrix scan's direction says besides it, and the most keys and channels."""
    return " ".join(direction.split()[2:])
