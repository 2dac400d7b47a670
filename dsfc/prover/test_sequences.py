"""The search for sequences on which no parameters of b follow a, for the rule "test-sequences".

Letters and parameters of a are small numbers that are drawn. The equations of all short sequences
go into one ideal; where it holds what is free of unknowns, and not 0, that is the certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import islice, product
from math import lcm

from dsfc.prover.elimination import LONGEST, eliminated
from dsfc.prover.nullstellensatz import Budget, combinations, sums
from dsfc.prover.sequence_points import drawn_point, exchanged_point, plain_points
from dsfc.prover.sizes import LARGEST, NONE_GIVEN, around
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import (
    Certificate,
    Claim,
    Coefficient,
    OutputDifference,
    SeparatingSequences,
)
from dsfc.trusted.comparable import comparable, slots
from dsfc.trusted.polynomial import (
    POLYNOMIAL_ZERO,
    Polynomial,
    Quotient,
    TooLarge,
    constant,
    generator,
    unit,
)
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.rules.test_sequences import (
    LENGTH_LIMIT,
    Equations,
    Spelling,
    Word,
    unshared_axes,
)

SHAPES = ((1, 3), (2, 2), (2, 3), (3, 2))
"""How many letters, and how long the sequences of them."""

DRAWS = 2
"""Points tried for one shape."""

UNKNOWNS = 40
"""Generators of b in one system of equations."""

PLAIN, ONE_PLAIN = 8, 300
"""Parameters of a that are alike, at one size, and terms that are added for one point."""

WORK, ONE_IDEAL, ONE_EQUATION = 90_000, 6_000, 60
"""Terms that are added in all, for one point, and what writing out an equation counts for."""

WRITTEN = 100
"""Terms of an output at the end of the sequences of a plain point."""

EQUATIONS = 28
"""Outputs of the sequences of one point; where there would be more they are left."""

MULTIPLIED = 20_000
"""Products of terms when the kernel multiplies a combination out."""

SHORT = 2
"""Terms of a factor that is left out of what the first token adds."""

TRIED = 3
"""Combinations of one ideal that the kernel is asked about."""

Tried = dict[tuple[Claim, SeparatingSequences, int], int]
"""Claim, point that gives no certificate, and what was left to be done → what is left after it."""

_Factors = Mapping[int, Polynomial]
"""Position of an equation → what it is multiplied by."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A sum over equations, without negative exponents."""

    p: Polynomial
    factors: _Factors


class _Equations(Equations):
    """The equations of a search: what sequences begin with alike is written out once.

    Signs are asked for when all is written out.
    """

    def __init__(self, claim: Claim, proof: SeparatingSequences) -> None:
        super().__init__(claim, proof)
        self._begun: dict[tuple[Word, bool], tuple[list[Quotient], Mapping[str, Quotient]]] = {}
        self._positive: dict[str, bool] = {}

    def _outputs_of(self, sequence: Word, second: bool) -> list[list[Quotient]]:
        out: list[list[Quotient]] = []
        states: Mapping[str, Quotient] = {}
        for length in range(1, len(sequence) + 1):
            word = sequence[:length]
            if (word, second) not in self._begun:
                spelled = Spelling(self, second, word, states)
                self._begun[word, second] = spelled.outputs(), spelled.step()
            outputs, states = self._begun[word, second]
            out.append(outputs)
        return out

    def _has_sign(self, p: Polynomial) -> bool:
        # Only what is made of positive generators has a sign by its terms.
        return all(map(self._is_positive, p.names)) and super()._has_sign(p)

    def _is_positive(self, g: str) -> bool:
        if g not in self._positive:
            self._positive[g] = self.symbols.is_positive(generator(g))
        return self._positive[g]


@dataclass(frozen=True, slots=True)
class _Ideal:
    """The equations of a point.

    Attributes:
        rows: one of each.
        firsts: those of first tokens.
        responses: see `_responses`.
        constants: generators that are no unknowns.
        nonzero: whether a polynomial is known not to be 0.
    """

    rows: Sequence[_Row]
    firsts: Sequence[_Row]
    responses: Sequence[_Row]
    constants: frozenset[str]
    nonzero: Callable[[Polynomial], bool]


def no_instance_by_test_sequences(
    claim: Claim,
    fixed_sizes: Mapping[str, int] = NONE_GIVEN,
    plain: int = PLAIN,
    sizes: int | None = None,
    shapes: int | None = None,
    tried: Tried | None = None,
) -> Certificate | str:
    """Returns a certificate that a is no case of b, accepted by the kernel, or why there is none.

    Where b has slots, they are functions of the whole history, or else of the token alone.

    Args:
        claim: the two systems and their names.
        fixed_sizes: sizes that some axes have.
        plain: how many values of a's parameters that are alike are tried at the same sizes.
        sizes: at how many sizes, None for all that are looked at.
        shapes: of how many shapes points are drawn, None for all.
        tried: points that give none, of shorter searches before; those of this one are added.

    Raises:
        Obstacle: one of the systems cannot be written out.
        ValueError: the systems cannot be put side by side.
    """
    known: Tried = {} if tried is None else tried
    depths, at_sizes = _asked(claim, fixed_sizes)
    small = (at for at in at_sizes[1:] if max(k for _, k in at.sizes) <= LARGEST)
    for at in islice((at_sizes[0], *small), sizes):
        certificate = _plain(replace(at, locality=depths[0]), plain, known)
        if certificate is not None:
            return certificate
    for at in at_sizes[:sizes] if slots(claim) else ():
        certificate = _by(at := replace(at, locality=0), exchanged_point(at), _summed, Budget(0))
        if certificate is not None:
            return certificate
    left = WORK
    ways = product(SHAPES[:shapes], depths, at_sizes[:sizes], range(DRAWS))
    for (count, length), locality, at, draw in ways:
        budget = Budget(min(ONE_IDEAL, left))
        before = budget.left
        point = drawn_point(at, count, length, draw)
        certificate = _shown(replace(at, locality=locality), point, budget, known)
        if certificate is not None:
            return certificate
        left -= before - budget.left
        if left <= 0:
            break
    return "the second may follow on all short sequences that were tried"


def _asked(
    claim: Claim, fixed_sizes: Mapping[str, int]
) -> tuple[tuple[int | None, ...], list[Claim]]:
    """How far back slots may read, farthest first, and what is claimed at each of some sizes."""
    claim = replace(
        claim, equal=False, case=True, every=unshared_axes(claim), conditions=(), locality=None
    )
    comparable(claim)
    # What is so for functions of the whole history is so for all.
    depths = (LENGTH_LIMIT - 1, 0) if slots(claim) else (None,)
    return depths, [replace(claim, sizes=at) for at in around(claim.a, claim.b, fixed_sizes)]


def _plain(claim: Claim, count: int, known: Tried) -> Certificate | None:
    """A certificate by a plain point, if one is found at the sizes of the claim."""
    longest = None
    for point in plain_points(claim, count):
        longest = _longest(claim, point) if longest is None else longest
        if not longest:
            return None
        short = tuple(dict.fromkeys(sequence[:longest] for sequence in point.sequences))
        certificate = _shown(claim, replace(point, sequences=short), Budget(ONE_PLAIN), known)
        if certificate is not None:
            return certificate
    return None


def _longest(claim: Claim, point: SeparatingSequences) -> int:
    """How many tokens of the first sequence have short equations."""
    (sequence, *_) = point.sequences
    begun = tuple(sequence[: token + 1] for token in range(len(sequence)))
    part = replace(point, sequences=begun)
    try:
        equations = _Equations(claim, part)
    except Rejected:
        return 0
    for token in range(len(sequence)):
        try:
            rows = [equations.of(p) for p in _places(claim, part) if p.sequence == token]
        except (Rejected, TooLarge, ZeroDivisionError):
            return token
        if any(len(e.num.terms) > WRITTEN for e in rows):
            return token
    return len(sequence)


def _shown(
    claim: Claim, point: SeparatingSequences, budget: Budget, known: Tried
) -> Certificate | None:
    """A certificate by the sequences of a point, if they give one."""

    def ways(ideal: _Ideal) -> Iterator[_Factors]:
        yield from _combined(ideal.rows, eliminated, ideal.constants, ideal.nonzero)
        yield from _combined(ideal.rows, combinations, ideal.constants, budget)
        # A function of tokens has a value of its own at each: there sums are enough.
        if ideal.responses and claim.locality is None:
            short = _short(ideal.nonzero)
            for rows in (ideal.responses, (*ideal.firsts, *ideal.responses)):
                yield from _combined(rows, eliminated, ideal.constants, short)
        yield from _combined(ideal.rows, eliminated, ideal.constants, ideal.nonzero, True)

    key = claim, point, budget.left
    if key in known:
        budget.left = known[key]
        return None
    certificate = _by(claim, point, ways, budget)
    if certificate is None:
        known[key] = budget.left
    return certificate


def _summed(ideal: _Ideal) -> Iterator[_Factors]:
    """Sums of what first tokens add, times numbers."""
    return _combined(ideal.responses, sums, ideal.constants)


def _by(
    claim: Claim,
    point: SeparatingSequences,
    ways: Callable[[_Ideal], Iterator[_Factors]],
    budget: Budget,
) -> Certificate | None:
    """A certificate by the sequences of a point, its equations combined in some ways."""
    places = tuple(_places(claim, point))
    if len(places) > EQUATIONS:
        places = tuple(part for part in places if part.token == 0)
    try:
        equations = _Equations(claim, point)
        parts, differences = [], []
        for part in places:
            e = equations.of(part)
            if e:
                parts.append(part)
                differences.append(e)
    except (Rejected, TooLarge, ZeroDivisionError):
        return None
    # Long ones take long to write out, and lead nowhere.
    budget.left -= ONE_EQUATION * sum(1 + len(e.num.terms) // LONGEST for e in differences)
    names = frozenset[str]().union(*(e.names for e in differences))
    constants = frozenset(filter(equations.constant, names))
    # An output of the second that is one number, whatever its parameters are, is enough.
    alone = next((k for k, e in enumerate(differences) if e.names <= constants), None)
    if alone is not None:
        parts, differences = parts[alone : alone + 1], differences[alone : alone + 1]
        names = differences[0].names
    if len(parts) > EQUATIONS or len(names - constants) > UNKNOWNS:
        return None
    rows = [_Row(*_cleared(k, e, equations)) for k, e in enumerate(differences)]
    firsts = [row for part, row in zip(parts, rows, strict=True) if not part.token]
    responses = _responses(point, parts, differences, rows)
    tried = 0
    nonzero = cache(equations.nonzero)  # the same factors come up in one way and the next
    for factors in ways(_Ideal(rows, firsts, responses, constants, nonzero)):
        count = sum(len(c.terms) * len(differences[k].num.terms) for k, c in factors.items())
        if count > MULTIPLIED:
            continue
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


def _combined(
    rows: Sequence[_Row], search: Callable[..., Iterator[_Factors]], *rest: object
) -> Iterator[_Factors]:
    """Cofactors of the equations, by those of sums of them."""
    for combination in search([row.p for row in rows], *rest):
        factors: dict[int, Polynomial] = {}
        for position, c in combination.items():
            for k, factor in rows[position].factors.items():
                factors[k] = factors.get(k, POLYNOMIAL_ZERO) + c * factor
        yield {k: p for k, p in factors.items() if p}


def _short(nonzero: Callable[[Polynomial], bool]) -> Callable[[Polynomial], bool]:
    """Whether factors are so simple that the kernel finds them in a product again."""
    return lambda p: len(p.terms) <= SHORT and nonzero(p)


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


def _cleared(k: int, e: Quotient, equations: Equations) -> tuple[Polynomial, dict[int, Polynomial]]:
    """The numerator without negative exponents and factors that are not 0, and its factor."""
    shift: dict[str, int] = {}
    for g in e.num.names:
        least = min(dict(m).get(g, 0) for m in e.num.terms)
        sure = equations.symbols.knows(g) and equations.symbols.is_positive(
            Polynomial({((g, 1),): Fraction(1)})
        )
        if least < 0 or (least and sure):
            shift[g] = -least
    monomial = Polynomial({tuple(sorted(shift.items())): Fraction(1)})
    return e.num * monomial, {k: monomial}


def _responses(
    point: SeparatingSequences,
    parts: list[OutputDifference],
    differences: list[Quotient],
    rows: list[_Row],
) -> list[_Row]:
    """What the first token adds to later outputs; none where no sequence is the end of another.

    Where outputs are linear in states this is one product, and an output is a sum of many.
    """
    places = {
        (point.sequences[part.sequence][: part.token + 1], part.index): k
        for k, part in enumerate(parts)
    }
    out = []
    for (word, index), k in places.items():
        later = places.get((word[1:], index))
        if later is not None:
            by = _common(differences, k, later)
            p = sum((differences[at].num * f for at, f in by.items()), POLYNOMIAL_ZERO)
            out.append(_Row(p, by))
        elif len(word) > 1:
            out.append(rows[k])
    return [row for row in out if row.p] if any(len(row.factors) > 1 for row in out) else []


def _common(differences: Sequence[Quotient], first: int, second: int) -> dict[int, Polynomial]:
    """Factors with which two numerators are those of a difference, without negative exponents."""
    both = [differences[k] for k in (first, second)]
    shift: dict[str, int] = {}
    for g, exponent in (power for e in both for m in e.num.terms for power in m):
        shift[g] = max(shift.get(g, 0), -exponent)
    monomial = Polynomial({tuple(sorted((g, k) for g, k in shift.items() if k)): Fraction(1)})
    out = {}
    for k, sign in ((first, 1), (second, -1)):
        factor = monomial * constant(sign)
        for base in sorted(frozenset().union(*(e.den for e in both)), key=lambda b: b.text):
            power = max(e.den.get(base, 0) for e in both) - differences[k].den.get(base, 0)
            factor = factor * base.power(power)
        out[k] = factor
    return out


def _stored(
    point: SeparatingSequences, parts: list[OutputDifference], factors: _Factors
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
