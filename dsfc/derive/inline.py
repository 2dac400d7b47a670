"""Definitions put in, and taken out again.

Decays and couplings are read off expressions whose definitions are inlined; a module wants them
over the streams it has computed anyway.
"""

from __future__ import annotations

from collections.abc import Iterable

from dsfc.derive.model import Model
from dsfc.primitives.build import remake
from dsfc.primitives.expr import Expr, Now, Num, Ones, Param, Ref, Size, children


class Inliner:
    """Inlines the token-wise definitions of a model, and finds them again in an expression."""

    def __init__(self, model: Model, names: Iterable[str]) -> None:
        """Takes the model, which must not change afterwards, and the names to be found again."""
        self.model = model
        self._names = tuple(names)
        self._in: dict[Expr, Expr] = {}
        self._out: dict[Expr, Expr] = {}
        self._known: dict[Expr, Expr] | None = None
        for name in self._names:
            self.inlined(model.definitions[name].value)

    def inlined(self, e: Expr) -> Expr:
        """Returns the expression with definitions that are read now replaced by their values.

        Delayed reads and values that depend on states stay names.
        """
        found = self._in.get(e)
        if found is None:
            found = self._in[e] = self._inline(e)
        return found

    def _inline(self, e: Expr) -> Expr:
        if isinstance(e, Ref):
            value = self.model.value(e.name)
            if value is None or e.at not in (None, Now(0)) or self.model.reach(value):
                return e
            return self.inlined(value)
        return remake(e, tuple(self.inlined(c) for c in children(e)))

    def outlined(self, e: Expr) -> Expr:
        """Returns the expression with the inlined values of definitions replaced by their names."""
        if self._known is None:
            self._known = self._values()
        found = self._out.get(e)
        if found is None:
            known = self._known.get(e)
            if known is None:
                known = remake(e, tuple(self.outlined(c) for c in children(e)))
            found = self._out[e] = known
        return found

    def _values(self) -> dict[Expr, Expr]:
        out: dict[Expr, Expr] = {}
        for name in self._names:
            d = self.model.definitions[name]
            if self.model.reach(d.value):
                continue
            value = self.inlined(d.value)
            if isinstance(value, Num | Ones | Size | Param | Ref):
                continue
            at = None if d.value.time == 0 else Now(0)
            out.setdefault(value, Ref(name, value.axes, value.field, d.value.time, at))
        return out
