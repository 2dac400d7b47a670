"""What the templates of a scan's modes are filled with: arguments, subscripts and the gradient.

The lines of every backward pass are made from the plan's adjoint: each of its scans is a scan with
roles exchanged, so its einsum subscripts follow from the roles alone, and the decay's gradient
pairs the states of both directions over the axes that the plan names. The templates hold the
recurrences and that pairing; no line of a gradient is written down anywhere.

This module has what all forms share; `matrix` and `selective` add what their templates ask for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from dsfc.expr.tree import Field
from dsfc.plan.ir import Buffer
from dsfc.plan.scan_ir import Adjoint, Factor, RoleScan, Scan, ScanDirection

from .layout import WIDTH, tuple_text, wrapped

VARIABLE = {
    Factor.READ: "q",
    Factor.KEY: "k",
    Factor.VALUE: "v",
    Factor.COTANGENT: "do",
    Factor.LEFT: "a",
    Factor.RIGHT: "b",
    Factor.WY: "e",
    Factor.WY_BAR: "de",
    Factor.STRENGTH: "r",
    Factor.RETRIEVED: "f",
    Factor.RETRIEVED_BAR: "de",
    Factor.WRITTEN: "e",
    Factor.VALUE_BAR: "dv",
}


@dataclass(frozen=True)
class Skeleton:
    """One scan, as its templates see it.

    Attributes:
        scan: the scan.
        adjoint: its adjoint.
        suffix: of the names of its functions; empty when the module has one scan.
        family: prefix of the names of what scans of one form share.
        arrays: the plan's buffers by name.
        shared: for matrix scans, whether read and key have no head axis.
        real_to_real: whether it is complex, of real values, and only real parts are read of it.
    """

    scan: Scan
    adjoint: Adjoint
    suffix: str
    family: str
    arrays: dict[str, Buffer]
    shared: bool = False
    real_to_real: bool = False

    # --- arguments of the operators --------------------------------------------------------------

    @property
    def form(self) -> str:
        """Name of the skeleton, and of its template."""
        return self.scan.form.value

    @property
    def operator(self) -> str:
        """Name of the template of its operators."""
        return "op.py.j2"

    @property
    def choice(self) -> str:
        """Name of the template of what its operators call."""
        return "choice.py.j2"

    @property
    def has_step(self) -> bool:
        """Whether one token has a kernel of its own, or one that goes token by token."""
        return False

    @property
    def in_place(self) -> bool:
        """Whether a kernel of one token may write a state where the one before lies."""
        return False

    @property
    def gives_each(self) -> bool:
        """Whether what is called of it gives the state after each of some tokens."""
        return True

    @property
    def plain(self) -> Skeleton:
        """The scan as its modes see it, whose functions take key, value and decay."""
        return self

    @property
    def of(self) -> str:
        """What a heading adds where a module has several scans."""
        return f" of {self.scan.name}" if self.suffix else ""

    @property
    def decay(self) -> bool:
        """Whether λ is not 1."""
        return self.scan.decay is not None

    @property
    def tokens(self) -> list[str]:
        """Arguments `[B, L, ...]` besides the decay's."""
        return ["q", "k", "v"]

    @property
    def decays(self) -> list[str]:
        """Arguments that give log λ, token-wise ones first."""
        return ["g"] if self.decay else []

    @property
    def leaf_buffers(self) -> list[str]:
        """Buffers of the decay, in the order of the arguments."""
        return [] if self.scan.decay is None else list(self.scan.decay.leaves)

    @property
    def timed(self) -> list[str]:
        """All arguments `[B, L, ...]`."""
        return self.tokens + self.decays

    @property
    def varying(self) -> list[str]:
        """Arguments that have an axis of time, the value first."""
        return sorted(self.timed, key=lambda name: name != "v")

    @property
    def inputs(self) -> list[str]:
        """All arguments but the state."""
        return self.tokens + self.decays

    @property
    def leaves(self) -> list[str]:
        """All tensor arguments of the forward operator."""
        return [*self.inputs, "S"]

    @property
    def grads(self) -> list[str]:
        """Gradients of `inputs`."""
        return [f"d{x}" for x in self.inputs]

    @property
    def timed_grads(self) -> list[str]:
        """Gradients of `timed`."""
        return [f"d{x}" for x in self.timed]

    # --- the operators' registration --------------------------------------------------------------

    @property
    def complex(self) -> bool:
        """Whether the state is complex."""
        return self.scan.field is Field.COMPLEX

    @property
    def flags(self) -> list[str]:
        """What the operators take behind mode and chunk."""
        return []

    @property
    def options(self) -> list[str]:
        """Declarations of what is no tensor."""
        return ["mode: str", "chunk: int", *(f"{flag}: bool" for flag in self.flags)]

    @property
    def option_names(self) -> list[str]:
        """Names of what is no tensor."""
        return ["mode", "chunk", *self.flags]

    @property
    def before_equation(self) -> str:
        """Subscripts of Σ read · state before the update; empty for a scan that has no read."""
        return ""

    @property
    def stops(self) -> bool:
        """Whether, though Λ is fixed, its operators are told how many tokens count."""
        return False

    def run(self, direction: str, mode: str) -> str:
        """Runs one implementation and returns what it gives."""
        recurrent = mode == "recurrent"
        args = [*self.leaves, *(["do", "dS"] if direction == "backward" else []), "chunk"]
        args += [] if recurrent else ["mode"]
        args += self.flags
        indent = " " * (8 if recurrent else 4)
        call = f"_{direction}_{mode}{self.suffix}"
        line = f"{indent}return _own({call}({', '.join(args)}))"
        if len(line) <= WIDTH:
            return line
        return wrapped(f"outs = {call}", args, "", indent) + f"\n{indent}return _own(outs)"

    def conjugated(self) -> str:
        """Conjugates all that the forward operator took."""
        names = self.leaves
        return wrapped(f"    {', '.join(names)} = _conjugates", names, "", "    ", True)

    def flops_def(self, name: str) -> str:
        """The `def` line of a formula that counts operations; arguments are shapes."""
        params = [f"{x}: Any" for x in self.leaves] + ["*_: Any", "**__: Any"]
        return wrapped(f"def {name}{self.suffix}", params, " -> int:", "")

    @property
    def flops_shape(self) -> str:
        """Reads the sizes off the shapes."""
        return "size = math.prod(v)"

    @property
    def forward_flops(self) -> str:
        """Operations of the forward pass."""
        return "3 * size"

    @property
    def backward_flops(self) -> str:
        """Operations of the backward pass."""
        return "8 * size"

    def register_forward(self) -> str:
        """Registers the forward operator."""
        at = self.leaves.index("v")
        return self._register("forward", f"({at}, {len(self.leaves) - 1})")

    def register_backward(self) -> str:
        """Registers the backward operator."""
        return self._register("backward", f"range({len(self.leaves)})")

    def _register(self, name: str, outputs: str) -> str:
        tail = self.suffix
        items = ["NAMESPACE", f'"{name}{tail}"', f"_{name}{tail}", f"_alike({outputs})"]
        return wrapped("_register", [*items, f"_{name}_flops{tail}"], "", "")

    @property
    def closing(self) -> str:
        """Statements behind the runtime: the operators' registration, and what calls them."""
        return "\n".join([self.register_forward(), self.register_backward(), self.recurring])

    def closing_with_step(self, apart: str = "") -> str:
        """As `closing`, of operators that have kernels of one token and of some.

        Args:
            apart: what the names of the functions that start them end with.
        """
        last = self.recurring_of(f"_step{apart}{self.suffix}", f"_steps{apart}{self.suffix}")
        return "\n".join([self.register_forward(), self.register_backward(), last])

    def define_step(self, apart: str = "") -> str:
        """The `def` line of the function that starts the kernel of one token.

        Args:
            apart: what its name ends with.
        """
        params = [*(f"{a}: Tensor" for a in self.leaves), "in_place: bool"]
        result = " -> tuple[Tensor, ...] | None:"
        return wrapped(f"def _step{apart}{self.suffix}", params, result, "")

    def define_steps(self, apart: str = "") -> str:
        """The `def` line of the function that starts the kernel of some tokens.

        Args:
            apart: what its name ends with.
        """
        params = [f"{a}: Tensor" for a in self.leaves]
        result = " -> tuple[Tensor, ...] | None:"
        return wrapped(f"def _steps{apart}{self.suffix}", params, result, "")

    def one_token_first(self, apart: str = "") -> list[str]:
        """Statements of the forward operator that start the kernel of one token, if one runs.

        Args:
            apart: what the name of the function that starts it ends with.
        """
        return [
            "    if v.shape[1] == 1 and mode in _STEP_MODES:",
            wrapped(f"outs = _step{apart}{self.suffix}", [*self.leaves, "False"], "", "        "),
            "        if outs is not None:",
            "            return outs",
        ]

    @property
    def recurring(self) -> str:
        """Makes a function of the operators, which has gradients of any order."""
        return self.recurring_of()

    def recurring_of(self, *more: str) -> str:
        """As `recurring`, with further arguments."""
        tail = self.suffix
        items = [f"_OPS.forward{tail}", f"_OPS.backward{tail}", f"_forward_recurrent{tail}"]
        places = [str(self.leaves.index(name)) for name in self.varying]
        timed = tuple_text(places)
        items += [str(len(self.option_names)), timed, *more]
        return wrapped(f"_recurrence{tail} = _recurring", items, "", "")

    # --- lines -----------------------------------------------------------------------------------

    def define(self, name: str, backward: bool, *more: str) -> str:
        """The `def` line of a function of this scan, wrapped where it does not fit.

        Args:
            name: without suffix.
            backward: whether it takes cotangents and returns gradients.
            more: further parameters.
        """
        args = self.leaves + (["do", "dS"] if backward else [])
        count = len(self.leaves) if backward else 2
        result = f"tuple[{', '.join(['Tensor'] * count)}]"
        params = [f"{a}: Tensor" for a in args] + list(more)
        return wrapped(f"def {name}{self.suffix}", params, f" -> {result}:", "")

    def call(self, head: str, args: list[str], tail: str = "", indent: str = "    ") -> str:
        """A statement that calls something, wrapped where it does not fit."""
        return wrapped(head, args, tail, indent)

    def widen(self, names: list[str]) -> str:
        """Casts arguments to the accumulation dtype."""
        target = ", ".join(names) if len(names) > 1 else f"({names[0]},)"
        return wrapped(f"    {target} = _accumulate", names, "", "    ", started=True)

    @property
    def exact(self) -> bool:
        """Whether the loop over time runs in double precision.

        The definition sums over keys and then squares; products of keys are squared first. What
        cancels in that sum then loses digits in a state that is added up token by token. In
        chunks, most of the sum is one product of matrices.
        """
        return self.scan.powers

    def widen_loop(self, names: list[str]) -> str:
        """Casts arguments of the loop over time to what it runs in."""
        text = self.widen(names)
        return text.replace("_accumulate(", "_doubled(") if self.exact else text

    def as_state(self, state: str, like: str) -> str:
        """Text of a state of the loop over time, in the dtype that states have."""
        return f"{state}.to(_accumulator({like}.dtype))" if self.exact else state

    @cached_property
    def back(self) -> RoleScan:
        """The scan whose recurrence is the reversed one."""
        return next(s for s in self.adjoint.scans if s.direction is ScanDirection.REVERSE)

    @property
    def back_key(self) -> str:
        """Variable of the reversed recurrence's key; a scan without keys reads all of the state."""
        return VARIABLE[Factor.READ if self.back.key is Factor.ONE else self.back.key]

    @property
    def back_value(self) -> str:
        """Variable of the reversed recurrence's value."""
        return VARIABLE[self.back.value]

    def results(self, direction: str) -> list[str]:
        """Variables of the factors whose gradients are read from the states of a direction."""
        return [VARIABLE[s.result] for s in self.adjoint.scans if s.direction.value == direction]

    @property
    def empties(self) -> str:
        """One empty list per gradient with a time axis."""
        return ", ".join(["[]"] * len(self.timed_grads))


class ElementwiseSkeleton(Skeleton):
    """A scan without keys: the state is the output, and h̃ the gradient of what drives it."""

    @property
    def tokens(self) -> list[str]:
        """Arguments `[B, L, ...]` besides the decay's."""
        return ["v"]
