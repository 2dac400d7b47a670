"""Scans whose kernels are printed from the kernel IR, and how their operators start them.

The operators of such a scan are those of its torch form; what they call looks at its arguments, and
starts a kernel or runs the torch form.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dsfc.kernel_ir.ir import Access, Argument, Kernel, Storage, Symbol, ceil_div
from dsfc.kernels import chunkwise
from dsfc.plan.scan_ir import LOW_RANK, Form, Scan

from ..torch.layout import wrapped
from ..torch.skeletons import Skeleton
from .blocks import integer
from .printer import PrintedKernel, print_kernel
from .tiles import PRINTED_CHUNK

PRINTED_FORMS = frozenset({Form.KEYED, *LOW_RANK})
"""Forms whose kernels are printed; the templates of the others are better so far."""

_FIXED = frozenset({"H"})
_TILES = frozenset({"PT"})
_PARTS = ceil_div(Symbol("P"), Symbol("PT"))


@dataclass(frozen=True)
class PrintedSkeleton:
    """A scan with printed kernels; for the rest, the scan as torch runs it.

    Attributes:
        plain: the scan as torch runs it.
        forward: kernel of outputs and last state.
        backward: kernel of all gradients.
    """

    plain: Skeleton
    forward: Kernel
    backward: Kernel

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever templates ask for
        """Returns what the torch form has of that name."""
        return getattr(self.plain, name)

    @property
    def choice(self) -> str:
        """Name of the template of what its operators call."""
        return "printed_choice.py.j2"

    @cached_property
    def printed(self) -> tuple[PrintedKernel, PrintedKernel]:
        """The texts of both kernels."""
        first, second = (
            print_kernel(k, f"_{direction}_kernel{self.plain.suffix}", _FIXED, _TILES)
            for direction, k in (("forward", self.forward), ("backward", self.backward))
        )
        return first, second

    @property
    def code(self) -> list[str]:
        """Whatever its kernels print."""
        return [k.text for k in self.printed]

    # --- launches ---------------------------------------------------------------------------------

    def define_launch(self, direction: str) -> str:
        """The `def` line of the function that starts a kernel."""
        params = [f"{a}: Tensor" for a in self._arguments(direction)]
        name = f"_{direction}_launch{self.plain.suffix}"
        return wrapped(f"def {name}", params, " -> tuple[Tensor, ...]:", "")

    def start(self, direction: str) -> str:
        """A statement that starts a kernel where one runs."""
        call = f"return _{direction}_launch{self.plain.suffix}"
        return wrapped(call, self._arguments(direction), "", " " * 8)

    def run_torch(self, direction: str) -> str:
        """A statement that runs the torch form."""
        args = [*self._arguments(direction), *self.plain.option_names]
        return wrapped(f"return _{direction}_torch{self.plain.suffix}", args, "", "    ")

    def _arguments(self, direction: str) -> list[str]:
        return [*self.plain.leaves, *(["do", "dS"] if direction == "backward" else [])]

    def launch(self, direction: str) -> list[str]:
        """Statements that start a kernel and return what it writes."""
        back = direction == "backward"
        kernel, printed = (self.forward, self.backward)[back], self.printed[back]
        names = self._arguments(direction)
        lines = [
            "    (B, L, H, P), N = v.shape, k.shape[-1]",
            wrapped(f"    {', '.join(names)} = _laid_out", names, "", "    ", True),
            f'    PT, fixed = _printed("{self.plain.form}", "{direction}", v, H, N, P)',
            "    parts = -(-P // PT)",
            "    programs = B * H * parts",
        ]
        if back:
            lines.append(f"    SPANS, SPAN = _spans(-(-L // {PRINTED_CHUNK}))")
        lines += [self._room(a) for a in kernel.arguments if a.access is not Access.READ]
        tensors = [_variable(a) for a in kernel.arguments]
        padded = [f"{n}_ALL" for n in printed.padded]
        lines += wrapped("given = ", [*tensors, *printed.dynamic], "", "    ").split("\n")
        kept = ", ".join(f'"{n}"' for n in [*printed.static, *padded])
        lines.append(f"    _start({printed.name}, programs, given, fixed, ({kept}))")
        return [*lines, self._returned(kernel)]

    def _room(self, a: Argument) -> str:
        """A statement that makes room for what a kernel writes."""
        shape = ["parts" if n == _PARTS else integer(n).text for n in a.shape]
        if a.access is Access.SCRATCH:
            shape = ["programs", *shape]
        like = "S" if a.storage is Storage.WIDE else "v"
        return f"    {_variable(a)} = {like}.new_empty({', '.join(shape)})"

    def _returned(self, kernel: Kernel) -> str:
        if kernel is self.forward:
            return "    return o, S_last"
        parts = {a.name for a in kernel.arguments if _PARTS in a.shape}
        grads = [f"_sum_of_parts({g}, {g[1:]})" if g in parts else g for g in self.plain.grads]
        return wrapped("return ", [*grads, "dS_first"], "", "    ")


def _variable(a: Argument) -> str:
    """The variable of a tensor: what the operators call otherwise than the kernels."""
    return {"dS_last": "dS", "dS": "dS_first"}.get(a.name, a.name)


def has_printed(scan: Scan) -> bool:
    """Whether a scan has printed kernels."""
    return scan.form in PRINTED_FORMS and chunkwise.has_chunks(scan)


def printed(s: Skeleton) -> PrintedSkeleton:
    """Returns a scan with its kernels."""
    forward = chunkwise.forward(s.scan, False, chunk=PRINTED_CHUNK)
    backward = chunkwise.backward(
        s.scan, s.adjoint, False, chunk=PRINTED_CHUNK, split=True, reload=True
    )
    return PrintedSkeleton(s, forward, backward)
