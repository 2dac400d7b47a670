"""Which names an expression reads, and how far back: the time side of a typed expression."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from dsfc.expr.build import walk
from dsfc.expr.over_time import Past, Relation, Run
from dsfc.expr.tree import Abstract, Bound, Expr, Fir, Map, Now, Param, Ref, children
from dsfc.mixer.ir import Mixer, StateDecl


@dataclass(frozen=True, slots=True)
class Lags:
    """The lags a value is read at: from `least` to `most` steps back; both may be infinite."""

    least: float
    most: float

    def back(self, steps: float) -> Lags:
        """Returns the lags, `steps` further back."""
        return Lags(self.least + steps, self.most + steps)

    def turned(self) -> Lags:
        """Returns the lags as a system that runs backwards counts them."""
        return Lags(-self.most, -self.least)


@dataclass(frozen=True, slots=True)
class Read:
    """One name with the lags it is read at."""

    name: str
    lags: Lags


Clock = Mapping[str, Lags]


def reads(expr: Expr) -> frozenset[Read]:
    """Returns what an expression reads at which lags, relative to the present token."""
    return _reads(expr, {}, {})


def _reads(expr: Expr, clock: Clock, memo: dict[Expr, frozenset[Read]]) -> frozenset[Read]:
    """`memo` belongs to one clock: a shared part is looked at once."""
    if expr in memo:
        return memo[expr]
    match expr:
        case Ref():
            at = expr.at
            out = frozenset() if at is None else frozenset({Read(expr.name, _lags(at, clock))})
        case Fir():
            taps = _reads(expr.arg, clock, memo)
            spread = frozenset(Read(r.name, Lags(r.lags.least, math.inf)) for r in taps)
            out = spread | _reads(expr.weight, clock, memo)
        case Past():
            out = _reads(expr.body, {**clock, expr.var: _summed(expr, clock)}, {})
        case Run():
            low, high = _lags(expr.low, clock), _lags(expr.high, clock)
            inside = Lags(high.least, low.most - 1)
            out = _reads(expr.arg, {**clock, expr.var: inside}, {})
        case _:
            reads = [_reads(child, clock, memo) for child in children(expr)]
            out = frozenset().union(*reads)
    memo[expr] = out
    return out


def _lags(at: Now | Bound, clock: Clock) -> Lags:
    return Lags(at.lag, at.lag) if isinstance(at, Now) else clock[at.var].back(at.lag)


def _summed(past: Past, clock: Clock) -> Lags:
    outer = (Lags(0, 0) if past.outer is None else clock[past.outer]).back(past.lag)
    match past.relation:
        case Relation.UP_TO:
            return Lags(outer.least, math.inf)
        case Relation.BEFORE:
            return Lags(outer.least + 1, math.inf)
        case Relation.FROM:
            return Lags(-math.inf, outer.most)
        case Relation.AFTER:
            return Lags(-math.inf, outer.most - 1)


def state_reads(state: StateDecl) -> frozenset[Read]:
    """Returns what a state's update reads; a flow's own value is the continuous one, not a read."""
    if state.flow is None:
        assert state.update is not None
        return reads(state.update)
    drift = {r for r in reads(state.flow.drift) if r != Read(state.name, Lags(0, 0))}
    return frozenset(drift) | reads(state.flow.step)


def mixer_reads(mixer: Mixer) -> dict[str, frozenset[Read]]:
    """Returns what each definition and each state of a mixer reads."""
    out = {d.name: reads(d.value) for d in mixer.definitions}
    out.update({s.name: state_reads(s) for s in mixer.states})
    return out


def mentions(mixer: Mixer) -> dict[str, list[str]]:
    """Returns every name that each definition and state mentions: streams, tensors and maps."""
    out = {d.name: _mentioned(d.value) for d in mixer.definitions}
    for state in mixer.states:
        flow = state.flow
        parts = (state.update,) if flow is None else (flow.drift, flow.step)
        names = (name for part in parts if part is not None for name in _mentioned(part))
        out[state.name] = list(dict.fromkeys(names))
    return out


def _mentioned(expr: Expr) -> list[str]:
    out: dict[str, None] = {}
    for node in walk(expr):
        match node:
            case Ref() | Param() | Abstract():
                out[node.name] = None
            case Map():
                out[node.map.name] = None
            case _:
                pass
    return list(out)
