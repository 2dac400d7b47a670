"""The elementwise form: gates and recurrence of a channel in one kernel, forwards and backwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from dsfc.expr.build import ONE, walk
from dsfc.expr.tree import Expr, Param, Ref, Time
from dsfc.fused.ir import DECAY_BAR, SUFFIXES, VALUE_BAR, Prologue, real_imag
from dsfc.plan.ir import Buffer
from dsfc.plan.scan_ir import LogDecay, Scan

from ..torch.code import Code
from ..torch.layout import WIDTH, Call, wrapped
from ..torch.skeletons import ElementwiseSkeleton, Skeleton
from .cost import counts
from .cost.scans import kernel_costs
from .gated import RESERVED, GatedKernels, arguments
from .nodes import KernelPrinter
from .statements import NamingPrinter, Statements, statements

_OWN = frozenset("S lengths o do dS mode chunk v g pull dtype counts leaves grads out last".split())
_OWN |= frozenset("B L D grid tokens options parts given more k x self ctx".split())
_OWN |= frozenset(f"{n}{suffix}" for n in ("o", "do", "out", "h") for suffix in ("", *SUFFIXES))
_OWN |= frozenset("math triton torch F tl gated dv dg".split())
"""Words that the operators' functions use themselves, and kernels behind `b_`, `r_` or `p_`."""


@dataclass(frozen=True)
class ElementwiseKernels(GatedKernels, ElementwiseSkeleton):
    """An elementwise scan whose operators take what its gates read.

    Arguments are one `[B, L, *axes]` for each token-wise leaf, one `[B, *axes]` for each constant,
    then the state. There is an output for each plane of the state, two where that is complex. A
    constant is expanded over the batch: its gradient comes out as one slice for each row of the
    batch, and torch adds them up in a fixed order.

    Attributes:
        gates: what the kernels compute.
    """

    gates: Prologue = field(kw_only=True)

    # --- what op templates ask for ---------------------------------------------------------------

    @property
    def kernels(self) -> str:
        """Name of the template of its kernels."""
        return "elementwise_kernels.py.j2"

    @property
    def planes(self) -> tuple[str, ...]:
        """What the names of a state's planes end with: of a real state one name, which is whole."""
        return SUFFIXES if self.complex else ("",)

    @property
    def direction(self) -> str:
        """What the table of tiles says behind the direction."""
        return " of pairs" if self.complex else ""

    @property
    def kept(self) -> list[str]:
        """What of the forward operator's outputs its gradient takes."""
        return self.in_planes("o")

    @property
    def named_mode(self) -> str:
        """The mode that a kernel may be declined for."""
        return "mode"

    @property
    def declined(self) -> str:
        """Why no kernel runs, in an operator."""
        return f"_declined(S.device, {self.like}.dtype, {self.named_mode})"

    @property
    def widened(self) -> list[str]:
        """Arguments that the torch form of the gates computes with."""
        return self.inputs

    @property
    def costs(self) -> tuple[counts.KernelCost, ...]:
        """What the kernels cost."""
        sizes = ONE, ONE, Param("D", frozenset())
        return kernel_costs(self.scan, self.gates, sizes=sizes)

    @property
    def sizes_of_work(self) -> dict[Expr, str]:
        """Parameters of the costs: bytes of a number, channels."""
        return {counts.WIDTH: "W", Param("D", frozenset()): "D"}

    def cuts(self, width: str) -> dict[str, Call]:
        """Calls that tell into which segments a launch cuts time, of a number of channels."""
        x = "x.expand(batch, length, 0)"
        return {
            f"{d}s": Call("_grid", (f'"{self.form}"', f'"{d}{self.direction}"', x, width,
                                    self.work_name(d)))
            for d in ("forward", "backward")
        }  # fmt: skip

    @property
    def gates_meaning(self) -> str:
        """Docstring of the gates' torch form."""
        what = "Value and log λ of every token, of what the gates read"
        return f'"""{what}: 0 at tokens that do not count."""'

    @property
    def gated_results(self) -> list[str]:
        """What the gates' torch form returns."""
        v, g = self.torch_gates.results
        narrow = "" if self.complex else ".to(dtype)"  # there are no narrow complex numbers
        return [f"_kept({v}, counts){narrow}", f"_kept({g}, counts)"]

    @cached_property
    def _arguments(self) -> dict[str, str]:
        """Leaf → argument."""
        return arguments((*self.gates.tokens, *self.gates.constants), self._words)

    @property
    def _words(self) -> frozenset[str]:
        """What no argument is called, besides words of Python."""
        return _OWN

    @property
    def timed_names(self) -> list[str]:
        """Arguments `[B, L, *axes]`."""
        return [self._arguments[n] for n in self.gates.tokens]

    @property
    def constants(self) -> list[str]:
        """Arguments `[B, *axes]` besides the state."""
        return [self._arguments[n] for n in self.gates.constants]

    @property
    def inputs(self) -> list[str]:
        """All arguments but the state."""
        return [*self.timed_names, *self.constants]

    @property
    def wide(self) -> frozenset[str]:
        """Leaves that are computed as precisely as a decay."""
        assert isinstance(self.scan.decay, LogDecay)
        return frozenset(self.scan.decay.leaves)

    @property
    def like(self) -> str:
        """The argument that outputs are like."""
        narrow = [n for n in self.gates.tokens if n not in self.wide]
        return self._arguments[(narrow or list(self.gates.tokens))[0]]

    @property
    def flops_shape(self) -> str:
        """Reads the sizes off the shapes."""
        return f"size = math.prod({self.like})"

    def register_forward(self) -> str:
        """Registers the forward operator."""
        at = [self.leaves.index(self.like)] * len(self.planes)
        outputs = ", ".join(map(str, [*at, len(self.leaves) - 1]))
        return self._register("forward", f"({outputs})")

    def launched(self, backward: bool) -> str:
        """What a launch gives."""
        return "tuple[Tensor, ...]" if backward else super().launched(backward)

    # --- the torch form of the gates -------------------------------------------------------------

    def broadcast(self) -> str:
        """Gives the constants an axis of time."""
        if not self.constants:
            return ""
        names = ", ".join(self.constants)
        if len(self.constants) == 1:
            return f"    {names} = {names}.unsqueeze(1)"
        return f"    {names} = (x.unsqueeze(1) for x in ({names}))"

    @cached_property
    def _torch(self) -> tuple[Statements, Statements]:
        """Value and log λ, in torch, and the gradients of what they are computed of."""
        printer, wanted = self._torch_printer(self._torch_refs()), self._torch_wanted
        named, later = self.gates.named, [e for _, e in self._torch_gradients]
        own = self._reserved
        found = statements(wanted, named, printer, self._free, "    ", later, own)
        results = [
            f"{text}.expand_as({self.like})" if e.time is Time.CONST else text
            for text, (_, e) in zip(found.results, wanted, strict=True)
        ]
        asked = [(self._free(f"d_{x}"), e) for x, e in self._torch_gradients]
        back = statements(asked, named, printer, self._free, " " * 8, (), own)
        return Statements(found.lines, tuple(results)), back

    @property
    def _torch_gradients(self) -> list[tuple[str, Expr]]:
        """Arguments of the gates, and the gradients that are printed for them in torch."""
        leaves = (*self.gates.tokens, *self.gates.constants)
        names = [self._arguments[n] for n in leaves]
        return list(zip(names, self.gates.gradients, strict=True))

    def _free(self, name: str) -> str:
        """A variable of the gates' torch form."""
        while name in self._reserved:
            name += "_"
        return name

    @property
    def _reserved(self) -> frozenset[str]:
        """What no variable of the gates' torch form is called."""
        return frozenset((*self._arguments.values(), *self._words, *RESERVED))

    def _torch_printer(self, names: Mapping[str, str]) -> NamingPrinter:
        axes = tuple(sorted((*self.scan.heads, *self.scan.channels)))
        return NamingPrinter(lambda r: Code(names[r.name], axes, True), {}, self.like)

    def _torch_refs(self) -> dict[str, str]:
        """What holds a leaf, or a gradient that the leaves' read, in the gates' torch form."""
        bars = self._bars
        return {n: bars.get(n) or x for n, x in (self._arguments | bars).items()}

    @property
    def torch_gates(self) -> Statements:
        """Value and log λ, in torch."""
        return self._torch[0]

    @property
    def _bars(self) -> dict[str, str]:
        """What holds the gradients that those of the leaves read, in torch."""
        if not self.complex:
            return {VALUE_BAR: "dv", DECAY_BAR: "dg"}
        parts = list(zip(SUFFIXES, ("real", "imag"), strict=True))
        bars = ((VALUE_BAR, "dv"), (DECAY_BAR, "dg"))
        return {f"{bar}{suffix}": f"{x}.{part}" for bar, x in bars for suffix, part in parts}

    @property
    def pulled(self) -> list[str]:
        """What the gates' gradient takes."""
        return ["dv", "dg"]

    @property
    def pull_lines(self) -> list[str]:
        """Statements of the gates' gradient."""
        return [*self.taken(self.pulled, self.pulled), *self._torch[1].lines]

    @property
    def pulled_gates(self) -> dict[str, str]:
        """Argument of the gates → text of its gradient in torch."""
        leaves = (*self.gates.tokens, *self.gates.constants)
        out = {}
        for leaf, text in zip(leaves, self._torch[1].results, strict=True):
            x = self._arguments[leaf]
            out[x] = self._narrowed(leaf, text)
            out[x] += ".sum(1)" if leaf in self.gates.constants else ""
        return out

    def _narrowed(self, leaf: str, text: str) -> str:
        """Text of a leaf's gradient at all tokens, as narrow as the leaf."""
        if text == "0":
            text = f"torch.zeros_like({self._arguments[leaf]})"
        if leaf in self.gates.constants:
            return text
        if leaf in self.wide:
            return self._alone(text)
        return f"{text}.to(dtype, copy=True)" if self._is_part(text) else f"{text}.to(dtype)"

    def _alone(self, text: str) -> str:
        """Text of an array that no other one is in: parts of one number are contiguous in it."""
        return f"{text}.clone()" if self._is_part(text) else text

    def _is_part(self, text: str) -> bool:
        return self.complex and text in self._bars.values()

    @property
    def pulled_results(self) -> list[str]:
        """Gradients of all arguments but the state."""
        return [self.pulled_gates[x] for x in self.inputs]

    @property
    def _torch_wanted(self) -> list[tuple[str, Expr]]:
        """What the gates' torch form computes."""
        return [("v", self.gates.value), ("g", self.gates.log_decay)]

    # --- kernels ---------------------------------------------------------------------------------

    def define_kernel(self, name: str) -> str:
        """The `def` line of a kernel; it takes pointers, then lengths, then tiles."""
        inputs = [f"p_{x}" for x in self.inputs]
        gradients = [f"d{p}" for p in inputs]
        parts = ["decays", "ends"]
        outs, d_outs = self.in_planes("out"), self.in_planes("d_out")
        params = {
            "forward": ["state", "lengths", *parts, *outs, "last"],
            "forward_summary": ["lengths", *parts],
            "backward": [
                *("state", "lengths", *parts, *outs, *d_outs, "d_last"),
                *(*gradients, "d_state"),
            ],
            "backward_summary": ["lengths", *d_outs, *parts],
        }[name]
        sizes = [f"{n}: tl.constexpr" for n in ("D", "BT", "BD", "STAGES")]
        params = [*inputs, *params, "T: tl.int32", "TS: tl.int32", *sizes]
        return wrapped(f"def _{name}_kernel{self.suffix}", params, ":", "")

    def given(self) -> str:
        """A statement that lays out what the gates read."""
        inside = ", ".join(self.inputs) + ("," if len(self.inputs) == 1 else "")
        line = f"    given = [x.contiguous() for x in ({inside})]"
        if len(line) <= WIDTH:
            return line
        names = wrapped("    given = ", self.inputs, "", "    ", started=True)
        return f"{names}\n    given = [x.contiguous() for x in given]"

    def summed(self, slices: str) -> str:
        """Text of a constant's gradient, of slices of each row and segment."""
        return f"{slices}.squeeze(1) if grid[1] == 1 else {slices}.sum(1)"

    @property
    def decay_names(self) -> list[str]:
        """Arguments over time that λ is computed from."""
        read = {r.name for r in walk(self.gates.decay) if isinstance(r, Ref)}
        return [self._arguments[n] for n in self.gates.tokens if n in read]

    def _variable(self, name: str) -> str:
        """A value of one token."""
        return f"b_{name}"

    def _at_token(
        self, wanted: list[tuple[str, Expr]], printer: KernelPrinter, later: Iterable[Expr] = ()
    ) -> Statements:
        """Statements of a kernel at one token; what is read there has variables of its own."""
        read = [self._variable(x) for x in self.inputs]
        known = self._named()
        return statements(wanted, known, printer, self._variable, " " * 12, later, read, " " * 4)

    def _printer(self) -> KernelPrinter:
        own = {f"{VALUE_BAR}{p}": f"dh{p}" for p in self.planes}
        own |= {f"{DECAY_BAR}{p}": f"dg{p}" for p in self.planes}
        return KernelPrinter(lambda n: own.get(n) or f"b_{self._arguments[n]}")

    def _named(self) -> list[tuple[str, Expr]]:
        """What the plan has names for, but for those of a leaf's argument.

        Nor has log λ one: in front of a power of two its factor is another.
        """
        left_out = set(self._arguments.values())
        logs = real_imag(self.gates.log_decay)
        return [(n, e) for n, e in self.gates.named if n not in left_out and e not in logs]

    @cached_property
    def forward(self) -> Statements:
        """λ and the value of one token."""
        wanted = [*self._in_planes("decay", self.gates.decay)]
        wanted += self._in_planes("value", self.gates.value)
        return self._at_token(wanted, self._printer())

    def _in_planes(self, name: str, e: Expr) -> list[tuple[str, Expr]]:
        """Names and planes of a value."""
        return list(zip(self.in_planes(name), real_imag(e), strict=True))

    @property
    def decay_here(self) -> list[str]:
        """λ of one token, forwards."""
        return list(self.forward.results[: len(self.planes)])

    @property
    def value_here(self) -> list[str]:
        """The value of one token, forwards."""
        return list(self.forward.results[len(self.planes) :])

    def places(self, at: str) -> list[str]:
        """Where the planes of a state stand, whose parts are side by side as PyTorch has them."""
        if not self.complex:
            return [at]
        inside = at if at.isidentifier() else f"({at})"
        return [f"2 * {inside}", f"2 * {inside} + 1"]

    def real_parts(self, text: str) -> str:
        """Text of a state as real numbers, side by side where it is complex."""
        return f"_sides({text})" if self.complex else text

    @property
    def conjugates(self) -> str:
        """What the backward kernel does besides."""
        return "\n\n    Of complex numbers λ and h are conjugates.\n    " if self.complex else ""

    def times(self, x: list[str], y: list[str]) -> list[str]:
        """Texts of the planes of a product."""
        if len(x) == 1:
            return [f"{x[0]} * {y[0]}"]
        return [f"{x[0]} * {y[0]} - {x[1]} * {y[1]}", f"{x[0]} * {y[1]} + {x[1]} * {y[0]}"]

    def times_conjugate(self, x: list[str], y: list[str]) -> list[str]:
        """Texts of the planes of a product with the conjugate of the first factor."""
        if len(x) == 1:
            return self.times(x, y)
        return [f"{x[0]} * {y[0]} + {x[1]} * {y[1]}", f"{x[0]} * {y[1]} - {x[1]} * {y[0]}"]

    @cached_property
    def _back(self) -> tuple[Statements, Statements]:
        printer = self._printer()
        decay = self._in_planes("decay", self.gates.decay)
        first = self._at_token(decay, printer, self.gates.gradients)
        wanted = list(zip((f"db_{x}" for x in self.inputs), self.gates.gradients, strict=True))
        return first, self._at_token(wanted, printer)

    @property
    def backward_decay(self) -> Statements:
        """λ of one token."""
        return self._back[0]

    @property
    def gradients(self) -> Statements:
        """Gradients of what the gates read at one token."""
        return self._back[1]

    @property
    def code(self) -> list[str]:
        """Statements that the kernels print from expressions."""
        parts = (self.forward, self.backward_decay, self.gradients)
        return [line for part in parts for line in (*part.once, *part.lines, *part.results)]

    @property
    def timed_gradients(self) -> list[tuple[str, str]]:
        """Arguments over time, and the text of their gradients."""
        return list(zip(self.timed_names, self.gradients.results, strict=False))

    @property
    def constant_gradients(self) -> list[tuple[str, str]]:
        """Constant arguments, and the text of their gradients at one token."""
        results = self.gradients.results[len(self.timed_names) :]
        pairs = zip(self.constants, results, strict=True)
        return [(c, text) for c, text in pairs if text != "0"]


def kernels(
    s: Skeleton, scan: Scan, gates: Prologue, arrays: dict[str, Buffer]
) -> ElementwiseKernels:
    """Returns what the templates are filled with.

    Args:
        s: the scan as the torch form sees it.
        scan: the scan with the leaves of its gates.
        gates: the gates.
        arrays: buffers by name, those of the gates' leaves too.
    """
    assert isinstance(s, ElementwiseSkeleton)
    return ElementwiseKernels(
        scan, s.adjoint, s.suffix, s.family, arrays, gates=gates, plain_scan=s
    )
