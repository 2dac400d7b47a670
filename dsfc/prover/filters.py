"""Finds values of slots with which a filter of the last tokens gives an output without a state.

Where a's output is a function of the last tokens, b's states are left unread, by parameters of its
own that are 0, and a slot that the output is linear in is solved for. Nothing here is trusted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dsfc.expr.declarations import Constraint
from dsfc.prover.condition_polynomials import condition
from dsfc.trusted.claim import Claim, Condition
from dsfc.trusted.comparable import own_parameters, slots
from dsfc.trusted.conditions import Conditions
from dsfc.trusted.generator_names import STATE, lags
from dsfc.trusted.polynomial import Quotient, generator
from dsfc.trusted.statement import state


def filters(claim: Claim) -> Iterator[Claim]:
    """Yields claims that a is a case of b, with conditions on parameters and slots of b alone.

    Args:
        claim: without conditions.

    Raises:
        Obstacle, ValueError: the claim cannot be written out.
    """
    free = [name for name, kind in slots(claim).items() if kind is Constraint.NONE]
    if not free:
        return
    conditions: list[Condition] = []
    for left, right in state(claim, False).steady.outputs:
        if any(STATE in name for name in left.names):
            return
        conditions += [c for c in _unread(claim, right) if c not in conditions]
        known = Conditions(tuple(conditions)).values(0)
        rest = (left - right).substituted(known)
        for name in sorted(rest.num.names):
            if name.partition("[")[0] in free and lags(frozenset({name})) == frozenset({0}):
                conditions.append(replace(condition(rest.num, name), padded=True))
                break
    yield replace(claim, conditions=tuple(conditions))


def _unread(claim: Claim, output: Quotient) -> list[Condition]:
    """Parameters of b alone that are 0 where an output reads no state."""
    own = own_parameters(claim)
    out: dict[str, Condition] = {}
    for m in output.num.terms:
        names = [name for name, _ in m]
        if any(STATE in name for name in names):
            may = [name for name in names if own.get(name.partition("[")[0]) is Constraint.NONE]
            if may and not out.keys() & set(may):
                out[may[0]] = condition(generator(may[0]), may[0])
    return list(out.values())
