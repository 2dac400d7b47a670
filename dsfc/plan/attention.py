"""Turns ratios of sums over the past without a finite state into attention."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dsfc.expr.build import ONE, mul
from dsfc.expr.tree import Expr, Field, Now, Ref, Time
from dsfc.plan.graph import Graph
from dsfc.plan.ir import Register
from dsfc.plan.pairs_ir import Attention
from dsfc.structure.attention import attention_of
from dsfc.system.ir import Ratio


def read(graph: Graph, ratio: Ratio) -> Expr:
    """Returns a ratio of sums as an expression over buffers, its attention planned.

    Raises:
        NotAttention: it is no softmax attention.
    """
    attention = attention_of(ratio)
    axes = tuple(sorted((*attention.heads, *attention.channels)))
    query = graph.define("query", attention.query)
    key = graph.kept("key", "keys", attention.key)
    value = graph.kept("value", "values", attention.value)
    present = graph.kept("present", "seen", ONE)
    kernel = Attention(
        heads=attention.heads,
        keys=attention.keys,
        channels=attention.channels,
        scale=attention.scale,
        query=query,
        key=key,
        value=value,
        present=present,
        output=graph.scan_output("attended", axes, Field.REAL),
    )
    graph.kernels.append(kernel)
    out = Ref(kernel.output, frozenset(axes), Field.REAL, Time.TOKEN, Now(0))
    return mul(graph.lower(attention.gate), out)


def gauges(registers: Iterable[Register]) -> Iterator[str]:
    """Yields what is said of the gauge of registers that keep all tokens."""
    names = [r.name for r in registers if r.grows]
    if names:
        yield f"{', '.join(names)}: every token as it is"
