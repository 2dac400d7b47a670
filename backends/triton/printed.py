"""Scans whose kernels are printed from the kernel IR, and how their operators start them.

The operators of such a scan are those of its torch form; what they call looks at its arguments, and
starts a kernel or runs the torch form.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dsfc.kernel_ir.ir import Access, Argument, Int, Integer, Kernel, Storage, Symbol
from dsfc.kernels import chunkwise, parallel_chunks
from dsfc.plan.scan_ir import LOW_RANK, Form, Scan

from ..torch.layout import wrapped
from ..torch.skeletons import Skeleton
from .blocks import PrintedKernel, integer
from .printer import print_kernel
from .tiles import PRINTED_CHUNK

PRINTED_FORMS = frozenset({Form.KEYED, *LOW_RANK})
"""Forms whose kernels are printed; the templates of the others are better so far."""

_FIXED = frozenset({"H"})
_TILES = frozenset({"NT", "PT"})
_STORAGE = {Storage.GIVEN: "v", Storage.WIDE: "S", Storage.KEPT: "kept"}
"""Of which tensor what a kernel writes has the dtype."""


@dataclass(frozen=True)
class PrintedSkeleton:
    """A scan with printed kernels; for the rest, the scan as torch runs it.

    Attributes:
        plain: the scan as torch runs it.
        forward: kernels of outputs and last state, in the order of their launches.
        backward: kernels of all gradients, likewise.
    """

    plain: Skeleton
    forward: tuple[Kernel, ...]
    backward: tuple[Kernel, ...]

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever templates ask for
        """Returns what the torch form has of that name."""
        return getattr(self.plain, name)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """All of them; one that both directions have is there once."""
        return tuple(self.printed)

    @property
    def choice(self) -> str:
        """Name of the template of what its operators call."""
        return "printed_choice.py.j2"

    @cached_property
    def printed(self) -> dict[Kernel, PrintedKernel]:
        """The text of each kernel; both directions may have one in common."""
        out: dict[Kernel, PrintedKernel] = {}
        for direction, kernels in (("forward", self.forward), ("backward", self.backward)):
            for k in kernels:
                name = f"_{direction}_{k.name}_kernel{self.plain.suffix}"
                out.setdefault(k, print_kernel(k, name, _FIXED, _TILES))
        return out

    @property
    def code(self) -> list[str]:
        """Whatever its kernels print."""
        return [k.text for k in self.printed.values()]

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
        """Statements that start the kernels of a pass and return what they write."""
        names = self._arguments(direction)
        kernels = self.backward if direction == "backward" else self.forward
        kept = any(a.storage is Storage.KEPT for k in kernels for a in k.arguments)
        lines = [
            "    (B, L, H, P), N = v.shape, k.shape[-1]",
            wrapped(f"    {', '.join(names)} = _laid_out", names, "", "    ", True),
            f"    chunks = -(-L // {PRINTED_CHUNK[self.plain.scan.form]})",
            *["    kept = _kept_like(v, S)"] * kept,
        ]
        for k in kernels:
            lines += self._launch_of(k, direction)
        return [*lines, self._returned(kernels)]

    def _launch_of(self, kernel: Kernel, direction: str) -> Iterator[str]:
        """Statements that make room for what one kernel writes, and start it."""
        printed = self.printed[kernel]
        yield f'    fixed = _printed("{self.plain.form}", "{direction} {kernel.name}", v, H, N, P)'
        yield from (_room(a) for a in kernel.arguments if a.access is Access.WRITE)
        tensors = [_variable(a) for a in kernel.arguments]
        yield from wrapped("given = ", [*tensors, *printed.dynamic], "", "    ").split("\n")
        programs = " * ".join(_count(g.count) for g in kernel.grid)
        padded = [f"{n}_ALL" for n in printed.padded]
        used = ", ".join(f'"{n}"' for n in [*printed.static, *padded])
        start = [printed.name, programs, "given", "fixed", f"({used})"]
        yield from wrapped("_start", start, "", "    ").split("\n")

    def _returned(self, kernels: tuple[Kernel, ...]) -> str:
        if kernels is self.forward:
            return "    return o, S_last"
        of_parts = {a.name for k in kernels for a in k.arguments if _has_parts(a)}
        grads = [f"_sum_of_parts({g}, {g[1:]})" if g in of_parts else g for g in self.plain.grads]
        return wrapped("return ", [*grads, "dS_first"], "", "    ")


def _room(a: Argument) -> str:
    """A statement that makes room for what a kernel writes."""
    shape = ", ".join(map(_count, a.shape))
    return f"    {_variable(a)} = {_STORAGE[a.storage]}.new_empty({shape})"


def _count(size: Int) -> str:
    """The text of a size, of parts of an axis, or of chunks."""
    match size:
        case Integer("//", Integer("+", Symbol(whole), _), Symbol(part)):
            return f'-(-{whole} // fixed["{part}"])'
        case Integer("//"):
            return "chunks"
        case _:
            return integer(size).text


def _has_parts(a: Argument) -> bool:
    """Whether a gradient has one result for each part of what it is a sum over."""
    return a.access is Access.WRITE and len(a.shape) > 3 and isinstance(a.shape[3], Integer)


def _variable(a: Argument) -> str:
    """The variable of a tensor: what the operators call otherwise than the kernels."""
    return {"dS_last": "dS", "dS": "dS_first"}.get(a.name, a.name)


def has_printed(scan: Scan) -> bool:
    """Whether a scan has printed kernels."""
    return scan.form in PRINTED_FORMS and chunkwise.has_chunks(scan)


def printed(s: Skeleton) -> PrintedSkeleton:
    """Returns a scan with its kernels."""
    chunk = PRINTED_CHUNK[s.scan.form]
    forward = parallel_chunks.forward(s.scan, chunk)
    return PrintedSkeleton(s, forward, parallel_chunks.backward(s.scan, s.adjoint, chunk))
