"""The elementwise form of a constant λ: the convolution without keys, its recurrence in kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from dsfc.expr.build import ZERO, walk
from dsfc.expr.derivative import pull
from dsfc.expr.tree import Expr, Field, Now, Ref, Time
from dsfc.fused.ir import DECAY_BAR, VALUE_BAR, Prologue, barred
from dsfc.plan.ir import Buffer
from dsfc.plan.scan_ir import Scan

from ..torch.convolution import ConvolutionSkeleton
from ..torch.layout import WIDTH, wrapped
from ..torch.skeletons import Skeleton
from .behind import Behind
from .elementwise import ElementwiseKernels
from .statements import Statements, statements

_OWN = frozenset("carry ran before".split())
"""Words that the operators' functions use besides those of elementwise scans."""


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

    def narrowed(self, o: str, like: str) -> str:
        """Text of the torch form's outputs in a dtype."""
        return super().narrowed(o, like) if self.complex else f"{o}.to({like})"

    @property
    def behind(self) -> Behind:
        """Statements of the torch form behind the plain scan: masked tokens are left out."""
        ended = ("o, S = _at_end(*ran, S, lengths)",)
        return Behind(
            taken="ran",
            finished=ended,
            finished_plainly=ended,
            output=self.narrowed("o", f"{self.like}.dtype"),
            output_of_plain=self.narrowed("o", self.like_of_inputs),
            undone=(*super().behind.undone, "do, dS, before = _from_end(do, dS, lengths)"),
            state="dS + before",
        )

    @property
    def named_mode(self) -> str:
        """The mode, or `auto` of those that it may be."""
        return "mode.split()[0]"

    # --- the torch form of the gates -------------------------------------------------------------

    @property
    def _words(self) -> frozenset[str]:
        return super()._words | _OWN

    @property
    def widened(self) -> list[str]:
        """Arguments that the torch form of the gates computes with: log λ, not λ."""
        read = _read(self.gates.value) | _read(self.gates.log_decay)
        return [x for n, x in self._arguments.items() if n in read]

    @property
    def gates_meaning(self) -> str:
        """Docstring of the gates' torch form."""
        return '"""Read, key, value and log λ: no value of a token that does not count."""'

    @cached_property
    def _rows(self) -> dict[str, str]:
        """Constants that the value reads → what holds them for each row, `[B, 1, C]`."""
        read = _read(self.gates.value)
        return {
            n: self._free(f"{self._arguments[n]}_rows") for n in self.gates.constants if n in read
        }

    def broadcast(self) -> str:
        """Takes log λ of the constants, and gives those of the value an axis of time."""
        log = self._torch_log[0]
        lines = [*log.lines, *(f"    g = {text}" for text in log.results if text != "g")]
        rows = self._rows.items()
        lines += [f"    {row} = {self._spread(self._arguments[n])}.mT" for n, row in rows]
        return "\n".join(lines)

    def _spread(self, name: str) -> str:
        return f"_spread({name}, {self.like})"

    @cached_property
    def _torch_log(self) -> tuple[Statements, Statements]:
        """Log λ, `[G, C, 1]`, in torch, and the gradients by it of the constants."""
        printer = self._torch_printer(super()._torch_refs())
        named, later = self.gates.named, self._by_log.values()

        def variable(name: str) -> str:
            return self._free(f"g_{name}")

        log = statements(
            [("g", self.gates.log_decay)], named, printer, variable, "    ", later, self._reserved
        )
        asked = [(variable(f"d_{self._arguments[n]}"), e) for n, e in self._by_log.items()]
        return log, statements(asked, named, printer, variable, " " * 8, (), self._reserved)

    @cached_property
    def _by_log(self) -> dict[str, Expr]:
        """Constant → its gradient by log λ."""
        found = self._pulled(self.gates.log_decay, DECAY_BAR)
        return {n: found.get(n, ZERO) for n in self.gates.constants}

    def _pulled(self, e: Expr, bar: str) -> dict[str, Expr]:
        """Leaf → its gradient by those of a value's planes."""
        tile = frozenset((*self.scan.heads, *self.scan.channels))
        pairs = [(x, Ref(name, tile, Field.REAL, Time.TOKEN, Now(0))) for x, name in barred(e, bar)]
        return {r.name: g for r, g in pull(pairs).refs.items()}

    def _torch_refs(self) -> dict[str, str]:
        return super()._torch_refs() | self._rows

    @property
    def _torch_wanted(self) -> list[tuple[str, Expr]]:
        return [("v", self.gates.value)]

    @property
    def _torch_gradients(self) -> list[tuple[str, Expr]]:
        found = self._pulled(self.gates.value, VALUE_BAR)
        leaves = (*self.gates.tokens, *self.gates.constants)
        return [(self._arguments[n], found.get(n, ZERO)) for n in leaves]

    @property
    def gated_results(self) -> list[str]:
        """What the gates' torch form returns; a value in full precision, as states are."""
        (v,) = self.torch_gates.results
        return ["torch.ones_like(g)", "torch.ones_like(g)", f"_kept({v}, counts)", "g"]

    @property
    def pulled(self) -> list[str]:
        """What the gates' gradient takes; read and key are 1, so that nothing comes of theirs."""
        return ["_dq", "_dk", "dv", "dg"]

    @property
    def pull_lines(self) -> list[str]:
        """Statements of the gates' gradient."""
        return [*self.taken([], ["dv"]), *self._torch[1].lines, *self._torch_log[1].lines]

    @property
    def pulled_gates(self) -> dict[str, str]:
        """Argument of the gates → text of its gradient in torch."""
        of_value = dict(zip(self.inputs, self._torch[1].results, strict=True))
        of_log = dict(zip(self.constants, self._torch_log[1].results, strict=True))
        out = {}
        for leaf, x in zip(self.gates.tokens, self.timed_names, strict=True):
            out[x] = self._narrowed(leaf, of_value[x])
        for x in self.constants:
            rows = f"_gathered({of_value[x]}.unsqueeze(-1), g)"
            parts = [rows] if of_value[x] != "0" else []
            parts += [self._alone(of_log[x])] if of_log[x] != "0" else []
            out[x] = " + ".join(parts) or f"torch.zeros_like({x})"
        return out

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


def _read(e: Expr) -> set[str]:
    """Names that an expression reads."""
    return {r.name for r in walk(e) if isinstance(r, Ref)}


def kernels(
    s: Skeleton, scan: Scan, gates: Prologue, arrays: dict[str, Buffer]
) -> ConvolutionKernels:
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
