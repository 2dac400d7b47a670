"""A layer of a model around a mixer: from [B, L, d] to [B, L, d].

Where the only input of a mixer has one axis, the layer's input is that of the mixer. Otherwise each
input is a linear map of the layer's input, as queries, keys and values are.
"""

from __future__ import annotations

from dataclasses import dataclass

from dsfc.diagnostics.catalogue import NoLayer
from dsfc.diagnostics.report import DiagnosticError
from dsfc.expr.declarations import Constraint, Tensor
from dsfc.layer_parts import LayerParts
from dsfc.plan.ir import Plan
from dsfc.source import NOWHERE, Span

WIDTH = "d"
"""The argument that is the width of a layer, whatever its mixer calls the axis."""


@dataclass(frozen=True, slots=True)
class WholeLayer:
    """How a layer stands around a mixer.

    Attributes:
        width: the mixer's axis whose size is the layer's width; None where it has none.
        projected: inputs of the mixer that are linear maps of the layer's input; none where the
            layer's input is the mixer's.
        parts: what stands behind the mixer unless a user says otherwise.
    """

    width: str | None
    projected: tuple[Tensor, ...]
    parts: LayerParts


def whole_layer(plan: Plan, parts: LayerParts, span: Span | None = None) -> WholeLayer:
    """Returns the layer around the mixer of a plan.

    Args:
        plan: of the mixer.
        parts: what stands behind the mixer.
        span: where the text names the mixer.

    Raises:
        DiagnosticError: E-LAYER: no linear map keeps what an input promises, or the layer's width
            and an axis of the mixer are two things of one name.
    """

    def refuse(problem: str, at: Span | None) -> DiagnosticError:
        return DiagnosticError((NoLayer(at or NOWHERE, mixer=plan.name, problem=problem),))

    axes = {d.axis.name for d in plan.axes}
    first = plan.inputs[0]
    if len(plan.inputs) == 1 and len(first.axes) == 1:
        width = first.axes[0].copy_of or first.axes[0].name
        if width != WIDTH and WIDTH in axes:
            problem = f"its input has the axis {width}, and {WIDTH} is another axis than the width"
            raise refuse(problem, first.span or span)
        return WholeLayer(width, (), parts)
    for t in plan.inputs:
        if t.constraint is not Constraint.NONE:
            problem = f"its input {t.name} is {t.constraint.value}, which no linear map promises"
            raise refuse(problem, t.span or span)
    return WholeLayer(WIDTH if WIDTH in axes else None, plan.inputs, parts)
