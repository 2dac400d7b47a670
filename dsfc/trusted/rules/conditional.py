"""Rule "conditions": an invariant where conditions hold, and points that say what they are worth.

1. The rows vanish and the outputs are equal, generators replaced by the values that the conditions
   give them; see `dsfc.trusted.conditions` and `dsfc.trusted.invariant`.
2. At the point `holds` every condition holds exactly, each at one token at least, and the output of
   a is not 0: the claim is one about something.
3. At the point of each `needed` all conditions but those left out hold exactly, and the outputs are
   apart: what is left does not give equality.
4. Where a is claimed to be a case of b: every condition gives a parameter or an input that b alone
   has a value that exists for all values of everything else, and lies in the declared range. There
   may be none: then equal parameters do. Values inside functions of b are put in before it is
   written out, see `dsfc.trusted.substitute_parameters`.
5. Forced conditions follow from equal outputs where the others hold: see
   `dsfc.trusted.rules.necessary`.
"""

from __future__ import annotations

import re

from dsfc.expr.declarations import Constraint
from dsfc.trusted.balls import Complex, real
from dsfc.trusted.claim import Claim, Conditional, Point
from dsfc.trusted.comparable import narrower, nonzero, own_parameters, real_arrays, slots
from dsfc.trusted.conditions import CONSTANT, reach
from dsfc.trusted.defined import never_zero
from dsfc.trusted.generator_names import LAG, LEAF, lags
from dsfc.trusted.invariant import check_rows
from dsfc.trusted.padded import check_padded
from dsfc.trusted.polynomial import ONE, Quotient, generator
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.rules.necessary import check_necessary
from dsfc.trusted.rules.point import Evaluated
from dsfc.trusted.statement import WrittenClaim, state
from dsfc.trusted.symbols import Symbols

NEEDED_LIMIT = 64
"""Points of one certificate."""


def check_conditional(claim: Claim, proof: Conditional) -> None:
    """Checks a certificate of equality under conditions.

    Raises:
        Rejected: a check failed.
        Obstacle, ValueError: the claim has no meaning here.
    """
    if not claim.equal or not (claim.conditions or claim.case):
        raise Rejected("equality under conditions is shown, and something else is claimed")
    if claim.every:
        raise Rejected("equality under conditions is shown at one size of each axis")
    if proof.invariant.relations:
        raise Rejected("laws of functions are not used under conditions")
    check_padded(claim)
    if any(c.padded for c in claim.conditions) and (proof.holds or proof.needed):
        raise Rejected("points say nothing of conditions at the first tokens")
    statement = state(claim, proof.invariant.entries)
    check_rows(statement, proof.invariant)
    conditions = statement.conditions
    if claim.case:
        check_case(claim, statement)
    elif proof.holds is None:
        raise Rejected("there is no point where all conditions hold")
    every = range(len(claim.conditions))
    if proof.holds is not None:
        _check_holds(claim, statement, proof.holds)
    if proof.forced or proof.varied:
        check_necessary(claim, proof)
    if len(proof.needed) > NEEDED_LIMIT:
        raise Rejected(f"there are more than {NEEDED_LIMIT} points")
    for needed in proof.needed:
        left_out = set(needed.without)
        if not left_out <= set(every):
            raise Rejected("the conditions left out are none of the claim")
        other = Evaluated(claim, statement.symbols, needed.point)
        if not all(other.holds(conditions, k) for k in every if k not in left_out):
            raise Rejected("another condition does not hold where some are left out")
        a, b = other.outputs()
        if a.meets(b):
            raise Rejected("the outputs may be equal where some conditions are left out")


def _check_holds(claim: Claim, statement: WrittenClaim, holds: Point) -> None:
    """Checks that all conditions hold at a point, and that the output is not 0."""
    conditions = statement.conditions
    point = Evaluated(claim, statement.symbols, holds)
    if holds.length <= max(reach(p) for p in conditions.polynomials):
        raise Rejected("a condition is read nowhere at the point where all hold")
    for k in range(len(claim.conditions)):
        if not point.holds(conditions, k):
            raise Rejected("a condition does not hold at the point where all do")
    if point.outputs()[0].meets(Complex(real(0), real(0))):
        raise Rejected("the output may be 0 at the point where all conditions hold")


def check_case(claim: Claim, statement: WrittenClaim) -> None:
    """Checks that b's own parameters can meet all conditions, whatever all else is.

    Raises:
        Rejected: a condition asks something of anything else.
    """
    timed, symbols = slots(claim), statement.symbols
    own = {**own_parameters(claim), **timed}
    smaller, sure, reals = narrower(claim), nonzero(claim), real_arrays(claim)
    values = statement.conditions.values(statement.conditions.window)
    solved = frozenset(_present(c.solved) for c in claim.conditions)
    if claim.free:
        raise Rejected("values inside b hide where it has an output")
    if smaller is not None:
        raise Rejected(f"`{smaller}` has a smaller range in b than in a")
    for c in claim.conditions:
        # A slot is a function of this token and earlier ones, a parameter of none.
        entry = LEAF.fullmatch(c.solved)
        if entry is None or entry[1] not in own or (entry[3] is not None) != (entry[1] in timed):
            raise Rejected(f"a condition is one on {c.solved}, which is not b's alone")
        array, constraint = entry[1], own[entry[1]]
        value = values[c.solved]
        if any(CONSTANT.fullmatch(g) for g in value.names):
            raise Rejected("a value is made of a number of the claim's own")
        # A function of what has a value would make the value one of itself. At another token it
        # would be a function of all tokens before, which no slot is.
        if any(_stands(other, _present(g)) for other in solved for g in value.names):
            raise Rejected("a value is a function of what has a value")
        if array in reals and value - symbols.conjugate(value):
            raise Rejected(f"the value of {c.solved} may not be real")
        if not _exists(value, symbols, sure):
            raise Rejected(f"the value of {c.solved} may not exist")
        if not _keeps(constraint, value, symbols, sure):
            raise Rejected(f"the value of {c.solved} may not be {constraint.value}")


def _keeps(constraint: Constraint, value: Quotient, symbols: Symbols, sure: frozenset[str]) -> bool:
    """Whether a value lies in a range, term by term; some arrays are sure to be other than 0."""
    positive = symbols.positive(value)
    match constraint:
        case Constraint.NONE:
            return True
        case Constraint.POSITIVE:
            return positive
        case Constraint.NONNEG:
            return positive or value.number == 0
        case Constraint.NONZERO:
            return never_zero(symbols, value, sure)
        case Constraint.UNIT:
            return positive and symbols.positive(ONE - value)
    return False


def _exists(value: Quotient, symbols: Symbols, sure: frozenset[str]) -> bool:
    """Whether nothing is divided by what may be 0, in a value and in its functions."""
    below = [Quotient(base) for base in value.den]
    below += [Quotient(generator(g)) for m in value.num.terms for g, e in m if e < 0]
    if not all(never_zero(symbols, q, sure) for q in below):
        return False
    return all(
        _exists(argument, symbols, sure)
        for g in value.names
        for argument in symbols.defined.get(g, symbols.defined.get(_present(g), ("", ())))[1]
    )


def _stands(entry: str, name: str) -> bool:
    """Whether an entry stands in a name, and not at the end of a longer one."""
    return re.search(rf"(?<![\w:]){re.escape(entry)}", name) is not None


def _present(name: str) -> str:
    """A name with all that it reads at one token."""
    return LAG.sub("@0", name)


def localities(claim: Claim, statement: WrittenClaim) -> dict[str, int | None]:
    """Returns how far back the functions read that fill b's slots, where a is a case of b.

    None says that a slot is the same at all tokens, 0 that it is a function of the token, and r one
    of the token and the r before it. What no condition gives a value may be anything.
    """
    out: dict[str, int | None] = dict.fromkeys(slots(claim))
    known = statement.conditions.values(statement.conditions.window)
    for c in claim.conditions:
        array = c.solved.partition("[")[0]
        read = lags(known[c.solved].names)
        if array in out and read:
            out[array] = max(out[array] or 0, *read)
    return out
