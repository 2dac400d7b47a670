"""Tuned tiles: what is chosen, and a cache on disk that nothing makes worse than empty."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor

import dsfc
from dsfc.validate.tune import Cache, Row, Tile, candidates, key_of, tune

pytest.importorskip("triton")
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

FORWARD: Row = ("elementwise", "forward", 4, "cuda", 0)
KEY = "0" * 64


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    path = tmp_path_factory.mktemp("tune") / "qlstm_.py"
    # Operators of its own: those of a module that another test imports would not see these tiles.
    text = dsfc.load("qlstm").module("triton").text.replace("dsfc_qlstm_", "dsfc_tuned_qlstm_")
    path.write_text(text, encoding="utf-8")
    return dsfc.import_module(path)


@pytest.fixture
def run(module: ModuleType) -> Callable[[], list[Tensor]]:
    torch.manual_seed(0)
    layer, u = module.Qlstm(d=4), torch.randn(1, 3, 4)
    # What another test has tuned is not what this one starts from.
    for row in [row for row in module.TILES if row[-1] == 0]:
        del module.TILES[row]
    return lambda: [layer(u)]


def clock_of(module: ModuleType, seen: list[Tile]) -> Callable[[Callable[[], object]], float]:
    """A clock by which two warps are slow, and few channels fast."""

    def clock(work: Callable[[], object]) -> float:
        tile = module.TILES[FORWARD]
        seen.append(tile)
        return tile[1] + 100 * (tile[2] == 2)

    return clock


def test_the_fastest_tile_is_taken(module: ModuleType, run: Callable[[], list[Tensor]]) -> None:
    own = module._tile("elementwise", "forward", torch.zeros(1))
    want, seen = run(), []
    found = tune(module, run, clock=clock_of(module, seen))
    # The module's own has two warps; one is faster, and fewer channels with two are not.
    assert seen == list(candidates(own)) and own[2] == 2
    assert found == {FORWARD: (own[0], own[1], 1, own[3])}
    assert module._tile("elementwise", "forward", torch.zeros(1)) == found[FORWARD]
    torch.testing.assert_close(run(), want)


def test_a_run_without_kernels_is_refused(module: ModuleType) -> None:
    with pytest.raises(ValueError, match="launches no kernels"):
        tune(module, lambda: [torch.zeros(1)])


def test_what_fails_or_is_wrong_is_left_out(
    module: ModuleType, run: Callable[[], list[Tensor]]
) -> None:
    own = module._tile("elementwise", "forward", torch.zeros(1))

    def fragile() -> list[Tensor]:
        tile = module._tile("elementwise", "forward", torch.zeros(1))
        if tile[2] > own[2]:
            raise RuntimeError("out of resource")
        return [(1 + (tile[1] < own[1])) * x for x in run()]

    seen: list[Tile] = []
    tune(module, fragile, clock=lambda work: seen.append(module.TILES[FORWARD]) or 1.0)
    assert seen == [t for t in candidates(own) if t[2] <= own[2] and t[1] >= own[1]]


def test_what_was_found_is_not_looked_for_again(
    module: ModuleType, run: Callable[[], list[Tensor]], tmp_path: Path
) -> None:
    cache, seen = Cache(tmp_path / "tiles"), []
    first = tune(module, run, cache, clock_of(module, seen))
    count = len(seen)
    for row in first:
        del module.TILES[row]
    assert tune(module, run, cache, clock_of(module, seen)) == first
    assert len(seen) == count and module.TILES[FORWARD] == first[FORWARD]
    assert [p.name for p in cache.folder.iterdir()] == [
        f"{key_of(module, torch.device('cpu'))}.json"
    ]


def test_the_key_is_of_text_versions_and_device(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    keys = [key_of(module, torch.device("cpu"))]
    with monkeypatch.context() as patch:
        patch.setattr(module.triton, "__version__", "0.1")
        keys.append(key_of(module, torch.device("cpu")))
    with monkeypatch.context() as patch:
        patch.setattr(torch, "__version__", "0.1")
        keys.append(key_of(module, torch.device("cpu")))
    with monkeypatch.context() as patch:
        other = tmp_path / "other.py"
        other.write_text(Path(module.__file__).read_text(encoding="utf-8") + "\n", encoding="utf-8")
        patch.setattr(module, "__file__", str(other))
        keys.append(key_of(module, torch.device("cpu")))
    keys.append(key_of(module, torch.device("meta")))
    assert len(set(keys)) == 5
    assert key_of(module, torch.device("cpu")) == keys[0]


GOOD = {"tiles": [[*FORWARD, [16, 64, 2, 4]]]}


@pytest.mark.parametrize(
    "text",
    [
        "",
        json.dumps(GOOD)[:-5],
        "[]",
        "{}",
        '{"tiles": 3}',
        json.dumps({"tiles": [[*FORWARD, [16, 64, 2]]]}),
        json.dumps({"tiles": [[*FORWARD, [16, 64, 2, "4"]]]}),
        json.dumps({"tiles": [[*FORWARD, [16, 64, 2, -1]]]}),
        json.dumps({"tiles": [[*FORWARD[1:], [16, 64, 2, 4]]]}),
        "\x00\xff",
    ],
)
def test_a_spoiled_file_is_as_none(text: str, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "tiles")
    assert cache.get(KEY) is None
    assert cache.put(KEY, {FORWARD: (16, 64, 2, 4)})
    assert cache.get(KEY) == {FORWARD: (16, 64, 2, 4)}
    (cache.folder / f"{KEY}.json").write_text(text, encoding="latin-1")
    assert cache.get(KEY) is None
    assert cache.put(KEY, {FORWARD: (16, 64, 2, 4)}) and cache.get(KEY) is not None


@pytest.mark.ci
def test_writers_at_once_never_leave_half_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "tiles"
    program = [sys.executable, "-P", Path(__file__).with_name("writer.py"), folder, KEY]
    writers = [
        subprocess.Popen([*program, str(number), "25"], stdout=subprocess.PIPE, text=True)
        for number in range(2)
    ]
    assert [writer.communicate()[0] for writer in writers] == ["0\n"] * 2
    assert [p.name for p in folder.iterdir()] == [f"{KEY}.json"]


def test_a_folder_that_cannot_be_written_is_no_cache(
    module: ModuleType, run: Callable[[], list[Tensor]], tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_text("in the way")
    for folder in (file / "tiles", Path("/proc/self/tiles")):
        cache = Cache(folder)
        assert cache.get(KEY) is None and not cache.put(KEY, {FORWARD: (16, 64, 2, 4)})
        assert FORWARD in tune(module, run, cache, clock_of(module, []))


def test_a_folder_of_others_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(tmp_path / "tiles")
    assert cache.put(KEY, {FORWARD: (16, 64, 2, 4)})
    assert cache.folder.stat().st_mode & 0o777 == 0o700
    cache.folder.chmod(0o777)
    assert cache.get(KEY) is None and not cache.put(KEY, {FORWARD: (16, 64, 2, 4)})
    cache.folder.chmod(0o700)
    assert cache.get(KEY) is not None
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert cache.get(KEY) is None
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert Cache().folder == tmp_path / "dsfc" / "tiles"
