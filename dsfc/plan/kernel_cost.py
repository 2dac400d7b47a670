"""What kernels for GPUs cost: counts of bytes, operations, exponentials, instructions, launches.

A scan that is computed by kernels of its own reads its inputs and writes its outputs, and nothing
in between goes through memory but what is counted here. Counts are per token and batch entry, over
all heads, of one pass:

    fused  one program carries the state of a tile of channels from the first token to the last
    split  time is cut into segments; what a segment makes of a state is computed first, then all
           segments run side by side: more bytes, and a chain of `segment` tokens instead of all

`reread` stands apart: bytes that programs side by side read at the same time, or that one reads
again a few tokens later, so that memory is asked once if a cache holds them for that long. That is
an assumption until it is measured; without it they are added to `bytes`.

Which of the two a scan takes, and in how many segments, is what `seconds` says of them on a
machine: emitted modules ask the same at every launch. Rates are those of `DEVICES`, of which each
says where it is from.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dsfc.expr.build import ZERO, add, div, mul, neg, num, walk
from dsfc.expr.evaluate import NamedArray, evaluate
from dsfc.expr.table import row
from dsfc.expr.text import text
from dsfc.expr.tree import Add, Axis, Div, Expr, Field, Mul, Num, Param, Prim, Ref, Size, Time
from dsfc.plan.cost import BATCH, CHUNK, LENGTH
from dsfc.plan.features import Features, take_in
from dsfc.plan.gates import Gates
from dsfc.plan.ir import Form, Plan, Scan
from dsfc.plan.planes import halves, is_paired, planes

WIDTH = Param("width", frozenset())
"""Bytes of a number of the inputs; what is computed in float32 has 4."""

SEGMENT = Param("segment", frozenset())
"""Tokens of a segment."""

TILE = Param("tile", frozenset())
"""Channels of one program."""

_FLOAT = 4
_ANCHOR = 384
"""Tokens from one state that the backward pass keeps for the gradient of a decay to the next."""

_BLOCK = 4
"""Tokens from one state that a selective scan keeps to the next: what its registers hold."""

_ROTATIONS = 4 + 8 + 2 * 8 + 8 + 16 + 16 + 8
"""Bytes of a token and head: phases added up, in double precision, and their sine and cosine."""

_BEHIND = div(add(div(LENGTH, SEGMENT), num(-3)), mul(num(2), SEGMENT))
"""How often what a segment makes of a state is read besides once: by all segments behind it. The
n segments read n (n - 1) / 2 parts; of three, each one is read once."""

_PAIRS = 2
"""Complex states of a program of a selective scan, backwards."""

_SELECTIVE_TILES = 64, 32
"""Channels of a program of a selective scan, forwards and backwards: there with sums over them."""

_INSTRUCTIONS = {
    (Form.ELEMENTWISE, "forward"): 24.0,
    (Form.ELEMENTWISE, "backward"): 36.0,
    (Form.SELECTIVE, "forward"): 13.9,
    (Form.SELECTIVE, "backward"): 34.5,
}
"""Per element of the state and token, as compiled for sm_90; products bind before they do."""

_SPECIAL = {
    **dict.fromkeys(("tl.exp", "tl.log", "tl.sqrt", "tl.erf", "_expm1"), 1),
    **dict.fromkeys(("tl.sigmoid", "_tanh", "_log1p", "_exprel"), 2),
}
"""What functions that kernels call ask of the units of special functions: powers of two,
logarithms, roots and reciprocals, one each."""


@dataclass(frozen=True, slots=True)
class Pass:
    """One direction.

    Attributes:
        name: `forward` or `backward`.
        bytes: read and written, each place once.
        reread: read again, by programs side by side or soon after; see the module.
        operations: in products, a multiply-add as 2.
        exponentials: powers of two and what the same units do: logarithms, roots, reciprocals.
        instructions: of threads, where they bind; 0 where products do.
        launches: of kernels.
        programs: that run side by side, all in all.
        steps: of one program, one after another.
    """

    name: str
    bytes: Expr
    reread: Expr
    operations: Expr
    exponentials: Expr
    instructions: Expr
    launches: int
    programs: Expr
    steps: Expr


@dataclass(frozen=True, slots=True)
class KernelCost:
    """One way to compute a scan by kernels.

    Attributes:
        scan: its name.
        way: `fused` or `split`.
        passes: forward, backward.
        floor: bytes of each pass if every input is read, and every output written, once.
    """

    scan: str
    way: str
    passes: tuple[Pass, Pass]
    floor: tuple[Expr, Expr]


def plan_costs(plan: Plan) -> tuple[KernelCost, ...]:
    """Returns what the scans of a plan that have kernels cost, with what these compute inside."""
    inside = take_in(plan, _printed)
    gates, features = inside.gates, inside.features
    return tuple(
        cost
        for name, scan in inside.scans.items()
        if name in gates or name in features
        for cost in kernel_costs(
            scan, gates.get(name), features.get(name), vectors=_vectors(scan, plan)
        )
    )


def _vectors(scan: Scan, plan: Plan) -> tuple[int, int]:
    pairs = {b.name for b in plan.arrays if b.field is Field.COMPLEX}
    return 1 + (scan.key in pairs), 1 + (scan.read in pairs)


def _printed(prim: Prim) -> bool:
    real = prim.field is Field.REAL and all(a.field is Field.REAL for a in prim.args)
    return real and "triton" in row(prim.name).printers


Sizes = tuple[Expr, Expr, Expr]
"""Heads, keys and channels of a scan; channels of its columns together."""


def kernel_costs(
    scan: Scan,
    gates: Gates | None = None,
    features: Features | None = None,
    sizes: Sizes | None = None,
    vectors: tuple[int, int] = (1, 1),
) -> tuple[KernelCost, ...]:
    """Returns what a scan costs, fused and split.

    Args:
        scan: the scan; forms without kernels cost nothing that is known.
        gates: of a scan without keys, what its kernels compute.
        features: of a matrix scan, what its kernels compute besides.
        sizes: what the counts are over; those of its axes, if not given.
        vectors: of a selective scan, arrays of keys and of reads: two where they are complex.
    """
    sizes = sizes or _sizes(scan)
    match scan.form:
        case Form.MATRIX if is_paired(scan):
            ways = _phased(scan, features, sizes)
        case Form.MATRIX:
            ways = _matrix(scan, features, sizes)
        case Form.SELECTIVE:
            ways = _selective(scan, gates, sizes, vectors)
        case Form.ELEMENTWISE | Form.CONVOLUTION if gates is not None:
            ways = _elementwise(gates, sizes)
        case _:
            return ()
    return tuple(
        KernelCost(scan.name, way, passes, floor)
        for way, (passes, floor) in zip(("fused", "split"), ways, strict=False)
    )


_Way = tuple[tuple[Pass, Pass], tuple[Expr, Expr]]


def _matrix(scan: Scan, features: Features | None, sizes: Sizes) -> Iterator[_Way]:
    """Products inside a chunk of C tokens, the state K × V in registers, V in tiles.

    Backward: one kernel forward in time for the read's gradient, one backward in time whose
    programs compute parts of the keys' or of the values' gradient, one that adds up the decay's.
    Backwards time is not cut. Weights, normalisers and a column by itself are one number a token
    and head each; every program computes the features of what it loads.
    """
    heads, keys, channels = sizes
    column = sum(not c.channels for c in scan.columns)
    decays = int(scan.decay is not None)
    inside = _Inside.of(features)
    key_parts, parts = div(keys, TILE), div(channels, TILE)
    chunks = add(CHUNK, num(2), div(num(1), CHUNK))  # of each: decays to, from and over it

    def products(read: int, rest: Expr) -> Expr:
        """Of a program's part of one side with all of the other, in chunks and with the state."""
        return add(rest, _times(4, keys, channels), _times(2 * read, CHUNK, keys))

    def beside(count: Expr, *once: Expr) -> Expr:
        """What `count` programs read of which one would have to."""
        return mul(add(count, num(-1)), add(*once))

    # Forward: queries, keys, decays, weights and normalisers for each part of the values.
    vectors = num(_FLOAT * (decays + column + inside.numbers))
    forward = add(_numbers(2, keys), _numbers(2, channels), vectors, num(_FLOAT * column))
    by_columns = products(0, add(_times(2, CHUNK, channels), _times(2, CHUNK, keys, parts)))
    exps = _times(decays, chunks) if decays else ZERO
    to_end = _times(decays, add(num(2), div(num(1), CHUNK))) if decays else ZERO
    exps = add(exps, num(inside.of_numbers))

    # Backward, one kernel forward in time for the read's gradient, by parts of the keys. It reads
    # what was read of a column by itself, or its gradient; of a running normaliser, also the
    # quotient.
    sides = num(_FLOAT * (decays + (2 + inside.running) * column + inside.numbers))
    all_columns = _numbers(2 + inside.running, channels)
    by_keys = products(1, _times(2, CHUNK, channels, key_parts))
    columns = add(channels, num(1)) if column else channels
    spans = _times(2 * decays, div(_numbers(1, keys, columns), num(_ANCHOR)))
    read = add(
        _numbers(2 + (decays or inside.reads), keys),
        all_columns,
        sides,
        _times(_FLOAT * (decays + inside.normalisers), key_parts),
    )
    # One backward in time, whose programs compute parts of the keys' or of the values' gradient.
    roles = add(
        _numbers(3, keys),
        _numbers(3, channels),
        sides,
        num(_FLOAT * column),
        _times(_FLOAT * (2 * decays + inside.weights), key_parts),
    )
    both_roles = add(
        _times(1, parts, _numbers(2, keys)),
        _numbers((decays or inside.keys) - 1, keys),
        beside(key_parts, _numbers(1, channels)),
        _times(1, key_parts, _numbers(1, channels)),
        beside(key_parts, sides),
        _times(1, parts, add(sides, num(-_FLOAT * column))),
    )
    # And parts of the gradients of decays and numbers, added.
    summed = _times(_FLOAT * (decays + inside.numbers), add(key_parts, num(1)))
    backward = add(read, roles, summed, spans)
    back_reread = add(beside(key_parts, all_columns, sides), both_roles)
    back_products = add(by_keys, _times(2 * decays, CHUNK, keys), by_keys, by_columns)
    back_exps = add(
        mul(add(_times(2, key_parts), parts), exps), _times(inside.of_gradients, key_parts)
    )
    floor = forward, add(_numbers(4, keys), _numbers(3 + inside.running, channels),
                         num(_FLOAT * (2 * decays + 2 * inside.numbers + 3 * column)))  # fmt: skip
    rows = mul(BATCH, heads, parts)
    values, gradients = inside.values, inside.gradients

    def made(split: bool) -> _Way:
        extra: Expr = ZERO
        again: Expr = ZERO
        summary: Expr = ZERO
        if split:
            lone = num(_FLOAT * (decays + column + inside.weights))
            row_of_keys, number = _times(_FLOAT * column, keys), num(_FLOAT * decays)
            state = add(_times(_FLOAT, keys, channels), row_of_keys)
            parted, cut = _segments(add(state, number), state)
            extra = add(_numbers(1, keys), _numbers(1, channels), lone, parted)
            # A column by itself and decays: all programs read all parts, of which they write those
            # of decays and start from those of the column.
            small = add(row_of_keys, number)
            of_all = add(mul(small, _BEHIND), div(_times(2, small), SEGMENT))
            again = add(beside(parts, _numbers(1, keys), lone, of_all), cut)
            summary = mul(parts, add(to_end, num(inside.of_weights), _times(inside.of_keys, keys)))
        tokens = SEGMENT if split else LENGTH
        segments = div(LENGTH, SEGMENT) if split else num(1)
        state = _times(2, keys, channels) if split else ZERO
        steps, programs = div(tokens, CHUNK), mul(rows, segments)
        passes = (
            Pass("forward", add(forward, extra),
                 add(beside(parts, _numbers(2, keys), vectors), again), add(by_columns, state),
                 add(mul(parts, add(exps, _times(values, keys))), summary), ZERO,
                 1 + split, programs, steps),
            Pass("backward", backward, back_reread, back_products,
                 add(back_exps, mul(keys, add(_times(values, parts), num(gradients)))), ZERO,
                 2 + decays, rows, div(LENGTH, CHUNK)),
        )  # fmt: skip
        return _over_heads(passes, floor, heads)

    yield made(False)
    yield made(True)


def _phased(scan: Scan, features: Features | None, sizes: Sizes) -> Iterator[_Way]:
    """A complex state of real keys and reads: both planes are channels of one real scan.

    Backwards its kernels run twice, the second time for the gradient of the phases. Operations of
    torch rotate what goes in and what comes out, in front of the kernels and behind them: their
    bytes are counted too, of launches only those of kernels.
    """
    heads, keys, channels = sizes
    first, second = halves(scan)
    values = 1 + any(c.value is not None for c in second.columns)
    outs = 2 - scan.real
    (_, (floor, back_floor)) = next(_matrix(first, features, sizes))
    more = values + outs - 2
    floor = add(floor, mul(heads, _planes_moved(more, sizes, _FLOAT)))
    more = 2 * (values - 1) + outs - 1
    back_floor = add(back_floor, mul(heads, _planes_moved(more, sizes, 2 * _FLOAT)))
    around = _around(values, outs, sizes)
    for (forward, backward), _ in _matrix(scan, features, (heads, keys, _times(2, channels))):
        yield (
            (
                replace(forward, bytes=add(forward.bytes, mul(heads, around[0]))),
                replace(
                    backward,
                    bytes=add(_times(2, backward.bytes), mul(heads, around[1])),
                    reread=_times(2, backward.reread),
                    operations=_times(2, backward.operations),
                    exponentials=_times(2, backward.exponentials),
                    launches=2 * backward.launches,
                ),
            ),
            (floor, back_floor),
        )


def _planes_moved(count: int, sizes: Sizes, floats: int) -> Expr:
    """Bytes of planes as wide as the inputs, and of numbers a token and head."""
    return add(_numbers(count, sizes[2]), num(floats))


def _around(values: int, outs: int, sizes: Sizes) -> tuple[Expr, Expr]:
    """Bytes that operations of torch move around the kernels of a complex scan, of one head.

    A plane of a real value is read, and its product written. Of a complex one the first product is
    written and read in float32 before the second is added to it. What kernels make is float32 until
    it has been rotated, which is twice the bytes that are counted of them.
    """
    numbers, floats = _numbers(1, sizes[2]), _times(_FLOAT, sizes[2])

    def rotated(made: int, *given: Expr) -> Expr:
        products = 2 * made if len(given) > 1 else 0
        return add(
            _times(made, numbers), _times(products, floats), *(_times(made, g) for g in given)
        )

    def planes_of(count: int, each: Expr) -> tuple[Expr, ...]:
        return (each,) * count

    into = rotated(2, *planes_of(values, numbers))
    wider = add(_times(2, floats), neg(_times(2, numbers)))
    forward = add(into, wider, rotated(outs, floats, floats))
    # The values rotated, and i times that: one plane negated, and both put side by side; the
    # gradients of values are written twice.
    backward = add(
        *(into, rotated(2, *planes_of(outs, numbers)), _times(6, numbers)),
        *(_times(2, wider), rotated(values, floats, floats)),
    )
    return add(forward, num(_ROTATIONS)), add(backward, num(_ROTATIONS))


@dataclass(frozen=True, slots=True)
class _Inside:
    """What the kernels of a matrix scan compute besides it, counted.

    Attributes:
        weights, normalisers: leaves of one number a token and head.
        running: 1 where the normaliser is what is read of a column by itself.
        reads, keys: 1 where the kernel of their gradients reads reads, or keys.
        of_numbers: exponentials of one token and program for weights and normalisers.
        of_weights: those for weights alone.
        of_gradients: those of their gradients.
        values, gradients: of each key, forward and backward.
        of_keys: of each key, for the features of keys alone.
    """

    weights: int = 0
    normalisers: int = 0
    running: int = 0
    reads: int = 0
    keys: int = 0
    of_numbers: int = 0
    of_weights: int = 0
    of_gradients: int = 0
    values: int = 0
    gradients: int = 0
    of_keys: int = 0

    @property
    def numbers(self) -> int:
        """Leaves of one number a token and head."""
        return self.weights + self.normalisers

    @classmethod
    def of(cls, features: Features | None) -> _Inside:
        """Returns the counts of some features."""
        if features is None:
            return cls()
        weights = 0 if features.weight is None else len(features.weight.leaves)
        others = len(features.numbers) - weights
        values, gradients = _exponentials(features)
        numbers = [f for f in (features.weight, features.normaliser) if f is not None]
        divided = features.normaliser is not None
        return cls(
            weights,
            others,
            int(features.running),
            int(others > 0 or not features.read.plain),
            int(weights > 0 or not features.key.plain),
            counted(*(f.value for f in numbers)) + divided,
            0 if features.weight is None else counted(features.weight.value),
            # Of a normaliser that is not that of the quotient, its gradient is divided by it.
            counted(*(e for f in numbers for e in f.gradients))
            + (divided and not features.running),
            values,
            gradients,
            counted(features.key.value),
        )


def _exponentials(features: Features) -> tuple[int, int]:
    """For each key, of φ and ψ as they are loaded; backwards, but for the values' gradients."""
    both = features.read, features.key
    values = sum(counted(f.value) for f in both)
    return values, 2 * values + sum(counted(*f.gradients) for f in both)


def counted(*roots: Expr, fixed: bool = False) -> int:
    """Exponentials and their like of one token: each expression is computed once.

    Args:
        roots: what is computed.
        fixed: whether to count what is the same at all tokens instead, which has no part in that.
    """
    found = {e for root in roots for e in walk(root)}
    return sum(_special(e) for e in found if (e.time is Time.CONST) == fixed)


def _special(e: Expr) -> int:
    """Those of an expression's last step."""
    if isinstance(e, Prim) and "triton" in row(e.name).printers:
        called = re.findall(r"[\w.]+(?=\()", row(e.name).printers["triton"])
        return sum(_SPECIAL.get(name, 0) for name in called)
    return int(isinstance(e, Div))


def _selective(
    scan: Scan, gates: Gates | None, sizes: Sizes, vectors: tuple[int, int]
) -> Iterator[_Way]:
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
    kept = div(_times(of_state * _FLOAT, tile), num(_BLOCK))
    tiles = [div(channels, num(n)) for n in _SELECTIVE_TILES]
    groups = div(keys, num(_PAIRS)) if pairs else num(1)
    in_groups = _times(counted(*driven) + counted(*gradients), groups)
    more = _along_keys(gates, scan)
    along = sum(vectors) + more
    kinds = 1 << (along - 1).bit_length()  # of gradients along the keys
    sums = _times(2 * _FLOAT * kinds, keys, tiles[1])
    if pairs:
        sums = add(sums, _times(2 * _FLOAT * count, groups, channels))
    rows = mul(BATCH, heads, tiles[1])
    first, second = (of_state * _INSTRUCTIONS[Form.SELECTIVE, d] for d in ("forward", "backward"))

    def moved(of_channels: int, of_keys: int, *floats: Expr) -> Expr:
        numbers = add(_times(of_channels, channels), _times(of_keys, keys))
        return add(mul(WIDTH, numbers), _joined(*floats))

    def exponentials(split: bool, made: Expr, *others: Collection[Expr]) -> Expr:
        """One decay of each state, in both launches; of channels, what each of some makes."""
        each = add(made, num(sum(counted(*es) for es in others)))
        return add(_times(1 + split, tile), mul(each, channels))

    def started(of_tiles: int, programs: Expr) -> Expr:
        """Bytes that segments read at their start: constants of channels in both launches."""
        of_channels = mul(add(programs, num(1)), _times(_FLOAT * fixed, channels))
        return add(_times(_FLOAT * of_tiles, tile), of_channels)

    floor = moved(count + 1, along), moved(2 * count + 1, 2 * along)
    for split in (False, True):
        # Queries and keys for each tile of channels; backwards rates for each block of tokens, too.
        both = [along + split * (along - n) for n in reversed(vectors)]
        tiled = zip(tiles, both, strict=True)
        shared = [mul(add(n, num(-1)), _numbers(count_, keys)) for n, count_ in tiled]
        shared[1] = add(shared[1], div(_times(_FLOAT * of_states, tile), num(_BLOCK)))
        shared[1] = add(shared[1], mul(add(groups, num(-1)), _numbers(count + 1, channels)))
        shared[1] = add(shared[1], mul(tiles[1], _numbers(more, keys)))  # twice in each block
        parts: list[Expr] = [ZERO, ZERO]
        if split:
            part = _times(2 * of_state * _FLOAT, tile)  # a decay and a state
            slices = _times(_FLOAT * fixed, groups, channels)
            slices = add(_times(_FLOAT * of_states, tile), slices)
            ways = (
                (started(of_state + 2 * of_states, num(1)), ZERO),
                (started(of_state + of_states, groups), slices),
            )
            for at, way in enumerate(ways):
                parts[at], again = _segments(part, *way)
                shared[at] = add(shared[at], again)
        programs = mul(rows, div(LENGTH, SEGMENT)) if split else rows
        steps = SEGMENT if split else LENGTH
        passes = (
            Pass("forward", moved((1 + split) * count + 1, both[0], kept, parts[0]), shared[0],
                 ZERO,
                 exponentials(split, num(counted(*driven, *added)), *[driven] * split),
                 _times((1 + split) * first, tile),
                 1 + split, programs, steps),
            Pass("backward",
                 moved((2 + split) * count + 1 + split, along + both[1], kept, sums, parts[1]),
                 shared[1], ZERO, exponentials(split, in_groups, *[rates] * split),
                 _times(second + split * first, tile), 2 + split, programs, steps),
        )  # fmt: skip
        yield _over_heads(passes, floor, heads)


def _along_keys(gates: Gates | None, scan: Scan) -> int:
    """Leaves of log λ that vary over time and states, not channels."""
    leaves = () if gates is None else (e for e in walk(gates.log_decay) if isinstance(e, Ref))
    keys = set(scan.keys)
    return sum(e.time is Time.TOKEN and keys <= e.axes <= {*keys, *scan.heads} for e in leaves)


def _elementwise(gates: Gates, sizes: Sizes) -> Iterator[_Way]:
    """Each leaf of the gates once, each gradient of one once; the states are the output."""
    heads, _, channels = sizes
    count, width = len(gates.tokens), mul(heads, channels)
    parts_of = len(planes(gates.value))  # two where the state is complex
    read = {r.name for r in walk(gates.decay) if hasattr(r, "name")}
    of_decay = len([n for n in gates.tokens if n in read])
    floor = _numbers(count + parts_of, width), _numbers(2 * (count + parts_of), width)
    fixed = len(gates.constants)
    for split in (False, True):
        rows = mul(BATCH, div(width, TILE), div(LENGTH, SEGMENT) if split else num(1))
        passes = []
        for name, whole, again, states, made, made_again in (
            ("forward", floor[0], count, 1, (gates.decay, gates.value), (gates.decay, gates.value)),
            (
                "backward",
                floor[1],
                of_decay + parts_of,
                2,
                (gates.decay, *gates.gradients),
                (gates.decay,),
            ),
        ):
            each: Expr = num(counted(*made) + split * counted(*made_again))
            moved: Expr = whole
            reread: Expr = ZERO
            if split:
                # Both launches read the constants.
                start = _times(_FLOAT * (states * parts_of + 2 * fixed), width)
                slices = _times(_FLOAT * fixed * (name == "backward"), width)
                ends, reread = _segments(_times(2 * _FLOAT * parts_of, width), start, slices)
                moved = add(whole, _numbers(again, width), ends)
                first = counted(*made, fixed=True) + counted(*made_again, fixed=True)
                each = add(each, div(num(first), SEGMENT))
            done = _times(parts_of * _INSTRUCTIONS[Form.ELEMENTWISE, name], width)
            passes.append(
                Pass(name, moved, reread, ZERO, mul(each, width),
                     _times(2, done) if split else done, 1 + split, rows,
                     SEGMENT if split else LENGTH)
            )  # fmt: skip
        yield (passes[0], passes[1]), floor


def _over_heads(
    passes: tuple[Pass, Pass], floor: tuple[Expr, Expr], heads: Expr
) -> tuple[tuple[Pass, Pass], tuple[Expr, Expr]]:
    """Counts of one head as those of all."""
    first, second = (
        replace(
            p,
            bytes=mul(heads, p.bytes),
            reread=mul(heads, p.reread),
            operations=mul(heads, p.operations),
            exponentials=mul(heads, p.exponentials),
            instructions=mul(heads, p.instructions),
        )
        for p in passes
    )
    return (first, second), (mul(heads, floor[0]), mul(heads, floor[1]))


# --- time -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Device:
    """What a GPU does.

    Attributes:
        name: of the GPU.
        bytes: copied in a second.
        operations: in products of matrices of two-byte numbers, in a second.
        processors: that run programs side by side, two each.
        clock: of a processor, in a second.
        special: exponentials of a processor in a clock.
        lanes: of its threads' instructions in a clock.
        launch: seconds of a launch.
        step: seconds of a chunk of the matrix form, from one state to the next.
        token: seconds of a token of the other forms.
        source: where each figure is from.
    """

    name: str
    bytes: float
    operations: float
    processors: int
    clock: float
    special: int
    lanes: int
    launch: float
    step: float
    token: float
    source: str

    @property
    def exponentials(self) -> float:
        """Of all its units in a second."""
        return self.processors * self.special * self.clock

    @property
    def instructions(self) -> float:
        """Of all its threads in a second."""
        return self.processors * self.lanes * self.clock

    @property
    def programs(self) -> int:
        """That run at once."""
        return 2 * self.processors


_GUIDE = "special units: CUDA programming guide, arithmetic throughput"
_ASSUMED = "launch, step and token are assumed, none is measured"
H200 = Device(
    "H200", 4.3e12, 790e12, 132, 1.98e9, 16, 128, 3e-6, 1.2e-6, 2.5e-8,
    f"copying and products: measured on one such card; processors and clock: its sheet; {_GUIDE}; "
    f"{_ASSUMED}",
)  # fmt: skip
"""What kernels are designed for."""

DEVICES: dict[tuple[str, int], Device] = {
    ("cuda", 80): Device(
        "A100", 0.9 * 2.04e12, 0.8 * 312e12, 108, 1.41e9, 16, 128, 3e-6, 1.6e-6, 3.5e-8,
        "memory, products, processors and clock: its sheet (80 GB, SXM), of which shares of 0.9 "
        f"and 0.8 are assumed, as measured on an H200; {_GUIDE}; {_ASSUMED}",
    ),
    ("cuda", 90): H200,
    ("cuda", 100): Device(
        "B200", 0.9 * 8e12, 0.8 * 2250e12, 148, 1.96e9, 16, 128, 3e-6, 1.2e-6, 2.5e-8,
        "memory and products: its sheet, shares as of the A100; processors and clock are assumed; "
        f"{_GUIDE}; {_ASSUMED}",
    ),
    ("hip", 94): Device(
        "MI300X", 0.8 * 5.3e12, 0.5 * 1307e12, 304, 2.1e9, 16, 64, 5e-6, 1.5e-6, 3e-8,
        "memory, products, processors and clock: its sheet, of which shares of 0.8 and 0.5 are "
        f"assumed; special units: a quarter of the lanes, assumed; {_ASSUMED}",
    ),
}  # fmt: skip
"""By platform and capability (94 is gfx942), from which on."""


class _At:
    """Numbers of axes and parameters, for the evaluator."""

    def __init__(self, sizes: Mapping[str, float]) -> None:
        self._sizes = sizes

    def size(self, axis: Axis) -> int:
        return int(self._sizes[axis.copy_of or axis.name])

    def param(self, name: str) -> NamedArray:
        return NamedArray((), np.asarray(float(self._sizes[name])))


def value(expr: Expr, sizes: Mapping[str, float]) -> float:
    """Returns a count at sizes of axes, `batch`, `length`, `width`, `chunk`, `tile`, `segment`."""
    return float(evaluate(expr, _At(sizes)).data)  # type: ignore[arg-type]  # no other leaves


def seconds(p: Pass, device: Device, sizes: Mapping[str, float], shared: bool = True) -> float:
    """Returns how long a pass takes at least, and its launches.

    Args:
        p: the pass.
        device: where.
        sizes: as of `value`.
        shared: whether the second-level cache has what programs side by side read.
    """
    tokens = sizes["batch"] * sizes["length"]
    moved = value(p.bytes, sizes) + (0.0 if shared else value(p.reread, sizes))
    programs = max(value(p.programs, sizes), 1.0)
    each = device.step if value(p.operations, sizes) else device.token
    waves = -(-programs // device.programs)
    return p.launches * device.launch + max(
        tokens * moved / device.bytes,
        tokens * value(p.operations, sizes) / device.operations,
        tokens * value(p.exponentials, sizes) / device.exponentials,
        tokens * value(p.instructions, sizes) / device.instructions,
        value(p.steps, sizes) * waves * each * p.launches,
    )


def fastest(
    costs: tuple[KernelCost, ...],
    device: Device,
    sizes: Mapping[str, float],
    passes: Callable[[KernelCost], tuple[Pass, ...]] = lambda cost: cost.passes,
) -> KernelCost:
    """Returns the way of least predicted time.

    Args:
        costs: the ways, of `kernel_costs`.
        device: where.
        sizes: as of `value`.
        passes: which are made: both, if not given.
    """
    return min(costs, key=lambda cost: sum(seconds(p, device, sizes) for p in passes(cost)))


def render(costs: tuple[KernelCost, ...]) -> str:
    """Returns the counts as text, a section of a plan's, and what chooses between the ways."""
    lines = ["kernels on a GPU (per token and batch entry; over reads that neighbours share)"]
    for cost in costs:
        for p in cost.passes:
            lines.append(f"  {cost.scan}, {cost.way}, {p.name}: {p.launches} launches")
            counts = {
                "bytes": p.bytes,
                "read by neighbours": p.reread,
                "operations": p.operations,
                "exponentials": p.exponentials,
                "instructions": p.instructions,
                "programs": p.programs,
                "steps of each": p.steps,
            }
            lines += [f"    {name}: {text(e)}" for name, e in counts.items() if e != ZERO]
    if any(cost.way == "split" for cost in costs):
        lines += [
            "  a launch takes the way, and as many segments, as are predicted to take least time:",
            "    launches, and the longest of bytes, operations, exponentials, instructions, steps",
        ]
        for (platform, version), d in DEVICES.items():
            lines.append(f"    {d.name} ({platform} {version}): {_rates(d)}")
            lines += textwrap.wrap(d.source, 94, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return "\n".join(lines) + "\n"


def _rates(d: Device) -> str:
    """The rates of a device, in words."""
    return (
        f"{d.bytes / 1e12:.3g} TB/s, {d.operations / 1e12:.3g} TFLOP/s, "
        f"{d.processors} processors of {d.clock / 1e9:.3g} GHz"
    )


def _sizes(scan: Scan) -> Sizes:
    """Heads, keys, channels: of columns with channels together; of pairs, those of one plane."""
    scan = halves(scan)[0] if is_paired(scan) else scan
    wide = [c for c in scan.columns if c.channels] or list(scan.columns)
    channels = add(*(mul(*(Size(a) for a in c.channels)) for c in wide))
    return mul(*(Size(a) for a in scan.heads)), mul(*(Size(a) for a in scan.keys)), channels


def _numbers(count: int, *sizes: Expr) -> Expr:
    """Bytes of numbers as wide as the inputs."""
    return mul(num(count), WIDTH, *sizes)


def _segments(part: Expr, start: Expr, slices: Expr = ZERO) -> tuple[Expr, Expr]:
    """Bytes of a token that segments cost, each place once, and those that are read again.

    Args:
        part: bytes of what a segment makes of a state: written, and read by all behind it.
        start: bytes that each segment reads at its start.
        slices: bytes of gradients of constants, which come in a part from each segment and are
            added up.
    """
    once = _joined(part, slices, part, slices)  # written, and read
    return div(once, SEGMENT), add(mul(part, _BEHIND), div(start, SEGMENT))


def _joined(*counts: Expr) -> Expr:
    """Their sum, like terms in one."""
    found: dict[Expr, Fraction] = {}
    for term in (t for e in counts for t in (e.args if isinstance(e, Add) else (e,))):
        factors = term.args if isinstance(term, Mul) else (term,)
        number = math.prod((f.value for f in factors if isinstance(f, Num)), start=Fraction(1))
        rest = mul(*(f for f in factors if not isinstance(f, Num)))
        found[rest] = found.get(rest, Fraction(0)) + number
    return add(*(mul(num(number), rest) for rest, number in found.items()))


def _times(factor: float, *factors: Expr) -> Expr:
    whole = int(factor)
    return mul(num(whole) if whole == factor else div(num(round(10 * factor)), num(10)), *factors)
