"""Proofs of equality of mixers with states that run from the end to the start.

`dsfc.trusted.rules.two_ways` says what is shown. Backward states of the same axes are paired where
rows show that they are equal at every token.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import product

from dsfc.prover.closure import Differs, close
from dsfc.prover.relations import laws, relation
from dsfc.prover.sizes import enough, lifted
from dsfc.system.ir import Direction
from dsfc.trusted.claim import Certificate, Claim, EqualStates, Invariant, TwoWays
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.polynomial import TooLarge
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.rules.two_ways import backward_states, reversed_claim, without_backward
from dsfc.trusted.statement import state

DIFFER = "the outputs differ as functions of free generators"
"""The reason where no rule is missing and the outputs still differ as texts."""


def runs_backwards(claim: Claim) -> bool:
    """Returns whether a state of either system runs from the end to the start."""
    stages = (*claim.a.stages, *claim.b.stages)
    return any(s.direction is Direction.BACKWARD for s in stages)


def proofs(claim: Claim, entries: bool) -> Iterator[Certificate]:
    """Yields certificates of equality, at sizes of which they say most first; none where none is.

    Each is for all sizes of as many axes as can be. The kernel has not seen them.

    Args:
        claim: an equality, at small sizes.
        entries: whether linear maps of tokens are written out in the entries of their matrices.

    Raises:
        Obstacle: there is no such proof, and why.
    """
    obstacle: Obstacle | None = None
    for sizes in _sizes(claim, entries):
        try:
            yield _proof(replace(claim, sizes=sizes, every=()), entries)
        except (Obstacle, TooLarge, Rejected, ValueError, ZeroDivisionError) as e:
            obstacle = obstacle or Obstacle(str(e))
    if obstacle is not None:
        raise obstacle


def steps(claim: Claim, proof: TwoWays) -> tuple[tuple[Claim, Invariant], ...]:
    """Returns what rows show: that outputs are equal, then the same of each pair of states."""
    pairs = tuple((pair.a, pair.b) for pair in proof.pairs)
    states = ((reversed_claim(claim, p.a, p.b), p.rows) for p in proof.pairs)
    return ((without_backward(claim, pairs), proof.rows), *states)


def _sizes(claim: Claim, entries: bool) -> Iterator[tuple[tuple[str, int], ...]]:
    """Sizes whose proof is one for all sizes of as many axes as can be, in turn: see `enough`."""
    wanted = [enough(c, entries) for c in (without_backward(claim, ()), *_reversed(claim).values())]
    seen = set[tuple[tuple[str, int], ...]]()
    for k in range(max(map(len, wanted))):
        chosen = [dict(one[min(k, len(one) - 1)].sizes) for one in wanted]
        sizes = tuple((name, max(one[name] for one in chosen)) for name, _ in claim.sizes)
        if sizes not in seen:
            seen.add(sizes)
            yield sizes


def _reversed(claim: Claim) -> dict[tuple[str, str], Claim]:
    """Backward states of both with the same axes and field → the claim that they are equal."""
    out = {}
    for one, other in product(backward_states(claim.a), backward_states(claim.b)):
        if (one.axes, one.field) == (other.axes, other.field):
            with suppress(Obstacle):
                out[one.state, other.state] = reversed_claim(claim, one.state, other.state)
    return out


def _proof(claim: Claim, entries: bool) -> Certificate:
    """A proof at the sizes of a claim.

    Raises:
        Obstacle, TooLarge, Rejected, ValueError, ZeroDivisionError: there is none.
    """
    pairs = list[EqualStates]()
    every = {name for name, _ in claim.sizes}
    for (a, b), turned in _reversed(claim).items():
        if any(pair.a == a or pair.b == b for pair in pairs):
            continue
        with suppress(Obstacle, TooLarge, Rejected, ValueError, ZeroDivisionError):
            rows, known = _rows(turned, entries)
            pairs.append(EqualStates(a, b, rows))
            every &= known
    rows, known = _rows(without_backward(claim, tuple((p.a, p.b) for p in pairs)), entries)
    shared = tuple(name for name, _ in claim.sizes if name in every & known)
    return Certificate(replace(claim, every=shared), TwoWays(tuple(pairs), rows))


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
