"""One implementation in a comparison, and the two pieces of work it is timed at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

import torch
from torch import Tensor

Tensors = Mapping[str, Tensor]
"""The arguments of a comparison by name; batch first, then time: `[B, L, ...]`."""

Run = Callable[[Tensors], Tensor]
"""Computes the output from the arguments."""

OURS = "dsfc"
"""Name of the emitted module among the contenders."""


class Work(Enum):
    """What is timed."""

    FORWARD = "forward"
    TRAINING = "forward+backward"


@dataclass(frozen=True, slots=True)
class Contender:
    """An implementation of the work of a row.

    Attributes:
        name: as in tables and files.
        source: where it comes from: project, licence, what it does.
        run: arguments by name to the output.
        arguments: those it differentiates; all of the row's if empty.
        time_last: tensors, of arguments and output `y`, that it wants as `[B, ..., L]`. They are
            laid out so before the clock starts.
        context: shown beside the others, in no bar; its failure stops nothing.
        compiles: whether its first call compiles something. Its memory is not measured then: the
            compiler's would be in it.
    """

    name: str
    source: str
    run: Run = field(repr=False)
    arguments: tuple[str, ...] = ()
    time_last: frozenset[str] = frozenset()
    context: bool = False
    compiles: bool = False

    def lay_out(self, tensors: Tensors) -> dict[str, Tensor]:
        """Returns the arguments as this contender wants them, leaves of a graph of their own."""
        wanted = self.arguments or tuple(tensors)
        return {
            name: self._turned(name, tensors[name]).detach().clone().requires_grad_()
            for name in wanted
        }

    def forward(self, tensors: Tensors) -> Tensor:
        """Computes the output and no graph.

        Args:
            tensors: of `lay_out`.
        """
        with torch.no_grad():
            return self.run(tensors)

    def training(self, tensors: Tensors, cotangent: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Computes the output and the gradients of all arguments.

        Args:
            tensors: of `lay_out`.
            cotangent: of the output, in this contender's layout.
        """
        y = self.run(tensors)
        gradients = torch.autograd.grad(y, list(tensors.values()), cotangent)
        return y.detach(), dict(zip(tensors, gradients, strict=True))

    def cotangent(self, cotangent: Tensor) -> Tensor:
        """Returns the output's cotangent `[B, L, ...]` in this contender's layout."""
        return self._turned("y", cotangent)

    def results(self, tensors: Tensors, cotangent: Tensor) -> dict[str, Tensor]:
        """Returns output `y` and gradients `d<argument>`, time second again.

        Args:
            tensors: `[B, L, ...]`, not laid out.
            cotangent: `[B, L, ...]`.
        """
        y, gradients = self.training(self.lay_out(tensors), self.cotangent(cotangent))
        back = {f"d{name}": self._turned(name, x) for name, x in gradients.items()}
        return {"y": self._turned("y", y), **back}

    def _turned(self, name: str, x: Tensor) -> Tensor:
        """Swaps time and channel where the layouts differ, either way."""
        return x.transpose(1, 2).contiguous() if name in self.time_last else x
