"""Scans whose kernels are printed from the kernel IR, and what their operators are printed with.

The operators of such a scan are those of its torch form; what they call looks at its arguments, and
starts kernels or runs the torch form.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dsfc.kernel_ir.ir import Argument, Kernel

from ..torch.layout import wrapped
from ..torch.skeletons import Skeleton
from .blocks import PrintedKernel
from .printer import print_kernel


@dataclass(frozen=True)
class PrintedScan(ABC):
    """A scan with printed kernels; for the rest, the scan as torch runs it.

    Attributes:
        plain: the scan as torch runs it.
        forward: kernels of outputs and last state, in the order of their launches.
        backward: kernels of all gradients, likewise.
        real: the real scan that runs in a rotating frame, of which the kernels are; None where they
            are those of the scan itself.
    """

    plain: Skeleton
    forward: tuple[Kernel, ...]
    backward: tuple[Kernel, ...]
    real: PrintedScan | None = None

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever templates ask for
        """Returns what the torch form has of that name."""
        return getattr(self.plain, name)

    @property
    @abstractmethod
    def tiles(self) -> frozenset[str]:
        """Static sizes that are powers of two."""

    @property
    def fixed(self) -> frozenset[str]:
        """Dynamic sizes that are fixed when a kernel is compiled."""
        return frozenset()

    @property
    @abstractmethod
    def unfit(self) -> str:
        """The expression of why no kernel runs; an empty text where kernels run."""

    @abstractmethod
    def launch(self, direction: str) -> list[str]:
        """Statements that start the kernels of a pass and return what they write."""

    def before_launch(self, direction: str) -> list[str]:
        """Lines of what the launch of a pass calls."""
        return []

    # --- kernels ----------------------------------------------------------------------------------

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """All kernels; one that both directions have is there once."""
        return tuple(self.printed)

    @property
    def choice(self) -> str:
        """Name of the template of what its operators call."""
        return "printed_choice.py.j2"

    @cached_property
    def printed(self) -> dict[Kernel, PrintedKernel]:
        """The text of each kernel; both directions may have one in common."""
        if self.real is not None:
            return self.real.printed
        out: dict[Kernel, PrintedKernel] = {}
        for direction, kernels in (("forward", self.forward), ("backward", self.backward)):
            for k in kernels:
                part = "" if k.name == direction else f"{k.name}_"
                name = f"_{direction}_{part}kernel{self.plain.suffix}"
                out.setdefault(k, print_kernel(k, name, self.fixed, self.tiles))
        return out

    @property
    def code(self) -> list[str]:
        """The texts of its kernels."""
        return [k.text for k in self.printed.values()]

    # --- launches ---------------------------------------------------------------------------------

    def define_launch(self, direction: str) -> str:
        """The `def` line of the function that starts the kernels of a pass."""
        params = [f"{a}: Tensor" for a in self.operands(direction)]
        name = f"_{direction}_launch{self.plain.suffix}"
        return wrapped(f"def {name}", params, " -> tuple[Tensor, ...]:", "")

    def start(self, direction: str) -> str:
        """A statement that starts kernels where they run."""
        call = f"return _{direction}_launch{self.plain.suffix}"
        return wrapped(call, self.operands(direction), "", " " * 8)

    def run_torch(self, direction: str) -> str:
        """A statement that runs the torch form."""
        args = [*self.operands(direction), *self.plain.option_names]
        return wrapped(f"return _{direction}_torch{self.plain.suffix}", args, "", "    ")

    def operands(self, direction: str) -> list[str]:
        """The tensors that the operator of a pass takes."""
        return [*self.plain.leaves, *(["do", "dS"] if direction == "backward" else [])]


def variable(a: Argument) -> str:
    """Returns the variable of a tensor: operators call some tensors otherwise than kernels do."""
    return {"dS_last": "dS", "dS": "dS_first"}.get(a.name, a.name)


def names_of_sizes(kernel: PrintedKernel) -> str:
    """Returns the names of the sizes that are fixed when a kernel is compiled, as items of text."""
    names = *kernel.static, *(f"{n}_ALL" for n in kernel.padded)
    return ", ".join(f'"{n}"' for n in names)
