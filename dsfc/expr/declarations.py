"""Declarations that a mixer and a system share: dimensions, tensors, maps, provenance.

A System must carry everything a module needs to be built, and neither value knows the other; what
both hold lives here.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import Enum

from dsfc.expr.tree import Axis, Expr, Field, LinearMap
from dsfc.source import Span


@dataclass(frozen=True, slots=True)
class Dimension:
    """An axis with its size.

    Attributes:
        axis: the axis.
        size: expression over numbers and `Size` nodes; None when the user must give it.
        default: True when `size` is a plain number that the user may override (`heads h = 4`);
            False when it is derived from other sizes (`n = d / h`). A derived size may be
            overridden too; the derivation is then not used.
    """

    axis: Axis
    size: Expr | None
    default: bool
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)


class FlowRule(Enum):
    """Discretisation of a flow x' = A x + b with step Δ.

    ZOH: e^{ΔA}, A⁻¹(e^{ΔA} − 1) b. EULER: e^{ΔA}, Δ b (exact decay, Euler input).
    BILINEAR: (1 − ΔA/2)⁻¹(1 + ΔA/2), (1 − ΔA/2)⁻¹ Δ b.
    """

    ZOH = "zoh"
    EULER = "euler"
    BILINEAR = "bilinear"


class Constraint(Enum):
    """What a declaration promises of a tensor's values; also how the module stores a parameter."""

    NONE = "none"
    POSITIVE = "positive"
    NONNEG = "nonneg"
    UNIT = "unit"
    NONZERO = "nonzero"


@dataclass(frozen=True, slots=True)
class Init:
    """An initialiser: `= value` (fixed) or `~ value` (drawn; may hold `Draw` nodes)."""

    value: Expr
    drawn: bool


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a definition comes from, as the spec states it: paper and equation."""

    text: str


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input, parameter or buffer.

    Attributes:
        name: ASCII name.
        axes: canonical order.
        field: real or complex.
        constraint: promise on the values (parameters: enforced by reparametrisation).
        init: initialiser, for parameters and buffers.
    """

    name: str
    axes: tuple[Axis, ...]
    field: Field = Field.REAL
    constraint: Constraint = Constraint.NONE
    init: Init | None = None
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class MapTensor:
    """A parameter or buffer that holds a linear map, stored `[*each, *target, *source]`."""

    map: LinearMap
    init: Init | None = None
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)

    @property
    def name(self) -> str:
        """Name of the stored array."""
        return self.map.name


@dataclass(frozen=True, slots=True)
class Projection:
    """An input that stands for a linear map of another one.

    Attributes:
        input: name of the input.
        map: what it is the map of.
    """

    input: str
    map: MapTensor


@dataclass(frozen=True, slots=True)
class AbstractMap:
    """An uninterpreted feature map, for theorems; a mixer that has one cannot be compiled."""

    name: str
    source: tuple[Axis, ...]
    target: tuple[Axis, ...]
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)
