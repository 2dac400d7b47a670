"""How far kernels in C are from what the machine can do: `python -m benchmarks.floors`.

Three rates are measured with PyTorch: products of square matrices (sgemm), copies of arrays that
no cache holds, and exponentials of an array that a cache holds. A floor is the work that no form of
the recurrence saves, at that rate: the multiplications and additions of the chunked form in the
chunks of the kernel, of pairs of tokens those of the triangle alone; the bytes of arguments,
outputs and gradients, each moved once; or the exponentials of decays that no two entries share.
The times are those of the results beside this module. Floors are written to `results/floors.json`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from statistics import median, quantiles
from typing import Any

import torch

from benchmarks import record, tables
from benchmarks.contender import OURS, Work
from benchmarks.table import ROWS, Row
from dsfc.kernels.chunkwise import CHUNK
from dsfc.plan.scan_ir import LOW_RANK, Form

THREADS, ROUNDS = 2, 31
ORDER, NUMBERS, CACHED = 1024, 1 << 25, 1 << 17
"""Rows of the matrices that are multiplied; numbers that are copied, and whose exponentials are."""


def products(row: Row, form: Form) -> float:
    """Floating-point operations of a forward pass, of tokens in chunks.

    Args:
        row: a scan over keys and channels.
        form: its form; a delta rule also solves a triangular system and reads along its keys.
    """
    sizes, chunk = row.sizes, CHUNK[form]
    states, pairs = sizes["K"] * sizes["V"], chunk / 2 * (sizes["K"] + sizes["V"])
    a_token = 2 * states + pairs
    if form in LOW_RANK:
        a_token += states + pairs
    return 2 * a_token * sizes["B"] * sizes["L"] * sizes["H"]


def moved(row: Row, work: Work) -> float:
    """Bytes of an elementwise scan: decay, value, output; backwards also states and gradients."""
    arrays = {Work.FORWARD: 3, Work.TRAINING: 3 + 5}[work]
    return 4.0 * arrays * row.sizes["B"] * row.sizes["L"] * row.sizes["d"]


def exponentials(row: Row) -> float:
    """Exponentials of a selective scan, whose states all have decays of their own."""
    return float(row.sizes["B"] * row.sizes["L"] * row.sizes["d"] * row.sizes["N"])


PRODUCTS = {
    "scalar_c": Form.MATRIX,
    "per_key_c": Form.KEYED,
    "delta_c": Form.DELTA,
    "keyed_delta_c": Form.KEYED_DELTA,
}
MOVED, EXPONENTIALS = ("elementwise_c",), ("selective_c",)


def rates() -> dict[str, dict[str, float]]:
    """Measures operations, bytes and exponentials a second: median and quartiles of many runs."""
    a, b = torch.randn(2, ORDER, ORDER)
    x, y = torch.randn(2, NUMBERS)
    out = torch.empty_like(a)
    z = -torch.rand(CACHED)
    z_out = torch.empty_like(z)
    return {
        "sgemm": _rate(2.0 * ORDER**3, lambda: torch.mm(a, b, out=out)),
        "copy": _rate(8.0 * NUMBERS, lambda: y.copy_(x)),
        "exp": _rate(float(CACHED), lambda: torch.exp(z, out=z_out)),
    }


def _rate(amount: float, run: Callable[[], object]) -> dict[str, float]:
    run()
    measured = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        run()
        measured.append(amount / (time.perf_counter() - start))
    low, _, high = quantiles(measured, n=4)
    return {"median": median(measured), "low": low, "high": high}


def floors(
    seconds: dict[str, dict[str, list[float]]], at: dict[str, float]
) -> list[dict[str, Any]]:
    """Returns each floor, and the time beside it.

    Args:
        seconds: row → work → times of ours.
        at: rate → amount a second.
    """
    rows = {row.name: row for row in ROWS}
    least = [
        (name, Work.FORWARD, "sgemm", products(rows[name], form)) for name, form in PRODUCTS.items()
    ]
    least += [(name, work, "copy", moved(rows[name], work)) for name in MOVED for work in Work]
    least += [(name, Work.FORWARD, "exp", exponentials(rows[name])) for name in EXPONENTIALS]
    return [
        {
            "row": name,
            "work": work.value,
            "rate": rate,
            "floor": amount / at[rate],
            "seconds": median(seconds[name][work.value]),
            "times": median(seconds[name][work.value]) * at[rate] / amount,
        }
        for name, work, rate, amount in least
        if name in seconds
    ]


def main() -> None:
    """Measures the rates, writes the floors and prints them."""
    torch.set_num_threads(THREADS)
    document = record.read(tables.RESULTS)
    assert document is not None
    measured = rates()
    rows = [row for row in document["rows"] if "skipped" not in row]
    seconds = {row["name"]: row["seconds"][OURS] for row in rows}
    lines = floors(seconds, {name: rate["median"] for name, rate in measured.items()})
    report = {
        "machine": record.machine(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "torch": version("torch"),
        "threads": THREADS,
        "rates": measured,
        "floors": lines,
    }
    tables.FLOORS.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    for line in lines:
        times = f"{1e3 * line['seconds']:.1f} ms, floor {1e3 * line['floor']:.1f} ms"
        print(f"{line['row']}, {line['work']}: {times}, {line['times']:.2f} times")


if __name__ == "__main__":
    main()
