"""Counts of kernels as text."""

from __future__ import annotations

import textwrap

from dsfc.expr.build import ZERO
from dsfc.expr.text import text
from dsfc.fused.ir import FusedPlan

from .counts import KernelCost
from .devices import DEVICES, Device
from .scans import plan_costs


def costs_text(fused: FusedPlan) -> str:
    """Returns what the kernels of a plan cost, as text."""
    costs = plan_costs(fused)
    return render(costs) if costs else "no form of its scans has kernels\n"


def render(costs: tuple[KernelCost, ...]) -> str:
    """Returns the counts as text, a section of a plan's, and what chooses between the ways."""
    lines = ["kernels on a GPU (per token and batch entry; over reads that neighbours share)"]
    for cost in costs:
        for p in cost.passes:
            lines.append(f"  {cost.scan}, {cost.way}, {p.name}: {p.launches} launches")
            counts = {
                "bytes": p.bytes,
                "read by neighbours": p.redundant_reads,
                "operations": p.operations,
                "exponentials": p.exponentials,
                "instructions": p.instructions,
                "programs": p.programs,
                "steps of each": p.steps,
            }
            lines += [f"    {name}: {text(e)}" for name, e in counts.items() if e != ZERO]
    if any(cost.way == "split" for cost in costs):
        lines += [
            "  a launch takes the way, and as many segments, as are predicted to take least time:",
            "    launches, and the longest of bytes, operations, exponentials, instructions, steps",
        ]
        for (platform, version), d in DEVICES.items():
            lines.append(f"    {d.name} ({platform} {version}): {_rates(d)}")
            lines += textwrap.wrap(d.source, 94, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return "\n".join(lines) + "\n"


def _rates(d: Device) -> str:
    """The rates of a device, in words."""
    return (
        f"{d.bytes / 1e12:.3g} TB/s, {d.operations / 1e12:.3g} TFLOP/s, "
        f"{d.processors} processors of {d.clock / 1e9:.3g} GHz"
    )
