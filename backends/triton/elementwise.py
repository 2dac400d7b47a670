"""The elementwise form: gates and recurrence of a channel in one kernel, forwards and backwards."""

from __future__ import annotations

import builtins
import keyword
from dataclasses import dataclass, field
from functools import cached_property

from dsfc.plan.gates import DECAY_BAR, VALUE_BAR, Gates
from dsfc.plan.ir import Buffer, LogDecay, Scan
from dsfc.plan.planes import SUFFIXES, planes
from dsfc.primitives.build import walk
from dsfc.primitives.expr import Expr, Ref, Time

from ..torch.code import Code
from ..torch.layout import WIDTH, wrapped
from ..torch.skeletons import ElementwiseSkeleton, Skeleton
from .nodes import KernelPrinter
from .statements import NamingPrinter, Statements, statements

_OWN = frozenset("S lengths o do dS mode chunk v g pull dtype counts leaves grads out last".split())
_OWN |= frozenset("B L D grid tokens options parts given more k x self ctx".split())
_OWN |= frozenset(f"{name}{suffix}" for name in ("o", "do", "out") for suffix in SUFFIXES)
_OWN |= frozenset("math triton torch F tl".split())
"""Words that the operators' functions use themselves."""


@dataclass(frozen=True)
class ElementwiseKernels(ElementwiseSkeleton):
    """An elementwise scan whose operators take what its gates read.

    Arguments are one `[B, L, *axes]` for each token-wise leaf, one `[B, *axes]` for each constant,
    then the state. There is an output for each plane of the state, two where that is complex. A
    constant is expanded over the batch: its gradient comes out as one slice for each row of the
    batch, and torch adds them up in a fixed order.

    Attributes:
        gates: what the kernels compute.
        plain_scan: the scan as its modes see it.
    """

    gates: Gates = field(kw_only=True)
    plain_scan: Skeleton = field(kw_only=True)

    # --- what op templates ask for ---------------------------------------------------------------

    @property
    def operator(self) -> str:
        """Name of the template of its operators."""
        return "gated_op.py.j2"

    @property
    def kernels(self) -> str:
        """Name of the template of its kernels."""
        return "elementwise_kernels.py.j2"

    @property
    def options_of_launch(self) -> list[str]:
        """What the forward operator and its launch take behind the leaves."""
        return ["lengths"]

    @property
    def planes(self) -> tuple[str, ...]:
        """What the names of a state's planes end with: of a real state one name, which is whole."""
        return SUFFIXES if self.complex else ("",)

    def in_planes(self, name: str) -> list[str]:
        """Names of the planes of something."""
        return [f"{name}{p}" for p in self.planes]

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
    def narrows(self) -> bool:
        """Whether the torch form of the gates gives numbers as narrow as it takes."""
        return not self.complex  # there are no narrow complex numbers

    @property
    def widened(self) -> list[str]:
        """Arguments that the torch form of the gates computes with."""
        return self.inputs

    @property
    def scaled(self) -> bool:
        """Whether the output is divided by something."""
        return False

    @property
    def nothing_kept(self) -> str:
        """An output besides, of nothing, where the torch form ran."""
        return ""

    @property
    def can_go_back(self) -> str:
        """A condition of the backward launch."""
        return ""

    @property
    def adds(self) -> bool:
        """Whether something is added to the output."""
        return False

    @property
    def gates_meaning(self) -> str:
        """Docstring of the gates' torch form."""
        what = "Value and log λ of every token, of what the gates read"
        return f'"""{what}: 0 at tokens that do not count."""'

    @property
    def gated_results(self) -> list[str]:
        """What the gates' torch form returns."""
        v, g = self.torch_gates.results
        narrow = ".to(dtype)" if self.narrows else ""
        return [f"_kept({v}, counts){narrow}", f"_kept({g}, counts)"]

    def return_gated(self) -> str:
        """The `return` statement of the gates' torch form."""
        line = f"    return {', '.join(self.gated_results)}"
        return line if len(line) <= WIDTH else wrapped("return ", self.gated_results, "", "    ")

    @property
    def plain(self) -> Skeleton:
        """The scan as its modes see it, whose functions take value and log λ."""
        return self.plain_scan

    @cached_property
    def _arguments(self) -> dict[str, str]:
        """Leaf → argument."""
        out: dict[str, str] = {}
        for leaf in (*self.gates.tokens, *self.gates.constants):
            name = leaf
            while name in self._reserved or name in out.values():
                name += "_"
            out[leaf] = name
        return out

    @property
    def _reserved(self) -> frozenset[str]:
        """What no argument is called."""
        return _OWN | {*dir(builtins), *keyword.kwlist, *keyword.softkwlist}

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

    def define_op(self, backward: bool) -> str:
        """The `def` line of an operator."""
        name = "_backward" if backward else "_forward"
        params = [*self._parameters(backward), *self.options]
        result = _tensors(len(self.leaves) if backward else self.outputs)
        return wrapped(f"def {name}{self.suffix}", params, f" -> {result}:", "")

    def method(self, backward: bool) -> str:
        """The `def` line of an autograd function's forward."""
        params = [*self._parameters(backward), *self.options]
        result = _tensors(len(self.leaves) if backward else self.outputs)
        return wrapped("def forward", params, f" -> {result}:", "    ")

    def define_launch(self, backward: bool) -> str:
        """The `def` line of a launch."""
        name = "_launch_backward" if backward else "_launch_forward"
        result = "tuple[Tensor, ...]" if backward else _tensors(self.outputs)
        return wrapped(f"def {name}{self.suffix}", self._parameters(backward), f" -> {result}:", "")

    def _parameters(self, backward: bool) -> list[str]:
        out = [*(f"{x}: Tensor" for x in self.leaves), "lengths: Tensor | None"]
        back = [*self.kept, *self.in_planes("do"), "dS"]
        names = back if backward else self.options_of_launch[1:]
        return [*out, *(f"{name}: Tensor" for name in names)]

    @property
    def outputs(self) -> int:
        """How many tensors the forward operator gives."""
        return len(self.planes) + 1 + bool(self.nothing_kept)

    @property
    def results_of_plain(self) -> str:
        """What the plain loop over time gives: outputs and state."""
        return _tensors(len(self.planes) + 1)

    @property
    def like_of_inputs(self) -> str:
        """The dtype of outputs, of what the plain loop takes."""
        return f"inputs[{self.inputs.index(self.like)}].dtype"

    def call_backward(self) -> str:
        """Calls the backward operator."""
        args = [*self.leaves, "lengths", *self.kept, *self.in_planes("do"), "dS"]
        args += self.option_names
        return wrapped(f"return _OPS.backward{self.suffix}", args, "", "        ")

    def register_forward(self) -> str:
        """Registers the forward operator."""
        at = [self.leaves.index(self.like)] * len(self.planes)
        outputs = ", ".join(map(str, [*at, len(self.leaves) - 1]))
        return self._register("forward", f"({outputs})")

    def launch(self, backward: bool) -> str:
        """Returns what a launch gives."""
        args = [*self.leaves, "lengths", *self.kept, *self.in_planes("do"), "dS"]
        args = args if backward else [*self.leaves, *self.options_of_launch]
        head = f"return _launch_{'backward' if backward else 'forward'}{self.suffix}"
        return wrapped(head, args, "", " " * 12)

    # --- the torch form of the gates -------------------------------------------------------------

    def define_gates(self) -> str:
        """The `def` line of the gates' torch form."""
        params = [*(f"{x}: Tensor" for x in self.inputs), "lengths: Tensor | None"]
        return wrapped(f"def _gates{self.suffix}", params, " -> tuple[Tensor, Tensor]:", "")

    def broadcast(self) -> str:
        """Gives the constants an axis of time."""
        if not self.constants:
            return ""
        names = ", ".join(self.constants)
        if len(self.constants) == 1:
            return f"    {names} = {names}.unsqueeze(1)"
        return f"    {names} = (x.unsqueeze(1) for x in ({names}))"

    @property
    def torch_gates(self) -> Statements:
        """Value and log λ, in torch."""
        wanted = self._torch_wanted
        found = self._printed(wanted)
        results = [
            f"{text}.expand_as({self.like})" if e.time is Time.CONST else text
            for text, (_, e) in zip(found.results, wanted, strict=True)
        ]
        return Statements(found.lines, tuple(results))

    def _printed(self, wanted: list[tuple[str, Expr]]) -> Statements:
        """Values in torch."""
        used = set(self._arguments.values()) | self._reserved

        def variable(name: str) -> str:
            while name in used:
                name += "_"
            return name

        axes = tuple(sorted((*self.scan.heads, *self.scan.channels)))
        printer = NamingPrinter(lambda r: Code(self._arguments[r.name], axes, True), {}, self.like)
        return statements(wanted, self.gates.named, printer, variable, "    ")

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

    def _printer(self) -> KernelPrinter:
        own = {f"{VALUE_BAR}{p}": f"dh{p}" for p in self.planes}
        own |= {f"{DECAY_BAR}{p}": f"dg{p}" for p in self.planes}
        return KernelPrinter(lambda n: own.get(n) or f"b_{self._arguments[n]}")

    def _named(self) -> list[tuple[str, Expr]]:
        """What the plan has names for, but for those of a leaf's argument.

        Nor has log λ one: in front of a power of two its factor is another.
        """
        left_out = set(self._arguments.values())
        logs = planes(self.gates.log_decay)
        return [(n, e) for n, e in self.gates.named if n not in left_out and e not in logs]

    @cached_property
    def forward(self) -> Statements:
        """λ and the value of one token."""
        wanted = [*self._in_planes("decay", self.gates.decay)]
        wanted += self._in_planes("value", self.gates.value)
        return statements(wanted, self._named(), self._printer(), self._variable, " " * 12)

    def _in_planes(self, name: str, e: Expr) -> list[tuple[str, Expr]]:
        """Names and planes of a value."""
        return list(zip(self.in_planes(name), planes(e), strict=True))

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
        first = statements(decay, self._named(), printer, self._variable, " " * 12)
        wanted = list(zip((f"db_{x}" for x in self.inputs), self.gates.gradients, strict=True))
        second = statements(wanted, self._named(), printer, self._variable, " " * 12)
        return first, second

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
        """Whatever its kernels print of expressions."""
        parts = (self.forward, self.backward_decay, self.gradients)
        return [line for part in parts for line in (*part.lines, *part.results)]

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


def kernels(s: Skeleton, scan: Scan, gates: Gates, arrays: dict[str, Buffer]) -> ElementwiseKernels:
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


def _tensors(count: int) -> str:
    return f"tuple[{', '.join(['Tensor'] * count)}]"
