"""Which scans have kernels in C, and how their operators start them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dsfc.fused.ir import FusedPlan
from dsfc.kernel_ir.ir import Access, Argument, Kernel, Storage, Symbol
from dsfc.kernels import chunks, tokens
from dsfc.plan.ir import Plan
from dsfc.plan.scan_ir import Form

from ..torch.layout import wrapped
from ..torch.operators import is_shared
from ..torch.operators import skeletons as torch_skeletons
from ..torch.skeletons import Skeleton
from .expressions import knows, python_integer
from .printer import print_kernel


@dataclass(frozen=True)
class NativeSkeleton:
    """A scan whose operators start kernels in C; for the rest, the scan as torch runs it.

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
        return "native_choice.py.j2"

    @cached_property
    def kernels(self) -> dict[str, str]:
        """Texts of the kernels, by name."""
        return {k.name: print_kernel(k) for k in (self.forward, self.backward)}

    # --- launches ---------------------------------------------------------------------------------

    @property
    def given(self) -> list[str]:
        """Arguments that the caller's dtype decides."""
        kept = {a.name for a in self.backward.arguments if a.storage is Storage.GIVEN}
        return [n for n in self.plain.inputs if n in kept]

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
        call = wrapped(f"outs = _{direction}_native{suffix}", args, "", "        ")
        rest = [*args, *self.plain.option_names]
        return [
            f"    given, wide = {_tuple(given)}, {_tuple(wide)}",
            "    if _runs_native(mode, given, wide):",
            call,
            "        if outs is not None:",
            "            return outs",
            wrapped(f"return _{direction}{apart}_torch{suffix}", rest, "", "    "),
        ]

    def launch(self, kernel: Kernel) -> list[str]:
        """Statements that start a kernel and return what it writes."""
        reads = [a for a in kernel.arguments if a.access is Access.READ]
        kept = ["v", "S", *(n for n in self.plain.decays if kernel is self.backward)]
        writes = [a for a in kernel.arguments if a.access is Access.WRITE]
        lines = [f"    {n}_shape = {n}.shape" for n in kept] if self.rows else []
        lines += self._sizes(kernel, reads)
        lines += [self._empty(a) for a in writes]
        lines.append("    static = " + _tuple([f'("{n}", {n})' for n in kernel.static]))
        read = _tuple([_parameter(a.name) for a in reads])
        lines.append(f"    reads, writes = {read}, {_tuple([_variable(a.name) for a in writes])}")
        sizes = ", ".join(kernel.dynamic)
        call = f'"{kernel.name}", v.dtype, S.dtype, static, reads, writes, ({sizes})'
        lines.append(wrapped("ran = _NATIVE.run", [*call.split(", ", 5), "work"], "", "    "))
        lines += ["    if not ran:", "        return None"]
        results = self._returned(kernel)
        names = [text.split(".", 1)[0] for text in results]
        changed = zip(names, results, strict=True)
        lines += [f"    {name} = {text}" for name, text in changed if name != text]
        lines.append(wrapped("return ", names, "", "    "))
        return lines

    def _sizes(self, kernel: Kernel, reads: list[Argument]) -> list[str]:
        """Statements that read sizes off the tensors, and say how the work is divided."""
        known: dict[str, str] = {}
        for a in reads:
            for k, size in enumerate(a.shape):
                if isinstance(size, Symbol):
                    known.setdefault(size.name, f"{_parameter(a.name)}.shape[{k}]")
        names = [n for n in (*kernel.dynamic, *kernel.static) if n in known]
        lines = [f"    {', '.join(names)} = {', '.join(known[n] for n in names)}"]
        if self.rows:
            args = [_parameter(a.name) for a in reads]
            flat = ", ".join(f"_flat({x}, {1 if x in ('S', 'dS') else 2})" for x in args)
            lines = [f"    {', '.join(args)} = {flat}", *lines]
        lines.append("    work = 4 * L * S.numel()")
        if "PT" in kernel.static:
            lines.append("    PT = _part(P, B * H)")
        if "BLOCK" in kernel.static:
            lines.append(self._block(kernel))
        if "SPAN" in kernel.dynamic:
            chunk = chunks.CHUNK.get(self.plain.scan.form, 1)
            state = "N * P" if chunk > 1 else self._tile()
            count = f"-(-L // {chunk})" if chunk > 1 else "L"
            lines.append(f"    SPANS, SPAN = _kept_spans({count}, {state})")
        return lines

    @property
    def rows(self) -> bool:
        """Whether kernels take all axes of a token as one row."""
        return self.plain.scan.form is Form.ELEMENTWISE

    def _tile(self) -> str:
        """Numbers in the state of a program that goes token by token."""
        return " * ".join(
            ["BLOCK", *(f"SIZE_{a.name}" for a in tokens.layout(self.plain.scan).keys)]
        )

    def _block(self, kernel: Kernel) -> str:
        """A statement that says how many channels a program has."""
        where = tokens.layout(self.plain.scan)
        if where.block is None:
            return "    BLOCK = _part(CHANNELS, B)"
        keys = " * ".join(f"SIZE_{a.name}" for a in where.keys)
        outer = " * ".join(["B", *(f"SIZE_{a.name}" for a in where.outer)])
        return f"    BLOCK = _part(SIZE_{where.block.name}, {outer}, {keys})"

    def _empty(self, a: Argument) -> str:
        like = "S" if a.storage is Storage.WIDE else "v"
        shape = ", ".join(python_integer(n) for n in a.shape)
        return f"    {_variable(a.name)} = {like}.new_empty(({shape}))"

    def _returned(self, kernel: Kernel) -> list[str]:
        s = self.plain
        if kernel is self.forward:
            return [self._shaped("o", "v"), self._shaped("S_last", "S")]
        if s.scan.form in chunks.CHUNK:
            shared = ("dq", "dk") if s.shared else ()
            grads = [f"{g}.sum(2)" if g in shared else g for g in s.grads]
            return [*grads, "dS_first"]
        arguments = {a.name: a for a in kernel.arguments}
        grads = []
        for g, x in zip(s.grads, s.inputs, strict=True):
            lead = 2 if x in s.timed else 1
            own = len(arguments[x].shape) - lead
            apart = len(arguments[g].shape) - lead - own
            dims = ", ".join(str(lead + k) for k in range(apart))
            text = f"{g}.sum(({dims}{',' * (apart == 1)})).to({x}.dtype)" if apart else g
            grads.append(self._shaped(text, x))
        return [*grads, self._shaped("dS_first", "S")]

    def _shaped(self, text: str, like: str) -> str:
        """Gives a result of a kernel the axes of the operator."""
        return f"{text}.view({like}_shape)" if self.rows else text


def _tuple(items: list[str]) -> str:
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def _parameter(name: str) -> str:
    """The parameter of the operator for an argument of the kernel."""
    return {"dS_last": "dS"}.get(name, name)


def _variable(name: str) -> str:
    """The variable of a tensor that a kernel writes."""
    return {"dS": "dS_first"}.get(name, name)


def native(s: Skeleton) -> NativeSkeleton | None:
    """Returns a scan with its kernels; None where it has none."""
    names = f"forward{s.suffix}", f"backward{s.suffix}"
    if chunks.has_chunks(s.scan):
        shared = is_shared(s.scan, s.arrays)
        forward = chunks.forward(s.scan, shared, names[0])
        return NativeSkeleton(s, forward, chunks.backward(s.scan, s.adjoint, shared, names[1]))
    if tokens.has_tokens(s.scan, s.adjoint, knows):
        leaves = dict(zip(s.leaf_buffers, s.decays, strict=True))
        forward = tokens.forward(s.scan, s.arrays, leaves, names[0])
        backward = tokens.backward(s.scan, s.adjoint, s.arrays, leaves, names[1])
        return NativeSkeleton(s, forward, backward)
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
