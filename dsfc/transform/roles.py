"""What the adjoint of a stage consists of: the gradient of each role of a recurrence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from dsfc.expr.adjoints import real
from dsfc.expr.build import ONE, mul, ones, total, walk
from dsfc.expr.derivative import MapGradient
from dsfc.expr.tree import Axis, Expr, Field, Mul, Now, Reduce, Reduction, Ref, Time
from dsfc.system.ir import Stage, Stream, Term


class Role(Enum):
    """What a vector does in a recurrence or a read."""

    READ_LEFT = "left vector of a read"
    READ_RIGHT = "right vector of a read"
    DRIVE_KEY = "key of a drive"
    DRIVE_STREAM = "stream of a drive"
    DECAY = "diagonal of a factor"
    TERM_LEFT = "left vector of a term"
    TERM_RIGHT = "right vector of a term"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a role stands.

    Attributes:
        state: the block whose update it is in; for reads the state read.
        factor: position in the chain; for reads the position of the read among those given.
        index: position among the terms (or drives) of that factor or read.
    """

    state: str
    factor: int
    index: int


@dataclass(frozen=True, slots=True)
class Gradient:
    """The gradient of one role, per token.

    Attributes:
        role: the role.
        place: where it stands.
        leaf: the forward expression whose gradient this is.
        value: the gradient, with the axes of `leaf`: contractions over `Ref`s of token-wise values,
            of cotangents of reads and of the state values listed in `StageAdjoint.values`.
        read: the same as a read of one state value (`source` names a state value, lag 0), where the
            gradient has that form.
        log: for decays, the gradient of log |λ|: Σ Re(h̃ · conj(λ h)); None otherwise.
        phase: for complex decays, the gradient of the argument of λ: Σ Im(h̃ · conj(λ h)).
    """

    role: Role
    place: Place
    leaf: Expr
    value: Expr
    read: Term | None = None
    log: Expr | None = None
    phase: Expr | None = None

    @property
    def pairing(self) -> bool:
        """Whether the gradient pairs two state values (as that of a decay does)."""
        return self.role in (Role.DECAY, Role.TERM_LEFT, Role.TERM_RIGHT)


@dataclass(frozen=True, slots=True)
class StateValue:
    """A value of a state at one level of its chain, as a stream.

    Attributes:
        name: name of the stream.
        state: the forward state.
        level: 0 is h_{i-1}; k is the value after k factors; the chain's length is h_i.
        cotangent: True for the gradient with respect to that value.
        stream: the stream's definition, from the state (or its reversed counterpart) and the
            token-wise values.
    """

    name: str
    state: str
    level: int
    cotangent: bool
    stream: Stream

    @property
    def ref(self) -> Ref:
        """The value at the present token."""
        return Ref(self.name, frozenset(self.stream.axes), self.stream.field, Time.TOKEN, Now(0))


@dataclass(frozen=True, slots=True)
class StageGradients:
    """Gradients of vectors and of matrices."""

    vectors: tuple[Gradient, ...]
    maps: tuple[MapGradient, ...]


@dataclass(frozen=True, slots=True)
class StageAdjoint:
    """The adjoint of a stage; see the module docstring.

    Attributes:
        stage: the reversed stage.
        reversed_state: pairs (forward state, its counterpart g).
        values: state values that the gradients use, in dependency order.
        gradients: one per role that is not a constant number, of reads and of the update.
        maps: gradients of the matrices of reads and of dense transitions.
        of_update: those gradients that are not of reads.
    """

    stage: Stage
    reversed_state: tuple[tuple[str, str], ...]
    values: tuple[StateValue, ...]
    gradients: tuple[Gradient, ...]
    maps: tuple[MapGradient, ...]
    of_update: StageGradients

    def value(self, state: str, level: int, cotangent: bool) -> StateValue:
        """Returns the state value of that kind.

        Raises:
            KeyError: the stage has none.
        """
        for v in self.values:
            if (v.state, v.level, v.cotangent) == (state, level, cotangent):
                return v
        raise KeyError((state, level, cotangent))


def fitted(value: Expr, leaf: Expr) -> Expr:
    """Returns a gradient summed over the axes its leaf lacks, real when the leaf is real."""
    out = total(value.axes - leaf.axes, value)
    missing = leaf.axes - out.axes
    if missing:
        out = mul(out, ones(missing))
    return real(out) if leaf.field is Field.REAL else out


def as_read(value: Expr, states: frozenset[str]) -> Term | None:
    """Returns a gradient Σ_over(weight · state) as a read of that state.

    Args:
        value: the gradient.
        states: names of state values.

    Returns:
        The read, None when the gradient has another form.
    """
    over: set[Axis] = set()
    while isinstance(value, Reduce) and value.how is Reduction.SUM:
        over.add(value.axis)
        value = value.arg
    parts = value.args if isinstance(value, Mul) else (value,)
    hits = [p for p in parts if isinstance(p, Ref) and p.name in states]
    others = [p for p in parts if p not in hits]
    reached = any(isinstance(e, Ref) and e.name in states for p in others for e in walk(p))
    if len(hits) != 1 or reached:
        return None
    (state,) = hits
    weight = mul(*others) if others else ONE
    if not weight.axes <= state.axes or not over <= state.axes:
        return None
    return Term(state.name, 0, ONE, frozenset(over), weight)
