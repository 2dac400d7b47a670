"""What the forward kernels of flash-linear-attention take of an sm_90, beside ours.

Scans with one decay a head (`simple_gla` there, `retnet` here), 128 keys and channels, bfloat16.
There are two launches there, of which the first writes the state at every chunk to memory; here is
one, and a summary before it where time is split. Theirs are tuned where they run: candidates for
the widest tiles are compiled, as ours are in `resources.py`. It needs fla-core and prints rows:

    TRITON_INTERPRET=0 python -P tests/backends/triton/peers.py [--write]
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from triton.runtime import driver
from triton.runtime.autotuner import Heuristics
from triton.runtime.jit import JITFunction

sys.path.insert(0, str(Path(__file__).parent))

from resources import HEAD, TABLE, TARGETS, WIDTH, Absent, Resources, resources, row, write

CHUNK = 64
TOKENS = 2048
STATES = [(64, w, stages) for w in (4, 8) for stages in (2, 3, 4)]
OUTPUTS = [(128, 8, 3), (64, 4, 3), (32, 2, 3)]
"""Columns and keys of a tile, warps, stages: of the library's lists, those of a Hopper GPU."""


def library(name: str) -> Any:
    """A module of the library, which asks for a GPU as it is imported."""
    cuda = torch.cuda
    kept = cuda.get_device_name, cuda.get_device_capability
    cuda.get_device_name, cuda.get_device_capability = lambda *_: "NVIDIA H100", lambda *_: (9, 0)
    try:
        return importlib.import_module(f"fla.ops.{name}")
    finally:
        cuda.get_device_name, cuda.get_device_capability = kept


def compiled(kernel: Any, given: dict[str, Any], tile: tuple[int, int, int]) -> Resources:
    """Compiles a kernel with one of the tiles that its tuner would try."""
    size, warps, stages = tile
    values = given | {"BK": size, "BV": size}
    while not isinstance(kernel, JITFunction):
        if isinstance(kernel, Heuristics):
            values |= {name: rule(values) for name, rule in kernel.values.items()}
        kernel = kernel.fn
    return resources(kernel.warmup(grid=(1,), num_warps=warps, num_stages=stages, **values))


def rows() -> Iterator[tuple[str, Resources]]:
    """Yields `fla kernel dtype target tile`, and what that takes."""
    driver.set_active(Absent(TARGETS["sm_90"]))
    h = WIDTH // HEAD
    q, k, v, o = (torch.zeros(1, TOKENS, h, HEAD, dtype=torch.bfloat16) for _ in range(4))
    g = torch.zeros(1, TOKENS, h)
    states = q.new_zeros(1, TOKENS // CHUNK, h, HEAD, HEAD)
    first, last = (torch.zeros(1, h, HEAD, HEAD) for _ in range(2))
    sizes = {"T": TOKENS, "H": h, "K": HEAD, "V": HEAD, "BT": CHUNK, "STATE_V_FIRST": False}
    given = {"k": k, "v": v, "h": states, "g": g, "g_gamma": None, "cu_seqlens": None} | sizes
    into = {"gk": None, "gv": None, "h0": first, "ht": last, "split_offsets": None, "BS": CHUNK}
    into |= {"USE_G": True, "USE_G_GAMMA": False, "USE_GK": False, "USE_GV": False}
    out = {"q": q, "o": o, "chunk_indices": None, "scale": HEAD**-0.5, "HV": h}
    for module, name, more, tiles in (
        ("common.chunk_h", "chunk_fwd_kernel_h", into, STATES),
        ("common.chunk_o", "chunk_fwd_kernel_o", out, OUTPUTS),
    ):
        for tile in tiles:
            taken = compiled(getattr(library(module), name), given | more, tile)
            yield f"fla {name} bf16 sm_90 {' '.join(map(str, tile))}", taken


def main() -> None:
    """Prints our rows and theirs, and writes theirs into the table."""
    ours = json.loads(TABLE.read_text(encoding="utf-8"))["kernels"]
    for name, taken in ours.items():
        if name.startswith("retnet _forward") and name.endswith(" bf16 sm_90"):
            print(json.dumps({name: taken}))
    found = {}
    for name, taken in rows():
        found[name] = row(taken)
        print(json.dumps({name: found[name]}), flush=True)
    if "--write" in sys.argv:
        write({"fla-core": version("fla-core"), "peers": found})


if __name__ == "__main__":
    main()
