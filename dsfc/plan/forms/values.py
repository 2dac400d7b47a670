"""How the values inside of a kernel that holds many are verified."""

from __future__ import annotations

from collections.abc import Mapping

from dsfc.expr.build import walk
from dsfc.expr.over_time import Lag, Past, Run
from dsfc.expr.tree import Axis, Expr, Fir, Map, Param, Ref
from dsfc.plan.flow import PlanError


def checked(
    value: Expr, known_axes: Mapping[str, tuple[Axis, ...]], axes: tuple[Axis, ...], where: str
) -> tuple[Axis, ...]:
    """Returns the axes of a value once what it reads is there and it lies within them."""
    for e in walk(value):
        if isinstance(e, Param | Map | Past | Lag | Run | Fir):
            raise PlanError(f"{where} holds a {type(e).__name__}")
        if isinstance(e, Ref) and set(known_axes.get(e.name, ())) != e.axes:
            raise PlanError(f"{where} reads {e.name} before it is given, or with other axes")
        if isinstance(e, Ref) and e.name not in known_axes:
            raise PlanError(f"{where} reads {e.name} before it is given")
    if not value.axes <= frozenset(axes):
        raise PlanError(f"{where}: a value has axes that its name lacks")
    return axes
