"""Parameters that lose what they are for in a narrow dtype.

A decay acts over the whole sequence, an exponential multiplies the error of its argument by its
value, and a phase counts modulo 2π: what rounding costs there is no rounding of the result. λ =
exp(-exp(ν) + i exp(θ)) of an LRU, with |λ| near 1, has gradients that are off by more than their
size where ν and θ are rounded to bfloat16. Weights of maps are of another kind: an error of each
is one of many terms.
"""

from __future__ import annotations

from collections.abc import Iterator

from dsfc.expr.tree import Expr, Map, Param, Pow, Prim, Ref, Series, children
from dsfc.plan.ir import Plan, Pointwise, Reverse, Role, RunningMax
from dsfc.plan.pairs import sensitive_leaves
from dsfc.plan.pairs_ir import AllPairs
from dsfc.plan.recurrence_ir import Recurrence
from dsfc.plan.scan_ir import Scan

_EXPONENTIAL = frozenset(("exp", "expm1", "exprel", "cis", "sin", "cos", "sinh", "cosh"))
"""Primitives of an exponent or a phase."""


def sensitive(plan: Plan) -> frozenset[str]:
    """Returns the parameters and buffers that feed a decay, an exponent or a phase, by name.

    Those count that reach it outside of the arguments of maps, and a full transition itself.
    """
    values = {k.output: k.value for k in plan.kernels if isinstance(k, Pointwise)}
    sources = {k.output: k.source for k in plan.kernels if isinstance(k, Reverse)}
    transitions = {
        k.transition.matrix
        for k in plan.kernels
        if isinstance(k, Scan) and k.transition is not None
    }
    stepped = (n for k in plan.kernels if isinstance(k, Recurrence) for n in k.transitions)
    transitions |= {n for n in stepped if plan.array(n).role is Role.CONSTANT}
    waiting = list(decay_buffers(plan))
    names: set[str] = set()
    for value in values.values():
        for exponent in _exponents(value):
            names |= _params(exponent)
            waiting += _refs(exponent)
    for k in plan.kernels:
        if isinstance(k, AllPairs):
            buffers = {x.name: x.buffer for x in k.leaves}
            waiting += [buffers[n] for e in _exponents(k.body) for n in _refs(e) if n in buffers]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        name = sources.get(name, name)
        if name in seen or name not in values:
            continue
        seen.add(name)
        names |= _params(values[name])
        waiting += _refs(values[name])
        if name in transitions:
            names |= {e.map.name for e in outside_maps(values[name]) if isinstance(e, Map)}
    return frozenset(names)


def decay_buffers(plan: Plan) -> Iterator[str]:
    """Yields the buffers that log-decays, full transitions, maxima and steps of states read."""
    for k in plan.kernels:
        if isinstance(k, Recurrence):
            yield from k.transitions
        if isinstance(k, Scan):
            if k.decay is not None:
                yield from k.decay.leaves
            if k.transition is not None:
                yield k.transition.matrix
        if isinstance(k, AllPairs):
            yield from sorted(sensitive_leaves(k))
        if isinstance(k, RunningMax):
            yield k.output
            yield from (name for name in (k.weight, k.decay) if name is not None)


def outside_maps(expr: Expr, entered: frozenset[str] = frozenset()) -> Iterator[Expr]:
    """Yields the nodes of an expression that stand in no argument of a map.

    Args:
        expr: the expression.
        entered: maps whose arguments count nevertheless.
    """
    stack = [expr]
    while stack:
        e = stack.pop()
        yield e
        if not isinstance(e, Map) or e.map.name in entered:
            stack.extend(children(e))


def _exponents(value: Expr) -> Iterator[Expr]:
    stack = [value]
    while stack:
        e = stack.pop()
        match e:
            case Prim() if e.name in _EXPONENTIAL:
                yield from e.args
            case Pow():
                yield e.exponent
            case Series():
                yield e.arg
            case _:
                pass
        stack.extend(children(e))


def _params(expr: Expr) -> set[str]:
    return {e.name for e in outside_maps(expr) if isinstance(e, Param)}


def _refs(expr: Expr) -> list[str]:
    return [e.name for e in outside_maps(expr) if isinstance(e, Ref)]
