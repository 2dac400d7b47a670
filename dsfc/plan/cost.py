"""What a mode costs: counts of operations, words moved, dependent rounds and state."""

from __future__ import annotations

from collections.abc import Iterable

from dsfc.plan.ir import Cost, Form, Scan
from dsfc.primitives.build import ONE, ZERO, add, div, mul, num, prim
from dsfc.primitives.expr import Axis, Expr, Field, Param, Size

CHUNK = Param("chunk", frozenset())
LENGTH = Param("length", frozenset())

_LOG_CHUNK, _LOG_LENGTH = (div(prim("log", x), prim("log", num(2))) for x in (CHUNK, LENGTH))


def cost_of(scans: Iterable[Scan], mode: str) -> Cost:
    """Returns the cost of running the scans in a mode.

    Operations count a multiply-add as 2 and an exponential as 1; a complex scan counts 4 times as
    many and 2 times the words. With K keys, V channels (columns together), chunk length C and
    length L, per token and head:

        MATRIX       recurrent 5 K V, chunked 2 C (K + V) + 4 K V, parallel 2 L (K + V)
        KEYED        recurrent 5 K V, chunked 2 C (K + V) + 4 K V + 6 K log C, parallel with L for C
        SELECTIVE    recurrent 7 K V, chunked 14 K V (states are computed twice)
        ELEMENTWISE  recurrent 3 V, chunked 6 V
        CONVOLUTION  recurrent 5 K, chunked 2 C + 4 K, parallel 2 L + 2 K, fft 15 log L + 2 K
        all          scan: as the recurrence, and 5 K V for the composition of steps
    """
    operations: list[Expr] = []
    words: list[Expr] = []
    rounds: list[Expr] = []
    state: dict[str, Expr] = {}
    for s in scans:
        h, k = _size(s.heads), _size(s.keys)
        v = add(*(_size(c.channels) for c in s.columns))
        for c in s.columns:
            state[c.state] = mul(h, k, _size(c.channels))
        factor, width = (num(4), num(2)) if s.field is Field.COMPLEX else (ONE, ONE)
        operations.append(mul(factor, h, _operations(s.form, mode, k, v)))
        words.append(mul(width, h, _words(s.form, mode, k, v)))
        rounds.append(_rounds(s.form, mode))
    return Cost(mode, add(*operations), add(*words), add(*rounds), add(*state.values()))


def _operations(form: Form, mode: str, k: Expr, v: Expr) -> Expr:
    tile = mul(k, v)
    per_step = num({Form.SELECTIVE: 7, Form.ELEMENTWISE: 3}.get(form, 5))
    if mode == "recurrent":
        return mul(per_step, tile)
    if mode == "scan":
        return mul(add(per_step, num(5)), tile)
    window = CHUNK if mode == "chunked" else LENGTH
    states = mul(num(4), tile) if mode == "chunked" else ZERO
    pairs = mul(num(2), window, add(k, v))
    match form:
        case Form.MATRIX:
            return add(pairs, states)
        case Form.KEYED:
            levels = _LOG_CHUNK if mode == "chunked" else _LOG_LENGTH
            return add(pairs, states, mul(num(6), k, levels))
        case Form.CONVOLUTION:
            kernel = mul(num(2), k)
            if mode == "fft":
                return add(mul(num(15), _LOG_LENGTH), kernel)
            return add(mul(num(2), window), states, kernel)
        case _:
            return mul(num(2), per_step, tile)


def _words(form: Form, mode: str, k: Expr, v: Expr) -> Expr:
    tile, vectors = mul(k, v), mul(num(2), add(k, v))
    if form is Form.ELEMENTWISE:
        return mul(num(3), v)
    if form is Form.CONVOLUTION and mode != "recurrent":
        return num(2)
    if mode == "parallel":
        return vectors
    if form in (Form.MATRIX, Form.KEYED) and mode == "chunked":
        return add(vectors, div(mul(num(2), tile), CHUNK))
    return add(mul(num(2), tile), vectors)


def _rounds(form: Form, mode: str) -> Expr:
    """Steps of a whole sequence that must wait for one another."""
    match mode:
        case "recurrent":
            return LENGTH
        case "chunked":
            # These two forms go token by token inside a chunk, all chunks at once or in turn.
            inside = CHUNK if form is Form.ELEMENTWISE else ZERO
            return LENGTH if form is Form.SELECTIVE else add(div(LENGTH, CHUNK), inside)
        case "scan":
            return _LOG_LENGTH
        case _:
            return ONE


def _size(axes: tuple[Axis, ...]) -> Expr:
    return mul(*(Size(a) for a in axes))
