"""Rule "assumed": equality or difference where something is assumed of values of a.

Equality is shown of what is left of both mixers (`simplified`), by rows, by Markov parameters or as
one definition, and comes with a point at which what is assumed holds, as equality nowhere says
nothing. Difference is shown at a point at which it holds. Definitions are executed there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from dsfc.expr.tree import Axis, Expr
from dsfc.system.ir import Definition
from dsfc.trusted.balls import Complex, NotDefined, real
from dsfc.trusted.claim import (
    Assumed,
    Assumption,
    Claim,
    Invariant,
    MarkovParameters,
    Same,
    Somewhere,
    Witness,
)
from dsfc.trusted.closed import closed
from dsfc.trusted.comparable import comparable
from dsfc.trusted.definition import Execution
from dsfc.trusted.entries import Index
from dsfc.trusted.invariant import check_invariant
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.rules.assumed_facts import check_read
from dsfc.trusted.rules.markov import check_markov
from dsfc.trusted.rules.simplified import simplified
from dsfc.trusted.same import check_same
from dsfc.trusted.witness import (
    LENGTH_LIMIT,
    Gap,
    arrays,
    check_witness,
    constants_of,
    execute,
)

ZERO = Complex(real(0), real(0))

ORDER = ("<", "<=", ">", ">=")


class _Run(Execution):
    """A mixer executed, and what is assumed of its values."""

    def holds(self, what: Assumption) -> bool:
        """Returns whether an assumption is known to hold wherever it is read.

        Raises:
            NotDefined: a side may have no value.
            Obstacle: it cannot be executed.
        """
        axes = tuple(sorted(what.left.axes | what.right.axes))
        return all(
            certainly(
                self._entry(what.left, token, bound, at),
                what.relation,
                self._entry(what.right, token, bound, at),
            )
            for token, bound in self._tokens(what)
            for at in self.places(axes)
        )

    def _tokens(self, what: Assumption) -> Iterator[tuple[int, Mapping[str, int]]]:
        for token in range(self.length):
            if not what.earlier:
                yield token, {}
                continue
            for j in range(token + what.own):
                yield token, {what.earlier: j}

    def _entry(self, e: Expr, token: int, bound: Mapping[str, int], at: Index) -> Complex:
        before, self._token = self._token, token
        outer, self._bound = self._bound, bound
        here: dict[Axis, int] = {a: k for a, k in at.items() if a in e.axes}
        out = self.value(e, here)
        self._token, self._bound = before, outer
        return out


def certainly(a: Complex, relation: str, b: Complex) -> bool:
    """Returns whether two values with their bounds are known to compare so.

    Raises:
        ValueError: that is no relation.
    """
    exact = all(x.exact for x in (a.re, a.im, b.re, b.im))
    if relation in ORDER and not (a.is_real and b.is_real):
        return False
    match relation:
        case "<":
            return a.re.high < b.re.low
        case "<=":
            return a.re.high <= b.re.low
        case ">":
            return b.re.high < a.re.low
        case ">=":
            return b.re.high <= a.re.low
        case "==":
            return exact and a == b
        case "!=":
            return not a.meets(b)
    raise ValueError(f"`{relation}` is no relation")


def check_assumed(claim: Claim, proof: Assumed) -> Gap | None:
    """Checks a certificate where something is assumed; returns the values that differ, if they do.

    Raises:
        Rejected: a check failed.
        Obstacle, ValueError: the claim has no meaning here.
    """
    shown = proof.proof
    left = replace(claim, assumed=())
    if isinstance(shown, Witness):
        check_holds(claim, shown)
        return check_witness(left, shown)
    if not claim.equal:
        raise Rejected("difference is claimed, and equality is shown")
    if proof.holds is None:
        raise Rejected("there is no point at which what is assumed holds")
    check_holds(claim, proof.holds)
    simpler = simplified(claim)
    match shown:
        case Invariant():
            check_invariant(simpler, shown)
        case MarkovParameters():
            check_markov(simpler, shown)
        case Same():
            check_same(simpler)
    return None


def check_holds(claim: Claim, point: Somewhere | Witness) -> None:
    """Checks that all that is assumed holds at a point, and that there is an output there.

    At a point that sets outputs apart nothing more is asked; else both mixers have outputs there,
    and a's at the last token is not to be 0.

    Raises:
        Rejected: that is not shown, or the point is not one of the claim.
        Obstacle, ValueError: the claim has no meaning here.
    """
    comparable(claim)
    if claim.names or claim.free or claim.case or claim.conditions or claim.apart:
        raise Rejected("what is assumed is said of two mixers as they are written")
    for what in claim.assumed:
        check_read(claim.a, what)
    for e in (e for x in claim.assumed for e in (x.left, x.right)):
        read = Definition("assumed", e, tuple(sorted(e.axes)), e.field)
        closed(replace(claim.a, definition=(*claim.a.definition, read)))
    if point.length < 2 and any(x.earlier and not x.own for x in claim.assumed):
        raise Rejected("what is assumed of earlier tokens is read nowhere")
    if not 1 <= point.length <= LENGTH_LIMIT:
        raise Rejected(f"a point has from 1 to {LENGTH_LIMIT} tokens")
    try:
        own = {t.name for t in (*claim.a.inputs, *claim.a.params, *claim.a.buffers)}
        values = {name: entries for name, entries in point.values if name in own}
        constants = constants_of(claim, claim.a, {})
        entries = arrays(claim, claim.a, {}, point.length, values, constants)
        run = _Run(claim.a, dict(claim.sizes), point.length, entries)
        held = all(map(run.holds, claim.assumed))
    except NotDefined as e:
        raise Rejected(f"what is assumed has no value at the point: {e}") from None
    if not held:
        raise Rejected("what is assumed is not known to hold at the point")
    if isinstance(point, Somewhere) and _may_be_zero(claim, point):
        raise Rejected("the output may be 0 at the end of the point where what is assumed holds")


def _may_be_zero(claim: Claim, point: Somewhere) -> bool:
    """Whether all of a's output at the last token may be 0; the point is one of both mixers."""
    outputs, _ = execute(claim, point)
    return all(value.meets(ZERO) for value in outputs[-1])
