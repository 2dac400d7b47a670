"""Values of slots at the first tokens, where what they read from before the sequence is 0.

A slot z_i = c u_i + d u_{i-1} is a function of the last tokens: at token 0 it is c u_0. Without
this a condition says nothing of tokens from which it reads back before the first. It is allowed for
a slot without a range whose value is a polynomial in its inputs: before token 0 the inputs are 0,
as in the language, but a function of them need not be.
"""

from __future__ import annotations

from dsfc.expr.declarations import Constraint
from dsfc.trusted.claim import Claim
from dsfc.trusted.comparable import slots
from dsfc.trusted.generator_names import LEAF, lags, shifted
from dsfc.trusted.polynomial import ZERO, Quotient
from dsfc.trusted.rejected import Rejected


def check_padded(claim: Claim) -> None:
    """Checks that conditions that hold at the first tokens too are on slots of any value.

    Raises:
        Rejected: one is not.
    """
    free = slots(claim) if claim.case else {}
    for c in claim.conditions:
        if c.padded and free.get(c.solved.partition("[")[0]) is not Constraint.NONE:
            raise Rejected(f"{c.solved} is given at the first tokens, and is no slot of any value")


def padded(value: Quotient, lag: int, token: int) -> Quotient:
    """Returns a value at `lag` tokens before a token, counted from 0.

    Raises:
        Rejected: it is no polynomial in what is read from before the first token.
    """
    before = {g for g in value.names if any(k + lag > token for k in lags(frozenset({g})))}
    if any(LEAF.fullmatch(g) is None for g in before):
        raise Rejected("a value at the first tokens is a function of what is 0 there")
    if any(base.names & before for base in value.den) or any(
        e < 0 for m in value.num.terms for g, e in m if g in before
    ):
        raise Rejected("a value at the first tokens is divided by what is 0 there")
    known = value.substituted(dict.fromkeys(before, ZERO))
    return known.renamed(lambda g: shifted(g, lag))
