"""Costs of kernels as torch runs them: a function for each way that operators run a scan."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dsfc.expr.build import ONE, ZERO, add, div, mul, num, prim, walk
from dsfc.expr.tree import Expr, Field, children
from dsfc.plan.pairs_ir import AllPairs
from dsfc.plan.recurrence_ir import Recurrence
from dsfc.plan.scan_ir import Scan
from dsfc.plan.sizes import BATCH, CHUNK, LENGTH


@dataclass(frozen=True, slots=True)
class Counts:
    """What one scan costs in one mode.

    Attributes:
        calls: of torch's operators, views too, one after another, in one call of the mixer.
        operations: in products and transforms, per token, batch entry and head.
        words: numbers moved, per token, batch entry and head; a complex number is two.
    """

    calls: Expr
    operations: Expr
    words: Expr


def log2(x: Expr) -> Expr:
    """Returns the logarithm of base 2."""
    return div(prim("log", x), prim("log", num(2)))


def stepped_counts(recurrence: Recurrence) -> Counts:
    """Returns the counts of a recurrence; words per token, batch entry and number of its states.

    Each node of its expressions is a call, which reads and writes about a state; so are the view of
    each coefficient at a token, and the selection of what the token leaves.
    """
    values = [a.value for level in recurrence.levels for a in level]
    values += [r.value for r in recurrence.reads]
    nodes = sum(1 for v in values for e in walk(v) if children(e))
    calls = nodes + len(recurrence.coefficients) + 2 * len(recurrence.states)
    words = num(Fraction(3 * nodes, len(recurrence.states)))
    return Counts(add(num(12), mul(num(calls), LENGTH)), ZERO, words)


def attention_counts(mode: str, keys: Expr, channels: Expr) -> Counts:
    """Returns the counts of softmax attention over L tokens, per token and head.

    On average a token sees L / 2 tokens, each for a product with its key and one with its value.
    Token by token they are read and laid out again for each; else once for a tile of queries, of
    which this counts 64. Written out, scores of all L tokens stand in memory, four times. Calls are
    those from an empty past; behind tokens that are kept a mask takes twelve more.

    Args:
        mode: name of the mode.
        keys: number of keys.
        channels: number of channels.
    """
    vectors = add(keys, channels)
    pairs, ends = mul(LENGTH, vectors), _times(2, vectors)
    match mode:
        case "recurrent":
            return Counts(_times(15, LENGTH), _times(2, pairs), add(pairs, ends))
        case "parallel":
            words = add(_times(8, LENGTH), div(pairs, num(128)), ends)
            return Counts(num(35), _times(4, pairs), words)
        case _:
            return Counts(num(5), _times(2, pairs), add(div(pairs, num(128)), ends))


def pair_counts(kernel: AllPairs, mode: str) -> Counts:
    """Returns the counts of all pairs; words per token, batch entry and number of the output.

    Each node of the summand is a call for a block of queries, and reads and writes a number for
    every pair; on average a token counts L / 2 others, and all L are computed.

    Args:
        kernel: the sum.
        mode: name of the mode.
    """
    nodes = sum(1 for e in walk(kernel.body) if children(e)) + 2
    blocks = LENGTH if mode == "recurrent" else add(ONE, div(LENGTH, CHUNK))
    calls = add(num(12), _times(nodes + 20 + len(kernel.leaves), blocks))
    return Counts(calls, ZERO, _times(3 * nodes, LENGTH))


def pairs_of_chunks(mode: str, keys: Expr, channels: Expr, decay: bool, keyed: bool) -> Counts:
    """Scans that hold pairs of the tokens of a chunk, and states between chunks."""
    tile, vectors = mul(keys, channels), add(keys, channels)
    if mode == "recurrent":
        calls = add(num(6), _times(12 if decay else 11, LENGTH))
        return Counts(calls, _times(4, tile), add(_times(5 if decay else 3, tile), vectors))
    window = LENGTH if mode == "parallel" else CHUNK
    levels = log2(window)
    calls = num(80 if keyed else 90 if decay else 74)
    if decay and mode == "chunked":
        calls = add(calls, _times(2, div(LENGTH, CHUNK)))
    elif decay and mode == "scan":
        calls = add(calls, _composed(div(LENGTH, CHUNK)))
    words = add(_times(12 if decay and not keyed else 6, window), _times(4, vectors))
    words = add(words, div(_times(14 if mode == "scan" else 7, tile), window))
    if keyed:
        calls = add(calls, _times(34, levels))
        words = add(words, _times(8, keys, levels))
    return Counts(calls, add(_times(2, window, vectors), _times(4, tile)), words)


@dataclass(frozen=True, slots=True)
class Rewriting:
    """Counts of scans that solve a triangular system in each chunk and carry full transitions.

    Attributes:
        calls: of one chunk or many, but for those of each chunk and of each level.
        chunk_calls: of each chunk, unless chunks are composed.
        pairs: products of pairs of tokens with vectors.
        pair_words: moved for each pair.
        words: moved for each entry of a vector.
        level_calls: of each level of blocks, where decays differ by key.
        level_words: moved for each key at each level.
    """

    calls: int
    chunk_calls: int
    pairs: int
    pair_words: int
    words: int
    level_calls: int = 0
    level_words: int = 0

    def __call__(self, scan: Scan, mode: str, keys: Expr, channels: Expr) -> Counts:
        """Returns what a scan of so many keys and channels costs in a mode."""
        tile, vectors = mul(keys, channels), add(keys, channels)
        if mode == "recurrent":
            calls = add(num(9), _times(23, LENGTH))
            return Counts(calls, _times(8, tile), add(_times(8, tile), _times(2, vectors)))
        chunks, levels = div(LENGTH, CHUNK), log2(CHUNK)
        carried = _composed(chunks) if mode == "scan" else _times(self.chunk_calls, chunks)
        calls = add(num(self.calls), _times(self.level_calls, levels), carried)
        pairs = _times(self.pairs, CHUNK, vectors)
        operations = add(pairs, _times(2, keys, vectors), _times(4, tile))
        words = add(_times(self.pair_words, CHUNK), _times(self.words, vectors))
        words = add(words, div(_times(7, keys, vectors), CHUNK))
        return Counts(calls, operations, add(words, _times(self.level_words, keys, levels)))


def tiles(mode: str, tile: Expr) -> Counts:
    """Scans that hold the states of all tokens of a chunk, one chunk after another."""
    chunks = div(LENGTH, CHUNK)
    match mode:
        case "recurrent":
            return Counts(add(num(6), _times(16, LENGTH)), ZERO, _times(11, tile))
        case "scan":
            per_chunk = add(num(29), _composed(CHUNK))
            return Counts(add(num(12), mul(chunks, per_chunk)), ZERO, _times(28, tile))
        case _:
            return Counts(add(num(12), LENGTH, _times(24, chunks)), ZERO, _times(14, tile))


def elements(mode: str, tile: Expr, decay: bool) -> Counts:
    """Scans without keys: all chunks side by side, twice over each; sums where nothing decays."""
    match mode:
        case "recurrent":
            return Counts(add(num(8), _times(2 if decay else 1, LENGTH)), ZERO, _times(10, tile))
        case "scan" if decay:
            return Counts(add(num(25), _composed(LENGTH)), ZERO, _times(30, tile))
        case _:
            inside = _times(2, CHUNK) if decay else ZERO
            return Counts(add(num(24), inside, div(LENGTH, CHUNK)), ZERO, _times(17, tile))


def convolution(mode: str, keys: Expr, kind: Field, real: bool) -> Counts:
    """Scans whose kernel is made once a call: the more tokens, the less of it falls on each."""
    is_complex = kind is Field.COMPLEX
    if mode == "recurrent":
        return Counts(add(num(21), _times(8 if real else 6, LENGTH)), ZERO, _times(6, keys))
    # Two short tables of powers of λ, of at most 64 entries each for sequences of usual length,
    # once a call; between chunks two more, what a chunk adds to the state, and what it reads of it.
    entries = _times(1600 if is_complex else 1300, keys)
    whole = num(90 if real else 74 if is_complex else 68)
    if mode in ("parallel", "fft"):
        table = div(entries, mul(BATCH, add(LENGTH, num(32))))
        if mode == "fft":
            return Counts(whole, ZERO, add(table, _times(5, log2(_times(2, LENGTH)))))
        return Counts(whole, _times(2, LENGTH), add(table, div(_times(8, LENGTH), BATCH)))
    chunks = div(LENGTH, CHUNK)
    calls = _composed(chunks) if mode == "scan" else _times(2, chunks)
    table = div(mul(CHUNK, entries), mul(BATCH, LENGTH, add(CHUNK, num(32))))
    pairs = div(_times(8, CHUNK, CHUNK), mul(BATCH, LENGTH))
    return Counts(
        add(num(225 if real else 174 if is_complex else 144), calls),
        add(_times(2, CHUNK), _times(4, keys)),
        add(table, pairs, div(_times(20, keys), CHUNK)),
    )


def mixed(mode: str, size: Expr) -> Counts:
    """Scans with a full matrix that give all of the state."""
    if mode == "recurrent":
        calls = add(num(14), _times(7, LENGTH))
        return Counts(calls, _times(2, size, size), add(mul(size, size), _times(8, size)))
    rounds, chunks = log2(CHUNK), div(LENGTH, CHUNK)
    calls = add(num(18), _times(6, rounds), mul(chunks, add(num(6), _times(13, rounds))))
    return Counts(calls, _times(2, size, size, rounds), _times(6, size, add(ONE, rounds)))


def responses(mode: str, keys: Expr) -> Counts:
    """Scans with a full matrix whose key and read are constants."""
    if mode == "recurrent":
        calls = add(num(16), _times(19, LENGTH))
        return Counts(calls, _times(2, keys, add(keys, num(2))), mul(keys, add(keys, num(8))))
    table = div(_times(6, keys, CHUNK), mul(BATCH, LENGTH))
    if mode == "fft":
        powers = _times(40, log2(LENGTH))
        words = add(div(_times(400, keys), mul(BATCH, LENGTH)), _times(5, log2(_times(2, LENGTH))))
        return Counts(add(num(114), powers), _times(8, keys), words)
    calls = add(num(51), _times(32, log2(CHUNK)), _times(35, div(LENGTH, CHUNK)))
    return Counts(calls, add(_times(2, CHUNK), _times(4, keys)), add(table, num(12)))


def _composed(steps: Expr) -> Expr:
    """Calls that compose the steps: so many in each of log2 rounds."""
    return _times(21, log2(add(ONE, steps)))


def _times(factor: int, *factors: Expr) -> Expr:
    return mul(num(factor), *factors)
