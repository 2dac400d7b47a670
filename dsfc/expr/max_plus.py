"""Max-plus recurrences: m_i = max(m_{i-1} + a_i, w_i), read off the update of a state.

Maximum and sum are the two operations of an algebra of their own, with -∞ as its zero. A state with
such an update is a running maximum. It starts from that zero, which is `LOWEST` in numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dsfc.expr.build import ZERO, add, mul, ones, prim, walk
from dsfc.expr.text import text
from dsfc.expr.tree import Add, Axis, Expr, Mul, Now, Prim, Ref

LOWEST = -(2.0**100)
"""A running maximum where nothing came before: below any weight that is a number."""

Values = Callable[[str], Expr | None]
"""The value of a definition by its name, None for other names."""


@dataclass(frozen=True, slots=True)
class RunningMaximum:
    """What an update says: m_i = max(m_{i-1} + log_decay_i, log_weight_i).

    Attributes:
        log_decay: real, per token or constant.
        log_weight: the same, with all axes of the state.
    """

    log_decay: Expr
    log_weight: Expr


class NotMaxPlus(Exception):
    """An update is a maximum that reads its own past, but no max-plus recurrence.

    Attributes:
        why: what is in the way, as a clause.
    """

    def __init__(self, why: str) -> None:
        """Takes the clause."""
        self.why = why
        super().__init__(why)


def running_maximum(
    name: str, update: Expr, axes: frozenset[Axis], values: Values
) -> RunningMaximum | None:
    """Returns an update as a max-plus recurrence, None where it is no maximum of its own past.

    Args:
        name: the state.
        update: its value at i.
        axes: of the state.
        values: what definitions stand for; those that read the state are put in.

    Raises:
        NotMaxPlus: it is a maximum that reads the state's past in another way.
    """
    reader = _Reader(name, values)
    top = reader.opened(update)
    if not (_is_max(top) and reader.reads(top)):
        return None
    decays: list[Expr] = []
    weights: list[Expr] = []
    for branch in reader.branches(top):
        if reader.reads(branch):
            decays.append(reader.added(branch))
        else:
            weights.append(branch)
    if not weights:
        raise NotMaxPlus(f"nothing but its own past enters the maximum `{text(top)}`")
    weight = _largest(weights)
    missing = axes - weight.axes
    return RunningMaximum(_largest(decays), mul(weight, ones(missing)) if missing else weight)


class _Reader:
    """Reads the update of one state; definitions that read the state are put in."""

    def __init__(self, name: str, values: Values) -> None:
        self._name = name
        self._values = values
        self._known: dict[str, bool] = {}

    def reads(self, e: Expr) -> bool:
        """Whether a value depends on the state."""
        return any(
            x.name == self._name or self._definition_reads(x.name)
            for x in walk(e)
            if isinstance(x, Ref)
        )

    def _definition_reads(self, name: str) -> bool:
        if name not in self._known:
            self._known[name] = False  # a circle of definitions is refused elsewhere
            value = self._values(name)
            self._known[name] = value is not None and self.reads(value)
        return self._known[name]

    def opened(self, e: Expr) -> Expr:
        """The value of a definition that reads the state, where the expression is its name."""
        while isinstance(e, Ref) and e.at == Now(0) and self._definition_reads(e.name):
            value = self._values(e.name)
            assert value is not None
            e = value
        return e

    def branches(self, e: Expr) -> Iterator[Expr]:
        """What a maximum is taken of, maxima inside it opened."""
        e = self.opened(e)
        if _is_max(e) and self.reads(e):
            assert isinstance(e, Prim)
            for a in e.args:
                yield from self.branches(a)
        else:
            yield e

    def added(self, e: Expr) -> Expr:
        """What is added to the state's past in a branch: a of m[i-1] + a."""
        e = self.opened(e)
        match e:
            case Ref(name=name, at=Now(1)) if name == self._name:
                return ZERO
            case Add(args):
                inner = [a for a in args if self.reads(a)]
                if len(inner) == 1:
                    others = [a for a in args if a is not inner[0]]
                    return add(self.added(inner[0]), *others)
                raise NotMaxPlus(f"`{self._name}[i-1]` stands in several terms of `{text(e)}`")
            case Mul():
                raise NotMaxPlus(f"`{self._name}[i-1]` is multiplied in `{text(e)}`")
        raise NotMaxPlus(f"`{text(e)}` is not `{self._name}[i-1]` plus a value")


def _is_max(e: Expr) -> bool:
    return isinstance(e, Prim) and e.name == "max"


def _largest(values: list[Expr]) -> Expr:
    out = values[0]
    for value in values[1:]:
        out = out if value == out else prim("max", out, value)
    return out
