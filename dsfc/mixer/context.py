"""Where an expression stands while it is typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dsfc.expr.tree import Axis, Expr
from dsfc.mixer.times import Clock


@dataclass(frozen=True, slots=True)
class Context:
    """Where an expression stands.

    Attributes:
        owner: the definition it belongs to.
        clock: time variables that may be named.
        taken: unique names of all enclosing time variables, nameable or not.
        args: what else a word stands for: arguments of the function being expanded, the index of a
            product over a window; None values were reported.
        calls: functions being expanded, outermost first.
        backward: whether the owner is a backward state, whose update may look ahead.
        draws: axes of a draw inside an initialiser after `~`; None where nothing may be drawn.
        constant: whether only constants may be named (initialisers and constants).
    """

    owner: str
    clock: Clock = field(default_factory=Clock)
    taken: frozenset[str] = frozenset()
    args: Mapping[str, Expr | None] = field(default_factory=dict)
    calls: tuple[str, ...] = ()
    backward: bool = False
    draws: frozenset[Axis] | None = None
    constant: bool = False
