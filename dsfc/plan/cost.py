"""What a mode costs: counts of operations, words moved and state, per token and batch entry."""

from __future__ import annotations

from collections.abc import Iterable

from dsfc.plan.ir import Cost, Form, Scan
from dsfc.primitives.build import add, div, mul, num
from dsfc.primitives.expr import Axis, Expr, Param, Size

CHUNK = Param("chunk", frozenset())


def cost_of(scans: Iterable[Scan], mode: str) -> Cost:
    """Returns the cost of running the scans in a mode.

    Operations count a multiply-add as 2 and an exponential as 1. With K keys, V channels (columns
    together) and chunk length C, per head:

        MATRIX, recurrent      5 K V operations, 2 K V + 2 (K + V) words
        MATRIX, chunked        2 C (K + V) + 4 K V operations, 2 (K + V) + 2 K V / C words
        SELECTIVE, either      7 K V (recurrent), 14 K V (chunked: states are computed twice)
        ELEMENTWISE, either    3 V (recurrent), 6 V (chunked)
    """
    operations: list[Expr] = []
    words: list[Expr] = []
    state: dict[str, Expr] = {}
    chunked = mode == "chunked"
    for s in scans:
        h, k = _size(s.heads), _size(s.keys)
        v = add(*(_size(c.channels) for c in s.columns))
        tile = mul(k, v)
        for c in s.columns:
            state[c.state] = mul(h, k, _size(c.channels))
        if s.form is Form.MATRIX and chunked:
            operations.append(mul(h, add(mul(num(2), CHUNK, add(k, v)), mul(num(4), tile))))
            words.append(mul(h, add(mul(num(2), add(k, v)), div(mul(num(2), tile), CHUNK))))
        elif s.form is Form.ELEMENTWISE:
            operations.append(mul(num(6 if chunked else 3), h, v))
            words.append(mul(num(3), h, v))
        else:
            per = 5 if s.form is Form.MATRIX else 14 if chunked else 7
            operations.append(mul(num(per), h, tile))
            words.append(mul(h, add(mul(num(2), tile), mul(num(2), add(k, v)))))
    return Cost(mode, add(*operations), add(*words), add(*state.values()))


def _size(axes: tuple[Axis, ...]) -> Expr:
    return mul(*(Size(a) for a in axes))
