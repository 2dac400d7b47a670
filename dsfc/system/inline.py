"""Puts the token-wise streams of a System into expressions."""

from __future__ import annotations

from dsfc.expr.inline import Inliner
from dsfc.expr.tree import Expr
from dsfc.system.ir import System


def inliner_of(system: System) -> Inliner:
    """Returns what puts streams that are expressions in place; reads of stages stay names."""
    values = {s.name: s.value for s in system.streams if isinstance(s.value, Expr)}
    return Inliner(values.get)
