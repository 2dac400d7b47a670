"""The irreducible factors of a polynomial in generators."""

from __future__ import annotations

from fractions import Fraction

from dsfc.prover.field import ring
from dsfc.trusted.polynomial import Polynomial


def factors(p: Polynomial) -> list[Polynomial]:
    """Returns the different irreducible factors of a polynomial, numbers left out."""
    _, whole = p.split()
    names = tuple(sorted(whole.names))
    r = ring(names)
    element = r.element({
        tuple(dict(m).get(g, 0) for g in names): c.numerator for m, c in whole.terms.items()
    })  # fmt: skip
    return [
        Polynomial({
            tuple((g, e) for g, e in zip(names, m, strict=True) if e): Fraction(int(c))
            for m, c in r.terms(f).items()
        })
        for f in r.factors(element)
    ]  # fmt: skip
