"""Drifts of flows: inside one, definitions of the state are continuous too."""

from __future__ import annotations

from collections.abc import Callable

from dsfc.expr.build import rewrite, walk
from dsfc.expr.graph import reachable
from dsfc.expr.tree import Expr, Now, Ref


def continuous(drift: Expr, state: str, value: Callable[[str], Expr | None]) -> Expr:
    """Returns the drift with definitions of the present state written out.

    In x' = λ * x - P ⊗ F with F = conj(P) · x, the x of F is the continuous one of the drift, not
    the discretised x_i; so F is part of the drift.

    Args:
        drift: the typed drift.
        state: the state whose drift it is.
        value: returns the value of a definition, None for other names.
    """
    holders = _holders(drift, state, value)

    def written_out(node: Expr) -> Expr | None:
        if isinstance(node, Ref) and node.at == Now(0) and node.name in holders:
            return value(node.name)
        return None

    # Definitions are acyclic but for the state, so this ends; each pass writes out one level.
    while any(isinstance(n, Ref) and n.at == Now(0) and n.name in holders for n in walk(drift)):
        drift = rewrite(drift, written_out)
    return drift


def _holders(drift: Expr, state: str, value: Callable[[str], Expr | None]) -> frozenset[str]:
    """Definitions that the drift reads and that read the present state."""
    readers: dict[str, list[str]] = {}
    stack, seen = [(drift, "")], {""}
    while stack:
        expr, owner = stack.pop()
        for node in walk(expr):
            if not isinstance(node, Ref) or node.at != Now(0):
                continue
            readers.setdefault(node.name, []).append(owner)
            body = None if node.name in seen or node.name == state else value(node.name)
            if body is not None:
                seen.add(node.name)
                stack.append((body, node.name))
    return reachable(readers, [state]) - {state, ""}
