"""Whether what a claim assumes holds at a point: definitions are executed there.

Equality where something is assumed comes with a point at which it holds, as equality nowhere says
nothing; difference with one at which the outputs are apart too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from dsfc.expr.tree import Axis, Expr
from dsfc.system.ir import Definition
from dsfc.trusted.balls import Complex, NotDefined, real
from dsfc.trusted.claim import Assumption, Claim, Somewhere, Witness
from dsfc.trusted.closed import closed
from dsfc.trusted.comparable import comparable
from dsfc.trusted.definition import Execution
from dsfc.trusted.entries import Index
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.witness import LENGTH_LIMIT, arrays, constants_of, execute_one

ZERO = Complex(real(0), real(0))

ORDER = ("<", "<=", ">", ">=")


class Assumed(Execution):
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


def check_assumed(claim: Claim, point: Somewhere | Witness) -> None:
    """Checks that all that is assumed holds at a point, where a's output is not 0 at its end.

    Of a witness it is not asked what the output is.

    Raises:
        Rejected: that is not shown, or the point is not one of the claim.
        Obstacle, ValueError: the claim has no meaning here.
    """
    comparable(claim)
    if claim.names or claim.free or claim.case or claim.conditions or claim.apart:
        raise Rejected("what is assumed is said of two mixers as they are written")
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
        given = arrays(claim, claim.a, {}, point.length, values, constants)
        run = Assumed(claim.a, dict(claim.sizes), point.length, given)
        held = all(map(run.holds, claim.assumed))
    except NotDefined as e:
        raise Rejected(f"what is assumed has no value at the point: {e}") from None
    if not held:
        raise Rejected("what is assumed is not known to hold at the point")
    if isinstance(point, Somewhere) and _may_be_zero(claim, point):
        raise Rejected("the output may be 0 at the end of the point where what is assumed holds")


def _may_be_zero(claim: Claim, point: Somewhere) -> bool:
    """Whether all of a's output at the last token may be 0."""
    try:
        last = execute_one(claim, point, False)[-1]
    except NotDefined as e:
        raise Rejected(f"the output has no value at the point: {e}") from None
    return all(value.meets(ZERO) for value in last)
