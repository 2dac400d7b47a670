"""Where the outputs of two mixers that were proved equal have values.

Rows show equality wherever both outputs have values. So a proof is one about something only with a
point at which they do, which is executed; and where a point is found at which one of the two has a
value and the other certainly has none, the verdict says so. That the first is a case of the second
is said of where the first has an output, so there is a point of it.
"""

from __future__ import annotations

import dataclasses
import random
from fractions import Fraction

from dsfc.prover.refute import HEIGHTS, SIMPLER, arrays, drawn
from dsfc.prover.total import total
from dsfc.prover.verdict import AtSizes, Proved, ProvedWhereDefined, Unknown
from dsfc.trusted.balls import NotDefined, Undefined
from dsfc.trusted.claim import Certificate, Claim, Somewhere, Witness
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.witness import check_somewhere, execute_one

DRAWS = 8
"""Points per height."""

LARGE = 8
"""Size of an axis beyond which one is enough."""

LOW = (Fraction(0), Fraction(-1), Fraction(1), Fraction(2))
"""Numbers at which divisions, roots and logarithms have no value, among others."""

NO_OUTPUT = "values that do it were found, but no point at which the first has an output"

NOWHERE = "the outputs are equal wherever both have values, and no point was found at which they do"


def where_defined(verdict: Proved | AtSizes) -> Proved | AtSizes | ProvedWhereDefined | Unknown:
    """Returns a verdict with where it holds.

    Args:
        verdict: of equality without conditions, which the kernel accepted.
    """
    certificate = verdict.certificate
    claim = certificate.claim
    shown: Somewhere | None = None
    lacking: tuple[Somewhere, bool] | None = None
    everywhere = all(map(total, (claim.a, claim.b)))
    try:
        for point in _points(claim):
            values = [_value(claim, point, second) for second in (False, True)]
            if shown is None and values == [True, True]:
                shown = point
            if lacking is None and values in ([True, None], [None, True]):
                lacking = point, values[1] is None
            if shown is not None and (everywhere or lacking is not None):
                break
    except (Obstacle, ValueError) as e:
        return dataclasses.replace(verdict, unseen=str(e))
    if shown is None:
        return Unknown(NOWHERE, ("points of small numbers",), "a point at which both have values")
    check_somewhere(claim, shown)
    whole = dataclasses.replace(
        verdict, certificate=dataclasses.replace(certificate, defined=shown)
    )
    return whole if lacking is None else ProvedWhereDefined(whole, *lacking)


def where_first_defined(certificate: Certificate) -> tuple[Certificate | None, str]:
    """Returns a certificate of a case with a point at which the first has an output.

    Args:
        certificate: which the kernel accepted.

    Returns:
        The certificate, None where no such point was found, and why none is shown: the definition
        cannot be executed.
    """
    claim = certificate.claim
    alone = {d.axis.name for d in claim.a.axes}
    sizes = tuple((name, k) for name, k in claim.sizes if name in alone)
    try:
        points = _points(Claim(claim.a, claim.a, (), sizes))
        shown = next((point for point in points if _value(claim, point, False)), None)
    except (Obstacle, ValueError) as e:
        return certificate, str(e)
    if shown is None:
        return None, NO_OUTPUT
    check_somewhere(claim, shown)
    return dataclasses.replace(certificate, defined=shown), ""


def _points(claim: Claim) -> list[Somewhere]:
    """Points of the claim, those of the simplest numbers first."""
    out: list[Witness] = []
    rng = random.Random(0)
    of = arrays(claim)
    draws = DRAWS if max((k for _, k in claim.sizes), default=1) <= LARGE else 1
    for length, heights in ((1, (SIMPLER[1:2], *HEIGHTS, LOW)), (2, (LOW,))):
        for height in heights:
            out += [drawn(claim, of, length, height, rng) for _ in range(draws)]
    return [Somewhere(point.length, point.values) for point in dict.fromkeys(out)]


def _value(claim: Claim, point: Somewhere, second: bool) -> bool | None:
    """Whether one output has a value at every token: False where that is not known."""
    try:
        execute_one(claim, point, second)
    except Undefined:
        return None
    except (NotDefined, Rejected):
        return False
    return True
