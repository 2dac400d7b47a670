r"""The Dynamical Systems Form as a value: streams → stages → read-out tree.

    stream   a token-wise value, or a read of an earlier stage
    stage    one strongly connected set of states, jointly affine:
             h_i = F_k( … F_1(h_{i-1})),   each factor F: h ← Σ terms(h) + Σ drives
    term     dst += left · Σ_over( right · [matrix] src )
    output   y = read-out tree over reads C h + D u

The shape of a term is closed under transposition: the transpose of (left, over, right) is
(right, axes(dst) \ kept, left), with `matrix` and `after` exchanged. That is why the adjoint of a
System is a System, term by term.

Decays are stored as logarithms; |λ| ≤ 1 is then the one check that the real part is ≤ 0.
Dense Λ, B, C, D are renderings of this value, not fields of it.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import Enum, IntEnum

from dsfc.expr.declarations import AbstractMap, Dimension, FlowRule, MapTensor, Provenance, Tensor
from dsfc.expr.over_time import Past
from dsfc.expr.tree import Axis, Expr, Field, LinearMap
from dsfc.source import Span


class Direction(IntEnum):
    """Which way a stage runs; the value is the lag of its recurrence terms."""

    FORWARD = 1
    BACKWARD = -1


@dataclass(frozen=True, slots=True)
class Term:
    r"""One linear operator between state tensors: dst += left · Σ_over(right · matrix(src)).

    With kept = axes(src) \ over: axes(dst) = kept ∪ axes(left), axes(right) ⊆ axes(src). An axis
    in both `over` and `left` is re-introduced: two different indices with one name. Where nothing
    is re-introduced, `right` may have further axes, which are then axes of dst: a group of queries
    over one key, Σ_n q[g, n] S[n, p].

    Attributes:
        source: the state read.
        lag: 1 (forward recurrence, pre-read), -1 (backward), 0 (post-read, or inside a chain).
        matrix: a linear map applied to the source before `right`, for dense transitions.
        after: a linear map applied to the result after `left`; then axes(dst) are those it gives.
            Transposition exchanges it with `matrix`.
    """

    source: str
    lag: int
    left: Expr
    over: frozenset[Axis]
    right: Expr
    matrix: LinearMap | None = None
    after: LinearMap | None = None


class CouplingKind(Enum):
    """How the drive's key depends on the decay λ (mixers.md calls it β(Λ))."""

    FREE = "free"
    EULER = "−log λ / a"
    ZOH = "(λ − 1) / a"
    BILINEAR = "(1 + λ) Δ / 2"
    ONE_MINUS = "1 − λ"
    SQRT_ONE_MINUS_SQ = "√(1 − λ²)"
    LOW_RANK = "low rank (left factor)"


@dataclass(frozen=True, slots=True)
class Coupling:
    """The factor of a drive's key that is a function of the decay, and what is left of it.

    Attributes:
        kind: which function.
        scale: `a` of the function, or the remaining constant; None where there is none.
    """

    kind: CouplingKind
    scale: Expr | None = None


FREE = Coupling(CouplingKind.FREE)


@dataclass(frozen=True, slots=True)
class Drive:
    """An input term B u = key · stream, with the state's axes. Denominators have stream 1."""

    key: Expr
    stream: Expr
    coupling: Coupling = FREE


@dataclass(frozen=True, slots=True)
class Factor:
    """One factor of a transition: h ← Σ terms(h) + Σ drives. Diagonal terms are merged into one."""

    terms: tuple[Term, ...]
    drives: tuple[Drive, ...]


class LogForm(Enum):
    """Whether a decay's logarithm is a closed expression, or log of an expression."""

    EXACT = "exact"
    LOG_OF = "log of"


@dataclass(frozen=True, slots=True)
class Decay:
    """The diagonal of the whole transition, λ = exp(log + i · phase).

    Attributes:
        value: λ itself, as an expression.
        log: log |λ| (or log λ when `phase` is None and λ is complex without closed polar form).
        phase: argument of λ, None for real decays.
        form: whether `log` is closed.
    """

    value: Expr
    log: Expr
    phase: Expr | None
    form: LogForm


class GaugeKind(Enum):
    """A time-varying change of state basis; it leaves input and output alone."""

    IDENTITY = "identity"
    ETA = "eta"
    RUNNING_MAX = "running max"


@dataclass(frozen=True, slots=True)
class Gauge:
    """The gauge a block is stored in: h = factor⁻¹ · h in the identity gauge.

    Attributes:
        factor: the scale T_i (a token-wise expression), None for the identity.
        shared_with: other blocks that carry the same factor (numerator and denominator).
    """

    kind: GaugeKind = GaugeKind.IDENTITY
    factor: Expr | None = None
    shared_with: tuple[str, ...] = ()


IDENTITY_GAUGE = Gauge()


@dataclass(frozen=True, slots=True)
class KeptFlow:
    """The continuous form a block came from: coupling, bound and spectrum are read from it.

    x' = diagonal · x + Σ_k left_k Σ_over(right_k x) + drive, discretised by `rule` with `step`.
    """

    rule: FlowRule
    step: Expr
    diagonal: Expr
    low_rank: tuple[tuple[Expr, frozenset[Axis], Expr], ...]
    drive: Expr


@dataclass(frozen=True, slots=True)
class Block:
    """One state tensor and its update.

    Attributes:
        state: its name.
        axes: canonical order.
        field: real or complex.
        chain: the factors in order of application; length 1 for most.
        decay: the diagonal part, None where there is no diagonal (dense transitions).
        flow: the continuous form, where the spec gave one.
        gauge: the basis the block is stored in.
        declared: True when the spec declares this state (its name is the user's).
    """

    state: str
    axes: tuple[Axis, ...]
    field: Field
    chain: tuple[Factor, ...]
    decay: Decay | None
    flow: KeptFlow | None = None
    gauge: Gauge = IDENTITY_GAUGE
    declared: bool = True
    provenance: Provenance | None = None
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Stage:
    """One strongly connected set of blocks, jointly affine, all running the same way."""

    direction: Direction
    blocks: tuple[Block, ...]


# --- read-outs ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Read:
    """C h + D u: the only leaf that touches states. PRE or POST is each term's lag."""

    terms: tuple[Term, ...]
    direct: Expr | None = None


@dataclass(frozen=True, slots=True)
class Direct:
    """A token-wise value."""

    value: Expr


@dataclass(frozen=True, slots=True)
class Cache:
    """A sum over the past with no finite state.

    Attributes:
        past: the sum, its body over streams.
        why: the factor that does not separate.
    """

    past: Past
    why: str


@dataclass(frozen=True, slots=True)
class MaxPlus:
    r"""A running maximum, m_i = max(m_{i-1} + log_decay_i, log_weight_i): a stream by itself.

    It is the log of the largest weight in Σ_j (Π_{k > j} λ_k) w_j. m_{-1} is handed on as the state
    is, and is `LOWEST` where nothing came before. One that the spec does not declare is a reference
    that the outputs do not depend on: it has no gradient, and starts from 0 beside states that are
    given without it.

    Attributes:
        log_decay: log λ, real.
        log_weight: log w, real.
        declared: whether the spec declares it: it is a value like any other, with a gradient.
    """

    log_decay: Expr
    log_weight: Expr
    declared: bool = False


@dataclass(frozen=True, slots=True)
class Gate:
    """An elementwise, token-wise factor."""

    factor: Expr
    arg: ReadOut


@dataclass(frozen=True, slots=True)
class Product:
    """An elementwise product of reads."""

    args: tuple[ReadOut, ...]


class GuardKind(Enum):
    """What keeps a denominator away from zero."""

    NONE = "none"
    ADD = "+ ε"
    MAX_ABS = "max(|·|, c)"


@dataclass(frozen=True, slots=True)
class Guard:
    """A guard with its constant."""

    kind: GuardKind = GuardKind.NONE
    constant: Expr | None = None


@dataclass(frozen=True, slots=True)
class Ratio:
    """num / guard(den)."""

    num: ReadOut
    den: ReadOut
    guard: Guard = Guard()


class ComplexPart(Enum):
    """Which part of a complex value a cast takes."""

    RE = "Re"
    IM = "Im"


@dataclass(frozen=True, slots=True)
class Cast:
    """Re or Im: the only way from a complex state to a real output."""

    part: ComplexPart
    arg: ReadOut


@dataclass(frozen=True, slots=True)
class Sum:
    """A sum of read-outs (D outside a cast, forward plus reversed branches)."""

    args: tuple[ReadOut, ...]


@dataclass(frozen=True, slots=True)
class MapOut:
    """A linear map applied to a read-out."""

    map: LinearMap
    arg: ReadOut


@dataclass(frozen=True, slots=True)
class Post:
    """A primitive applied to read-outs (tanh, silu, rmsnorm over an axis, abs, max …).

    Attributes:
        name: row of the primitive table.
        args: its arguments; token-wise ones are `Direct`.
        axis: for primitives along an axis.
    """

    name: str
    args: tuple[ReadOut, ...]
    axis: Axis | None = None


@dataclass(frozen=True, slots=True)
class SumOver:
    """Σ over one axis of a read-out that is not affine in the states."""

    axis: Axis
    arg: ReadOut


ReadOut = (
    Read | Direct | Cache | MaxPlus | Gate | Product | Ratio | Cast | Sum | MapOut | Post | SumOver
)


@dataclass(frozen=True, slots=True)
class Stream:
    """A named value per token.

    An expression of inputs, parameters and earlier streams, a read-out of earlier stages, or a
    running maximum of such expressions.
    `constant` streams have no time index (definitions that reach no input); they are read as
    `Ref(name, at=None)`.
    """

    name: str
    value: Expr | ReadOut
    axes: tuple[Axis, ...]
    field: Field
    constant: bool = False
    provenance: Provenance | None = None
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Output:
    """A named result.

    Attributes:
        over_time: True when the result is summed over the sequence (gradients of parameters).
    """

    name: str
    value: ReadOut
    axes: tuple[Axis, ...]
    field: Field = Field.REAL
    over_time: bool = False
    provenance: Provenance | None = None
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the derivation: which rule did what, for `show`, proofs and messages."""

    rule: str
    detail: str
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class System:
    """A mixer in Dynamical Systems Form; see the module docstring.

    Attributes:
        name: of the mixer, ASCII.
        doc: its description, if any.
        axes: every dimension, fresh copies of axes (tensor powers) included.
        inputs: streams that the module takes, by their axes at one token.
        params: trained tensors and linear maps.
        buffers: fixed ones.
        abstracts: functions of which nothing is known.
        streams: in dependency order. A stream may read stages that stand before those it feeds.
        stages: in topological order.
        outputs: one, called "y", for a mixer; several for an adjoint.
        definition: text of the definition of each name in mixer form, for docstrings.
        claims: canonical text of each claim.
        derivation: which rule did what, in order.
    """

    name: str
    doc: str | None
    axes: tuple[Dimension, ...]
    inputs: tuple[Tensor, ...]
    params: tuple[Tensor | MapTensor, ...]
    buffers: tuple[Tensor | MapTensor, ...]
    abstracts: tuple[AbstractMap, ...]
    streams: tuple[Stream, ...]
    stages: tuple[Stage, ...]
    outputs: tuple[Output, ...]
    definition: tuple[Definition, ...]
    claims: tuple[str, ...]
    derivation: tuple[Step, ...]

    def __repr__(self) -> str:
        """Returns one line for a terminal; `dsfc.system.index_form` writes out the whole."""
        said = {
            "inputs": [t.name for t in self.inputs],
            "states": [b.state for b in self.blocks],
            "outputs": [o.name for o in self.outputs],
        }
        listed = "; ".join(f"{what} {', '.join(names)}" for what, names in said.items() if names)
        return f"<System {self.name}: {listed}>"

    @property
    def read_out(self) -> ReadOut:
        """The read-out of the first output."""
        return self.outputs[0].value

    @property
    def blocks(self) -> tuple[Block, ...]:
        """All blocks of all stages, in order."""
        return tuple(b for s in self.stages for b in s.blocks)


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition of the mixer as an expression tree (sums over the past included).

    The float64 reference of an emitted module is printed from these, not from the derived form.

    Attributes:
        update: True when this is the update of a declared state.
        backward: direction of that state.
        axes: canonical order.
        maximum: whether that state is a running maximum, which starts from `LOWEST`.
    """

    name: str
    value: Expr
    axes: tuple[Axis, ...]
    field: Field
    update: bool = False
    backward: bool = False
    maximum: bool = False
