"""Counts of the kernels of a selective scan."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from dsfc.expr.build import ZERO, add, div, mul, num, walk
from dsfc.expr.tree import Expr, Field, Ref, Time
from dsfc.fused.ir import Prologue
from dsfc.plan.scan_ir import Form, Scan
from dsfc.plan.sizes import BATCH, LENGTH

from ..sizes import PAIRS, STEP
from .counts import (
    FLOAT,
    INSTRUCTIONS,
    SEGMENT,
    WIDTH,
    Pass,
    Sizes,
    Way,
    bytes_of,
    counted,
    joined,
    over_heads,
    scaled,
    segment_bytes,
)

TILES = 64, 32
"""Channels of a program of a selective scan, forwards and backwards: there with sums over them."""


def selective(
    scan: Scan, gates: Prologue | None, sizes: Sizes, vectors: tuple[int, int]
) -> Iterator[Way]:
    """States N of each channel in the registers of a thread; those of every block are kept.

    A complex state has two numbers, and its decay one exponential. Backwards a program has some of
    a channel's only, so that what varies along channels is read for each group of these, and its
    gradients come in a slice for each, which torch adds up.
    """
    pairs = scan.field is Field.COMPLEX
    of_state = 2 if pairs else 1
    rates = [] if gates is None else [e for _, e in gates.rates]
    driven = rates if gates is None else [*rates, gates.value]
    added = [] if gates is None else [gates.added]
    gradients = () if gates is None else gates.gradients
    count = 2 if gates is None else len(gates.tokens)
    fixed = 0 if gates is None else len(gates.constants)
    of_states = 0 if scan.decay is None else len(scan.decay.leaves)
    heads, keys, channels = sizes
    tile = mul(keys, channels)
    kept = div(scaled(of_state * FLOAT, tile), num(STEP))
    tiles = [div(channels, num(n)) for n in TILES]
    groups = div(keys, num(PAIRS)) if pairs else num(1)
    in_groups = scaled(counted(*driven) + counted(*gradients), groups)
    more = _along_keys(gates, scan)
    along = sum(vectors) + more
    kinds = 1 << (along - 1).bit_length()  # of gradients along the keys
    sums = scaled(2 * FLOAT * kinds, keys, tiles[1])
    if pairs:
        sums = add(sums, scaled(2 * FLOAT * count, groups, channels))
    rows = mul(BATCH, heads, tiles[1])
    first, second = (of_state * INSTRUCTIONS[Form.SELECTIVE, d] for d in ("forward", "backward"))

    def moved(of_channels: int, of_keys: int, *floats: Expr) -> Expr:
        numbers = add(scaled(of_channels, channels), scaled(of_keys, keys))
        return add(mul(WIDTH, numbers), joined(*floats))

    def exponentials(split: bool, made: Expr, *others: Collection[Expr]) -> Expr:
        """One decay of each state, in both launches; of channels, what each of some makes."""
        each = add(made, num(sum(counted(*es) for es in others)))
        return add(scaled(1 + split, tile), mul(each, channels))

    def started(of_tiles: int, programs: Expr) -> Expr:
        """Bytes that segments read at their start: constants of channels in both launches."""
        of_channels = mul(add(programs, num(1)), scaled(FLOAT * fixed, channels))
        return add(scaled(FLOAT * of_tiles, tile), of_channels)

    compulsory_bytes = moved(count + 1, along), moved(2 * count + 1, 2 * along)
    for split in (False, True):
        # Queries and keys for each tile of channels; backwards rates for each block of tokens, too.
        both = [along + split * (along - n) for n in reversed(vectors)]
        tiled = zip(tiles, both, strict=True)
        shared = [mul(add(n, num(-1)), bytes_of(count_, keys)) for n, count_ in tiled]
        shared[1] = add(shared[1], div(scaled(FLOAT * of_states, tile), num(STEP)))
        shared[1] = add(shared[1], mul(add(groups, num(-1)), bytes_of(count + 1, channels)))
        shared[1] = add(shared[1], mul(tiles[1], bytes_of(more, keys)))  # twice in each block
        parts: list[Expr] = [ZERO, ZERO]
        if split:
            part = scaled(2 * of_state * FLOAT, tile)  # a decay and a state
            slices = scaled(FLOAT * fixed, groups, channels)
            slices = add(scaled(FLOAT * of_states, tile), slices)
            ways = (
                (started(of_state + 2 * of_states, num(1)), ZERO),
                (started(of_state + of_states, groups), slices),
            )
            for at, way in enumerate(ways):
                parts[at], again = segment_bytes(part, *way)
                shared[at] = add(shared[at], again)
        programs = mul(rows, div(LENGTH, SEGMENT)) if split else rows
        steps = SEGMENT if split else LENGTH
        passes = (
            Pass("forward", moved((1 + split) * count + 1, both[0], kept, parts[0]), shared[0],
                 ZERO,
                 exponentials(split, num(counted(*driven, *added)), *[driven] * split),
                 scaled((1 + split) * first, tile),
                 1 + split, programs, steps),
            Pass("backward",
                 moved((2 + split) * count + 1 + split, along + both[1], kept, sums, parts[1]),
                 shared[1], ZERO, exponentials(split, in_groups, *[rates] * split),
                 scaled(second + split * first, tile), 2 + split, programs, steps),
        )  # fmt: skip
        yield over_heads(passes, compulsory_bytes, heads)


def _along_keys(gates: Prologue | None, scan: Scan) -> int:
    """Leaves of log λ that vary over time and states, not channels."""
    leaves = () if gates is None else (e for e in walk(gates.log_decay) if isinstance(e, Ref))
    keys = set(scan.keys)
    return sum(e.time is Time.TOKEN and keys <= e.axes <= {*keys, *scan.heads} for e in leaves)
