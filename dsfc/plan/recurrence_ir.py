"""States that are stepped token by token: a node of the kernel graph; see `dsfc.plan.ir`."""

from __future__ import annotations

from dataclasses import dataclass

from dsfc.expr.tree import Axis, Expr, Field
from dsfc.plan.scan_ir import Form


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
        backward: whether its buffers are reversed: the stage runs backwards in time.
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
