"""What GPUs do in a second, and the time that counts take on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from dsfc.expr.evaluate import NamedArray, evaluate
from dsfc.expr.tree import Axis, Expr

from .counts import KernelCost, Pass


@dataclass(frozen=True, slots=True)
class Device:
    """What a GPU does.

    Attributes:
        name: of the GPU.
        bytes: copied in a second.
        operations: in products of matrices of two-byte numbers, in a second.
        processors: that run programs side by side, two each.
        clock: of a processor, in a second.
        special: exponentials of a processor in a clock.
        lanes: of its threads' instructions in a clock.
        launch: seconds of a launch.
        step: seconds of a chunk of the matrix form, from one state to the next.
        token: seconds of a token of the other forms.
        source: where each figure is from.
    """

    name: str
    bytes: float
    operations: float
    processors: int
    clock: float
    special: int
    lanes: int
    launch: float
    step: float
    token: float
    source: str

    @property
    def exponentials(self) -> float:
        """Of all its units in a second."""
        return self.processors * self.special * self.clock

    @property
    def instructions(self) -> float:
        """Of all its threads in a second."""
        return self.processors * self.lanes * self.clock

    @property
    def programs(self) -> int:
        """That run at once."""
        return 2 * self.processors


_GUIDE = "special units: CUDA programming guide, arithmetic throughput"
_ASSUMED = "launch, step and token are assumed, none is measured"
H200 = Device(
    "H200", 4.3e12, 790e12, 132, 1.98e9, 16, 128, 3e-6, 1.2e-6, 2.5e-8,
    f"copying and products: measured on one such card; processors and clock: its sheet; {_GUIDE}; "
    f"{_ASSUMED}",
)  # fmt: skip
"""What kernels are designed for."""

DEVICES: dict[tuple[str, int], Device] = {
    ("cuda", 80): Device(
        "A100", 0.9 * 2.04e12, 0.8 * 312e12, 108, 1.41e9, 16, 128, 3e-6, 1.6e-6, 3.5e-8,
        "memory, products, processors and clock: its sheet (80 GB, SXM), of which shares of 0.9 "
        f"and 0.8 are assumed, as measured on an H200; {_GUIDE}; {_ASSUMED}",
    ),
    ("cuda", 90): H200,
    ("cuda", 100): Device(
        "B200", 0.9 * 8e12, 0.8 * 2250e12, 148, 1.96e9, 16, 128, 3e-6, 1.2e-6, 2.5e-8,
        "memory and products: its sheet, shares as of the A100; processors and clock are assumed; "
        f"{_GUIDE}; {_ASSUMED}",
    ),
    ("hip", 94): Device(
        "MI300X", 0.8 * 5.3e12, 0.5 * 1307e12, 304, 2.1e9, 16, 64, 5e-6, 1.5e-6, 3e-8,
        "memory, products, processors and clock: its sheet, of which shares of 0.8 and 0.5 are "
        f"assumed; special units: a quarter of the lanes, assumed; {_ASSUMED}",
    ),
}  # fmt: skip
"""By platform and capability (94 is gfx942), from which on."""


class _At:
    """Numbers of axes and parameters, for the evaluator."""

    def __init__(self, sizes: Mapping[str, float]) -> None:
        self._sizes = sizes

    def size(self, axis: Axis) -> int:
        return int(self._sizes[axis.copy_of or axis.name])

    def param(self, name: str) -> NamedArray:
        return NamedArray((), np.asarray(float(self._sizes[name])))


def value(expr: Expr, sizes: Mapping[str, float]) -> float:
    """Returns a count at sizes of axes, `batch`, `length`, `width`, `chunk`, `tile`, `segment`."""
    return float(evaluate(expr, _At(sizes)).data)  # type: ignore[arg-type]  # no other leaves


def seconds(p: Pass, device: Device, sizes: Mapping[str, float], shared: bool = True) -> float:
    """Returns how long a pass takes at least, and its launches.

    Args:
        p: the pass.
        device: where.
        sizes: as of `value`.
        shared: whether the second-level cache has what programs side by side read.
    """
    tokens = sizes["batch"] * sizes["length"]
    moved = value(p.bytes, sizes) + (0.0 if shared else value(p.redundant_reads, sizes))
    programs = max(value(p.programs, sizes), 1.0)
    each = device.step if value(p.operations, sizes) else device.token
    waves = -(-programs // device.programs)
    return p.launches * device.launch + max(
        tokens * moved / device.bytes,
        tokens * value(p.operations, sizes) / device.operations,
        tokens * value(p.exponentials, sizes) / device.exponentials,
        tokens * value(p.instructions, sizes) / device.instructions,
        value(p.steps, sizes) * waves * each * p.launches,
    )


def fastest(
    costs: tuple[KernelCost, ...],
    device: Device,
    sizes: Mapping[str, float],
    passes: Callable[[KernelCost], tuple[Pass, ...]] = lambda cost: cost.passes,
) -> KernelCost:
    """Returns the way of least predicted time.

    Args:
        costs: the ways, of `kernel_costs`.
        device: where.
        sizes: as of `value`.
        passes: which are made: both, if not given.
    """
    return min(costs, key=lambda cost: sum(seconds(p, device, sizes) for p in passes(cost)))
