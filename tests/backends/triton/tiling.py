"""One tile for all kernels of a module, through its public table."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType

import pytest

Tile = tuple[int, int, int, int]
Row = tuple[str, str, int, str, int]


class Tiles(dict[Row, Tile]):
    """A table of tiles that are all alike.

    Attributes:
        asked: directions that launches asked for, forward or backward, in order.
    """

    def __init__(self, rows: Iterable[Row], tile: Tile) -> None:
        super().__init__(dict.fromkeys(rows, tile))
        self.asked: list[str] = []

    def __getitem__(self, row: Row) -> Tile:
        self.asked.append(row[1].split()[0])
        return super().__getitem__(row)


def tiled(module: ModuleType, tile: Tile, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Gives all kernels of a module a tile; the list learns which directions are launched."""
    tiles = Tiles(module.TILES, tile)
    monkeypatch.setattr(module, "TILES", tiles)
    return tiles.asked
