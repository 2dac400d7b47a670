"""Which scans have kernels in C, and how their operators start them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dsfc.fused.ir import FusedPlan
from dsfc.kernel_ir.ir import Kernel, Storage
from dsfc.kernels import chunks, convolution, tokens
from dsfc.plan.ir import Plan

from ..torch.layout import wrapped
from ..torch.operators import is_shared
from ..torch.operators import skeletons as torch_skeletons
from ..torch.skeletons import Skeleton
from .expressions import knows
from .launch import ChunkLaunch, ConvolutionLaunch, Launch, RowLaunch, TokenLaunch, as_tuple
from .printer import print_kernel


@dataclass(frozen=True)
class NativeSkeleton:
    """A scan whose operators start kernels in C; for the rest, the scan as torch runs it.

    Attributes:
        plain: the scan as torch runs it.
        forward: kernel of outputs and last state.
        backward: kernel of all gradients.
        start: how both are started.
    """

    plain: Skeleton
    forward: Kernel
    backward: Kernel
    start: Launch

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
        return {k.name: print_kernel(k) for k in (self.forward, self.backward)}

    # --- launches ---------------------------------------------------------------------------------

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
            f"    given, wide = {as_tuple(given)}, {as_tuple(wide)}",
            f"    if _runs_native(mode, given, wide){worth}:",
            call,
            "        if outs is not None:",
            "            return outs",
            wrapped(f"return _{direction}{apart}_torch{suffix}", rest, "", "    "),
        ]

    def launch(self, kernel: Kernel) -> list[str]:
        """Statements that start a kernel and return what it writes."""
        return self.start.lines(kernel, kernel is self.backward)


def native(s: Skeleton) -> NativeSkeleton | None:
    """Returns a scan with its kernels; None where it has none."""
    names = f"forward{s.suffix}", f"backward{s.suffix}"
    if chunks.has_chunks(s.scan):
        shared = is_shared(s.scan, s.arrays)
        forward = chunks.forward(s.scan, shared, names[0])
        backward = chunks.backward(s.scan, s.adjoint, shared, names[1])
        return NativeSkeleton(s, forward, backward, ChunkLaunch(s, backward))
    if tokens.has_tokens(s.scan, s.adjoint, knows):
        leaves = dict(zip(s.leaf_buffers, s.decays, strict=True))
        forward = tokens.forward(s.scan, s.arrays, leaves, names[0])
        backward = tokens.backward(s.scan, s.adjoint, s.arrays, leaves, names[1])
        launch = RowLaunch if tokens.layout(s.scan).block is None else TokenLaunch
        return NativeSkeleton(s, forward, backward, launch(s, backward))
    if convolution.has_convolution(s.scan):
        has_complex_values = s.complex and not s.scan.real
        forward = convolution.forward(s.scan, has_complex_values, names[0])
        backward = convolution.backward(s.scan, s.adjoint, has_complex_values, names[1])
        return NativeSkeleton(s, forward, backward, ConvolutionLaunch(s, backward))
    return None


def skeletons(plan: Plan) -> tuple[Any, ...]:
    """Returns what the templates of each scan are filled with, in the order of the plan."""
    return tuple(native(s) or s for s in torch_skeletons(plan))


def scans_with_kernels(plan: Plan) -> tuple[str, ...]:
    """Returns the names of the scans that have kernels, in the order of the plan."""
    return tuple(s.scan.name for s in torch_skeletons(plan) if native(s) is not None)


def kernels(fused: FusedPlan) -> tuple[Kernel, ...]:
    """Returns the kernels of a plan, forward and backward of each scan that has some."""
    scans = [s for s in skeletons(fused.original) if isinstance(s, NativeSkeleton)]
    return tuple(k for s in scans for k in (s.forward, s.backward))
