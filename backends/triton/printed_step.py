"""Scans whose single tokens run a printed kernel, and how that is started."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dsfc.kernel_ir.ir import Kernel
from dsfc.kernels.step import has_constants, has_step, step

from ..torch.layout import wrapped
from ..torch.skeletons import Skeleton
from .blocks import PrintedKernel
from .printed_scan import names_of_sizes, variable
from .printer import print_kernel


@dataclass(frozen=True)
class PrintedStep:
    """A scan with a kernel of one token; for the rest, the scan as torch runs it.

    Attributes:
        plain: the scan as torch runs it.
        apart: what the names of its operators end with, which run where no other kernel does.
    """

    plain: Skeleton
    apart: str

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever templates ask for
        """Returns what the torch form has of that name."""
        return getattr(self.plain, name)

    @property
    def choice(self) -> str:
        """Name of the template of what its operators call."""
        return "printed_step.py.j2"

    @property
    def in_place(self) -> bool:
        """Whether a state may be written where the one before lies: nothing reads that later."""
        return not self.plain.scan.before

    @property
    def closing(self) -> str:
        """Statements behind the runtime, of which the last knows the kernel of single tokens."""
        return self.plain.closing_with_step(self.apart)

    @cached_property
    def kernel(self) -> Kernel:
        """The kernel of one token."""
        return step(self.plain.scan, self.plain.shared)

    @cached_property
    def printed_step(self) -> PrintedKernel:
        """Its text."""
        name = f"_step_kernel{self.plain.suffix}"
        return print_kernel(self.kernel, name, frozenset(), frozenset({"BLOCK"}))

    @property
    def step_code(self) -> str:
        """Its definition."""
        return self.printed_step.text

    def define_step_launch(self) -> str:
        """The `def` line of the function that starts the kernel."""
        params = [*(f"{a}: Tensor" for a in self.plain.leaves), "in_place: bool"]
        head = f"def _step_launch{self.plain.suffix}"
        return wrapped(head, params, " -> tuple[Tensor, ...]:", "")

    def start_step(self) -> str:
        """A statement that starts the kernel where it runs."""
        call = f"return _step_launch{self.plain.suffix}"
        return wrapped(call, [*self.plain.leaves, "in_place"], "", " " * 8)

    def run_native_step(self) -> str:
        """A statement that starts the kernel of another target, where it has one."""
        call = f"return _step{self.apart}_sequence{self.plain.suffix}"
        return wrapped(call, [*self.plain.leaves, "in_place"], "", "    ")

    def run_sequence(self) -> str:
        """A statement that runs the torch form."""
        call = f"return _forward{self.apart}_sequence{self.plain.suffix}"
        return wrapped(call, [*self.plain.leaves, *self.plain.option_names], "", "    ")

    def launch_step(self) -> list[str]:
        """Statements that start the kernel and return what it writes."""
        is_fixed = has_constants(self.plain.scan)
        names = ", ".join(self.plain.leaves)
        room = "torch.empty_like(S, memory_format=_DENSE)"
        lines = [f"    S_last = S if in_place and S.is_contiguous() else {room}"]
        if is_fixed:
            lines.append("    q, k, g = (_pairs_of_rows(x, v) for x in (q, k, g))")
        lines.append(wrapped(f"    {names} = _laid_out", self.plain.leaves, "", "    ", True))
        lines.append("    o = torch.empty_like(v)")
        block, sizes = ("SIZE_h", ["SIZE_h"]) if is_fixed else ("SIZE_p", ["SIZE_h", "SIZE_p"])
        lines.append(f"    (B, L, {', '.join(sizes)}), SIZE_n = v.shape, S.shape[2]")
        items = ", ".join(f'"{n}": {n}' for n in sizes)
        lines.append(f"    fixed = _step_tile(SIZE_n, {block}, S) | {{{items}}}")
        heads = "" if is_fixed else " * SIZE_h"
        lines.append(f'    programs = B{heads} * -(-{block} // fixed["BLOCK"])')
        tensors = [self._given(variable(a)) for a in self.kernel.arguments]
        arguments = [*tensors, *self.printed_step.dynamic]
        lines.append(wrapped("given = ", arguments, "", "    "))
        used = names_of_sizes(self.printed_step)
        start = [self.printed_step.name, "programs", "given", "fixed", f"({used})"]
        lines.append(wrapped("_start", start, "", "    "))
        return [*lines, "    return o, S_last"]

    def _given(self, name: str) -> str:
        """The argument of the kernel for a tensor: complex numbers are pairs of real ones."""
        is_constant = has_constants(self.plain.scan) and name in ("q", "k", "g")
        is_real = self.plain.scan.real and name in ("v", "o")
        paired = self.plain.complex and not is_real and not is_constant
        return f"_as_pairs({name})" if paired else name


def with_step(s: Skeleton, apart: str) -> Any:  # noqa: ANN401 - a Skeleton, or what stands for one
    """Returns a scan with its kernel of one token, where it has one.

    Args:
        s: the scan, as torch runs it.
        apart: what the names of its operators end with.
    """
    return PrintedStep(s, apart) if has_step(s.scan) else s
