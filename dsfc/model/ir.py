"""What a model is made of: layers in an order, and sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dsfc.emit.module import ModuleText

Value = int | str | bool | None
"""An argument of a layer, as JSON has it."""


_PARTS = frozenset({"norm", "gate", "bias"})
"""Arguments of a layer that are no sizes; no size of an emitted layer is called so."""


@dataclass(frozen=True, slots=True)
class Part:
    """A layer that blocks of a model hold.

    Attributes:
        name: of its mixer, by which the pattern of blocks names it.
        text: the emitted module.
        layer: name of the layer's class in the module.
        arguments: of the constructor by name, the width and the place left out.
    """

    name: str
    text: ModuleText
    layer: str
    arguments: Mapping[str, Value]

    @property
    def sizes(self) -> frozenset[str]:
        """Arguments that are sizes of axes."""
        return frozenset(self.arguments) - _PARTS


@dataclass(frozen=True, slots=True)
class Model:
    """A causal language model.

    Attributes:
        parts: its layers, each once.
        pattern: names of the parts, in the order of the blocks; repeated until there are enough.
        width: channels of a token between blocks.
        blocks: how many there are.
        vocabulary: how many different tokens there are.
    """

    parts: tuple[Part, ...]
    pattern: tuple[str, ...]
    width: int
    blocks: int
    vocabulary: int
