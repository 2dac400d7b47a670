"""Definitions put in, and taken out again.

Decays and couplings are read off expressions whose definitions are inlined; a module wants them
over the streams it has computed anyway.
"""

from __future__ import annotations

from collections.abc import Iterable

from dsfc.derive.model import Model
from dsfc.diagnostics.catalogue import Limit
from dsfc.diagnostics.report import DiagnosticError
from dsfc.expr.build import remake
from dsfc.expr.inline import Inliner
from dsfc.expr.tree import Add, Expr, Mul, Now, Num, Ones, Param, Ref, Size, children


class Definitions:
    """Inlines the token-wise definitions of a model, and finds them again in an expression."""

    def __init__(self, model: Model, names: Iterable[str]) -> None:
        """Takes the model, which must not change afterwards, and the names to be found again."""
        self.model = model
        self._names = tuple(names)
        self._in = Inliner(self._value, self._made)
        self._out: dict[Expr, Expr] = {}
        self._known: dict[Expr, Expr] | None = None
        for name in self._names:
            self.inlined(model.definitions[name].value)

    def inlined(self, e: Expr) -> Expr:
        """Returns the expression with definitions that are read now replaced by their values.

        Delayed reads and values that depend on states stay names.
        """
        return self._in.of(e)

    def _value(self, name: str) -> Expr | None:
        value = self.model.value(name)
        return None if value is None or self.model.reach(value) else value

    def _made(self, e: Expr, parts: tuple[Expr, ...]) -> Expr:
        if isinstance(e, Add | Mul):
            self._demand_bounded(sum(len(p.args) if type(p) is type(e) else 1 for p in parts))
        return remake(e, parts)

    def _demand_bounded(self, count: int) -> None:
        """Refuses sums and products of too many parts: `b = a * a`, `c = b * b`, … double them."""
        bound = self.model.limits.expansion_terms
        if count > bound:
            at = self.model.mixer.span or self.model.span_of(self.model.mixer.output)
            what = "terms or factors of definitions put in for their names"
            problem = Limit(at, what=what, size=f"more than {bound}", bound=str(bound))
            raise DiagnosticError((problem,))

    def outlined(self, e: Expr) -> Expr:
        """Returns the expression with the inlined values of definitions replaced by their names."""
        if self._known is None:
            self._known = self._values()
        out = self._out.get(e)
        if out is None:
            known = self._known.get(e)
            if known is None:
                known = remake(e, tuple(self.outlined(c) for c in children(e)))
            out = self._out[e] = known
        return out

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
