"""Numerators and denominators that are one state with one more column.

A ratio mixer has two blocks with equal decay and equal key, one with stream v, one with stream 1:
the denominator is one extra value column of the numerator. Paired blocks share the pass over time,
the gauge and the running maximum; the pass only writes down that they may.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from dsfc.derive.inline import Definitions
from dsfc.expr.build import is_one
from dsfc.expr.normal import canonical
from dsfc.expr.tree import Expr
from dsfc.system.ir import Block, Gate, Ratio, Read, ReadOut, Stage
from dsfc.system.traverse import parts


def pairs(
    read_outs: Iterable[ReadOut], stages: Iterable[Stage], inliner: Definitions
) -> dict[str, str]:
    """Returns numerator state → denominator state for each pair; see the module docstring."""
    blocks = {b.state: b for s in stages for b in s.blocks}
    backward = {b.state: s.direction for s in stages for b in s.blocks}
    out: dict[str, str] = {}

    def same(a: Expr, b: Expr) -> bool:
        return a is b or canonical(inliner.inlined(a)) is canonical(inliner.inlined(b))

    for r in read_outs:
        for ratio in parts(r):
            if not isinstance(ratio, Ratio):
                continue
            for below in _terms(ratio.den):
                for above in _terms(ratio.num):
                    num, den = blocks[above], blocks[below]
                    if above in out or below in out.values() or above == below:
                        continue
                    if backward[above] is backward[below] and _paired(num, den, same):
                        out[above] = below
    return out


def _terms(r: ReadOut) -> Iterator[str]:
    if isinstance(r, Gate):
        r = r.arg
    if isinstance(r, Read):
        yield from (t.source for t in r.terms)


def _paired(num: Block, den: Block, same: object) -> bool:
    assert callable(same)
    if len(num.chain) != 1 or len(den.chain) != 1 or num.decay is None or den.decay is None:
        return False
    above, below = num.chain[0].drives, den.chain[0].drives
    if len(above) != 1 or len(below) != 1 or len(num.chain[0].terms) != 1:
        return False
    if len(den.chain[0].terms) != 1 or not is_one(below[0].stream):
        return False
    if not frozenset(den.axes) <= frozenset(num.axes):
        return False
    return bool(same(num.decay.value, den.decay.value) and same(above[0].key, below[0].key))


def with_pairs(stages: Iterable[Stage], partners: dict[str, str]) -> tuple[Stage, ...]:
    """Returns the stages with the partners written into their blocks' gauges."""
    partner = partners | {den: num for num, den in partners.items()}

    def block(b: Block) -> Block:
        if b.state not in partner:
            return b
        return replace(b, gauge=replace(b.gauge, shared_with=(partner[b.state],)))

    return tuple(replace(s, blocks=tuple(block(b) for b in s.blocks)) for s in stages)
