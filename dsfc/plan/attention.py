"""Turns ratios of sums over the past without a finite state into attention."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dsfc.plan.graph import Graph
from dsfc.plan.ir import Attention, Register
from dsfc.plan.scans import Unsupported
from dsfc.primitives.build import ONE, mul
from dsfc.primitives.expr import Expr, Field, Now, Ref, Time
from dsfc.structure.attention import NotAttention, attention_of
from dsfc.system.ir import Cache, Ratio

OUTSIDE = (
    "and is no softmax attention: only sums of exp(scale * q · k[j]) * v[j] over j ≤ i, divided by "
    "the sum of these exponentials, run without one; a score of finitely many products of a "
    "function of i and one of j has a finite state, as taylor[2](q · k[j]) has"
)
"""What a sum without a finite state must be to run."""


def read(graph: Graph, ratio: Ratio) -> Expr:
    """Returns a ratio of sums as an expression over buffers, its attention planned.

    Raises:
        Unsupported: it is no softmax attention.
    """
    assert isinstance(ratio.den, Cache)
    try:
        found = attention_of(ratio)
    except NotAttention as e:
        why = f"it has no finite state ({ratio.den.why}), {OUTSIDE}; here {e}"
        raise Unsupported(None, why) from e
    axes = tuple(sorted((*found.heads, *found.channels)))
    query = graph.define("query", found.query)
    key = graph.kept("key", "keys", found.key)
    value = graph.kept("value", "values", found.value)
    present = graph.kept("present", "seen", ONE)
    kernel = Attention(
        heads=found.heads,
        keys=found.keys,
        channels=found.channels,
        scale=found.scale,
        query=query,
        key=key,
        value=value,
        present=present,
        output=graph.scan_output("attended", axes, Field.REAL),
    )
    graph.kernels.append(kernel)
    out = Ref(kernel.output, frozenset(axes), Field.REAL, Time.TOKEN, Now(0))
    return mul(graph.lower(found.gate), out)


def gauges(registers: Iterable[Register]) -> Iterator[str]:
    """Yields what is said of the gauge of registers that keep all tokens."""
    names = [r.name for r in registers if r.grows]
    if names:
        yield f"{', '.join(names)}: every token as it is"
