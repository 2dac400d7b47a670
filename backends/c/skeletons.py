"""Which scans have kernels in C, and how their operators start them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from dsfc.fused.ir import FusedPlan
from dsfc.kernel_ir.ir import Kernel, Storage
from dsfc.kernels import chunkwise, convolution, tokens
from dsfc.kernels.layout import layout
from dsfc.kernels.step import has_step, step, steps

from ..torch.layout import wrapped
from ..torch.operators import skeletons as torch_skeletons
from ..torch.rotating_frame import has_frame, in_frame, run_in_frame
from ..torch.skeletons import Skeleton
from .expressions import knows
from .launch import (
    ChunkLaunch,
    ConvolutionLaunch,
    Launch,
    RowLaunch,
    StepLaunch,
    TokenLaunch,
    as_tuple,
)
from .printer import print_kernel


@dataclass(frozen=True)
class NativeSkeleton:
    """A scan whose operators start kernels in C; for the rest, the scan as torch runs it.

    Attributes:
        plain: the scan as torch runs it.
        forward: kernel of outputs and last state.
        backward: kernel of all gradients.
        start: how both are started.
        steps: kernel of some tokens that keeps the states after all.
        step: kernel of single tokens; None where the forward one goes token by token.
        real: the real scan that runs in a rotating frame, whose kernels `forward` and `backward`
            are; None where they are those of the scan itself.
    """

    plain: Skeleton
    forward: Kernel
    backward: Kernel
    start: Launch
    steps: Kernel
    step: Kernel | None = None
    real: NativeSkeleton | None = None

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever templates ask for
        """Returns what the torch form has of that name."""
        return getattr(self.plain, name)

    @property
    def choice(self) -> str:
        """Name of the template of what its operators call."""
        return "native_choice.py.j2"

    @cached_property
    def kernels(self) -> dict[str, str]:
        """Texts of the kernels, by name."""
        return {k.name: print_kernel(k) for k in self.every}

    @property
    def every(self) -> tuple[Kernel, ...]:
        """The kernels, in the order of their texts."""
        single = () if self.step is None else (self.step,)
        return (self.forward, self.backward, *single, self.steps)

    # --- launches ---------------------------------------------------------------------------------

    @property
    def closing(self) -> str:
        """Statements behind the runtime, of which the last knows the kernel of single tokens."""
        return self.plain.closing_with_step()

    @property
    def has_step(self) -> bool:
        """Whether one token has a kernel: it always does."""
        return True

    @property
    def in_place(self) -> bool:
        """Whether a state may be written where the one before lies: nothing reads that later."""
        return not self.plain.scan.before

    @property
    def given(self) -> list[str]:
        """Arguments that the caller's dtype decides, or all that are values."""
        kept = {a.name for a in self.backward.arguments if a.storage is Storage.GIVEN}
        return [n for n in self.plain.inputs if n in kept or n == "v"]

    @property
    def wide(self) -> list[str]:
        """Arguments that are kept in the dtype of sums."""
        return [n for n in self.plain.inputs if n not in self.given]

    def define_native(self, direction: str) -> str:
        """The `def` line of the function that starts a kernel."""
        args = [*self.plain.leaves, *(["do", "dS"] if direction == "backward" else [])]
        params = [f"{a}: Tensor" for a in args]
        if direction == ("forward" if self.start.steps else "step"):
            params.append("in_place: bool = False")
        result = " -> tuple[Tensor, ...] | None:"
        return wrapped(f"def _{direction}_native{self.plain.suffix}", params, result, "")

    def starts(self, direction: str, apart: str) -> list[str]:
        """Statements that start a kernel if one runs, and the torch form if not.

        Args:
            direction: `forward` or `backward`.
            apart: what the name of the function that they stand in ends with.
        """
        back = direction == "backward"
        given = [*self.given, *(["do"] if back else [])]
        wide = [*self.wide, "S", *(["dS"] if back else [])]
        args = [*self.plain.leaves, *(["do", "dS"] if back else [])]
        suffix = self.plain.suffix
        worth = f" and ({self.start.worth})" if self.start.worth else ""
        call = wrapped(f"outs = _{direction}_native{suffix}", args, "", "        ")
        rest = [*args, *self.plain.option_names]
        return [
            *([] if back else self.plain.one_token_first(apart)),
            f"    given, wide = {as_tuple(given)}, {as_tuple(wide)}",
            f"    if _runs_native(mode, given, wide){worth}:",
            call,
            "        if outs is not None:",
            "            return outs",
            wrapped(f"return _{direction}{apart}_torch{suffix}", rest, "", "    "),
        ]

    def starts_step(self) -> list[str]:
        """Statements that start the kernel of one token, if one runs."""
        name = f"_{'forward' if self.step is None else 'step'}_native{self.plain.suffix}"
        return [
            f"    given, wide = {as_tuple(self.given)}, {as_tuple([*self.wide, 'S'])}",
            '    if not _runs_native("auto", given, wide):',
            "        return None",
            wrapped(f"return {name}", [*self.plain.leaves, "in_place"], "", "    "),
        ]

    def starts_steps(self) -> list[str]:
        """Statements that start the kernel of some tokens, if one runs."""
        return [
            f"    given, wide = {as_tuple(self.given)}, {as_tuple([*self.wide, 'S'])}",
            '    if not _runs_native("auto", given, wide):',
            "        return None",
            wrapped(f"return _steps_native{self.plain.suffix}", self.plain.leaves, "", "    "),
        ]

    def launch(self, kernel: Kernel) -> list[str]:
        """Statements that start a kernel and return what it writes."""
        if self.real is not None and kernel in (self.forward, self.backward):
            direction = "forward" if kernel is self.forward else "backward"
            start = f"_{direction}_native{self.real.suffix}"
            return run_in_frame(self.plain, direction, start)
        if self.step is not None and kernel in (self.step, self.steps):
            return StepLaunch(self.plain, kernel).lines(kernel, False)
        return self.start.lines(kernel, kernel is self.backward)


def _in_chunks(s: Skeleton, forward: str, backward: str, each: str) -> NativeSkeleton:
    back = chunkwise.backward(s.scan, s.adjoint, s.shared, backward)
    front = chunkwise.forward(s.scan, s.shared, forward)
    return NativeSkeleton(s, front, back, ChunkLaunch(s, back), steps(s.scan, s.shared, each))


def _in_frame(s: Skeleton, forward: str, backward: str, each: str) -> NativeSkeleton:
    real = _in_chunks(in_frame(s), forward, backward, each)
    return replace(real, plain=s, steps=steps(s.scan, s.shared, each), real=real)


def _by_tokens(s: Skeleton, forward: str, backward: str, each: str) -> NativeSkeleton:
    leaves = dict(zip(s.leaf_buffers, s.decays, strict=True))
    back = tokens.backward(s.scan, s.adjoint, s.arrays, leaves, backward)
    launch = RowLaunch if layout(s.scan).block is None else TokenLaunch
    front = tokens.forward(s.scan, s.arrays, leaves, forward)
    several = tokens.steps(s.scan, s.arrays, leaves, each)
    return NativeSkeleton(s, front, back, launch(s, back), several)


def _as_convolution(s: Skeleton, forward: str, backward: str, each: str) -> NativeSkeleton:
    has_complex_memory = s.complex and not s.scan.real
    back = convolution.backward(s.scan, s.adjoint, has_complex_memory, backward)
    front = convolution.forward(s.scan, has_complex_memory, forward)
    several = steps(s.scan, s.shared, each)
    return NativeSkeleton(s, front, back, ConvolutionLaunch(s, back), several)


def _family(s: Skeleton) -> Callable[[Skeleton, str, str, str], NativeSkeleton] | None:
    """The builder of a scan's kernels, which takes their three names; None where it has none."""
    if chunkwise.has_chunks(s.scan):
        return _in_chunks
    if has_frame(s):
        return _in_frame
    if tokens.has_tokens(s.scan, s.adjoint, knows):
        return _by_tokens
    return _as_convolution if convolution.has_convolution(s.scan) else None


def native(s: Skeleton) -> NativeSkeleton | None:
    """Returns a scan with its kernels; None where it has none."""
    build = _family(s)
    if build is None:
        return None
    known = build(s, f"forward{s.suffix}", f"backward{s.suffix}", f"steps{s.suffix}")
    return (
        replace(known, step=step(s.scan, s.shared, f"step{s.suffix}"))
        if has_step(s.scan)
        else known
    )


def skeletons(fused: FusedPlan) -> tuple[Any, ...]:
    """Returns what the templates of each scan are filled with, in the order of the plan."""
    return tuple(native(s) or s for s in torch_skeletons(fused.original))


def scans_with_kernels(fused: FusedPlan) -> tuple[str, ...]:
    """Returns the names of the scans that have kernels, in the order of the plan."""
    return tuple(s.scan.name for s in torch_skeletons(fused.original) if _family(s) is not None)


def kernels(fused: FusedPlan) -> tuple[Kernel, ...]:
    """Returns the kernels of a plan, scan by scan: each way, of single tokens and of some."""
    scans = [s for s in skeletons(fused) if isinstance(s, NativeSkeleton)]
    return tuple(k for s in scans for k in s.every)
