"""Bytes that printed kernels move, and how many are launched, as Triton's interpreter sees it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from interpreted import Run, around_kernels
from kernel_specs import PRINTED

pytest.importorskip("triton")
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

SIZE = 128
"""Keys and channels of a head."""

SHORT, LONG = 128, 256
"""Tokens: what more of them move is what a long sequence does, without the states at its ends."""

BY_KEYS = ("gla", "kda", "rwkv7")
LAUNCHES = [3, 4]
RATIOS = {
    "gla": [(2.68, 3.1), (2.83, 4.42)],
    "deltanet": [(4.24, 5.36), (4.92, 6.55)],
    "gated_deltanet": [(4.23, 5.38), (4.91, 6.55)],
    "kda": [(3.5, 4.59), (3.83, 6.93)],
    "rwkv7": [(3.89, 4.84), (3.98, 5.0)],
}
"""Of each pass, bytes over those that any kernel must move: each once a launch; all that is asked.

The table of docs/theory/kernels.md has them.
"""


@dataclass
class Moved:
    """What launches have moved.

    Attributes:
        launches: their number.
        once: bytes, of which each counts once in a launch that reads it, and once where it writes.
        asked: bytes of all loads and stores.
        places: addresses and sizes of the launch that runs, loads and stores.
    """

    launches: int = 0
    once: int = 0
    asked: int = 0
    places: dict[str, list[tuple[Any, int]]] = field(default_factory=dict)

    def access(self, kind: str, pointers: Any, mask: Any) -> None:
        """Counts a load or a store."""
        size = pointers.dtype.element_ty.primitive_bitwidth // 8
        found = pointers.data[mask.data]
        self.asked += size * found.size
        self.places.setdefault(kind, []).append((np.unique(found), size))

    def launch(self, name: str, arguments: tuple[Any, ...], run: Run) -> None:
        """Counts a launch."""
        self.launches, self.places = self.launches + 1, {}
        run()
        for found in self.places.values():
            for size in {size for _, size in found}:
                places = np.concatenate([p for p, own in found if own == size])
                self.once += size * np.unique(places).size


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch) -> Moved:
    """What the interpreter has moved so far."""
    from triton.runtime.interpreter import InterpreterBuilder

    seen = Moved()
    load, store = InterpreterBuilder.create_masked_load, InterpreterBuilder.create_masked_store

    def counted_load(self: Any, pointers: Any, mask: Any, *rest: Any) -> Any:
        seen.access("load", pointers, mask)
        return load(self, pointers, mask, *rest)

    def counted_store(self: Any, pointers: Any, value: Any, mask: Any, *rest: Any) -> Any:
        seen.access("store", pointers, mask)
        return store(self, pointers, value, mask, *rest)

    monkeypatch.setattr(InterpreterBuilder, "create_masked_load", counted_load)
    monkeypatch.setattr(InterpreterBuilder, "create_masked_store", counted_store)
    around_kernels(monkeypatch, seen.launch)
    return seen


def passes(module: ModuleType, by_keys: bool, length: int, moved: Moved) -> list[tuple[int, ...]]:
    """Of each pass: its launches, both counts of bytes, and the fewest that it could move."""
    leaves = list(inspect.signature(module._forward_launch).parameters)
    tokens = 1, length, 1
    made = {n: torch.rand(*tokens, SIZE).bfloat16() / 32 for n in leaves}
    made["S"] = torch.zeros(1, 1, SIZE, SIZE)
    if "r" in made:
        made["r"] = torch.rand(tokens)
    if "g" in made:
        made["g"] = -torch.rand((*tokens, SIZE) if by_keys else tokens)
    given = [made[n] for n in leaves]
    do, dS = torch.zeros(*tokens, SIZE).bfloat16(), torch.zeros(1, 1, SIZE, SIZE)
    out = []
    for start, read in (
        (module._forward_launch, given),
        (module._backward_launch, [*given, do, dS]),
    ):
        before = moved.launches, moved.once, moved.asked
        written = start(*read)
        now = moved.launches, moved.once, moved.asked
        fewest = sum(x.numel() * x.element_size() for x in (*read, *written))
        out.append((*(b - a for a, b in zip(before, now, strict=True)), fewest))
    return out


@pytest.mark.ci
@pytest.mark.share(1, ci=0)
@pytest.mark.parametrize("name", PRINTED)
def test_bytes_are_those_of_the_table(
    name: str,
    build: Callable[..., ModuleType],
    moved: Moved,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the tiles of sm_90, in bfloat16."""
    module = build(name)
    ours = {row[:3]: row for row in sorted(module.TILES) if row[3] == "cuda" and row[4] <= 90}
    tiles = {(*key, "cuda", 0): module.TILES[row] for key, row in ours.items()}
    monkeypatch.setattr(module, "TILES", tiles)
    few, more = (passes(module, name in BY_KEYS, n, moved) for n in (SHORT, LONG))
    found = []
    for early, late in zip(few, more, strict=True):
        _, once, asked, fewest = (b - a for a, b in zip(early, late, strict=True))
        found.append((round(once / fewest, 2), round(asked / fewest, 2)))
    assert [launches for launches, *_ in more] == LAUNCHES
    assert found == RATIOS[name]
