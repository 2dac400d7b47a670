"""What a check for finite values costs in chunks: python -m benchmarks.finite_check.

Products of matrices multiply with zero what a token is not to read, and 0 · NaN is NaN: a token
that is not finite spoils earlier outputs of its chunk. To mix such a block of chunks again, token
by token, a module would have to look at each block. Here it looks in the cheapest way: at the sum
of the outputs that the block has just written, which is not finite where any of them is not.
Nothing is mixed again, so what is measured is the cost for inputs that are finite.

Processor time on one thread: that of the checks is taken inside each forward pass, and divided by
that of the rest of the same pass, of the recurrence alone and of the whole layer, so that a slow
moment of the machine falls on both. `share` is the median over the passes, `low` and `high` are its
quartiles. Results are written to `benchmarks/results/finite_check.json`.
"""

from __future__ import annotations

import json
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

import dsfc

FILE = Path(__file__).parent / "results" / "finite_check.json"
SPECS = {"retnet": {}, "ssd": {"n": 64}, "gla": {}}
LENGTHS = (1024, 2048, 4096)
WIDTH, HEADS, BATCH, ROUNDS = 256, 4, 2, 41


class Watched:
    """A module whose chunked forward pass looks at its outputs, both timed.

    Attributes:
        layer: the class of its layers.
        seconds: of processor time in the recurrence, checks included.
        checking: of that, in the checks.
    """

    def __init__(self, module: ModuleType) -> None:
        """Puts itself between the module's forward pass and what that calls."""
        self.seconds = self.checking = 0.0
        self.layer = getattr(module, module.__all__[0])
        self._forward: Callable[..., tuple[Tensor, Tensor]] = module.__dict__["_forward_chunked"]
        self._join: Callable[..., None] = module.__dict__["_join"]
        module.__dict__.update(_forward_chunked=self.forward, _join=self.join)

    def forward(self, *args: object) -> tuple[Tensor, Tensor]:
        """Runs the recurrence."""
        began = time.process_time()
        result = self._forward(*args)
        self.seconds += time.process_time() - began
        return result

    def join(self, x: Tensor, out: Tensor) -> None:
        """Writes the outputs of a block, and looks whether they are finite."""
        self._join(x, out)
        began = time.process_time()
        if not torch.isfinite(out.sum()):
            raise ArithmeticError("an output is not finite")
        self.checking += time.process_time() - began


def measured(watched: Watched, layer: torch.nn.Module, length: int) -> dict[str, Any]:
    """Returns what the check costs at a length, beside the recurrence and beside the layer."""
    u = torch.randn(BATCH, length, WIDTH)

    def once() -> tuple[float, float, float]:
        watched.seconds = watched.checking = 0.0
        began = time.process_time()
        with torch.no_grad():
            layer(u, mode="chunked")
        whole = time.process_time() - began
        return watched.checking, watched.seconds - watched.checking, whole - watched.checking

    once()
    runs = [once() for _ in range(ROUNDS)]
    return {
        name: _share([(run[0], run[k]) for run in runs])
        for k, name in ((1, "recurrence"), (2, "layer"))
    }


def _share(pairs: list[tuple[float, float]]) -> dict[str, float]:
    rest = statistics.median(others for _, others in pairs)
    quartiles = statistics.quantiles((check / others for check, others in pairs), n=4)
    low, share, high = (round(q, 4) for q in quartiles)
    return {"milliseconds": round(1e3 * rest, 2), "share": share, "low": low, "high": high}


def main() -> None:
    """Measures every spec at every length."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rows: dict[str, Any] = {}
    for name, sizes in SPECS.items():
        with tempfile.TemporaryDirectory() as folder:
            watched = Watched(dsfc.import_module(dsfc.compile(name, out=folder)))
        layer = watched.layer(d=WIDTH, h=HEADS, **sizes)
        rows[name] = {str(length): measured(watched, layer, length) for length in LENGTHS}
        print(name, json.dumps(rows[name]), flush=True)
    about = {"python": platform.python_version(), "torch": version("torch"), "rounds": ROUNDS}
    shape: dict[str, Any] = {"batch": BATCH, "d": WIDTH, "h": HEADS, "dtype": "float32"}
    found = {**about, "sizes": shape, "threads": 1, "specs": rows}
    FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
