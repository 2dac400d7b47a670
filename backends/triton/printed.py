"""Scans over keys and channels with printed kernels, and how their operators start these."""

from __future__ import annotations

from collections.abc import Iterator

from dsfc.kernel_ir.ir import Access, Argument, Int, Integer, Kernel, Storage, Symbol
from dsfc.kernels import chunkwise, parallel_chunks
from dsfc.plan.scan_ir import LOW_RANK, Form

from ..torch.layout import wrapped
from ..torch.rotating_frame import has_frame, in_frame, run_in_frame
from ..torch.skeletons import Skeleton
from .blocks import integer
from .printed_scan import PrintedScan, names_of_sizes, variable
from .tiles import PRINTED_CHUNK

PRINTED_FORMS = frozenset({Form.KEYED, *LOW_RANK})
"""Forms whose kernels are printed; the templates of the others are better so far."""

_STORAGE = {Storage.GIVEN: "given", Storage.WIDE: "wide", Storage.KEPT: "kept"}
"""Attributes of a plan that hold the dtypes of tensors."""


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

    def before_launch(self, direction: str) -> list[str]:
        """The function that plans a pass: what kernels write, and how they start."""
        kernels = self._kernels(direction)
        params = ["plan: _Plan", *(f"{x}: int" for x in self.operands(direction))]
        name = f"def _{direction}_plan{self.plain.suffix}"
        lines = [
            *wrapped(name, params, " -> tuple[int, ...]:", "").split("\n"),
            f'    """Plans the {direction} pass."""',
            "    B, L, H, N, P = plan.sizes",
            f"    chunks = -(-L // {PRINTED_CHUNK[self.plain.scan.form]})",
        ]
        for k in kernels:
            lines += self._start_of(k, direction)
        return [*lines, f"    return {', '.join(self._results(direction))}", "", ""]

    def launch(self, direction: str) -> list[str]:
        """Statements that start the kernels of a pass and return what they write."""
        kernels, names = self._kernels(direction), ", ".join(self.operands(direction))
        rows = ", ".join(f'"{direction} {k.name}"' for k in kernels)
        items = [f"_{direction}_plan{self.plain.suffix}", f'"{self.plain.form}"', "kernels"]
        items += ["k.shape[-1]", "given", "v", "S"]
        lines = [f"    kernels = {rows}", f"    given = {names}"]
        of_parts = {a.name for k in kernels for a in k.arguments if _has_parts(a)}
        results = self._results(direction)
        if not of_parts & set(results):
            return [*lines, wrapped("return _planned", items, "", "    ")]
        summed = [f"_sum_of_parts({g}, {g[1:]})" if g in of_parts else g for g in results]
        return [
            *lines,
            wrapped(f"{', '.join(results)} = _planned", items, "", "    "),
            wrapped("return ", summed, "", "    "),
        ]

    def _kernels(self, direction: str) -> tuple[Kernel, ...]:
        """The kernels of a pass."""
        return self.backward if direction == "backward" else self.forward

    def _results(self, direction: str) -> list[str]:
        """The variables of what a pass returns."""
        return [*self.plain.grads, "dS_first"] if direction == "backward" else ["o", "S_last"]

    def _start_of(self, kernel: Kernel, direction: str) -> Iterator[str]:
        """Statements that make room for what one kernel writes, and start it."""
        printed, results = self.printed[kernel], self._results(direction)
        yield f'    fixed = plan.fixed("{direction} {kernel.name}")'
        for a in (a for a in kernel.arguments if a.access is Access.WRITE):
            kind = "result" if variable(a) in results else "room"
            shape = ", ".join([f"plan.{_STORAGE[a.storage]}", *map(_count, a.shape)])
            yield f"    {variable(a)} = plan.{kind}({shape})"
        yield from wrapped("tensors = ", [*map(variable, kernel.arguments)], "", "    ").split("\n")
        programs = " * ".join(_count(g.count) for g in kernel.grid)
        lengths = ", ".join(printed.dynamic) + "," * (len(printed.dynamic) == 1)
        used = f"({names_of_sizes(printed)})"
        start = [printed.name, programs, "tensors", f"({lengths})", "fixed", used]
        yield from wrapped("plan.start", start, "", "    ").split("\n")


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


class ChunksInFrame(PrintedChunks):
    """A complex scan: chunks side by side are those of the real scan in its rotating frame."""

    @property
    def unfit(self) -> str:
        """The expression of why no kernel runs; an empty text where kernels run."""
        wide = "_declined(S.device, v.real.dtype, mode, CHUNKED)"
        return f"({wide} or _too_many_keys(2 * S.shape[2]))"

    def before_launch(self, direction: str) -> list[str]:
        """The functions that plan a pass of the real scan and start it."""
        assert self.real is not None
        head = self.real.define_launch(direction).split("\n")
        doc = f'    """Starts the kernels of the {direction} pass of the real scan."""'
        lines = [*head, doc, *self.real.launch(direction)]
        return [*self.real.before_launch(direction), *lines, "", ""]

    def launch(self, direction: str) -> list[str]:
        """Statements that run a pass in the frame and return what it gives."""
        assert self.real is not None
        return run_in_frame(self.plain, direction, f"_{direction}_launch{self.real.plain.suffix}")


def has_printed(s: Skeleton) -> bool:
    """Whether a scan has printed kernels."""
    return s.scan.form in PRINTED_FORMS and (chunkwise.has_chunks(s.scan) or has_frame(s))


def printed(s: Skeleton) -> PrintedChunks:
    """Returns a scan with its kernels."""
    if has_frame(s):
        real = printed(in_frame(s.plain))
        return ChunksInFrame(s, real.forward, real.backward, real)
    chunk = PRINTED_CHUNK[s.scan.form]
    forward = parallel_chunks.forward(s.scan, chunk)
    return PrintedChunks(s, forward, parallel_chunks.backward(s.scan, s.adjoint, chunk))
