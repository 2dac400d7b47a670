"""The promise about the layer that flash-linear-attention (fla) calls: it is the layer beside it.

The judge is that layer, which `dsfc.validate.whole_layer` holds to the definition of the spec, on
the same parameters: called on whole sequences, without a cache.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from dsfc.validate.compare import EXACT, BrokenPromiseError, agree, worst_of
from dsfc.validate.surface import Surface
from dsfc.validate.whole_layer import Definition, drawn, outcome, sizes_of

_ENTRY = 1
_PADDED = 2


class _Cache:
    """As much of fla's `Cache` as a layer uses: entries by number, each a dictionary."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any] | None] = []

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, number: int) -> dict[str, Any] | None:
        return self.entries[number]

    def update(self, *, layer_idx: int, offset: int, **states: object) -> None:
        while len(self) <= layer_idx:
            self.entries.append(None)
        seen = (self.entries[layer_idx] or {"seen": 0})["seen"]
        self.entries[layer_idx] = {**states, "seen": seen + offset}


def fla_layer(surface: Surface, definition: Definition, heads: str | None) -> str:
    """The layer that fla calls is the layer, padded on the left and through a cache too.

    Args:
        surface: of a module with both layers.
        definition: the mixer of the spec.
        heads: name of the size that is called `num_heads` where there is one.
    """
    cls, plain = surface.fla_layer_cls, surface.layer_cls
    if cls is None or plain is None:
        raise BrokenPromiseError("the module has no layer that fla calls")
    sizes = sizes_of(plain, definition)
    if "num_heads" in inspect.signature(cls).parameters:
        sizes["num_heads"] = sizes.pop(heads if heads in sizes else f"{heads}_")
    layer = drawn(partial(cls, definition.width, **sizes, layer_idx=_ENTRY))
    u = definition.sequence()
    mask = torch.ones(u.shape[:2], dtype=torch.long)
    mask[0, :_PADDED] = 0
    cases: dict[str, tuple[Callable[[], Tensor], Tensor | None]] = {
        "whole": (lambda: layer(u)[0], None),
        "padded": (lambda: layer(u, mask)[0], mask),
        "through a cache": (lambda: _through_a_cache(layer, u, None), None),
        "padded, through a cache": (lambda: _through_a_cache(layer, u, mask), mask),
    }
    worst = 0.0
    for where, (run, padding) in cases.items():
        want = outcome(layer, u, plain.forward(layer, u, mask=padding))
        worst = max(worst, agree(outcome(layer, u, run()), want, EXACT, where))
    return worst_of(worst)


def _through_a_cache(layer: Any, u: Tensor, mask: Tensor | None) -> Tensor:  # noqa: ANN401
    """What a layer gives for half of the tokens at once, and for the others one by one."""
    cache, length = _Cache(), u.shape[1]
    ends = [length // 2, *range(length // 2 + 1, length + 1)]
    outputs = []
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        seen = None if mask is None else mask[:, :end]
        y, weights, kept = layer(u[:, start:end], seen, cache, use_cache=True)
        if weights is not None or kept is not cache:
            raise BrokenPromiseError("it returns its output, None and the cache, and did not")
        outputs.append(y)
    entry = cache[_ENTRY]
    if entry is None or entry["seen"] != length:
        raise BrokenPromiseError(f"its entry says {entry and entry['seen']} tokens, of {length}")
    return torch.cat(outputs, 1)
