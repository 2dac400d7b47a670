"""Parameters that gradient descent never moves: they start at 0, and so do their gradients."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np

from dsfc.expr.build import ZERO
from dsfc.expr.over_time import Past
from dsfc.expr.starts import initialiser
from dsfc.expr.table import row
from dsfc.expr.tree import (
    Add,
    Div,
    Expr,
    Fir,
    Map,
    Mul,
    Num,
    Param,
    Pow,
    Prim,
    Reduce,
    Ref,
    Rename,
    children,
)
from dsfc.mixer.ir import Mixer

_SINGULAR = frozenset({"log", "sqrt"})
"""Primitives without a finite slope at 0."""


@dataclass(frozen=True, slots=True)
class _Start:
    """The values that an expression may have while some parameters are 0.

    Attributes:
        alive: whether it may differ from 0.
        moves: the parameters in which its slope may differ from 0.
    """

    alive: bool
    moves: frozenset[str] = frozenset()


_DEAD, _ALIVE = _Start(False), _Start(True)


def stalled(mixer: Mixer) -> tuple[str, ...]:
    """Returns parameters that start at 0 and stay there, because their gradients are 0 there.

    Whatever the other parameters become, descent leaves these at 0. Sums that cancel are not seen.
    Where a first value of one parameter would let others train, only such ones are named.

    Args:
        mixer: a typed mixer.
    """
    still = _still(mixer, frozenset(t.name for t in mixer.params if initialiser(t).value == ZERO))
    helpful = frozenset(name for name in still if _still(mixer, still - {name}) != still - {name})
    return tuple(t.name for t in mixer.params if t.name in (helpful or still))


def _still(mixer: Mixer, zeros: frozenset[str]) -> frozenset[str]:
    """The largest part of some parameters that stay 0 together."""
    while zeros:
        kept = zeros - _moved(mixer, zeros)
        if kept == zeros:
            break
        zeros = kept
    return zeros


def _moved(mixer: Mixer, zeros: frozenset[str]) -> frozenset[str]:
    """The parameters in which the output may have a slope while those of `zeros` are 0."""
    values: dict[str, tuple[Expr, ...]] = {d.name: (d.value,) for d in mixer.definitions}
    known = dict.fromkeys(values, _DEAD)
    for state in mixer.states:
        flow = state.flow
        parts = (state.update,) if flow is None else (flow.drift, flow.step)
        values[state.name] = tuple(part for part in parts if part is not None)
        known[state.name] = _ALIVE if state.maximum else _DEAD
    changed = True
    while changed:  # states start at 0: what is alive is what the recursion makes so
        changed = False
        starts = _Starts(zeros, known)
        for name, exprs in values.items():
            new = _either((known[name], _product([starts.of(expr) for expr in exprs])))
            changed |= new != known[name]
            known[name] = new
    return known[mixer.output].moves


class _Starts:
    """The starts of expressions, given those of the names they read."""

    def __init__(self, zeros: frozenset[str], known: dict[str, _Start]) -> None:
        self._zeros = zeros
        self._known = dict(known)
        self._memo: dict[Expr, _Start] = {}

    def of(self, expr: Expr) -> _Start:
        """The start of an expression; each part is looked at once."""
        if expr not in self._memo:
            self._memo[expr] = self._of(expr)
        return self._memo[expr]

    def _of(self, expr: Expr) -> _Start:
        parts = [self.of(child) for child in children(expr)]
        match expr:
            case Num():
                return _Start(expr != ZERO)
            case Param():
                return self._tensor(expr.name)
            case Ref():
                return self._known.get(expr.name, _ALIVE)
            case Add() | Past() | Reduce() | Rename():
                return _either(parts)
            case Mul() | Fir():
                return _product(parts)
            case Map():
                return _product([self._tensor(expr.map.name), *parts])
            case Div() if parts[1].alive:
                return _Start(parts[0].alive, _product(parts).moves)
            case Pow() if parts[0].alive:
                return _Start(True, _either(parts).moves)
            case Pow(exponent=Num(value=power)) if power.denominator == 1 and power > 1:
                return _DEAD
            case Prim() if expr.name not in _SINGULAR or parts[0].alive:
                both = _either(parts)
                return _Start(both.alive or not _keeps_zero(expr.name), both.moves)
        return _Start(True, self._zeros) if parts else _ALIVE

    def _tensor(self, name: str) -> _Start:
        return _Start(False, frozenset({name})) if name in self._zeros else _ALIVE


def _either(parts: Iterable[_Start]) -> _Start:
    terms = tuple(parts)
    return _Start(any(t.alive for t in terms), frozenset().union(*(t.moves for t in terms)))


def _product(parts: list[_Start]) -> _Start:
    """By the rule of Leibniz: a factor moves the product where all others are alive."""
    dead = [part for part in parts if not part.alive]
    if len(dead) > 1:
        return _DEAD
    moving = dead or parts
    return _Start(not dead, frozenset().union(*(part.moves for part in moving)))


@cache
def _keeps_zero(name: str) -> bool:
    primitive = row(name)
    zeros = (np.zeros(1),) * primitive.arity
    along = {"axis": -1} if primitive.along_axis else {}
    return not np.any(primitive.value(*zeros, **along))
