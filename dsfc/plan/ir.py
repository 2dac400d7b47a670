"""The kernel graph: what a backend prints from, and nothing else.

    Plan = buffers + forward kernels (in order) + adjoint kernels of every scan
         + registers (earlier tokens kept while streaming) + modes, gauge + declarations

Eight kinds of kernel run forward. A `Pointwise` computes one buffer token by token; its expression
reads other buffers. A `Reverse` puts the tokens of one buffer into the other order: a state that
runs backwards in time is a scan of reversed buffers. A `Unit` holds the unit vectors of an axis, of
which the columns of a dense transition are made. A `Scan` runs one recurrence

    h_i = λ_i · h_{i-1} + key_i ⊗ value_i        out_i = Σ_contracted read_i · h_i

or, with a transition of diagonal plus rank one, the same with left_i ⊗ (Σ_keys right_i · h_{i-1})
added to it; or, with a dense one, h_i = Λ h_{i-1} + key ⊗ value_i with a full matrix Λ. An
`Attention` has no recurrence: it weighs the values of all tokens so far, which registers keep, and
an `AllPairs` adds up any other function of pairs of tokens, with its derived gradient. A
`Recurrence` steps all states of a stage of the System together, whatever their update; it holds its
own adjoint, and runs where no scan does. A `RunningMax` is m_i = max(m_{i-1} + log λ_i, log w_i),
which states with unbounded weights are scaled by.

The adjoint of a scan is a list of scans that run the other way with roles exchanged, and
`Pairing`s ⟨h̃_i, λ_i h_{i-1}⟩; `dsfc.transform` derives it, no backend knows a gradient.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from dsfc.expr.declarations import (
    Dimension,
    MapTensor,
    Provenance,
    Tensor,
)
from dsfc.expr.tree import Axis, Expr, Field
from dsfc.plan.pairs_ir import AllPairs, Attention
from dsfc.plan.recurrence_ir import Recurrence
from dsfc.plan.scan_ir import Adjoint, Scan


class Role(Enum):
    """What a buffer is to the module."""

    INPUT = "input"
    STREAM = "stream"
    CONSTANT = "constant"
    OUTPUT = "output"
    STATE = "state"
    COTANGENT = "cotangent"
    GRADIENT = "gradient"


@dataclass(frozen=True, slots=True)
class Buffer:
    """A named array of the graph.

    Layout `[B, L, *axes]`; `[*axes]` for CONSTANT; `[B, *axes]` for STATE.

    Attributes:
        name: ASCII name, unique in the plan, as the spec gives it where it is the spec's.
        axes: canonical order.
        provenance: paper and equation, carried into comments.
    """

    name: str
    axes: tuple[Axis, ...]
    field: Field
    role: Role
    provenance: Provenance | None = None


@dataclass(frozen=True, slots=True)
class Pointwise:
    """output = value, token by token. Reads buffers as `Ref` and parameters as `Param`/`Map`."""

    output: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Unit:
    """output[row, column] = 1 where both indices are one number, else 0."""

    output: str
    row: Axis
    column: Axis


@dataclass(frozen=True, slots=True)
class RunningMax:
    """output_i = max(output_{i-1} + decay_i, weight_i).

    The register of the output holds output_{-1}, which is `LOWEST` where nothing came before. One
    that the spec does not declare is a reference: it has no gradient. The gradient of one that it
    declares goes to the larger of the two, and where they are equal half to each.

    Attributes:
        output: buffer written.
        decay: buffer of log λ; None for 0.
        weight: buffer of log w.
        declared: whether the spec declares it.
    """

    output: str
    decay: str | None
    weight: str
    declared: bool = False


@dataclass(frozen=True, slots=True)
class Reverse:
    """output_i = source_{L-1-i}: the tokens of one buffer, the last one first.

    Of a row whose last tokens do not count, those that do are reversed and the others stay behind.
    """

    output: str
    source: str


@dataclass(frozen=True, slots=True)
class Register:
    """The last values of a buffer, kept in the state so that streaming sees them.

    Layout `[B, length, *axes]`, the oldest first, 0 before the start of the sequence, or of a
    running maximum `LOWEST`. The stream `first` is 1 minus the previous value of the constant 1.

    Attributes:
        name: of the state tensor.
        buffer: what is kept.
        lengths: how many values; the largest of these expressions over sizes. None of them: all
            values, what an attention reads; the register grows by each token.
    """

    name: str
    buffer: str
    lengths: tuple[Expr, ...]
    axes: tuple[Axis, ...]
    field: Field

    @property
    def grows(self) -> bool:
        """Whether it keeps all tokens."""
        return not self.lengths


@dataclass(frozen=True, slots=True)
class StateTensor:
    """One tensor of the module's state, `[B, *axes]`.

    Attributes:
        backward: whether it runs from the last token to the first, and starts after the last.
    """

    name: str
    axes: tuple[Axis, ...]
    field: Field
    backward: bool = False


@dataclass(frozen=True, slots=True)
class Mode:
    """A way to run the scans, with its verdict and the reason for it."""

    name: str
    legal: bool
    why: str


@dataclass(frozen=True, slots=True)
class Reference:
    """One definition of the mixer, as written, for the float64 reference.

    Attributes:
        update: True when it is the update of a declared state.
        maximum: whether that state is a running maximum, which starts from `LOWEST`.
    """

    name: str
    value: Expr
    axes: tuple[Axis, ...]
    field: Field
    update: bool
    maximum: bool = False


Kernel = Pointwise | RunningMax | Reverse | Unit | Scan | Attention | AllPairs | Recurrence


@dataclass(frozen=True, slots=True)
class Plan:
    """A mixer as a kernel graph, with all that a module's text needs.

    Attributes:
        name: the mixer.
        doc: its one-line description.
        axes: dimensions.
        inputs, params, buffers: declarations.
        arrays: every buffer of the graph.
        kernels: forward kernels in order.
        adjoints: one per scan, in order.
        registers: earlier tokens kept while streaming.
        states: tensors of the module's state: those of scans and recurrences.
        output: buffer returned.
        result: name of the output in the spec.
        gauge: the gauge the states are stored in, in words.
        modes: every mode of the language, legal or not, with reasons.
        reference: definitions for the float64 reference, in dependency order.
        system: stable text of the derived system's equations, for docstrings.
        structure: stable text of its class and of each block's cell and bound.
        provenance: what the spec cites, one line per definition.
    """

    name: str
    doc: str | None
    axes: tuple[Dimension, ...]
    inputs: tuple[Tensor, ...]
    params: tuple[Tensor | MapTensor, ...]
    buffers: tuple[Tensor | MapTensor, ...]
    arrays: tuple[Buffer, ...]
    kernels: tuple[Kernel, ...]
    adjoints: tuple[Adjoint, ...]
    registers: tuple[Register, ...]
    states: tuple[StateTensor, ...]
    output: str
    result: str
    gauge: str
    modes: tuple[Mode, ...]
    reference: tuple[Reference, ...]
    system: str
    structure: str
    provenance: tuple[str, ...]

    @property
    def causal(self) -> bool:
        """Whether no output needs a token to come: nothing runs backwards in time."""
        return not any(
            isinstance(k, Reverse) or (isinstance(k, AllPairs) and k.later) for k in self.kernels
        )

    @property
    def backwards(self) -> str | None:
        """What runs backwards in time, with its verb: "s runs"; None where nothing does."""
        if self.causal:
            return None
        names = [s.name for s in self.states if s.backward]
        if not names:
            return "a sum over tokens to come runs"
        return f"{', '.join(names)} run{'s' if len(names) == 1 else ''}"

    @property
    def maxima(self) -> tuple[Register, ...]:
        """Registers that hand on running maxima."""
        buffers = {k.output for k in self.kernels if isinstance(k, RunningMax)}
        return tuple(r for r in self.registers if r.buffer in buffers)

    @property
    def references(self) -> tuple[Register, ...]:
        """Those of maxima that the spec does not declare: states are stored over them."""
        declared = {k.output for k in self.kernels if isinstance(k, RunningMax) and k.declared}
        return tuple(r for r in self.maxima if r.buffer not in declared)

    @property
    def recurrent_only(self) -> str | None:
        """Why one token after another is the only mode, as a clause; None where there are more."""
        legal = [m.name for m in self.modes if m.legal]
        if legal != ["recurrent"]:
            return None
        return next(m.why for m in self.modes if not m.legal)

    @property
    def pairs_only(self) -> str | None:
        """Why all pairs of tokens are the only form, as a clause; None where nothing needs them."""
        why = dict.fromkeys(k.why for k in self.kernels if isinstance(k, AllPairs))
        return "; ".join(why) or None

    def array(self, name: str) -> Buffer:
        """Returns the buffer of that name.

        Args:
            name: ASCII name.

        Raises:
            KeyError: no such buffer.
        """
        for b in self.arrays:
            if b.name == name:
                return b
        raise KeyError(name)

    def to_networkx(self) -> Any:  # noqa: ANN401 - networkx has no types
        """Returns a `networkx.MultiDiGraph` of kernels, inputs and states; see `flow_graph`."""
        # networkx takes a tenth of a second to import; only who asks for a graph pays for it.
        from dsfc.plan.flow_graph import to_networkx

        return to_networkx(self)

    def __repr__(self) -> str:
        """Returns one line for a terminal; `dsfc.plan.render` writes out the whole."""
        modes = ", ".join(mode.name for mode in self.modes if mode.legal)
        return f"<Plan {self.name}: {len(self.kernels)} kernels; modes {modes}>"

    def _repr_html_(self) -> str:
        """Returns what a notebook shows."""
        from dsfc.plan.html import html

        return html(self)
