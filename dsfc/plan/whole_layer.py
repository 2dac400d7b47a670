"""A layer of a model around a mixer: from [B, L, d] to [B, L, d].

Where the only input of a mixer has one axis, the layer's input is that of the mixer, and linear
maps of it are done by the layer. Otherwise each input is a linear map of the layer's input, as
queries, keys and values are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dsfc.diagnostics.catalogue import NoLayer
from dsfc.diagnostics.report import DiagnosticError
from dsfc.expr.declarations import Constraint, MapTensor, Projection, Tensor
from dsfc.expr.tree import Axis
from dsfc.layer_parts import LayerParts, LayerSignature
from dsfc.plan.ir import Plan
from dsfc.source import NOWHERE, Span

WIDTH = "d"
"""The argument that is the width of a layer, whatever its mixer calls the axis."""


@dataclass(frozen=True, slots=True)
class Mapped:
    """An input of a mixer that its layer makes by a linear map.

    Attributes:
        tensor: the input.
        map: the mixer's own map that the layer takes over; None where it has none.
    """

    tensor: Tensor
    map: MapTensor | None = None


@dataclass(frozen=True, slots=True)
class WholeLayer:
    """How a layer stands around a mixer.

    Attributes:
        width: the mixer's axis whose size is the layer's width; None where it has none.
        inputs: of the mixer, in order: those that maps give, and None for the layer's own.
        parts: what stands behind the mixer unless a user says otherwise.
        heads: the axis that processes may share out; None where they are not to.
        signature: how the layer is called.
    """

    width: str | None
    inputs: tuple[Mapped | None, ...]
    parts: LayerParts
    heads: Axis | None = None
    signature: LayerSignature = LayerSignature.DSFC

    @property
    def tensors(self) -> tuple[Tensor | None, ...]:
        """The inputs of the mixer that maps give, and None for the layer's own."""
        return tuple(None if m is None else m.tensor for m in self.inputs)


def whole_layer(
    plan: Plan,
    own: Tensor,
    projections: Iterable[Projection],
    parts: LayerParts,
    span: Span | None = None,
) -> WholeLayer:
    """Returns the layer around the mixer of a plan.

    Args:
        plan: of the mixer, whose maps of its input are inputs.
        own: the first input of the mixer as it is written.
        projections: the maps that inputs of the plan stand for.
        parts: what stands behind the mixer.
        span: where the text names the mixer.

    Raises:
        DiagnosticError: E-LAYER: no linear map keeps what an input promises, or the layer's width
            and an axis of the mixer are two things of one name.
    """

    def refuse(problem: str, at: Span | None) -> DiagnosticError:
        return DiagnosticError((NoLayer(at or NOWHERE, mixer=plan.name, problem=problem),))

    axes = {d.axis.name for d in plan.axes}
    maps = {p.input: p.map for p in projections}
    others = [t for t in plan.inputs if t.name not in maps and t.name != own.name]
    if not others and len(own.axes) == 1:
        width = own.axes[0].copy_of or own.axes[0].name
        if width != WIDTH and WIDTH in axes:
            problem = f"its input has the axis {width}, and {WIDTH} is another axis than the width"
            raise refuse(problem, own.span or span)
        inputs = (Mapped(t, maps[t.name]) if t.name in maps else None for t in plan.inputs)
        return WholeLayer(width if width in axes else None, tuple(inputs), parts)
    for t in plan.inputs:
        if t.constraint is not Constraint.NONE:
            problem = f"its input {t.name} is {t.constraint.value}, which no linear map promises"
            raise refuse(problem, t.span or span)
    return WholeLayer(WIDTH if WIDTH in axes else None, tuple(map(Mapped, plan.inputs)), parts)


def layer_name(class_name: str) -> str:
    """Returns the name of the layer of a mixer's class."""
    return f"{class_name.rstrip('_')}Layer"


def fla_layer_name(class_name: str) -> str:
    """Returns the name of the layer of a mixer's class that fla calls."""
    return f"{layer_name(class_name)}ForFla"
