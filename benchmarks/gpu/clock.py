"""Times on a GPU; on a processor, where kernels are interpreted, only that there is a number."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import torch

from dsfc.validate.tune import seconds

Work = Callable[[], object]


def eager(work: Work, device: torch.device) -> float:
    """Seconds of a call, the cache of the device emptied before: the median."""
    if device.type != "cuda":
        return _clocked(work)
    return seconds(work)


def graphed(work: Work, device: torch.device) -> float:
    """Seconds of a call in a graph: what the device takes, without the host."""
    if device.type != "cuda":
        return _clocked(work)
    import triton.testing

    with torch.cuda.stream(torch.cuda.Stream()):
        return float(triton.testing.do_bench_cudagraph(work, return_mode="median")) / 1e3


def host(work: Work, device: torch.device, calls: int = 200) -> float:
    """Seconds that a call takes of the host: of many in a row, as long as the queue has room."""
    work()
    synchronize(device)
    calls = calls if device.type == "cuda" else 1
    start = time.perf_counter()
    for _ in range(calls):
        work()
    found = (time.perf_counter() - start) / calls
    synchronize(device)
    return found


def first(work: Work, device: torch.device) -> float:
    """Seconds of one call, to its end: of the first, with all that is compiled for it."""
    synchronize(device)
    start = time.perf_counter()
    work()
    synchronize(device)
    return time.perf_counter() - start


def peak(work: Work, device: torch.device) -> int | None:
    """Bytes that a call needs besides what is there; None where that is not counted."""
    if device.type != "cuda":
        return None
    synchronize(device)
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    kept = work()
    synchronize(device)
    most = torch.cuda.max_memory_allocated(device)
    del kept
    return most - before


def copy_rate(device: torch.device, count: int) -> float:
    """Bytes per second of a kernel that copies numbers in bfloat16 with their signs changed.

    A graph gives a plain copy to the engine for copies, which is slower than kernels are.
    """
    x = torch.randn(count, dtype=torch.bfloat16, device=device)
    y = torch.empty_like(x)
    return 2 * x.numel() * x.element_size() / graphed(lambda: torch.neg(x, out=y), device)


def synchronize(device: torch.device) -> None:
    """Waits for the device."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _clocked(work: Work) -> float:
    times = []
    for _ in range(2):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return median(times)
