"""What decides how kernels are made: eight questions, each before those that rest on it.

A question is about a form. It is asked of one mixer that has kernels of that form, with tiles of
its choosing put into the module's table; where no mixer has such kernels, it says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from benchmarks.gpu import clock, correct
from benchmarks.gpu.material import Operator, Shape, Subject, forget, operators
from dsfc.plan.scan_ir import Form
from dsfc.validate.tune import Tile, asked

Answers = list[dict[str, Any]]


@dataclass(frozen=True)
class Bench:
    """Where questions are asked.

    Attributes:
        device: the device.
        dtype: of the inputs.
        copy_rate: bytes per second.
        tiny: whether shapes are as small as an interpreter needs them.
    """

    device: torch.device
    dtype: torch.dtype
    copy_rate: float
    tiny: bool

    def shape(self, batch: int, length: int, heads: int, width: int = 128) -> Shape:
        """A shape, or its small picture."""
        if self.tiny:
            return Shape(1, 5 if length < 16_384 else 9, min(heads, 2), 16)
        return Shape(batch, length, heads, width)

    def operator(self, of: Subject, shape: Shape) -> Operator:
        """The first operator of a mixer."""
        return operators(of, shape, self.dtype, self.device)[0]


@dataclass(frozen=True)
class Question:
    """One measurement.

    Attributes:
        text: what is asked.
        form: of scans it is about.
        spec: whose kernels are asked.
        ask: answers it.
    """

    text: str
    form: Form
    spec: str
    ask: Callable[[Bench, Subject], Answers]


@contextmanager
def tiled(of: Subject, work: Callable[[], object], direction: str, tile: Tile) -> Iterator[None]:
    """Puts a tile in the place of those that some work asks for in one direction."""
    table = of.module.TILES
    before = dict(table)
    table.update({row: tile for row in asked(of.module, work) if row[1].startswith(direction)})
    try:
        yield
    finally:
        table.clear()
        table.update(before)


def _of_tiles(
    bench: Bench, of: Subject, shape: Shape, direction: str, tiles: Sequence[Tile]
) -> Answers:
    """Time, host's time and share of the copy rate of each tile."""
    op = bench.operator(of, shape)
    work = op.outputs if direction == "forward" else op.gradients
    moved = op.floor(True) - op.floor(False) if direction == "backward" else op.floor(False)
    out: Answers = []
    for tile in tiles:
        record: dict[str, Any] = {"shape": str(shape), "direction": direction, "tile": list(tile)}
        # What a tile may run into, from shared memory to assertions of the compiler, has no type.
        try:
            with tiled(of, work, direction, tile):
                record["compile and first call"] = clock.first(work, bench.device)
                record["seconds"] = clock.graphed(work, bench.device)
                record["of copy rate"] = moved / record["seconds"] / bench.copy_rate
                record["kernels"] = kernel_times(work, bench.device)
        except Exception as error:
            record["failed"] = f"{type(error).__name__}: {error}"[:300]
        out.append(record)
    return out


def kernel_times(work: clock.Work, device: torch.device) -> dict[str, float]:
    """Seconds of each kernel in one call, by name, as the profiler has them."""
    if device.type != "cuda":
        return {}
    from torch.profiler import ProfilerActivity, profile

    work()
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        work()
        torch.cuda.synchronize(device)
    return {e.key: e.device_time_total / 1e6 for e in seen.key_averages() if e.device_time_total}


def _forward_tiles(bench: Bench, of: Subject) -> Answers:
    tiles: tuple[Tile, ...] = ((64, 64, 4, 2), (64, 64, 4, 3), (64, 64, 8, 2), (64, 32, 4, 2))
    tiles = ((16, 16, 1, 1), (16, 16, 1, 2)) if bench.tiny else tiles
    return _of_tiles(bench, of, bench.shape(8, 2048, 16), "forward", tiles)


def _step_time(bench: Bench, of: Subject) -> Answers:
    out = []
    for length in (2048, 16_384):
        shape = bench.shape(1, length, 1)
        op = bench.operator(of, shape)
        tile = next(t for row, t in asked(of.module, op.outputs).items() if "forward" in row[1])
        found = clock.graphed(op.outputs, bench.device)
        steps = -(-shape.length // tile[0])
        out.append({"shape": str(shape), "seconds": found, "steps": steps, "step": found / steps})
    return out


def _backward_kernels(bench: Bench, of: Subject) -> Answers:
    shape = bench.shape(8, 2048, 16)
    op = bench.operator(of, shape)
    seconds = clock.graphed(op.gradients, bench.device)
    kernels = kernel_times(op.gradients, bench.device)
    return [{"shape": str(shape), "seconds": seconds, "kernels": kernels}]


def _backward_tiles(bench: Bench, of: Subject) -> Answers:
    tiles = ((16, 16, 1, 1),) if bench.tiny else ((64, 64, 4, 2), (32, 64, 4, 2), (64, 64, 8, 2))
    return _of_tiles(bench, of, bench.shape(8, 2048, 16), "backward", tiles)


def _scan_tiles(bench: Bench, of: Subject) -> Answers:
    wide = ((32, 128, 4), (32, 64, 2), (16, 128, 4), (16, 64, 2))
    tiles: list[Tile] = [(*t, stages) for t in wide for stages in (3, 4, 5)]
    tiles = [(16, 16, 1, 2)] if bench.tiny else tiles
    shape = bench.shape(8, 2048, 16)
    return [r for d in ("forward", "backward") for r in _of_tiles(bench, of, shape, d, tiles)]


def _channels(bench: Bench, of: Subject) -> Answers:
    shape, out = bench.shape(8, 2048, 16), []
    for direction in ("forward", "backward"):
        op = bench.operator(of, shape)
        work = op.outputs if direction == "forward" else op.gradients
        own = next((t for row, t in asked(of.module, work).items() if direction in row[1]), None)
        if own is None:  # called by itself, the operator keeps no states to go back from
            out.append({"direction": direction, "skipped": "no kernel ran"})
            continue
        tiles = [own, (own[0], 2 * own[1], *own[2:]), (own[0], own[1], 2 * own[2], own[3])]
        out += _of_tiles(bench, of, shape, direction, tiles[:1] if bench.tiny else tiles)
    return out


def _long_gradients(bench: Bench, of: Subject) -> Answers:
    out = [correct.check(of, bench.shape(1, 65_536, 1), bench.dtype, bench.device, draws=1)]
    # A decay that forgets everything: of one token, and of a few in a row.
    shape = bench.shape(1, 2048, 1)
    op = bench.operator(of, shape)
    places = [k for k, x in enumerate(op.given) if isinstance(x, torch.Tensor) and x.ndim == 3]
    for value in (-1e4, float("-inf")):
        arguments = list(op.given)
        if places:
            decay = arguments[places[-1]].clone()
            decay[:, 2:4] = value
            arguments[places[-1]] = decay
        changed = Operator(op.forward, op.backward, tuple(arguments), op.back)
        y, want = changed.outputs()[0].double(), changed.widened().outputs()[0]
        off = float((y - want).abs().max() / want.abs().max())
        out.append({"shape": str(shape), "log decay": str(value), "error": str(off)})
    return out


def _call_cost(bench: Bench, of: Subject) -> Answers:
    op = bench.operator(of, bench.shape(1, 512, 1))
    out, handles = [], of.module.HANDLES
    for way, allowed in (("handle", handles), ("Triton", ())):
        forget(of.module)
        vars(of.module)["HANDLES"] = allowed
        try:
            for name, work in (("forward", op.outputs), ("both", op.both)):
                out.append({"by": way, "work": name, "host": clock.host(work, bench.device)})
        finally:
            vars(of.module)["HANDLES"] = handles
    return out


QUESTIONS = (
    Question(
        "does a little spill, or one program per processor, cost more (forward tiles)?",
        *(Form.MATRIX, "retnet", _forward_tiles),
    ),
    Question(
        "how long is the step from one chunk to the next, with one head?",
        *(Form.MATRIX, "retnet", _step_time),
    ),
    Question(
        "what does each kernel of the backward pass take?",
        *(Form.MATRIX, "retnet", _backward_kernels),
    ),
    Question(
        "are chunks of 64 or of 32 faster backwards?", *(Form.MATRIX, "retnet", _backward_tiles)
    ),
    Question(
        "what share of the copy rate do tiles and stages of an elementwise scan reach?",
        *(Form.ELEMENTWISE, "qlstm", _scan_tiles),
    ),
    Question(
        "one channel or two to a thread of a selective scan?", *(Form.SELECTIVE, "s6", _channels)
    ),
    Question(
        "do gradients of decays hold over 65,536 tokens, and decays that forget everything?",
        *(Form.MATRIX, "retnet", _long_gradients),
    ),
    Question(
        "what does a call cost the host, by a handle and by Triton?",
        *(Form.ELEMENTWISE, "rg_lru", _call_cost),
    ),
)
"""In the order in which to ask."""
