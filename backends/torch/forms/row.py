"""The row of a form in torch: its skeleton, how its arrays lie, and what it costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from dsfc.expr.tree import Expr
from dsfc.plan.scan_ir import Scan

from ..counts import Counts, Rewriting
from ..skeletons import Skeleton


class Layout(Enum):
    """How the arguments of an operator lie.

    GROUPED: heads, keys and channels are one axis each; columns stand side by side.
    RESPONSES: heads and keys are one axis each, of one response a head.
    MIXED: heads and the axes that a full matrix mixes are one axis each.
    ENTRIES: value and log λ have the axes of the state.
    TILE: so has the state alone; its vectors are broadcast inside.
    """

    GROUPED = "grouped"
    RESPONSES = "responses"
    MIXED = "mixed"
    ENTRIES = "entries"
    TILE = "tile"

    @property
    def shape(self) -> str:
        """Names of the length and of the sizes of the operator's state, as targets."""
        sizes = {Layout.GROUPED: "h, n, p", Layout.RESPONSES: "h, n", Layout.MIXED: "h, p"}
        return f"L, B, {sizes.get(self, '*axes')}"


@dataclass(frozen=True, slots=True)
class TorchForm:
    """How torch runs a form.

    Attributes:
        layout: of its operator.
        skeleton: what its templates are filled with; None for what is no scan.
        counts: what a scan costs in a mode, by its numbers of keys and channels; None for what is
            no scan.
        chunk: tokens of a chunk that are fastest; None where nothing recurs.
        block: power of two, how many numbers the states of chunks have that are computed at once,
            or the values of a convolution; None where chunks are computed one by one.
    """

    layout: Layout
    skeleton: type[Skeleton] | None = None
    counts: Callable[[Scan, str, Expr, Expr], Counts] | None = None
    chunk: int | None = None
    block: int | None = None

    @property
    def rewrites(self) -> bool:
        """Whether the Λ of a token mixes the keys of a head."""
        return isinstance(self.counts, Rewriting)
