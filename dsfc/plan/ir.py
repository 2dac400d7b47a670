"""The kernel graph: what a backend prints from, and nothing else.

    Plan = buffers + forward kernels (in order) + adjoint kernels of every scan
         + registers (earlier tokens kept while streaming) + modes, gauge + declarations

Eight kinds of kernel run forward. A `Pointwise` computes one buffer token by token; its expression
reads other buffers. A `Turn` puts the tokens of one buffer into the other order: a state that runs
backwards in time is a scan of turned buffers. A `Unit` holds the unit vectors of an axis, of which
the columns of a dense transition are made. A `Scan` runs one recurrence

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
from dsfc.expr.tree import Axis, Expr, Field, Relation


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
class Turn:
    """output_i = source_{L-1-i}: the tokens of one buffer, the last one first.

    Of a row whose last tokens do not count, those that do are turned and the others stay behind.
    """

    output: str
    source: str


class Form(Enum):
    """Which skeleton a scan needs, by the axes of its decay.

    MATRIX: decay has head axes only, so a chunk is two matrix products (class `scalar`).
    KEYED: decay has head and key axes; products are anchored inside a chunk (class `per_key`).
    SELECTIVE: decay has key and channel axes; the tile of decays is computed inside the kernel.
    ELEMENTWISE: no key axis; out_i = h_i.
    CONVOLUTION: decay, key and read are constants over heads ∪ keys and nothing is a channel, so
        all outputs are one convolution with K_l = Σ_keys read · λ^l · key (class `lti`).
    LOW_RANK: as MATRIX, and beside the decay each token rewrites what the state holds in one
        direction; inside a chunk that is a triangular system (class `low_rank`).
    KEYED_LOW_RANK: so too, with a decay of head and key axes; products are anchored as in KEYED.
    DENSE: a full matrix, the same at every token, mixes the entries of the state (class `dense`);
        out_i = h_i.
    DENSE_CONVOLUTION: so too, and key and read are constants: K_l = Σ_keys read · Λ^l · key.
    ATTENTION: no scan at all, but an `Attention` (class `softmax`).
    PAIRS: no scan, but an `AllPairs`: a function of every pair of tokens.
    STEPPED: no scan, but a `Recurrence`: one token after another, any class.
    """

    MATRIX = "matrix"
    KEYED = "keyed"
    SELECTIVE = "selective"
    ELEMENTWISE = "elementwise"
    CONVOLUTION = "convolution"
    LOW_RANK = "low_rank"
    KEYED_LOW_RANK = "keyed_low_rank"
    DENSE = "dense"
    DENSE_CONVOLUTION = "dense_convolution"
    ATTENTION = "attention"
    PAIRS = "pairs"
    STEPPED = "stepped"


LOW_RANK = (Form.LOW_RANK, Form.KEYED_LOW_RANK)
"""Forms whose transition is a diagonal plus rank one."""


class ScanDirection(Enum):
    """FORWARD: h_i = λ_i h_{i-1} + …. REVERSE: h̃_i = λ_{i+1} h̃_{i+1} + …, with λ_L = 1."""

    FORWARD = "forward"
    REVERSE = "reverse"


@dataclass(frozen=True, slots=True)
class Column:
    """A slice of a scan's value and output along the channel axis.

    Numerator and denominator of a ratio are two columns of one scan; the denominator's value is
    the constant 1 and takes one entry.

    Attributes:
        value: buffer over heads ∪ channels; None for the constant 1.
        output: buffer written, over heads ∪ channels.
        state: name of the state tensor the column stores.
        channels: its channel axes: those of the scan, or none.
    """

    value: str | None
    output: str
    state: str
    channels: tuple[Axis, ...]


@dataclass(frozen=True, slots=True)
class LogDecay:
    """log λ of a scan as an expression over leaf buffers.

    SELECTIVE scans combine leaves that lack the key axes, or have no time index, into the full tile
    inside. All others have one leaf and the expression is that leaf. A complex logarithm is log |λ|
    plus i times the phase of λ.

    Attributes:
        expr: reads each leaf as `Ref(leaf, Now(0))`, or `Ref(leaf, at=None)` for CONSTANT leaves.
        leaves: buffers (role STREAM or CONSTANT).
    """

    expr: Expr
    leaves: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LowRank:
    """What a token takes from the state and writes back: left ⊗ (Σ_keys right · h_{i-1}).

    Attributes:
        left: buffer over heads ∪ keys, along which it is written.
        right: buffer over heads ∪ keys, along which it is taken.
    """

    left: str
    right: str


@dataclass(frozen=True, slots=True)
class Transition:
    """A full matrix Λ: (Λ h)[rows] = Σ_columns Λ[rows, columns] h[columns].

    Attributes:
        matrix: buffer over heads ∪ rows ∪ columns, constant.
        rows: axes of the state that Λ mixes.
        columns: copies of the rows, in their order.
    """

    matrix: str
    rows: tuple[Axis, ...]
    columns: tuple[Axis, ...]


@dataclass(frozen=True, slots=True)
class Scan:
    """One recurrence; see the module docstring.

    Attributes:
        name: unique name of the scan ("S").
        heads: axes that enumerate independent recurrences.
        keys: axes contracted by the read.
        channels: the other axes.
        decay: None for λ = 1.
        key: buffer over heads ∪ keys; None (the constant 1) where there are no keys.
        read: buffer over heads ∪ keys; None where there are no keys.
        columns: what is driven and read.
        field: of the state.
        before: True for out_i = Σ read_i · h_{i-1}: the state is read before its update.
        real: True for out_i = Re Σ read_i · h_i, of a complex state driven by real values.
        low_rank: of the transition, beside its diagonal; None where that is all of it.
        transition: where it is dense, and `decay` is None; else None.
    """

    name: str
    form: Form
    heads: tuple[Axis, ...]
    keys: tuple[Axis, ...]
    channels: tuple[Axis, ...]
    decay: LogDecay | None
    key: str | None
    read: str | None
    columns: tuple[Column, ...]
    field: Field = Field.REAL
    before: bool = False
    real: bool = False
    low_rank: LowRank | None = None
    transition: Transition | None = None

    @property
    def powers(self) -> bool:
        """Whether its keys are products of keys: two key axes are copies of one."""
        return any(a.copy_of is not None for a in self.keys)

    @property
    def decay_axes(self) -> tuple[Axis, ...]:
        """Axes that log λ may have."""
        match self.form:
            case Form.MATRIX | Form.LOW_RANK:
                return self.heads
            case Form.KEYED | Form.CONVOLUTION | Form.KEYED_LOW_RANK:
                return tuple(sorted((*self.heads, *self.keys)))
            case _:
                return tuple(sorted((*self.heads, *self.keys, *self.channels)))


@dataclass(frozen=True, slots=True)
class Attention:
    """output_i = Σ_{j ≤ i} w_ij value_j / Σ_{j ≤ i} w_ij, w_ij = exp(scale Σ_keys query_i key_j).

    The registers of `key`, `value` and `present` keep every token. Its gradient is the platform's.

    Attributes:
        heads: axes that enumerate independent weights.
        keys: axes that a score sums over.
        channels: the other axes of the value.
        scale: a number, over sizes.
        query: buffer over some of heads ∪ keys.
        key: the same; kept.
        value: buffer over some of heads ∪ channels; kept.
        present: buffer without axes, 1 at every token; kept: 0 where there was none.
        output: buffer over heads ∪ channels.
    """

    heads: tuple[Axis, ...]
    keys: tuple[Axis, ...]
    channels: tuple[Axis, ...]
    scale: Expr
    query: str
    key: str
    value: str
    present: str
    output: str

    @property
    def form(self) -> Form:
        """The skeleton that it needs, as that of a scan."""
        return Form.ATTENTION

    @property
    def kept(self) -> tuple[str, ...]:
        """Buffers whose values at all earlier tokens it reads."""
        return self.key, self.value, self.present


@dataclass(frozen=True, slots=True)
class PairLeaf:
    """What a pair of tokens has of one of them, or of none.

    Attributes:
        name: in the summand, unique in the plan.
        buffer: what it is a value of.
        axes: of the buffer.
    """

    name: str
    buffer: str
    axes: tuple[Axis, ...]


@dataclass(frozen=True, slots=True)
class PairGradient:
    """The gradient of a leaf at one pair of tokens, to be summed over the pairs that it is in."""

    leaf: str
    value: Expr


@dataclass(frozen=True, slots=True)
class AllPairs:
    """output_i = Σ_j body(queries_i, keys_j, fixed, i - j), over the j in a relation to i - offset.

    It runs a sum that has no finite state and is no softmax attention. The registers of `keys` and
    `present` keep every token of a sum over the past; one over tokens to come has none.

    Attributes:
        output: buffer over `axes`.
        axes: canonical order.
        relation: of j to i - offset.
        offset: tokens.
        queries: leaves of token i.
        keys: leaves of token j; kept.
        fixed: leaves that are the same at every token.
        lag: name of i - j in the summand; None where nothing reads it.
        present: buffer without axes, 1 at every token; kept: 0 where there was none.
        body: the summand; reads leaves and the lag as `Ref(name, Now(0))`.
        bar: name of the gradient of the output at token i.
        gradients: derived; they read leaves, the lag and the bar.
        why: the reason why there is no finite state, as a clause; for messages.
    """

    output: str
    axes: tuple[Axis, ...]
    relation: Relation
    offset: int
    queries: tuple[PairLeaf, ...]
    keys: tuple[PairLeaf, ...]
    fixed: tuple[PairLeaf, ...]
    lag: str | None
    present: str
    body: Expr
    bar: str
    gradients: tuple[PairGradient, ...]
    why: str

    @property
    def form(self) -> Form:
        """The skeleton that it needs, as that of a scan."""
        return Form.PAIRS

    @property
    def later(self) -> bool:
        """Whether it sums over tokens to come."""
        return self.relation in (Relation.FROM, Relation.AFTER)

    @property
    def bound(self) -> int:
        """Least i - j of the pairs that count; the largest where it sums over later tokens."""
        strict = self.relation in (Relation.BEFORE, Relation.AFTER)
        return self.offset + (-1 if self.later else 1) * strict

    @property
    def leaves(self) -> tuple[PairLeaf, ...]:
        """All leaves, those of token i first, then those of token j."""
        return self.queries + self.keys + self.fixed

    @property
    def kept(self) -> tuple[str, ...]:
        """Buffers whose values at all earlier tokens it reads."""
        return () if self.later else (*(x.buffer for x in self.keys), self.present)


@dataclass(frozen=True, slots=True)
class Assignment:
    """name = value, inside a `Recurrence`: its value at one token.

    Attributes:
        name: unique in the recurrence.
        value: reads what stands before it as `Ref(name, Now(0))`, and a constant coefficient as
            `Ref(name, at=None)`.
        axes: canonical order; the value may lack some of them.
    """

    name: str
    value: Expr
    axes: tuple[Axis, ...]
    field: Field


@dataclass(frozen=True, slots=True)
class SteppedState:
    """A state tensor of a `Recurrence`, with the names of its values at a token.

    Attributes:
        state: name of the state tensor.
        before: its value before the token.
        after: its value after the token.
        bar: gradient with respect to the value after the token, as it comes from later tokens.
        bar_before: gradient with respect to the value before it, which earlier tokens take.
        field: of the state.
        bar_field: of its gradient inside; a real state that feeds a complex one has a complex one.
    """

    state: str
    axes: tuple[Axis, ...]
    before: str
    after: str
    bar: str
    bar_before: str
    field: Field
    bar_field: Field


@dataclass(frozen=True, slots=True)
class SteppedRead:
    """A buffer that a `Recurrence` writes.

    Attributes:
        output: the buffer.
        value: read of the states before and after a token.
        bar: name of the gradient with respect to it.
    """

    output: str
    value: Expr
    bar: str


@dataclass(frozen=True, slots=True)
class CoefficientGradient:
    """The gradient of a coefficient at one token; that of a constant is the sum over tokens."""

    coefficient: str
    value: Expr


@dataclass(frozen=True, slots=True)
class SteppedAdjoint:
    """The derived gradient of a `Recurrence`, token by token from the last to the first.

    Attributes:
        steps: from the gradient of the states after a token to that before it, in order; they
            read coefficients, gradients of reads and `SteppedState.bar`.
        values: what the gradients of coefficients read besides; it reads states as well.
        gradients: one per coefficient that has one.
    """

    steps: tuple[Assignment, ...]
    values: tuple[Assignment, ...]
    gradients: tuple[CoefficientGradient, ...]


@dataclass(frozen=True, slots=True)
class Recurrence:
    """All states of one stage of the System, stepped together token by token.

    It runs what no scan runs: states that read each other, decays that may be 0 or negative,
    several drives or factors. λ stands in it as it is, not as a logarithm.

    Attributes:
        name: unique name ("s_t").
        states: in the order of the stage.
        levels: from the states before a token to those after it: level k is factor k of every
            chain at once, and a shorter chain waits.
        coefficients: buffers that it reads, one of them at least with a time.
        transitions: those of them that multiply states on their way from token to token.
        reads: what it writes.
        adjoint: its gradient.
        backward: whether its buffers are turned: the stage runs backwards in time.
        why: the reason why no scan runs the stage, as a clause; for messages.
    """

    name: str
    states: tuple[SteppedState, ...]
    levels: tuple[tuple[Assignment, ...], ...]
    coefficients: tuple[str, ...]
    transitions: tuple[str, ...]
    reads: tuple[SteppedRead, ...]
    adjoint: SteppedAdjoint
    backward: bool
    why: str

    @property
    def form(self) -> Form:
        """The skeleton that it needs, as that of a scan."""
        return Form.STEPPED


class Factor(Enum):
    """A role of the forward scan, used by name in its adjoint.

    ECHO is Σ_keys right_i · h_{i-1}, ECHO_BAR its gradient Σ_keys left_i · h̃_i.
    """

    READ = "read"
    KEY = "key"
    VALUE = "value"
    COTANGENT = "out_bar"
    LEFT = "left"
    RIGHT = "right"
    ECHO = "echo"
    ECHO_BAR = "echo_bar"
    ONE = "1"


class Group(Enum):
    """Which group of axes a scan's read contracts."""

    KEYS = "keys"
    CHANNELS = "channels"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class RoleScan:
    """A scan of the adjoint: the forward scan's roles, exchanged.

    h_i = λ h + key ⊗ value (in `direction`), result_i = Σ_contracted read_i · h_i. With a low-rank
    part, left ⊗ echo is added forwards and, after the read, right ⊗ echo_bar in reverse.

    Attributes:
        result: the gradient it gives.
        key: factor over the key axes of the state.
        value: factor over the channel axes of the state.
        read: factor that multiplies the state before the contraction.
        contracted: group of axes summed over.
        carry: True when it also carries the state's gradient (final in, initial out).
        before: True where it reads h_{i-1}.
    """

    result: Factor
    direction: ScanDirection
    key: Factor
    value: Factor
    read: Factor
    contracted: Group
    carry: bool
    before: bool = False


@dataclass(frozen=True, slots=True)
class LeafGradient:
    """The gradient of one leaf of the log-decay from the gradient of log λ itself.

    Attributes:
        leaf: buffer.
        value: expression over the leaves and `Ref("log_decay_bar")`, summed onto the leaf's axes.
            A CONSTANT leaf is summed over batch and time as well.
    """

    leaf: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Pairing:
    """log λ̄_i = Σ ⟨h̃_i, λ_i h_{i-1}⟩ over the state's axes that the decay lacks."""

    summed: tuple[Axis, ...]
    leaves: tuple[LeafGradient, ...]


@dataclass(frozen=True, slots=True)
class Adjoint:
    """The derived gradient of one scan.

    Attributes:
        scan: name of the forward scan.
        scans: one per factor that needs a gradient, in order.
        pairing: None for λ = 1.
        transition: buffer of a dense Λ, whose gradient is Σ_i h̃_i ⊗ h_{i-1}; None where none is.
    """

    scan: str
    scans: tuple[RoleScan, ...]
    pairing: Pairing | None
    transition: str | None = None


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


Kernel = Pointwise | RunningMax | Turn | Unit | Scan | Attention | AllPairs | Recurrence


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
            isinstance(k, Turn) or (isinstance(k, AllPairs) and k.later) for k in self.kernels
        )

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
        """Returns a `networkx.MultiDiGraph` of kernels, inputs and states; see `dsfc.plan.view`."""
        # networkx takes a tenth of a second to import; only who asks for a graph pays for it.
        from dsfc.plan.view import to_networkx

        return to_networkx(self)
