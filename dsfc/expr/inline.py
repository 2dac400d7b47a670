"""Expressions with the definitions they read put in their place.

Only values of the present token and constants are put in: a name read at another token is 0 outside
the sequence, which its definition need not be. For the same reason a filter keeps reading its name.
"""

from __future__ import annotations

from collections.abc import Callable

from dsfc.expr.build import remake
from dsfc.expr.tree import Expr, Fir, Now, Ref, children

Made = Callable[[Expr, tuple[Expr, ...]], Expr]
"""Makes a node again from new direct sub-expressions."""


class Inliner:
    """Puts definitions into expressions; remembers the expressions that it has seen."""

    def __init__(self, value_of: Callable[[str], Expr | None], make: Made = remake) -> None:
        """Takes the definitions.

        Args:
            value_of: gives the definition of a name; None where the name stays.
            make: makes a node of a result.
        """
        self._value_of = value_of
        self._made = make
        self._done: dict[Expr, Expr] = {}

    def of(self, expr: Expr) -> Expr:
        """Returns the expression with definitions in the place of names."""
        stack = [expr]
        while stack:
            e = stack[-1]
            if e in self._done:
                stack.pop()
                continue
            value = self._value(e)
            needs = _open(e) if value is None else (value,)
            waiting = [n for n in needs if n not in self._done]
            if waiting:
                stack.extend(reversed(waiting))
                continue
            self._done[e] = self._remade(e) if value is None else self._done[value]
            stack.pop()
        return self._done[expr]

    def value(self, name: str) -> Expr | None:
        """Returns the definition of a name, inlined; None where the name stays."""
        value = self._value_of(name)
        return None if value is None else self.of(value)

    def _value(self, e: Expr) -> Expr | None:
        if isinstance(e, Ref) and e.at in (None, Now(0)):
            return self._value_of(e.name)
        return None

    def _remade(self, e: Expr) -> Expr:
        if isinstance(e, Fir):
            return self._made(e, (self._done[e.weight], e.arg))
        return self._made(e, tuple(self._done[c] for c in children(e)))


def _open(e: Expr) -> tuple[Expr, ...]:
    """The direct sub-expressions that definitions are put into."""
    return (e.weight,) if isinstance(e, Fir) else children(e)
