"""Who reads whom: strongly connected components and paths, without recursion."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

_NodeT = TypeVar("_NodeT", bound=Hashable)


def components(edges: Mapping[str, Iterable[str]]) -> tuple[tuple[str, ...], ...]:
    """Returns the strongly connected components, those that are read before those that read them.

    Tarjan's algorithm with an explicit stack; the result depends only on the order of the keys and
    of the edges.

    Args:
        edges: for each node the nodes it reads; nodes that are no key are left out.
    """
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    out: list[tuple[str, ...]] = []
    for root in edges:
        if root in index:
            continue
        work = [(root, iter([n for n in edges[root] if n in edges]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, rest = work[-1]
            following = next(rest, None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    at = stack.index(node)
                    out.append(tuple(sorted(stack[at:], key=index.__getitem__)))
                    on_stack.difference_update(stack[at:])
                    del stack[at:]
            elif following not in index:
                index[following] = low[following] = len(index)
                stack.append(following)
                on_stack.add(following)
                work.append((following, iter([n for n in edges[following] if n in edges])))
            elif following in on_stack:
                low[node] = min(low[node], index[following])
    return tuple(out)


def shortest_path(edges: Mapping[str, Sequence[str]], start: str, end: str) -> tuple[str, ...]:
    """Returns a shortest path from `start` to `end`, both included; empty if there is none."""
    before: dict[str, str] = {}
    queue = deque([start])
    seen = {start}
    while queue:
        node = queue.popleft()
        if node == end:
            path = [node]
            while node != start:
                node = before[node]
                path.append(node)
            return tuple(reversed(path))
        for following in edges.get(node, ()):
            if following not in seen:
                seen.add(following)
                before[following] = node
                queue.append(following)
    return ()


def reachable(edges: Mapping[str, Iterable[str]], roots: Iterable[str]) -> frozenset[str]:
    """Returns the roots and everything they read, directly or through others."""
    seen: set[str] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack.extend(edges.get(node, ()))
    return frozenset(seen)


def depth_first(
    roots: Iterable[_NodeT], needs: Callable[[_NodeT], Iterable[_NodeT]]
) -> list[_NodeT]:
    """Returns the roots and all they need, each node behind what it needs.

    Args:
        roots: where the walk starts, in this order.
        needs: the nodes that a node needs, in the order in which they are visited.
    """
    seen: set[_NodeT] = set()
    out: list[_NodeT] = []
    # An explicit stack: chains of definitions may be longer than Python's recursion allows.
    stack: list[tuple[_NodeT, Iterator[_NodeT]]] = []
    for root in roots:
        if root not in seen:
            seen.add(root)
            stack.append((root, iter(needs(root))))
        while stack:
            node, rest = stack[-1]
            following = next((n for n in rest if n not in seen), None)
            if following is None:
                out.append(node)
                stack.pop()
            else:
                seen.add(following)
                stack.append((following, iter(needs(following))))
    return out
