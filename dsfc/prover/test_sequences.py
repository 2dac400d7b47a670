"""The search for sequences on which no parameters of b follow a, for the rule "test-sequences".

Letters and parameters of a are small numbers that are drawn. The equations of all short sequences
go into one ideal; where it holds what is free of unknowns, and not 0, that is the certificate.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import lcm

from dsfc.expr.declarations import Constraint, MapTensor, Tensor
from dsfc.prover.nullstellensatz import Budget, combinations
from dsfc.prover.sizes import NONE_GIVEN, around
from dsfc.system.known import fixed
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import (
    Certificate,
    Claim,
    Coefficient,
    Number,
    OutputDifference,
    SeparatingSequences,
)
from dsfc.trusted.comparable import comparable, slots
from dsfc.trusted.polynomial import POLYNOMIAL_ONE, Polynomial, Quotient, TooLarge, unit
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.rules.test_sequences import LENGTH_LIMIT, Equations, own_sizes
from dsfc.trusted.witness import in_range, stored_axes

SHAPES = ((1, 3), (2, 2), (2, 3), (3, 2))
"""How many letters, and how long the sequences of them."""

DRAWN = (Fraction(1), Fraction(2), Fraction(3), Fraction(0), Fraction(-1))
DRAWS = 2
"""Points tried for one shape."""

SEED = 1
"""Seed of the random points."""

UNKNOWNS = 40
"""Generators of b in one system of equations."""

WORK, ONE_IDEAL, ONE_EQUATION = 90_000, 6_000, 60
"""Terms that are added in all, for one point, and what writing out an equation counts for."""

LITTLE = 3_000
"""Terms that are added in all where only what is plain to see is looked for."""

EQUATIONS = 28
"""Outputs of the sequences of one point; where there would be more they are left."""

TRIED = 3
"""Combinations of one ideal that the kernel is asked about."""

_Values = tuple[tuple[str, tuple[Number, ...]], ...]


def no_instance_by_test_sequences(
    claim: Claim, fixed_sizes: Mapping[str, int] = NONE_GIVEN, work: int = WORK
) -> Certificate | str:
    """Returns a certificate that a is no case of b, accepted by the kernel, or why there is none.

    Where b has slots, they are functions of the whole history, or else of the token alone.

    Args:
        claim: the two systems and their names.
        fixed_sizes: sizes that some axes have.
        work: terms that are added in all.

    Raises:
        Obstacle: one of the systems cannot be written out.
        ValueError: the systems cannot be put side by side.
    """
    claim = replace(claim, equal=False, case=True, every=(), conditions=())
    comparable(replace(claim, locality=None))
    if own_sizes(claim):
        return "the second has an axis of its own, which may have any size"
    left = work
    # What is so for functions of the whole history is so for all.
    depths = (LENGTH_LIMIT - 1, 0) if slots(claim) else (None,)
    every = product(SHAPES, depths, tuple(around(claim.a, claim.b, fixed_sizes)), range(DRAWS))
    for (count, length), locality, sizes, draw in every:
        at = replace(claim, locality=locality, sizes=sizes)
        budget = Budget(min(ONE_IDEAL, left))
        before = budget.left
        certificate = _shown(at, _point(at, count, length, draw), budget)
        if certificate is not None:
            return certificate
        left -= before - budget.left
        if left <= 0:
            break
    return "the second may follow on all short sequences that were tried"


def _point(claim: Claim, count: int, length: int, draw: int) -> SeparatingSequences:
    """Numbers for a, letters, and all sequences of a length."""
    rng = random.Random(f"{draw} {count} {SEED}")
    known = fixed(claim.a)
    theirs = {dict(claim.names).get(t.name, t.name): t.constraint for t in claim.b.inputs}
    sizes = dict(claim.sizes)

    def drawn(tensors: tuple[Tensor | MapTensor, ...], of: tuple[Fraction, ...]) -> _Values:
        out = []
        for t in tensors:
            if t.name in known:
                continue
            entries = 1
            for axis in stored_axes(t):
                entries *= sizes[axis.name]
            out.append((t.name, tuple(_allowed(t, theirs, rng.choice(of)) for _ in range(entries))))
        return tuple(out)

    values = drawn((*claim.a.params, *claim.a.buffers), DRAWN[:3])
    letters = tuple(drawn(claim.a.inputs, DRAWN) for _ in range(count))
    sequences = tuple(product(range(count), repeat=length))
    return SeparatingSequences(values, letters, sequences, False, ())


def _allowed(t: Tensor | MapTensor, theirs: dict[str, Constraint], x: Fraction) -> Number:
    """A number, or one like it that both declarations allow."""
    if not isinstance(t, MapTensor):
        constraints = t.constraint, theirs.get(t.name, Constraint.NONE)
        for near in (x, abs(x), Fraction(1), Fraction(1, 2)):
            if all(in_range(near, c) for c in constraints):
                return near.numerator, near.denominator, 0, 1
    return x.numerator, x.denominator, 0, 1


def _shown(claim: Claim, point: SeparatingSequences, budget: Budget) -> Certificate | None:
    """A certificate by the sequences of a point, if they give one."""
    places = tuple(_places(claim, point))
    if len(places) > EQUATIONS:
        places = tuple(part for part in places if part.token == 0)
    if len(places) > EQUATIONS:
        return None
    budget.left -= ONE_EQUATION * len(places)
    try:
        equations = Equations(claim, point)
        parts, differences = [], []
        for part in places:
            e = equations.of(part)
            if e:
                parts.append(part)
                differences.append(e)
    except (Rejected, TooLarge, ZeroDivisionError):
        return None
    constants = frozenset(equations.bounds)
    # An output of the second that is one number, whatever its parameters are, is enough.
    alone = next((k for k, e in enumerate(differences) if e.names <= constants), None)
    if alone is not None:
        parts, differences = parts[alone : alone + 1], differences[alone : alone + 1]
    if not parts or len(frozenset().union(*(e.names for e in differences)) - constants) > UNKNOWNS:
        return None
    cleared = [_cleared(e, equations) for e in differences]
    tried = 0
    for combination in combinations([p for p, _ in cleared], constants, budget):
        factors = {k: c * cleared[k][1] for k, c in combination.items()}
        certificate = Certificate(claim, _stored(point, parts, factors))
        try:
            check(write(certificate))
        except Rejected:
            tried += 1
            if tried == TRIED:
                return None
            continue
        return certificate
    return None


def _places(claim: Claim, point: SeparatingSequences) -> Iterator[OutputDifference]:
    """Every output of the sequences, those of a common beginning once."""
    seen = set()
    sizes = dict(claim.sizes)
    shape = [range(sizes[x.name]) for x in claim.a.outputs[0].axes]
    for position, sequence in enumerate(point.sequences):
        for token in range(len(sequence)):
            if sequence[: token + 1] in seen:
                continue
            seen.add(sequence[: token + 1])
            for index in product(*shape):
                yield OutputDifference(position, token, index, ())


def _cleared(e: Quotient, equations: Equations) -> tuple[Polynomial, Polynomial]:
    """A polynomial f without denominators and without factors that are not 0, and f / e."""
    factor = POLYNOMIAL_ONE
    for base, exponent in e.den.items():
        factor = factor * base.power(exponent)
    shift: dict[str, int] = {}
    for g in e.num.names:
        least = min(dict(m).get(g, 0) for m in e.num.terms)
        sure = equations.symbols.knows(g) and equations.symbols.is_positive(
            Polynomial({((g, 1),): Fraction(1)})
        )
        if least < 0 or (least and sure):
            shift[g] = -least
    monomial = Polynomial({tuple(sorted(shift.items())): Fraction(1)})
    return e.num * monomial, factor * monomial


def _stored(
    point: SeparatingSequences, parts: list[OutputDifference], factors: dict[int, Polynomial]
) -> SeparatingSequences:
    """The certificate: cofactors over the integers, without negative exponents."""
    least: dict[str, int] = {}
    scale = 1
    for p in factors.values():
        for m, c in p.terms.items():
            scale = lcm(scale, c.denominator)
            for g, exponent in m:
                least[g] = min(least.get(g, 0), exponent)
    common, _ = unit(tuple(sorted((g, e) for g, e in least.items() if e)), -1)
    whole = Polynomial({common: Fraction(scale)})
    kept = tuple(
        replace(parts[k], cofactor=_coefficient(p * whole)) for k, p in sorted(factors.items())
    )
    used = sorted({part.sequence for part in kept})
    renumbered = tuple(replace(part, sequence=used.index(part.sequence)) for part in kept)
    longest = {w: max(p.token for p in kept if p.sequence == w) for w in used}
    sequences = tuple(point.sequences[w][: longest[w] + 1] for w in used)
    return replace(point, sequences=sequences, parts=renumbered)


def _coefficient(p: Polynomial) -> Coefficient:
    return tuple((m, c.numerator) for m, c in p.ordered)
