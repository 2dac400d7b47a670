"""The elementwise form of a constant λ: the convolution without keys, its recurrence in kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dsfc.plan.gates import Gates
from dsfc.plan.ir import Buffer, Scan
from dsfc.plan.planes import planes
from dsfc.primitives.build import walk
from dsfc.primitives.expr import Expr, Ref

from ..torch.convolution import ConvolutionSkeleton
from ..torch.layout import WIDTH, wrapped
from ..torch.skeletons import Skeleton
from .elementwise import ElementwiseKernels


@dataclass(frozen=True)
class ConvolutionKernels(ElementwiseKernels):
    """A convolution without keys, whose operators take what its gates read.

    Its kernels are those of elementwise scans, its torch form is that of convolutions. Arguments
    are `[B, L, C]` for each token-wise leaf, `[G, C, 1]` for each constant and the state `[B, C,
    1]`, as a convolution's: G divides B, 1 but under vmap. λ is one number a channel, read once.
    """

    @property
    def flags(self) -> list[str]:
        """Arguments behind mode and chunk."""
        return ["carry"]

    @property
    def stops(self) -> bool:
        """Whether, though Λ is fixed, its operators are told how many tokens count."""
        return True

    @property
    def narrows(self) -> bool:
        """Whether the torch form of the gates gives numbers as narrow as it takes."""
        return False

    def narrowed(self, o: str, like: str) -> str:
        """Text of the torch form's outputs in the dtype of an argument."""
        return f"*_planes({o}, {like}.dtype)" if self.complex else f"{o}.to({like}.dtype)"

    @property
    def named_mode(self) -> str:
        """The mode, or `auto` of those that it may be."""
        return "mode.split()[0]"

    # --- the torch form of the gates -------------------------------------------------------------

    def define_gates(self) -> str:
        """The `def` line of the gates' torch form."""
        params = [*(f"{x}: Tensor" for x in self.inputs), "lengths: Tensor | None"]
        result = f"tuple[{', '.join(['Tensor'] * 4)}]"
        return wrapped(f"def _gates{self.suffix}", params, f" -> {result}:", "")

    @property
    def widened(self) -> list[str]:
        """Arguments that the torch form of the gates computes with: log λ, not λ."""
        wanted = (*planes(self.gates.value), *planes(self.gates.log_decay))
        read = {r.name for p in wanted for r in walk(p) if isinstance(r, Ref)}
        return [x for n, x in self._arguments.items() if n in read]

    @property
    def gates_meaning(self) -> str:
        """Docstring of the gates' torch form."""
        return '"""Read, key, value and log λ: no value of a token that does not count."""'

    def broadcast(self) -> str:
        """Takes log λ of the constants, and gives those of the value an axis of time."""
        log = self._printed([("g", self.gates.log_decay)])
        read = {r.name for p in planes(self.gates.value) for r in walk(p) if isinstance(r, Ref)}
        names = [self._arguments[n] for n in self.gates.constants if n in read]
        lines = [*log.lines, *(f"    g = {text}" for text in log.results if text != "g")]
        lines += [f"    {x} = {self._spread(x)}.mT" for x in names]
        return "\n".join(lines)

    def _spread(self, name: str) -> str:
        return f"_spread({name}, {self.like})"

    @property
    def _torch_wanted(self) -> list[tuple[str, Expr]]:
        return [("v", self.gates.value)]

    @property
    def gated_results(self) -> list[str]:
        """What the gates' torch form returns; a value in full precision, as states are."""
        (v,) = self.torch_gates.results
        return ["torch.ones_like(g)", "torch.ones_like(g)", f"_kept({v}, counts)", "g"]

    # --- launches --------------------------------------------------------------------------------

    def given(self) -> str:
        """Statements that lay out what the gates read, constants for each row."""
        spread = [self._spread(x) for x in self.constants]
        items = [*self.timed_names, *spread]
        line = f"    given = [x.contiguous() for x in ({', '.join(items)})]"
        if len(line) <= WIDTH:
            return line
        names = wrapped("    given = ", items, "", "    ", started=True)
        return f"{names}\n    given = [x.contiguous() for x in given]"

    def summed(self, slices: str) -> str:
        """Text of a constant's gradient, of slices of each row and segment."""
        return f"_gathered({slices}, {self.constants[0]})"


def kernels(s: Skeleton, scan: Scan, gates: Gates, arrays: dict[str, Buffer]) -> ConvolutionKernels:
    """Returns what the templates are filled with.

    Args:
        s: the scan as the torch form sees it.
        scan: the scan with the leaves of its gates.
        gates: the gates.
        arrays: buffers by name, those of the gates' leaves too.
    """
    assert isinstance(s, ConvolutionSkeleton)
    plain = replace(s, scan=replace(s.scan, real=False))  # both planes are read
    return ConvolutionKernels(
        scan, s.adjoint, s.suffix, s.family, arrays, gates=gates, plain_scan=plain
    )
