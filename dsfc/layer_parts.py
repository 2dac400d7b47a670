"""Norm and gate of a layer as a spec names them, and how a layer is called as a user does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class Norm(StrEnum):
    """A norm of the mixer's output over the axes of each head, as a spec spells it."""

    RMS = "rms"
    LAYER = "layer"


class Gate(StrEnum):
    """The function of the gate that the output is multiplied by, as a spec spells it."""

    SILU = "silu"
    SIGMOID = "sigmoid"


class LayerSignature(StrEnum):
    """The arguments that a layer is made and called with, as a user spells the choice."""

    DSFC = "dsfc"
    """The arguments of the mixer: `u, state, *, mask, cu_seqlens, mode, chunk, return_state`."""
    FLA = "fla"
    """The arguments of layers of flash-linear-attention, in a further class of the module."""


@dataclass(frozen=True, slots=True)
class LayerParts:
    """The parts of a layer that papers choose.

    Attributes:
        norm: of the mixer's output; None where there is none.
        gate: behind the norm; None where there is none.
    """

    norm: Norm | None = None
    gate: Gate | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """The parts as a spec writes them, the norm first."""
        parts = {"norm": self.norm, "gate": self.gate}
        return tuple(f"{name} {value}" for name, value in parts.items() if value is not None)


PARTS: Mapping[str, tuple[str, ...]] = MappingProxyType({"norm": tuple(Norm), "gate": tuple(Gate)})
"""Name of a part → what it may be, as a spec spells both."""

NO_PARTS = LayerParts()
"""A layer whose mixer is followed by the output map alone."""
