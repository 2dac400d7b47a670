"""What operators that compute their gates, or features, have in common, whatever kernels they have.

Gates run in torch where no kernel runs. Their gradient is printed as well: PyTorch shuts
`torch.func` out of what a mode of its dispatch runs, so that no operator may differentiate inside.
"""

from __future__ import annotations

import builtins
import keyword
import re
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field

from dsfc.expr.build import rewrite
from dsfc.expr.text import text
from dsfc.expr.tree import Expr, Param

from ..torch.layout import WIDTH, wrapped
from ..torch.skeletons import Skeleton
from .behind import Behind
from .cost.counts import SEGMENT, KernelCost

_PULLED = " -> tuple[tuple[Tensor, ...], Callable[..., tuple[Tensor, ...]]]:"
RESERVED = frozenset((*dir(builtins), *keyword.kwlist, *keyword.softkwlist))
"""Words of Python that no argument is called."""


@dataclass(frozen=True)
class GatedKernels(Skeleton):
    """A scan whose operators take what its gates or features read, as `gated_op.py.j2` asks.

    Attributes:
        plain_scan: the scan as its modes see it.
    """

    plain_scan: Skeleton = field(kw_only=True)

    @property
    @abstractmethod
    def kernels(self) -> str:
        """Name of the template of its kernels."""

    @property
    @abstractmethod
    def inputs(self) -> list[str]:
        """All arguments but the state."""

    @property
    @abstractmethod
    def like(self) -> str:
        """The argument that outputs are like."""

    @property
    @abstractmethod
    def declined(self) -> str:
        """Why no kernel runs, in an operator."""

    @property
    @abstractmethod
    def widened(self) -> list[str]:
        """Arguments that the torch form of the gates computes with, and does not pass on."""

    @property
    @abstractmethod
    def gates_meaning(self) -> str:
        """Docstring of the gates' torch form."""

    # --- what forms differ in, where they do -----------------------------------------------------

    @property
    def planes(self) -> tuple[str, ...]:
        """What the names of a state's planes end with: of a real state one name, which is whole."""
        return ("",)

    @property
    def kept(self) -> list[str]:
        """What of the forward operator's outputs its gradient takes."""
        return []

    @property
    def kept_by_kernels(self) -> list[str]:
        """What of that a launch takes."""
        return self.kept

    @property
    def options_of_launch(self) -> list[str]:
        """What the forward operator and its launch take behind the leaves."""
        return ["lengths"]

    @property
    def nothing_kept(self) -> str:
        """A further output, empty where the torch form ran."""
        return ""

    @property
    def can_go_back(self) -> str:
        """A condition of the backward launch."""
        return ""

    @property
    def scaled(self) -> bool:
        """Whether the output is divided by something."""
        return False

    @property
    def running(self) -> bool:
        """Whether that is computed of what is read of the state."""
        return False

    def broadcast(self) -> str:
        """Gives arguments an axis of time that lack it."""
        return ""

    @property
    def parted(self) -> bool:
        """Whether the outputs are parts of what the torch form gives: planes of complex numbers."""
        return self.complex

    @property
    def like_of_inputs(self) -> str:
        """The dtype of outputs, of what the plain loop takes."""
        return f"inputs[{self.inputs.index(self.like)}].dtype"

    @property
    def joined_cotangent(self) -> str:
        """Text of the gradient of what the torch form gives, of that of its parts."""
        return f"torch.complex(*_accumulate({', '.join(self.in_planes('do'))}))"

    def narrowed(self, o: str, like: str) -> str:
        """Text of the torch form's outputs in a dtype."""
        return f"*_planes({o}, {like})"

    @property
    def behind(self) -> Behind:
        """Statements of the torch form behind the plain scan, and of their gradient."""
        if not self.parted:
            return Behind()
        return Behind(
            output=self.narrowed("o", f"{self.like}.dtype"),
            output_of_plain=self.narrowed("o", self.like_of_inputs),
            undone=(f"do = {self.joined_cotangent}",),
        )

    @property
    def ran(self) -> list[str]:
        """Statements of the operator where torch runs, behind its gates."""
        arguments = ", ".join(["*gated", "S", *self.option_names])
        return self.behind.forward(f"_forward_ungated{self.suffix}({arguments})")

    @property
    def ran_plainly(self) -> list[str]:
        """Statements of the plain loop over time, and behind it."""
        return self.behind.plain(f"_forward_recurrent{self.suffix}(*gated, S)")

    @property
    def ran_back(self) -> list[str]:
        """Statements of the gradient's operator where torch runs, behind its gates."""
        return self.behind.backward(self.suffix, self.option_names)

    @property
    def gives_each(self) -> bool:
        """Whether what is called of it gives the state after each of some tokens."""
        return False

    def define_each(self) -> str:
        """The `def` line of the function that starts the kernel of some tokens."""
        params = [*(f"{x}: Tensor" for x in self.leaves), "lengths: Tensor | None = None"]
        return wrapped(f"def _each{self.suffix}", params, " -> tuple[Tensor, ...] | None:", "")

    @property
    def ran_each(self) -> list[str]:
        """Statements that start that kernel behind the gates."""
        return self.behind.some(f"_steps_ungated{self.suffix}(*gated, S)")

    # --- operators and launches ------------------------------------------------------------------

    @property
    def launcher(self) -> str:
        """What the names of launches start with."""
        return "_launch"

    @property
    def operator(self) -> str:
        """Name of the template of its operators."""
        return "gated_op.py.j2"

    @property
    def plain(self) -> Skeleton:
        """The scan as its modes see it, whose functions take what the gates give."""
        return self.plain_scan

    def in_planes(self, name: str) -> list[str]:
        """Names of the planes of something."""
        return [f"{name}{p}" for p in self.planes]

    @property
    def outputs(self) -> int:
        """How many tensors the forward operator gives."""
        return len(self.planes) + 1 + bool(self.nothing_kept)

    @property
    def results_of_plain(self) -> str:
        """What the plain loop over time gives: outputs and state."""
        return tensors(len(self.planes) + 1)

    @property
    def _cotangents(self) -> list[str]:
        return [*self.in_planes("do"), "dS"]

    def _result(self, backward: bool) -> str:
        return tensors(len(self.leaves) if backward else self.outputs)

    def _parameters(self, backward: bool, kept: list[str]) -> list[str]:
        behind = [*kept, *self._cotangents] if backward else self.options_of_launch[1:]
        leaves, more = ([f"{x}: Tensor" for x in names] for names in (self.leaves, behind))
        return [*leaves, "lengths: Tensor | None", *more]

    def define_op(self, backward: bool) -> str:
        """The `def` line of an operator."""
        name = f"def {'_backward' if backward else '_forward'}{self.suffix}"
        return self._define(name, backward, "")

    def method(self, backward: bool) -> str:
        """The `def` line of an autograd function's forward."""
        return self._define("def forward", backward, "    ")

    def _define(self, head: str, backward: bool, indent: str) -> str:
        params = [*self._parameters(backward, self.kept), *self.options]
        return wrapped(head, params, f" -> {self._result(backward)}:", indent)

    def define_launch(self, backward: bool) -> str:
        """The `def` line of a launch."""
        head = f"def {self.launcher}_{'backward' if backward else 'forward'}{self.suffix}"
        params = self._parameters(backward, self.kept_by_kernels)
        return wrapped(head, params, f" -> {self.launched(backward)}:", "")

    def launched(self, backward: bool) -> str:
        """What a launch gives."""
        return self._result(backward)

    def launch(self, backward: bool) -> str:
        """Returns what a launch gives."""
        more = ["lengths", *self.kept_by_kernels, *self._cotangents]
        head = f"return {self.launcher}_{'backward' if backward else 'forward'}{self.suffix}"
        args = [*self.leaves, *(more if backward else self.options_of_launch)]
        return wrapped(head, args, "", " " * 8)

    @property
    def contextual(self) -> list[str]:
        """What is no tensor, as the autograd function keeps it."""
        return [f"ctx.{name}" for name in self.option_names]

    @property
    def nones(self) -> str:
        """The gradients of what is no tensor."""
        return ", ".join(["None"] * len(self.option_names))

    @property
    def recurring(self) -> str:
        """Makes a function of the autograd function."""
        applied = f"_applied(_Recurrence{self.suffix})"
        each = f"_giving_each({applied}, _each{self.suffix})"
        return f"_recurrence{self.suffix} = {each if self.gives_each else applied}"

    def call_backward(self) -> str:
        """Calls the backward operator."""
        args = [*self.leaves, "lengths", *self.kept, *self._cotangents, *self.option_names]
        return wrapped(f"return _OPS.backward{self.suffix}", args, "", "        ")

    # --- time ------------------------------------------------------------------------------------

    @property
    def costs(self) -> tuple[KernelCost, ...]:
        """What the kernels cost, fused and cut into segments of time, over `sizes_of_work`."""
        return ()

    @property
    def sizes_of_work(self) -> dict[Expr, str]:
        """Parameters of the costs, as a module calls them."""
        return {}

    def work_name(self, direction: str) -> str:
        """The function that counts what a direction does."""
        return f"_{direction}_work{self.suffix}"

    def work(self, direction: str) -> list[str]:
        """A function that counts what a direction does."""
        names = {**self.sizes_of_work, SEGMENT: "TS"}
        at = ("forward", "backward").index(direction)

        renamed: dict[Expr, Expr] = {e: Param(n, frozenset()) for e, n in names.items()}

        def counted(way: KernelCost, indent: str) -> str:
            p = way.passes[at]
            counts = (p.bytes, p.operations, p.exponentials, p.instructions)
            texts = [_decimal(text(rewrite(e, renamed.get))) for e in counts]
            return _tuple("return ", [*texts, str(p.launches)], indent)

        fused, split = self.costs
        params = ", ".join(f"{name}: int" for name in names.values())
        return [
            f"def {self.work_name(direction)}({params}) -> tuple[float, ...]:",
            '    """Bytes, products, exponentials, instructions of a token; launches.',
            "",
            "    TS: tokens of a segment of time, 0 where there is one.",
            '    """',
            "    if TS == 0:",
            counted(fused, " " * 8),
            counted(split, " " * 4),
        ]

    # --- the torch form of the gates -------------------------------------------------------------

    @property
    @abstractmethod
    def gated_results(self) -> list[str]:
        """What the gates' torch form gives the plain scan, and what it does besides."""

    @property
    @abstractmethod
    def pulled(self) -> list[str]:
        """What the gates' gradient takes: gradients of what they give."""

    @property
    @abstractmethod
    def pull_lines(self) -> list[str]:
        """Statements of the gates' gradient."""

    @property
    @abstractmethod
    def pulled_results(self) -> list[str]:
        """Gradients of all arguments but the state."""

    def define_gates(self) -> str:
        """The `def` line of the gates' torch form."""
        params = [*(f"{x}: Tensor" for x in self.inputs), "lengths: Tensor | None"]
        return wrapped(f"def _gates{self.suffix}", params, _PULLED, "")

    def gated(self) -> str:
        """The statement that names what the gates' torch form gives."""
        return _tuple("gated = ", self.gated_results, "    ")

    def define_pull(self) -> str:
        """The `def` line of the gates' gradient."""
        params = [f"{x}: Tensor" for x in self.pulled]
        return wrapped("def pull", params, " -> tuple[Tensor, ...]:", "    ")

    def return_pulled(self) -> str:
        """The `return` statement of the gates' gradient: outputs of an operator, all its own."""
        return _tuple("return ", _apart(self.pulled_results), " " * 8)

    def taken(self, computed: list[str], kept: list[str]) -> list[str]:
        """Statements by which gradients are precise, or 0 at tokens that do not count, or both."""
        indent = " " * 8
        target = ", ".join(computed) if len(computed) > 1 else f"({''.join(computed)},)"
        wide = wrapped(f"{indent}{target} = _accumulate", computed, "", indent, started=True)
        joined = ", ".join(kept)
        if len(kept) == 1:
            zero = f"{indent}{joined} = _kept({joined}, counts)"
        elif kept == computed:
            zero = f"{indent}{joined} = (_kept(x, counts) for x in _accumulate({joined}))"
        else:
            zero = f"{indent}{joined} = (_kept(x, counts) for x in ({joined}))"
        return [*([wide] if computed and kept != computed else []), *([zero] if kept else [])]


def tensors(count: int) -> str:
    """The annotation of so many tensors."""
    return f"tuple[{', '.join(['Tensor'] * count)}]"


def arguments(leaves: Iterable[str], words: frozenset[str]) -> dict[str, str]:
    """Returns leaf → argument: its own name, where that is no word of Python or of those."""
    out: dict[str, str] = {}
    for leaf in dict.fromkeys(leaves):
        name = leaf
        while name in words or name in RESERVED or name in out.values():
            name += "_"
        out[leaf] = name
    return out


def _decimal(count: str) -> str:
    """A count as Python: fractions of numbers as decimal ones."""
    return re.sub(r"(\d+)/(\d+)", lambda m: repr(int(m[1]) / int(m[2])), count)


def _tuple(head: str, items: list[str], indent: str) -> str:
    """A statement that ends in a tuple."""
    line = f"{indent}{head}{', '.join(items)}{',' if len(items) == 1 else ''}"
    return line if len(line) <= WIDTH else wrapped(head, items, "", indent)


def _apart(texts: Iterable[str]) -> list[str]:
    """Texts of which none is another's array."""
    seen: set[str] = set()
    out = []
    for x in texts:
        out.append(f"{x}.clone()" if x in seen else x)
        seen.add(x)
    return out
