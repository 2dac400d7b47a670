"""Counts of the kernels of a matrix scan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dsfc.expr.build import ZERO, add, div, mul, num
from dsfc.expr.tree import Expr
from dsfc.fused.ir import PrologueEpilogue
from dsfc.plan.scan_ir import Scan
from dsfc.plan.sizes import BATCH, CHUNK, LENGTH

from ..sizes import SPAN
from .counts import (
    BEHIND,
    FLOAT,
    SEGMENT,
    TILE,
    Pass,
    Sizes,
    Way,
    bytes_of,
    counted,
    over_heads,
    scaled,
)


def matrix(scan: Scan, features: PrologueEpilogue | None, sizes: Sizes) -> Iterator[Way]:
    """Products inside a chunk of C tokens, the state K × V in registers, V in tiles.

    Backward: one kernel forward in time for the read's gradient, one backward in time whose
    programs compute parts of the keys' or of the values' gradient, one that adds up the decay's.
    Where time is cut, one more kernel forwards, and two backwards: of what segments add to states,
    and to their gradients. Weights, normalisers and a column by itself are one number a token and
    head each; every program computes the features of what it loads.
    """
    heads, keys, channels = sizes
    column = sum(not c.channels for c in scan.columns)
    decays = int(scan.decay is not None)
    inside = _Inside.of(features)
    key_parts, parts = div(keys, TILE), div(channels, TILE)
    chunks = add(CHUNK, num(2), div(num(1), CHUNK))  # of each: decays to, from and over it

    def products(read: int, rest: Expr) -> Expr:
        """Of a program's part of one side with all of the other, in chunks and with the state."""
        return add(rest, scaled(4, keys, channels), scaled(2 * read, CHUNK, keys))

    def beside(count: Expr, *once: Expr) -> Expr:
        """What `count` programs read of which one would have to."""
        return mul(add(count, num(-1)), add(*once))

    # Forward: queries, keys, decays, weights and normalisers for each part of the values.
    vectors = num(FLOAT * (decays + column + inside.numbers))
    forward = add(bytes_of(2, keys), bytes_of(2, channels), vectors, num(FLOAT * column))
    by_columns = products(0, add(scaled(2, CHUNK, channels), scaled(2, CHUNK, keys, parts)))
    exps = scaled(decays, chunks) if decays else ZERO
    to_end = scaled(decays, add(num(2), div(num(1), CHUNK))) if decays else ZERO
    exps = add(exps, num(inside.of_numbers))

    # Backward, one kernel forward in time for the read's gradient, by parts of the keys. It reads
    # what was read of a column by itself, or its gradient; of a running normaliser, also the
    # quotient.
    sides = num(FLOAT * (decays + (2 + inside.running) * column + inside.numbers))
    all_columns = bytes_of(2 + inside.running, channels)
    by_keys = products(1, scaled(2, CHUNK, channels, key_parts))
    columns = add(channels, num(1)) if column else channels
    spans = scaled(2 * decays, div(bytes_of(1, keys, columns), num(SPAN)))
    read = add(
        bytes_of(2 + (decays or inside.reads), keys),
        all_columns,
        sides,
        scaled(FLOAT * (decays + inside.normalisers), key_parts),
    )
    # One backward in time, whose programs compute parts of the keys' or of the values' gradient.
    roles = add(
        bytes_of(3, keys),
        bytes_of(3, channels),
        sides,
        num(FLOAT * column),
        scaled(FLOAT * (2 * decays + inside.weights), key_parts),
    )
    both_roles = add(
        scaled(1, parts, bytes_of(2, keys)),
        bytes_of((decays or inside.keys) - 1, keys),
        beside(key_parts, bytes_of(1, channels)),
        scaled(1, key_parts, bytes_of(1, channels)),
        beside(key_parts, sides),
        scaled(1, parts, add(sides, num(-FLOAT * column))),
    )
    # And parts of the gradients of decays and numbers, added.
    summed = scaled(FLOAT * (decays + inside.numbers), add(key_parts, num(1)))
    backward = add(read, roles, summed, spans)
    back_reread = add(beside(key_parts, all_columns, sides), both_roles)
    back_products = add(by_keys, scaled(2 * decays, CHUNK, keys), by_keys, by_columns)
    back_exps = add(
        mul(add(scaled(2, key_parts), parts), exps), scaled(inside.of_gradients, key_parts)
    )
    compulsory_bytes = forward, add(bytes_of(4, keys), bytes_of(3 + inside.running, channels),
                         num(FLOAT * (2 * decays + 2 * inside.numbers + 3 * column)))  # fmt: skip
    values, gradients = inside.values, inside.gradients
    row_of_keys, number = scaled(FLOAT * column, keys), num(FLOAT * decays)
    state = add(scaled(FLOAT, keys, channels), row_of_keys)
    both = add(state, number)

    def summed_ahead() -> tuple[Expr, Expr, Expr]:
        """Bytes of the kernel of what segments add to states, those again, exponentials."""
        lone = num(FLOAT * (decays + column + inside.weights))
        once = add(bytes_of(1, keys), bytes_of(1, channels), lone, div(both, SEGMENT))
        # All programs write the decays.
        again = beside(parts, bytes_of(1, keys), lone, div(number, SEGMENT))
        exps = mul(parts, add(to_end, num(inside.of_weights), scaled(inside.of_keys, keys)))
        return once, again, exps

    def summed_behind() -> tuple[Expr, Expr, Expr]:
        """Likewise of the kernel of what segments add to the gradients of states."""
        lone = num(FLOAT * (decays + (1 + inside.running) * column + inside.normalisers))
        once = add(bytes_of(1, keys), bytes_of(1, channels), lone, div(state, SEGMENT))
        again = beside(parts, bytes_of(1, keys), lone)
        each = add(to_end, num(inside.of_normalisers), scaled(inside.of_reads, keys))
        return once, again, mul(parts, each)

    def started(count: Expr, column: Expr) -> tuple[Expr, Expr]:
        """Bytes that segments of `count` programs start from, once, and again.

        Args:
            count: programs of parts of a state.
            column: what all of them read of it, besides the decays.
        """
        part = add(column, number)
        of_all = add(mul(part, BEHIND), div(add(part, column), SEGMENT))
        return div(both, SEGMENT), add(
            mul(both, BEHIND), div(state, SEGMENT), beside(count, of_all)
        )

    def made(split: bool) -> Way:
        ahead: tuple[Expr, Expr, Expr] = (ZERO, ZERO, ZERO)
        behind: tuple[Expr, Expr, Expr] = (ZERO, ZERO, ZERO)
        first: tuple[Expr, Expr] = (ZERO, ZERO)
        back: tuple[Expr, Expr] = (ZERO, ZERO)
        if split:
            ahead, behind = summed_ahead(), summed_behind()
            first = started(parts, row_of_keys)
            by_key_parts, by_parts = started(key_parts, ZERO), started(parts, row_of_keys)
            # Programs of keys start twice, those of channels once. What passes over the end of a
            # segment is found by the state that the next one kept.
            over_end = scaled(decays, div(bytes_of(1, keys, columns), SEGMENT))
            back = (
                scaled(2, by_key_parts[0]),
                add(scaled(2, by_key_parts[1]), *by_parts, over_end),
            )
        tokens = SEGMENT if split else LENGTH
        segments = div(LENGTH, SEGMENT) if split else num(1)
        products_of_sums = scaled(2, keys, channels) if split else ZERO
        steps = div(tokens, CHUNK)
        passes = (
            Pass("forward", add(forward, ahead[0], first[0]),
                 add(beside(parts, bytes_of(2, keys), vectors), ahead[1], first[1]),
                 add(by_columns, products_of_sums),
                 add(mul(parts, add(exps, scaled(values, keys))), ahead[2]), ZERO,
                 1 + split, mul(BATCH, heads, parts, segments), steps),
            Pass("backward", add(backward, ahead[0], behind[0], back[0]),
                 add(back_reread, ahead[1], behind[1], back[1]),
                 add(back_products, scaled(2, products_of_sums)),
                 add(back_exps, mul(keys, add(scaled(values, parts), num(gradients))), ahead[2],
                     behind[2]), ZERO,
                 2 + decays + 2 * split, mul(BATCH, heads, add(key_parts, parts), segments), steps),
        )  # fmt: skip
        return over_heads(passes, compulsory_bytes, heads)

    yield made(False)
    yield made(True)


@dataclass(frozen=True, slots=True)
class _Inside:
    """What the kernels of a matrix scan compute besides it, counted.

    Attributes:
        weights, normalisers: leaves of one number a token and head.
        running: 1 where the normaliser is what is read of a column by itself.
        reads, keys: 1 where the kernel of their gradients reads reads, or keys.
        of_numbers: exponentials of one token and program for weights and normalisers.
        of_weights, of_normalisers: those for weights, or normalisers, alone.
        of_gradients: those of their gradients.
        values, gradients: of each key, forward and backward.
        of_keys, of_reads: of each key, for the features of keys, or of reads, alone.
    """

    weights: int = 0
    normalisers: int = 0
    running: int = 0
    reads: int = 0
    keys: int = 0
    of_numbers: int = 0
    of_weights: int = 0
    of_normalisers: int = 0
    of_gradients: int = 0
    values: int = 0
    gradients: int = 0
    of_keys: int = 0
    of_reads: int = 0

    @property
    def numbers(self) -> int:
        """Leaves of one number a token and head."""
        return self.weights + self.normalisers

    @classmethod
    def of(cls, features: PrologueEpilogue | None) -> _Inside:
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
            0 if features.normaliser is None else counted(features.normaliser.value) + 1,
            # Of a normaliser that is not that of the quotient, its gradient is divided by it.
            counted(*(e for f in numbers for e in f.gradients))
            + (divided and not features.running),
            values,
            gradients,
            counted(features.key.value),
            counted(features.read.value),
        )


def _exponentials(features: PrologueEpilogue) -> tuple[int, int]:
    """For each key, of φ and ψ as they are loaded; backwards, but for the values' gradients."""
    both = features.read, features.key
    values = sum(counted(f.value) for f in both)
    return values, 2 * values + sum(counted(*f.gradients) for f in both)
