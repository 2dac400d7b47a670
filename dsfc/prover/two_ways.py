"""Proofs of equality of mixers with states that run from the end to the start.

`dsfc.trusted.rules.two_ways` says what is shown. Backward states of the same axes are paired where
rows show that one is a constant factor times the other at every token.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import product

from dsfc.expr.arithmetic import ONE, mul, num, power
from dsfc.expr.declarations import Tensor
from dsfc.expr.tree import Expr, Param, Size
from dsfc.prover.closure import Differs, close
from dsfc.prover.relations import laws, relation
from dsfc.prover.sizes import enough, lifted
from dsfc.system.ir import Direction
from dsfc.trusted.claim import Certificate, Claim, Invariant, ProportionalStates, TwoWays
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.generator_names import LEAF
from dsfc.trusted.polynomial import TooLarge
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.rules.two_ways import backward_states, reversed_claim, without_backward
from dsfc.trusted.statement import state

DIFFER = "the outputs differ as functions of free generators"
"""The reason where no rule is missing and the outputs still differ as texts."""

NO_PROOF = (Obstacle, TooLarge, Rejected, ValueError, ZeroDivisionError)
"""What is raised where a claim cannot be written out, or is not shown."""

NO_ROWS = Invariant((), entries=False)
"""Rows of a pair that are still to be found."""

_SIZE = re.compile(r"size\[(\w+)\]")
_ROOT = re.compile(r"exp\((\d+)/(\d+)\*log\(size\[(\w+)\]\)\)")
"""A power of a size with an exponent that is no integer."""


def runs_backwards(claim: Claim) -> bool:
    """Returns whether a state of either system runs from the end to the start."""
    stages = (*claim.a.stages, *claim.b.stages)
    return any(s.direction is Direction.BACKWARD for s in stages)


def enough_for_both(claim: Claim, entries: bool) -> tuple[Claim, ...]:
    """Returns a claim at sizes that are enough for both steps of a proof, in turn: see `enough`.

    Args:
        claim: an equality, at small sizes.
        entries: whether linear maps of tokens are written out in the entries of their matrices.
    """
    turned = (reversed_claim(claim, pair) for pair in _pairs(claim))
    wanted = [enough(c, entries) for c in (without_backward(claim, ()), *turned)]
    out = dict[tuple[tuple[str, int], ...], None]()
    for k in range(max(map(len, wanted))):
        chosen = [dict(one[min(k, len(one) - 1)].sizes) for one in wanted]
        out[tuple((name, max(one[name] for one in chosen)) for name, _ in claim.sizes)] = None
    return tuple(replace(claim, sizes=sizes) for sizes in out)


def steps(claim: Claim, proof: TwoWays) -> tuple[tuple[Claim, Invariant], ...]:
    """Returns what rows show: that outputs are equal, then that paired states are proportional."""
    states = ((reversed_claim(claim, pair), pair.rows) for pair in proof.pairs)
    return ((without_backward(claim, proof.pairs), proof.rows), *states)


def _pairs(claim: Claim) -> Iterator[ProportionalStates]:
    """Backward states of both that may be proportional, by what the last token makes of them."""
    for one, other in product(backward_states(claim.a), backward_states(claim.b)):
        if (one.axes, one.field) != (other.axes, other.field):
            continue
        for first in (False, True):
            pair = ProportionalStates(one.state, other.state, ONE, first, NO_ROWS)
            with suppress(*NO_PROOF):
                factor = _factor(reversed_claim(claim, pair), first)
                if factor is not None:
                    multiple = replace(pair, factor=factor)
                    reversed_claim(claim, multiple)  # which raises where that is no factor
                    yield multiple


def _factor(turned: Claim, first: bool) -> Expr | None:
    """What one output is at the first token, divided by the other, where it is a factor.

    Args:
        turned: two mixers with backward states as outputs, reversed.
        first: whether the first output is divided by the second.
    """
    for a, b in state(turned, entries=False).first[0].outputs:
        left, right = (b, a) if first else (a, b)
        if left.num and right.num and left.den == right.den:
            (below, divisor), *_ = left.num.ordered
            (above, count), *_ = right.num.ordered
            exponents = Counter(dict(above))
            exponents.subtract(dict(below))
            parts = [_power(name, k, turned) for name, k in sorted(exponents.items()) if k]
            known = [part for part in parts if part is not None]
            return mul(num(count / divisor), *known) if len(known) == len(parts) else None
    return ONE


def _power(name: str, exponent: int, claim: Claim) -> Expr | None:
    """A power of a generator as an expression, where it is one of a size or of a parameter."""
    axes = {d.axis.name: d.axis for d in claim.a.axes}
    tensors = {t.name: t for t in (*claim.a.params, *claim.a.buffers) if isinstance(t, Tensor)}
    whole, root, leaf = (pattern.fullmatch(name) for pattern in (_SIZE, _ROOT, LEAF))
    if whole is not None and whole[1] in axes:
        return power(Size(axes[whole[1]]), num(exponent))
    if root is not None and root[3] in axes:
        return power(Size(axes[root[3]]), num(exponent * Fraction(int(root[1]), int(root[2]))))
    if leaf is not None and leaf[1] in tensors and leaf[3] is None:
        t = tensors[leaf[1]]
        return power(Param(t.name, frozenset(t.axes), t.field), num(Fraction(exponent)))
    return None


def proof_at(claim: Claim, entries: bool) -> Certificate:
    """Returns a proof at the sizes of a claim, for all sizes of as many axes as it shows.

    Args:
        claim: an equality, at some sizes.
        entries: whether linear maps of tokens are written out in the entries of their matrices.

    Raises:
        Obstacle, TooLarge, Rejected, ValueError, ZeroDivisionError: there is none.
    """
    claim = replace(claim, every=())
    pairs = list[ProportionalStates]()
    every = {name for name, _ in claim.sizes}
    for pair in _pairs(claim):
        if any(known.a == pair.a or known.b == pair.b for known in pairs):
            continue
        with suppress(*NO_PROOF):
            rows, lifted_axes = _rows(reversed_claim(claim, pair), entries)
            pairs.append(replace(pair, rows=rows))
            every &= lifted_axes
    try:
        rows, lifted_axes = _rows(without_backward(claim, tuple(pairs)), entries)
    except Obstacle as e:
        raise Obstacle(_alone(claim, pairs) if str(e) == DIFFER else str(e)) from None
    shared = tuple(name for name, _ in claim.sizes if name in every & lifted_axes)
    return Certificate(replace(claim, every=shared), TwoWays(tuple(pairs), rows))


def _alone(claim: Claim, pairs: list[ProportionalStates]) -> str:
    """Why outputs differ where backward states are inputs: the first of these that has no pair."""
    for system, paired in (
        (claim.a, {pair.a for pair in pairs}),
        (claim.b, {pair.b for pair in pairs}),
    ):
        for name in (b.state for b in backward_states(system) if b.state not in paired):
            itself = ProportionalStates(name, name, ONE, False, NO_ROWS)
            try:
                state(reversed_claim(replace(claim, a=system, b=system, names=()), itself), False)
            except NO_PROOF as e:
                return f"`{name}` runs backwards and cannot be reversed: {e}"
            return f"no constant multiple of `{name}`, which runs backwards, is read by the other"
    return DIFFER


def _rows(claim: Claim, entries: bool) -> tuple[Invariant, set[str]]:
    """Rows that show a claim, and the axes of which they show all sizes.

    Raises:
        Obstacle, TooLarge, Rejected, ValueError, ZeroDivisionError: there are none.
    """
    for related in ((), laws(claim, entries)):
        statement = state(claim, entries, related)
        rows = close(statement)
        if not isinstance(rows, Differs):
            proof = Invariant(rows, entries, tuple(map(relation, related)))
            return proof, set(lifted(claim, proof, statement).every)
    raise Obstacle(DIFFER)
