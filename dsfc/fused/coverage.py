"""Which calls of each scan run in the kernels of a target, and why the others do not."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ScanCoverage:
    """Which calls of one scan or loop run in the kernels of a target on one type of device.

    Each kind of call has the reason why no kernel runs it, as a clause, or an empty text.

    Attributes:
        scan: its name; empty for a mixer that has none.
        device: where the kernels run, a device of `Backend.needs`.
        forward: of the forward pass.
        backward: of the backward pass.
        step: of one token by itself.
        packs: of a call with `mask` or `cu_seqlens`.
        segments: of the time of one sequence, cut into segments that programs run side by side.
    """

    scan: str
    device: str
    forward: str = ""
    backward: str = ""
    step: str = ""
    packs: str = ""
    segments: str = ""
