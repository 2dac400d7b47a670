"""A layer that flash-linear-attention (fla) calls, beside the layer that its mixer is called as.

The cache is written by hand from what fla 0.6.0 documents of its `Cache`.
"""

from __future__ import annotations

import inspect
from dataclasses import fields
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from dsfc.validate.surface import surface

BATCH, LENGTH, WIDTH, ENTRY = 3, 7, 6, 2


class Cache:
    """Entries by number, each a dictionary of the states of a layer.

    An entry that no layer has written is None; beyond the last one there is none. What an update
    does not give stays as it was, and `offset` is how many tokens it was for.
    """

    def __init__(self) -> None:
        self.entries: list[dict[str, Any] | None] = []
        self.seen: list[int] = []

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, layer_idx: int) -> dict[str, Any] | None:
        if layer_idx >= len(self):
            raise KeyError(layer_idx)
        return self.entries[layer_idx]

    def update(
        self,
        recurrent_state: Any = None,
        attn_state: Any = None,
        conv_state: Any = None,
        ffn_state: Any = None,
        layer_idx: int = 0,
        offset: int = 1,
        cache_kwargs: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        while len(self) <= layer_idx:
            self.entries.append(None)
            self.seen.append(0)
        given = {
            "recurrent_state": recurrent_state,
            "attn_state": attn_state,
            "conv_state": conv_state,
            "ffn_state": ffn_state,
        }
        entry = self.entries[layer_idx] or dict.fromkeys(given)
        self.entries[layer_idx] = {n: entry[n] if x is None else x for n, x in given.items()}
        self.seen[layer_idx] += offset
        return self.entries[layer_idx]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self.seen[layer_idx] if layer_idx < len(self) else 0

    def reorder_cache(self, beam_idx: Tensor) -> None:
        for entry in filter(None, self.entries):
            rows = tuple(x.index_select(0, beam_idx) for x in entry["recurrent_state"])
            entry["recurrent_state"] = rows


def layers(module: ModuleType, **options: Any) -> tuple[Any, Any]:
    """Returns the layer that is called as its mixer, and the one that fla calls, alike in weights.

    Args:
        module: with both.
        options: of both.
    """
    found = surface(module)
    plain, called = found.layer_cls, found.fla_layer_cls
    assert plain is not None and called is not None
    sizes = dict(found.sizes)
    known = inspect.signature(plain).parameters
    given = {n: sizes[n] for n in known if n in sizes and n != "d"}
    width = sizes.get("d", WIDTH)
    torch.manual_seed(0)
    layer = plain(width, **given, **options, dtype=torch.float64)
    with torch.no_grad():
        for p in layer.parameters():
            p.add_(torch.randn_like(p), alpha=0.3)
    if "num_heads" in inspect.signature(called).parameters:
        given["num_heads"] = given.pop("h")
    of_fla = called(hidden_size=width, **given, **options, layer_idx=ENTRY, dtype=torch.float64)
    of_fla.load_state_dict(layer.state_dict())
    return layer, of_fla


def tokens(width: int, *shape: int) -> Tensor:
    """Returns numbers between 0 and 1, `[*shape, width]`, as all mixers take them."""
    generator = torch.Generator().manual_seed(1)
    return torch.rand(*shape, width, generator=generator, dtype=torch.float64)


def through(layer: Any, u: Tensor, cache: Any, ends: tuple[int, ...], mask: Any = None) -> Tensor:
    """Returns what a layer gives for the tokens up to each end, after those before."""
    outputs, start = [], 0
    for end in ends:
        given = None if mask is None else mask[:, :end]
        y, weights, kept = layer(u[:, start:end], given, cache, use_cache=True)
        assert weights is None and kept is cache
        outputs.append(y)
        start = end
    return torch.cat(outputs, 1)


def is_the_layer(module: ModuleType) -> None:
    """Whole, padded on the left, packed, and in parts through a cache, with gradients."""
    layer, of_fla = layers(module)
    width = layer.d
    u = tokens(width, BATCH, LENGTH).requires_grad_()
    want = layer(u)
    y, weights, cache = of_fla(u)
    assert weights is None and cache is None
    torch.testing.assert_close(y, want)

    padding = torch.tensor([3, 0, 1])
    mask = (torch.arange(LENGTH) >= padding[:, None]).long()
    padded, _, _ = of_fla(u, attention_mask=mask)
    for row, start in enumerate(padding.tolist()):
        torch.testing.assert_close(padded[row, start:], layer(u[row : row + 1, start:])[0])
        assert not padded[row, :start].any()

    kept = Cache()
    parts = through(of_fla, u, kept, (4, 5, 6, LENGTH), mask)
    torch.testing.assert_close(parts, padded)
    entry = kept[ENTRY]
    assert entry is not None and kept[0] is None and kept.get_seq_length(ENTRY) == LENGTH
    names = [f.name for f in fields(module.State)]
    assert [len(x) for x in entry["recurrent_state"]] == [BATCH] * len(names)
    (slope,) = torch.autograd.grad(parts.square().sum(), u, retain_graph=True)
    (wanted,) = torch.autograd.grad(padded.square().sum(), u)
    torch.testing.assert_close(slope, wanted)

    pack, kept = u[:1].detach(), Cache()
    packed, _, _ = of_fla(pack, None, kept, True, cu_seqlens=torch.tensor([0, 3, LENGTH]))
    torch.testing.assert_close(packed[:, :3], layer(pack[:, :3]))
    torch.testing.assert_close(packed[:, 3:], layer(pack[:, 3:]))
    token = tokens(width, 2, 1)
    after, _, _ = of_fla(token, None, kept, True)
    for row, part in enumerate((pack[:, :3], pack[:, 3:])):
        whole = layer(torch.cat((part, token[row : row + 1]), 1))
        torch.testing.assert_close(after[row, 0], whole[0, -1])
