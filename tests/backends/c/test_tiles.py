"""Rows that kernels store: whole, past the caches or through them, and nothing beside them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import dsfc

Build = Callable[..., ctypes.CDLL]

ROWS = """
int row(void *to, const real *from, int64_t count, int streams) {
  store_row(to, from, count, streams);
  STREAM_FENCE();
  return 0;
}
int large(int64_t entries) { return streams((const void *)16, entries); }
"""


def stored(library: ctypes.CDLL, to: torch.Tensor, start: int, x: torch.Tensor, streams: int):
    """Stores a row at an entry of an array."""
    address = to.data_ptr() + start * to.element_size()
    pointers = ctypes.c_void_p(address), ctypes.c_void_p(x.data_ptr())
    library.row(*pointers, ctypes.c_int64(len(x)), streams)
    return to


@pytest.mark.parametrize("streams", [0, 1])
@pytest.mark.parametrize(
    ("given", "dtype", "is_double"),
    [
        ("REAL_", torch.float32, False),
        ("REAL_", torch.float64, True),
        ("BRAIN_", torch.bfloat16, False),
        ("HALF_", torch.float16, False),
    ],
)
def test_a_row_of_any_length_and_place_is_stored_alone(
    build: Build, given: str, dtype: torch.dtype, is_double: bool, streams: int
) -> None:
    library = build(ROWS, is_double, given)
    wide = torch.float64 if is_double else torch.float32
    for count in (0, 1, 7, 16, 32, 48, 63, 64):
        for start in (0, 1, 8, 16):
            x = torch.randn(count, dtype=wide, generator=torch.Generator().manual_seed(count))
            want = torch.full((96,), -1.0, dtype=dtype)
            want[start : start + count] = x.to(dtype)
            to = torch.full((96,), -1.0, dtype=dtype)
            assert torch.equal(stored(library, to, start, x, streams), want), (count, start)


def test_large_arrays_go_past_the_caches(build: Build) -> None:
    library = build(ROWS, False)
    sizes = 1 << 20, (1 << 21) - 1, 1 << 21
    assert [library.large(ctypes.c_int64(n)) for n in sizes] == [0, 0, 1]


@pytest.mark.ci
def test_a_large_output_is_that_of_torch(tmp_path: Path, build: Build) -> None:
    module = dsfc.import_module(dsfc.compile("rg_lru", out=tmp_path, backend="c"))
    layer, u = module.RgLru(d=256), torch.randn(3, 2800, 256)
    assert u.nbytes > 8 << 20 and "C on cpu" in layer.explain(2800)
    runs = [layer(u, mode=mode).detach() for mode in ("auto", "scan")]
    torch.testing.assert_close(*runs, rtol=2e-5, atol=2e-5)
