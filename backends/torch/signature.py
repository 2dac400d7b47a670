"""What an emitted module takes and returns, by name: all that its sections have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dsfc.expr.tree import Axis
from dsfc.plan.ir import Plan
from dsfc.plan.sensitive import sensitive

from .parameters import ParameterText, parameters, stored_axes
from .sizes import SizeText, sizes


@dataclass(frozen=True, slots=True)
class TensorText:
    """An input or a tensor of the state.

    Attributes:
        name: identifier.
        layout: text of its axes, such as `[B, L, h, n]`.
        note: what a docstring says besides.
        backward: whether it is a state that runs backwards in time.
    """

    name: str
    layout: str
    note: str = ""
    backward: bool = False

    @property
    def meaning(self) -> str:
        """What a docstring says of it, without full stop."""
        return f"`{self.layout}`{self.note and ', '}{self.note}"

    @property
    def start(self) -> str:
        """Where a state that is given stands."""
        return "after the last token" if self.backward else "before the first token"


@dataclass(frozen=True, slots=True)
class Signature:
    """The names of a module: of its class and functional form, and of every tensor and size.

    Attributes:
        class_name: of the `nn.Module`.
        function: name of the functional form.
        identifier: name of the spec → name in the text.
        inputs: arguments over time, in the order of the spec.
        parameters: parameters, then buffers.
        states: tensors of the state: the scans' columns, then the registers.
        sizes: size arguments of the constructor.
        output: the result, `[B, L, *axes]`.
        sensitive: names in the spec of the parameters and buffers that stay in float32 at least.
    """

    class_name: str
    function: str
    identifier: Callable[[str], str]
    inputs: tuple[TensorText, ...]
    parameters: tuple[ParameterText, ...]
    states: tuple[TensorText, ...]
    sizes: tuple[SizeText, ...]
    output: TensorText
    sensitive: frozenset[str]

    @property
    def input_names(self) -> list[str]:
        """Identifiers of the inputs."""
        return [t.name for t in self.inputs]

    @property
    def like(self) -> str:
        """Identifier of the input that gives batch, length, device and dtype."""
        return self.inputs[0].name

    @property
    def kept(self) -> list[str]:
        """Attributes of the parameters and buffers that stay in float32 at least."""
        return [p.attribute for p in self.parameters if p.kept]

    @property
    def undecayed(self) -> list[str]:
        """Attributes of the parameters that weight decay would drive elsewhere than to 0."""
        return [p.attribute for p in self.parameters if (p.kept or p.constrained) and not p.buffer]

    @property
    def anchor(self) -> str | None:
        """Text of a tensor of the layer with its dtype; None where it has to have one made."""
        first = next((p.attribute for p in self.parameters if not p.kept), None)
        return None if first is None else f"self.{first}"

    @property
    def complex(self) -> bool:
        """Whether a parameter is stored as two parts."""
        return any(p.complex for p in self.parameters)

    def size(self, axis: Axis) -> str:
        """Returns the identifier of an axis' size; a copy has that of its original."""
        return self.identifier(axis.copy_of or axis.name)


def signature(
    plan: Plan, identifier: Callable[[str], str], class_name: str, function_name: str
) -> Signature:
    """Returns the names and layouts of a plan's module."""
    columns = [
        TensorText(identifier(s.name), layout(("B",), s.axes), backward=s.backward)
        for s in plan.states
    ]
    registers = [
        TensorText(
            identifier(r.name),
            layout(("B", "T" if r.grows else "K"), r.axes),
            f"{r.buffer} of every token" if r.grows else f"the last K values of {r.buffer}",
        )
        for r in plan.registers
    ]
    result = layout(("B", "L"), plan.array(plan.output).axes)
    kept = sensitive(plan)
    return Signature(
        class_name,
        function_name,
        identifier,
        tuple(TensorText(identifier(t.name), layout(("B", "L"), t.axes)) for t in plan.inputs),
        parameters(plan, identifier, kept),
        (*columns, *registers),
        sizes(plan, identifier),
        TensorText(identifier(plan.result), result),
        kept,
    )


def layout(lead: tuple[str, ...], axes: tuple[Axis, ...]) -> str:
    """Returns the text of a tensor's axes behind those that no spec declares."""
    return f"[{', '.join([*lead, *(a.name for a in axes)])}]"


def described(inputs: Iterable[TensorText]) -> list[str]:
    """Returns what a docstring says of inputs."""
    return [f"{i.name}: {i.meaning}." for i in inputs]


def shaped(parameters: Iterable[ParameterText]) -> list[str]:
    """Returns what a docstring says of parameters' values; those of one shape stand together."""
    by_shape: dict[str, list[str]] = {}
    for p in parameters:
        by_shape.setdefault(f"`[{', '.join(p.axes)}]`", []).append(p.name)
    return [f"{', '.join(names)}: {shape}." for shape, names in by_shape.items()]


def size_read(plan: Plan, identifier: Callable[[str], str], axis: str) -> str | None:
    """Returns text that reads an axis' size off a parameter, buffer or input; None if none has it.

    Args:
        plan: the plan.
        identifier: name of the spec → name in the text.
        axis: name of the axis in the spec.
    """
    for t in (*plan.params, *plan.buffers):
        for at, a in enumerate(stored_axes(t)):
            if a.name == axis:
                return f"{identifier(t.name)}.shape[{at}]"
    for i in plan.inputs:
        for at, a in enumerate(i.axes):
            if a.name == axis:
                return f"{identifier(i.name)}.shape[{at + 2}]"
    return None
