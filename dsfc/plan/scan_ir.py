"""Scans of a plan and their adjoints: nodes of the kernel graph; see `dsfc.plan.ir`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from dsfc.expr.tree import Axis, Expr, Field


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
    DELTA: as LOW_RANK, and what a token rewrites is what its key finds: one vector does all three.
    KEYED_DELTA: so too, with a decay of head and key axes.
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
    DELTA = "delta"
    KEYED_DELTA = "keyed_delta"
    DENSE = "dense"
    DENSE_CONVOLUTION = "dense_convolution"
    ATTENTION = "attention"
    PAIRS = "pairs"
    STEPPED = "stepped"


LOW_RANK = (Form.LOW_RANK, Form.KEYED_LOW_RANK, Form.DELTA, Form.KEYED_DELTA)
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
class DeltaRule:
    """The delta rule of a scan, h_i = f + key ⊗ (value + strength · retrieved).

    Here f = λ_i h_{i-1}, and retrieved = Σ_keys key · f.

    Attributes:
        strength: buffer over heads; -β of the delta rule.
    """

    strength: str


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
        delta: where the key that is written also says what is rewritten; else None.
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
    delta: DeltaRule | None = None
    transition: Transition | None = None

    @property
    def powers(self) -> bool:
        """Whether its keys are products of keys: two key axes are copies of one."""
        return any(a.copy_of is not None for a in self.keys)


class Factor(Enum):
    """A role of the forward scan, used by name in its adjoint.

    WY is Σ_keys right_i · h_{i-1}, WY_BAR its gradient Σ_keys left_i · h̃_i. Of a delta rule,
    RETRIEVED is Σ_keys key_i · λ_i h_{i-1}, RETRIEVED_BAR its gradient strength_i · value_bar_i,
    and WRITTEN is value_i + strength_i · retrieved_i.
    """

    READ = "read"
    KEY = "key"
    VALUE = "value"
    COTANGENT = "out_bar"
    LEFT = "left"
    RIGHT = "right"
    WY = "wy"
    WY_BAR = "wy_bar"
    STRENGTH = "strength"
    RETRIEVED = "retrieved"
    RETRIEVED_BAR = "retrieved_bar"
    WRITTEN = "written"
    VALUE_BAR = "value_bar"
    ONE = "1"


class Group(Enum):
    """Which group of axes a scan's read contracts."""

    KEYS = "keys"
    CHANNELS = "channels"
    NONE = "none"


class Moment(Enum):
    """Which state of token i is read: h_i, λ_i h_{i-1} or h_{i-1}."""

    AFTER = "after"
    DECAYED = "decayed"
    BEFORE = "before"


@dataclass(frozen=True, slots=True)
class RoleScan:
    """A scan of the adjoint: the forward scan's roles, exchanged.

    h_i = λ h + key ⊗ value (in `direction`), result_i = Σ_contracted read_i · h_i. With a low-rank
    part, left ⊗ wy is added forwards and, after the read, right ⊗ wy_bar in reverse; with a delta
    rule, key ⊗ retrieved_bar in reverse, before the decay.

    Attributes:
        result: the gradient it gives.
        key: factor over the key axes of the state.
        value: factor over the channel axes of the state.
        read: factor that multiplies the state before the contraction.
        contracted: group of axes summed over.
        carry: True when it also carries the state's gradient (final in, initial out).
        moment: which state it reads.
    """

    result: Factor
    direction: ScanDirection
    key: Factor
    value: Factor
    read: Factor
    contracted: Group
    carry: bool
    moment: Moment = Moment.AFTER


@dataclass(frozen=True, slots=True)
class RoleProduct:
    """A gradient without a state: result_i = Σ_channels left_i · right_i.

    Attributes:
        result: the factor whose gradient it is.
        left: factor over channels.
        right: factor over channels.
    """

    result: Factor
    left: Factor
    right: Factor


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
    """log λ̄_i = Σ ⟨f̃_i, λ_i h_{i-1}⟩ over the state's axes that the decay lacks.

    f̃ is the gradient of λ_i h_{i-1}: h̃_i, and with a delta rule key_i ⊗ retrieved_bar_i more.
    """

    summed: tuple[Axis, ...]
    leaves: tuple[LeafGradient, ...]


@dataclass(frozen=True, slots=True)
class Adjoint:
    """The derived gradient of one scan.

    Attributes:
        scan: name of the forward scan.
        scans: of each factor that needs a gradient, in order; the results of several of one factor
            add up.
        pairing: None for λ = 1.
        transition: buffer of a dense Λ, whose gradient is Σ_i h̃_i ⊗ h_{i-1}; None where none is.
        products: gradients that are products of what the scans compute.
    """

    scan: str
    scans: tuple[RoleScan, ...]
    pairing: Pairing | None
    transition: str | None = None
    products: tuple[RoleProduct, ...] = ()
