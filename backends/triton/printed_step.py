"""Scans whose single tokens run a printed kernel, and how that is started."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dsfc.kernel_ir.ir import Kernel
from dsfc.kernels.step import has_constants, has_step, step, steps

from ..torch.layout import wrapped
from ..torch.skeletons import Skeleton
from .blocks import PrintedKernel
from .printed_scan import names_of_sizes, variable
from .printer import print_kernel


@dataclass(frozen=True)
class PrintedStep:
    """A scan with kernels of one token and of some; for the rest, the scan as torch runs it.

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
        """Statements behind the runtime, of which the last knows the kernels of tokens."""
        return self.plain.closing_with_step(self.apart)

    @cached_property
    def kernel(self) -> Kernel:
        """The kernel of one token."""
        return step(self.plain.scan, self.plain.shared)

    @cached_property
    def kernel_of_some(self) -> Kernel:
        """The kernel of some tokens that keeps the states after all."""
        return steps(self.plain.scan, self.plain.shared)

    @cached_property
    def printed_step(self) -> PrintedKernel:
        """The text of the kernel of one token."""
        return self._printed(self.kernel)

    @cached_property
    def printed_steps(self) -> PrintedKernel:
        """The text of the kernel of some."""
        return self._printed(self.kernel_of_some)

    @property
    def step_code(self) -> str:
        """Their definitions."""
        return f"{self.printed_step.text}\n\n\n{self.printed_steps.text}"

    def _printed(self, kernel: Kernel) -> PrintedKernel:
        name = f"_{kernel.name}_kernel{self.plain.suffix}"
        return print_kernel(kernel, name, frozenset(), frozenset({"BLOCK"}))

    def define_step_launch(self, kernel: Kernel) -> str:
        """The `def` line of the function that starts a kernel."""
        params = [f"{a}: Tensor" for a in self.plain.leaves]
        params += ["in_place: bool"] if kernel is self.kernel else []
        head = f"def _{kernel.name}_launch{self.plain.suffix}"
        return wrapped(head, params, " -> tuple[Tensor, ...]:", "")

    def start_step(self, kernel: Kernel) -> str:
        """A statement that starts a kernel where it runs."""
        call = f"return _{kernel.name}_launch{self.plain.suffix}"
        return wrapped(call, self._given_to(kernel), "", " " * 8)

    def run_native_step(self, kernel: Kernel) -> str:
        """A statement that starts the kernel of another target, where it has one."""
        call = f"return _{kernel.name}{self.apart}_sequence{self.plain.suffix}"
        return wrapped(call, self._given_to(kernel), "", "    ")

    def _given_to(self, kernel: Kernel) -> list[str]:
        """The arguments of the function that starts a kernel."""
        return [*self.plain.leaves, *(["in_place"] if kernel is self.kernel else [])]

    def run_sequence(self) -> str:
        """A statement that runs the torch form."""
        call = f"return _forward{self.apart}_sequence{self.plain.suffix}"
        return wrapped(call, [*self.plain.leaves, *self.plain.option_names], "", "    ")

    def launch_step(self, kernel: Kernel) -> list[str]:
        """Statements that start a kernel and return what it writes."""
        printed = self.printed_step if kernel is self.kernel else self.printed_steps
        is_fixed = has_constants(self.plain.scan)
        names = ", ".join(self.plain.leaves)
        lines = ["    S_each = S.new_empty((v.shape[1], *S.shape))"]
        if kernel is self.kernel:
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
        tensors = [self._given(variable(a)) for a in kernel.arguments]
        arguments = [*tensors, *printed.dynamic]
        lines.append(wrapped("given = ", arguments, "", "    "))
        used = names_of_sizes(printed)
        start = [printed.name, "programs", "given", "fixed", f"({used})"]
        lines.append(wrapped("_start", start, "", "    "))
        last = "S_last" if kernel is self.kernel else "S_each.flatten(0, 1)"
        return [*lines, f"    return o, {last}"]

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
