"""Faster tiles for the kernels of an emitted module, on the device at hand; nobody has to.

The tables of `backends/triton/tiles.py` are made without a device. `tune` times other tiles, gives
the module those that are fastest, and keeps them on disk. A tile is a row for a form, a direction,
a width of numbers and an architecture: no length and no batch is part of it, here or there.

A file of the cache is named after everything that its content depends on: the text of the module,
the versions of torch and Triton, and the device. It is written beside its place and then renamed,
so that nobody reads half of one; what is not read as a table of tiles is as if it were not there.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from dsfc import files

Row = tuple[str, str, int, str, int]
"""Form, direction, bytes of a number, platform, architecture."""

Tile = tuple[int, int, int, int]
"""Tokens, channels, warps, stages."""

_OFF = 1 / 64
"""Share of the largest entry by which results of two tiles may differ: roundings of bfloat16."""


@dataclass(frozen=True)
class Cache:
    """Tables of tiles on disk.

    Attributes:
        folder: where they lie; made when something is stored, for its owner alone.
    """

    folder: Path = field(
        default_factory=lambda: (
            Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dsfc" / "tiles"
        )
    )

    def get(self, key: str) -> dict[Row, Tile] | None:
        """Returns the table of a key; None where there is none, or no whole one.

        Args:
            key: what `key_of` gave.
        """
        if not self._ours():
            return None
        try:
            return _read(json.loads(files.read(self.folder / f"{key}.json")))
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def put(self, key: str, tiles: Mapping[Row, Tile]) -> bool:
        """Stores a table; returns whether it could be.

        Args:
            key: what `key_of` gave.
            tiles: the table.
        """
        text = json.dumps({"tiles": [[*row, list(tile)] for row, tile in tiles.items()]})
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._ours():
                return False
            files.replace(self.folder / f"{key}.json", text.encode(), 0o600)
        except OSError:
            return False
        return True

    def _ours(self) -> bool:
        """Whether nobody else can write there: a table decides what is compiled."""
        try:
            status = self.folder.stat()
        except OSError:
            return False
        others = stat.S_IWGRP | stat.S_IWOTH
        return status.st_uid == os.geteuid() and not status.st_mode & others


def _read(document: Any) -> dict[Row, Tile]:  # noqa: ANN401 - whatever a file has
    """A table from what a file has.

    Raises:
        ValueError: it is none.
    """
    out: dict[Row, Tile] = {}
    for *row, tile in document["tiles"]:
        kinds = [type(x) for x in row]
        whole = len(tile) == 4 and all(type(x) is int and 0 < x <= 4096 for x in tile)
        if kinds != [str, str, int, str, int] or not whole:
            raise ValueError("no table of tiles")
        out[tuple(row)] = tuple(tile)
    return out


def key_of(module: ModuleType, device: torch.device) -> str:
    """Returns the name of what the tiles of a module on a device depend on."""
    on_gpu = device.type == "cuda"
    parts = {
        "module": hashlib.sha256(Path(str(module.__file__)).read_bytes()).hexdigest(),
        "torch": str(torch.__version__),
        "triton": str(module.triton.__version__),
        "device": torch.cuda.get_device_name(device) if on_gpu else device.type,
        "architecture": list(torch.cuda.get_device_capability(device)) if on_gpu else [],
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def candidates(tile: Tile) -> Iterator[Tile]:
    """Yields a tile, then its neighbours: half and twice of each size, one stage more or less."""
    tokens, channels, warps, stages = tile
    yield tile
    for size in (tokens // 2, 2 * tokens):
        if 16 <= size <= 64:  # the least that products of matrices take; all are in registers
            yield size, channels, warps, stages
    for size in (channels // 2, 2 * channels):
        if 16 <= size <= 256:
            yield tokens, size, warps, stages
    for count in (warps // 2, 2 * warps):
        if 1 <= count <= 8:
            yield tokens, channels, count, stages
    for count in (stages - 1, stages + 1):
        if 1 <= count <= 5:
            yield tokens, channels, warps, count


def seconds(work: Callable[[], object]) -> float:
    """Returns the median time of some work on a GPU."""
    import triton.testing

    return float(triton.testing.do_bench(work, return_mode="median")) / 1e3


def tune(
    module: ModuleType,
    run: Callable[[], Sequence[Tensor]],
    cache: Cache | None = None,
    clock: Callable[[Callable[[], object]], float] = seconds,
) -> dict[Row, Tile]:
    """Gives a module the fastest tiles for what a run launches, and returns their rows.

    Tiles that do not compile, or whose results are not those of the module's own, are left out.

    Args:
        module: an emitted module with kernels.
        run: calls it, forwards or both ways; returns what it computes, on one device.
        cache: where to look first, and to store what is found; nowhere if not given.
        clock: seconds of some work.

    Raises:
        ValueError: no kernel of this module is launched. A process that imports a mixer's module
            twice runs the operators of the first.
    """
    wanted = asked(module, run)
    if not wanted:
        raise ValueError(f"the run launches no kernels of {module.__name__}")
    want = [x.detach().clone() for x in run()]
    key = key_of(module, want[0].device)
    known = cache.get(key) if cache is not None else None
    tiles = {row: known[row] for row in wanted if known and row in known}
    for row, tile in wanted.items():
        if row not in tiles:
            tiles[row] = _fastest(module, row, tile, run, want, clock)
        module.TILES[row] = tiles[row]
    if cache is not None and known != tiles:
        cache.put(key, {**(known or {}), **tiles})
    return tiles


def asked(module: ModuleType, run: Callable[[], object]) -> dict[Row, Tile]:
    """Returns the tiles that a run asks for, as rows of the device's own architecture."""
    tiles: dict[Row, Tile] = {}
    original = module._tile

    def noted(form: str, direction: str, x: Tensor) -> Tile:
        tile: Tile = original(form, direction, x)
        platform, (version, *_) = module._architectures(x.device)
        tiles[form, direction, x.element_size(), platform, version] = tile
        return tile

    vars(module)["_tile"] = noted
    try:
        run()
    finally:
        vars(module)["_tile"] = original
    return tiles


def _fastest(
    module: ModuleType,
    row: Row,
    tile: Tile,
    run: Callable[[], Sequence[Tensor]],
    want: Sequence[Tensor],
    clock: Callable[[Callable[[], object]], float],
) -> Tile:
    """The fastest of a tile and its neighbours."""
    times: dict[Tile, float] = {}
    for candidate in candidates(tile):
        module.TILES[row] = candidate
        # What a tile may run into, from shared memory to assertions of the compiler, has no type.
        with suppress(Exception):
            if _agree(run(), want):
                times[candidate] = clock(run)
    return min(times, key=times.__getitem__, default=tile)


def _agree(got: Sequence[Tensor], want: Sequence[Tensor]) -> bool:
    pairs = [(x.detach().double(), y.double()) for x, y in zip(got, want, strict=True)]
    return all(float((x - y).abs().max()) <= _OFF * float(y.abs().max()) for x, y in pairs)
