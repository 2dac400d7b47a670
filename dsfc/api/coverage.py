"""Which calls of a mixer run in the kernels of a target, and why torch runs the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from dsfc.api.pipeline import Compilation
from dsfc.emit.backend import load_backend
from dsfc.fused.coverage import ScanCoverage


class Call(StrEnum):
    """A kind of call of an emitted module.

    FORWARD: a sequence.
    BACKWARD: its gradient.
    STEP: one token, by `step`.
    PACKS: several sequences, or not all tokens: with `cu_seqlens` or `mask`.
    SEGMENTS: one sequence whose time is cut into segments, which programs run side by side.
    """

    FORWARD = "forward"
    BACKWARD = "backward"
    STEP = "step"
    PACKS = "packs"
    SEGMENTS = "segments"


class Runs(StrEnum):
    """The answer to who runs the scans of a mixer in a kind of call: kernels, torch or both.

    KERNELS: kernels run every scan.
    SOME: kernels run some scans, torch the others.
    TORCH: torch runs every scan.
    UNCUT: kernels run the scans, and none cuts time into segments.
    REFUSED: the module takes no such call.
    """

    KERNELS = "kernels"
    SOME = "kernels and torch"
    TORCH = "torch"
    UNCUT = "not cut"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why no kernel runs some scans.

    Attributes:
        scans: their names; empty for a mixer that has none.
        why: the reason, as a clause.
    """

    scans: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class CallCoverage:
    """One kind of call of a mixer, and whether kernels or torch run it.

    Attributes:
        call: the kind.
        runs: what runs it.
        reasons: why kernels do not run all scans; empty where they do, and for a backend that has
            no kernels.
    """

    call: Call
    runs: Runs
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class Coverage:
    """Which calls of a mixer run in kernels on one type of device.

    Attributes:
        mixer: its name.
        backend: whose kernels.
        device: `CPU` or `GPU`; empty for a backend that has no kernels.
        calls: one for each `Call`, in order.
    """

    mixer: str
    backend: str
    device: str
    calls: tuple[CallCoverage, ...]

    def of(self, call: Call) -> CallCoverage:
        """Returns what runs one kind of call.

        Args:
            call: the kind.
        """
        return self.calls[list(Call).index(call)]


TARGETS = {"c": "C", "triton": "Triton"}
"""Backend with kernels of its own → its title."""


def on_targets(compilation: Compilation) -> Mapping[str, Coverage]:
    """Returns which calls of a mixer run in the kernels of each target, by the target's title.

    Args:
        compilation: the mixer.

    Raises:
        DiagnosticError: the mixer does not compile.
    """
    return {
        title: covered for name, title in TARGETS.items() for covered in coverage(compilation, name)
    }


def coverage(compilation: Compilation, backend: str) -> tuple[Coverage, ...]:
    """Returns which calls of a mixer run in the kernels of a backend, for each type of device.

    What kernels decline at run time (a dtype, a number of keys, a mode that is named) is not part
    of it: `explain` of a layer says that.

    Args:
        compilation: the mixer.
        backend: name of the backend.

    Raises:
        DiagnosticError: E-BACKEND, or the mixer does not compile.
    """
    target = load_backend(backend)
    scans = target.coverage(compilation.fused(backend))
    causal = compilation.plan.causal
    return tuple(
        Coverage(
            compilation.name,
            backend,
            device,
            tuple(_covered(c, [s for s in scans if s.device == device], causal) for c in Call),
        )
        for device in target.needs or ("",)
    )


def _covered(call: Call, scans: Sequence[ScanCoverage], causal: bool) -> CallCoverage:
    if call is Call.STEP and not causal:
        return CallCoverage(call, Runs.REFUSED, (Reason((), "an output needs tokens to come"),))
    names: dict[str, list[str]] = {}
    for s in scans:
        names.setdefault(getattr(s, call.value), []).append(s.scan)
    by_kernels = names.pop("", [])
    reasons = tuple(Reason(tuple(filter(None, n)), why) for why, n in names.items())
    if not by_kernels:
        uncut = call is Call.SEGMENTS and not all(s.forward for s in scans)
        return CallCoverage(call, Runs.UNCUT if uncut else Runs.TORCH, reasons)
    return CallCoverage(call, Runs.SOME if reasons else Runs.KERNELS, reasons)


def notes(covered: Iterable[Coverage]) -> tuple[str, ...]:
    """Returns a line for each reason why scans of a mixer have no kernels.

    Args:
        covered: the mixer, on each type of device.
    """
    devices: dict[Reason, list[str]] = {}
    for c in covered:
        for reason in c.of(Call.FORWARD).reasons:
            if reason.scans:
                devices.setdefault(reason, []).append(f"{c.device}s")
    return tuple(
        f"no kernels on {' and '.join(where)} for {' and '.join(f'`{s}`' for s in r.scans)}, "
        f"which torch runs: {r.why}"
        for r, where in devices.items()
    )
