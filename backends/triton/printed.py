"""Scans over keys and channels with printed kernels, and how their operators start these."""

from __future__ import annotations

from collections.abc import Iterator

from dsfc.kernel_ir.ir import Access, Argument, Int, Integer, Kernel, Storage, Symbol
from dsfc.kernels import chunkwise, parallel_chunks
from dsfc.plan.scan_ir import LOW_RANK, Form, Scan

from ..torch.layout import wrapped
from ..torch.skeletons import Skeleton
from .blocks import integer
from .printed_scan import PrintedScan, names_of_sizes, variable
from .tiles import PRINTED_CHUNK

PRINTED_FORMS = frozenset({Form.KEYED, *LOW_RANK})
"""Forms whose kernels are printed; the templates of the others are better so far."""

_STORAGE = {Storage.GIVEN: "v", Storage.WIDE: "S", Storage.KEPT: "kept"}
"""The tensor whose dtype a result has."""


class PrintedChunks(PrintedScan):
    """A scan over keys and channels, whose chunks run side by side."""

    @property
    def tiles(self) -> frozenset[str]:
        """Static sizes that are powers of two."""
        return frozenset({"NT", "PT"})

    @property
    def fixed(self) -> frozenset[str]:
        """Dynamic sizes that are fixed when a kernel is compiled."""
        return frozenset({"H"})

    @property
    def unfit(self) -> str:
        """The expression of why no kernel runs; an empty text where kernels run."""
        return "_unfit_printed(v, S, mode)"

    def launch(self, direction: str) -> list[str]:
        """Statements that start the kernels of a pass and return what they write."""
        names = self.operands(direction)
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
        row = f'"{self.plain.form}", "{direction} {kernel.name}"'
        yield f"    fixed = _printed({row}, v, S, H, N, P)"
        yield from (_room(a) for a in kernel.arguments if a.access is Access.WRITE)
        tensors = [variable(a) for a in kernel.arguments]
        yield from wrapped("given = ", [*tensors, *printed.dynamic], "", "    ").split("\n")
        programs = " * ".join(_count(g.count) for g in kernel.grid)
        start = [printed.name, programs, "given", "fixed", f"({names_of_sizes(printed)})"]
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
    return f"    {variable(a)} = {_STORAGE[a.storage]}.new_empty({shape})"


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


def has_printed(scan: Scan) -> bool:
    """Whether a scan has printed kernels."""
    return scan.form in PRINTED_FORMS and chunkwise.has_chunks(scan)


def printed(s: Skeleton) -> PrintedChunks:
    """Returns a scan with its kernels."""
    chunk = PRINTED_CHUNK[s.scan.form]
    forward = parallel_chunks.forward(s.scan, chunk)
    return PrintedChunks(s, forward, parallel_chunks.backward(s.scan, s.adjoint, chunk))
