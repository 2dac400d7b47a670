"""Expressions with the definitions they read put in their place.

Only values of the present token and constants are put in: a name read at another token is 0 outside
the sequence, which its definition need not be. For the same reason a filter keeps reading its name.
"""

from __future__ import annotations

from dsfc.expr.build import remake
from dsfc.expr.tree import Expr, Fir, Now, Ref, children
from dsfc.system.ir import System


class Inliner:
    """Puts token-wise streams of one System into expressions; remembers what it has seen."""

    def __init__(self, system: System) -> None:
        """Takes the streams that are expressions; reads of stages stay names."""
        self._values = {s.name: s.value for s in system.streams if isinstance(s.value, Expr)}
        self._done: dict[Expr, Expr] = {}

    def of(self, expr: Expr) -> Expr:
        """Returns the expression over inputs, parameters and values of earlier stages."""
        stack = [expr]
        while stack:
            e = stack[-1]
            if e in self._done:
                stack.pop()
                continue
            needs = self._needs(e)
            waiting = [n for n in needs if n not in self._done]
            if waiting:
                stack.extend(reversed(waiting))
                continue
            self._done[e] = self._made(e)
            stack.pop()
        return self._done[expr]

    def value(self, name: str) -> Expr | None:
        """Returns the definition of a stream, inlined; None for inputs and reads of stages."""
        found = self._values.get(name)
        return None if found is None else self.of(found)

    def _value(self, e: Expr) -> Expr | None:
        if isinstance(e, Ref) and (e.at is None or e.at == Now(0)):
            return self._values.get(e.name)
        return None

    def _needs(self, e: Expr) -> tuple[Expr, ...]:
        if isinstance(e, Fir):
            return (e.weight,)
        value = self._value(e)
        return children(e) if value is None else (value,)

    def _made(self, e: Expr) -> Expr:
        if isinstance(e, Fir):
            return remake(e, (self._done[e.weight], e.arg))
        value = self._value(e)
        if value is not None:
            return self._done[value]
        return remake(e, tuple(self._done[c] for c in children(e)))
