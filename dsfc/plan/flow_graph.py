"""The plan as a networkx graph, for analysis and drawing; the plan itself is the store."""

from __future__ import annotations

from typing import Any

import networkx as nx

from dsfc.plan.flow import reads, written_by
from dsfc.plan.ir import Plan, Reverse, RunningMax, Unit
from dsfc.plan.pairs_ir import AllPairs, Attention
from dsfc.plan.recurrence_ir import Recurrence
from dsfc.plan.scan_ir import Scan


def to_networkx(plan: Plan) -> Any:  # noqa: ANN401 - networkx has no types
    """Returns a `networkx.MultiDiGraph` with one node per kernel, input and state.

    Nodes carry `kind` ("input", "state", "pointwise", "reverse", "unit", "attention", "scan",
    "recurrence") and `axes`; an edge carries the `buffer` that flows along it and `lag`, 0 for the
    same token. A kernel may read several buffers of one scan, or one buffer at several tokens: each
    read is an edge.
    """
    graph = nx.MultiDiGraph(name=plan.name)
    arrays = {b.name: b for b in plan.arrays}
    writer: dict[str, str] = {}
    for t in plan.inputs:
        graph.add_node(t.name, kind="input", axes=tuple(a.name for a in t.axes))
        writer[t.name] = t.name
    for s in plan.states:
        graph.add_node(f"state {s.name}", kind="state", axes=tuple(a.name for a in s.axes))
    for k in plan.kernels:
        if isinstance(k, Recurrence):
            node = f"recurrence {k.name}"
            axes = tuple(a.name for a in sorted({a for x in k.states for a in x.axes}))
            graph.add_node(node, kind="recurrence", axes=axes)
            writer |= dict.fromkeys(written_by(k), node)
            for x in k.states:
                graph.add_edge(f"state {x.state}", node, buffer=x.state, lag=1)
        elif not isinstance(k, Scan):
            node = k.output
            axes = tuple(a.name for a in arrays[k.output].axes)
            kinds = {
                Reverse: "reverse",
                Unit: "unit",
                Attention: "attention",
                AllPairs: "pairs",
                RunningMax: "maximum",
            }
            kind = kinds.get(type(k), "pointwise")
            graph.add_node(node, kind=kind, axes=axes)
            writer[k.output] = node
        else:
            node = f"scan {k.name}"
            tile = (*k.heads, *k.keys, *k.channels)
            graph.add_node(node, kind="scan", axes=tuple(a.name for a in sorted(tile)))
            for c in k.columns:
                writer[c.output] = node
                graph.add_edge(f"state {c.state}", node, buffer=c.state, lag=1)
        for name, lag in dict.fromkeys(reads(k)):
            graph.add_edge(writer[name], node, buffer=name, lag=lag)
    return graph
