"""L2: the strongly connected sets of states, in topological order, are the stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dsfc.derive.model import SUM_MARK, Model


def stages_of(model: Model) -> tuple[tuple[str, ...], ...]:
    """Returns the sets of states that depend on one another, those that are read first.

    An edge runs from a state to every state that its update reads, through any definitions and at
    any lag. Inside a set, states stand in the order of the model, however the spec is ordered.
    """
    reads = {
        name: sorted(
            frozenset().union(*(model.reach(e) for e in s.body)) - {SUM_MARK},
            key=list(model.states).index,
        )
        for name, s in model.states.items()
    }
    order = {name: k for k, name in enumerate(model.states)}
    return tuple(tuple(sorted(c, key=order.__getitem__)) for c in strong_components(reads))


def strong_components(reads: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Returns the strongly connected components of a graph, successors first (Tarjan 1972).

    Args:
        reads: node → its successors, in a fixed order; every successor is a node.
    """
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    out: list[list[str]] = []

    for root in reads:
        if root in number:
            continue
        # Explicit call stack: a chain of states may be longer than Python's recursion allows.
        calls: list[tuple[str, int]] = [(root, 0)]
        while calls:
            node, at = calls.pop()
            if at == 0:
                number[node] = low[node] = len(number)
                stack.append(node)
                on_stack.add(node)
            for k in range(at, len(reads[node])):
                nxt = reads[node][k]
                if nxt not in number:
                    calls.append((node, k + 1))
                    calls.append((nxt, 0))
                    break
                if nxt in on_stack:
                    low[node] = min(low[node], low[nxt])
            else:
                if low[node] == number[node]:
                    component: list[str] = []
                    while not component or component[-1] != node:
                        component.append(stack.pop())
                        on_stack.discard(component[-1])
                    out.append(component)
                if calls:
                    parent = calls[-1][0]
                    low[parent] = min(low[parent], low[node])
    return out
