"""Initialisers of parameters: that of the spec, or one that trains where the spec has none."""

from __future__ import annotations

from dataclasses import replace

from dsfc.expr.build import ZERO, num, prim
from dsfc.expr.declarations import Constraint, Init, MapTensor, Tensor
from dsfc.expr.tree import Draw, Field, Num

_INSIDE = {
    Constraint.POSITIVE: num(1),
    Constraint.NONNEG: num(1),
    Constraint.UNIT: Num(num(1).value / 2),
    Constraint.NONZERO: num(1),
}
_FIFTIETH = Num(num(1).value / 50)


def initialiser(t: Tensor | MapTensor) -> Init:
    """Returns the initialiser of a tensor; the spec may have none.

    Then it is small noise for maps, which must break symmetry; else 0, or a value inside the
    constraint, where what is stored is finite and has a gradient.
    """
    if t.init is not None:
        return t.init
    if not isinstance(t, MapTensor):
        return Init(_INSIDE.get(t.constraint, ZERO), False)
    axes = frozenset((*t.map.each, *t.map.target, *t.map.source))
    noise = Draw("normal", (ZERO, _FIFTIETH if axes else num(1)), axes)
    if t.map.field is not Field.COMPLEX:
        return Init(noise, True)
    return Init(prim("cplx", noise, replace(noise, number=1)), True)
