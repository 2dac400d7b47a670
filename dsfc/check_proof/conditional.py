"""Rule "conditions": an invariant where conditions hold, and points that say what they are worth.

1. The rows vanish and the outputs are equal, generators replaced by the values that the conditions
   give them; see `dsfc.check_proof.conditions` and `dsfc.check_proof.invariant`.
2. At the point `holds` every condition holds exactly, each at one token at least, and the output of
   a is not 0: the claim is one about something.
3. At the point of each `needed` all conditions but those left out hold exactly, and the outputs are
   apart: what is left does not give equality.
"""

from __future__ import annotations

from dsfc.check_proof.balls import Complex, real
from dsfc.check_proof.claim import Claim, Conditional
from dsfc.check_proof.conditions import reach
from dsfc.check_proof.invariant import check_rows
from dsfc.check_proof.point import Evaluated
from dsfc.check_proof.rejected import Rejected
from dsfc.check_proof.statement import state

NEEDED_LIMIT = 64
"""Points of one certificate."""


def check_conditional(claim: Claim, proof: Conditional) -> None:
    """Checks a certificate of equality under conditions.

    Raises:
        Rejected: a check failed.
        Obstacle, ValueError: the claim has no meaning here.
    """
    if not claim.equal or not claim.conditions:
        raise Rejected("equality under conditions is shown, and something else is claimed")
    statement = state(claim, proof.invariant.entries)
    check_rows(statement, proof.invariant)
    conditions = statement.conditions
    every = range(len(claim.conditions))
    point = Evaluated(claim, statement.symbols, proof.holds)
    if proof.holds.length <= max(reach(p) for p in conditions.polynomials):
        raise Rejected("a condition is read nowhere at the point where all hold")
    for k in every:
        if not point.holds(conditions, k):
            raise Rejected("a condition does not hold at the point where all do")
    if point.outputs()[0].meets(Complex(real(0), real(0))):
        raise Rejected("the output may be 0 at the point where all conditions hold")
    if len(proof.needed) > NEEDED_LIMIT:
        raise Rejected(f"there are more than {NEEDED_LIMIT} points")
    for needed in proof.needed:
        left_out = set(needed.without)
        if not left_out or not left_out <= set(every):
            raise Rejected("the conditions left out are none of the claim")
        other = Evaluated(claim, statement.symbols, needed.point)
        if not all(other.holds(conditions, k) for k in every if k not in left_out):
            raise Rejected("another condition does not hold where some are left out")
        a, b = other.outputs()
        if a.meets(b):
            raise Rejected("the outputs may be equal where some conditions are left out")
