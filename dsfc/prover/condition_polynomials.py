"""Conditions as polynomials: names moved in time, sets of them, their stored form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import permutations

from dsfc.expr.declarations import Constraint
from dsfc.system.known import promises
from dsfc.trusted.claim import Claim, Coefficient, Condition
from dsfc.trusted.comparable import array_names
from dsfc.trusted.conditions import Conditions, reach
from dsfc.trusted.generalize_inputs import LABELS, system_of
from dsfc.trusted.generator_names import STATE, lags, shifted
from dsfc.trusted.polynomial import Polynomial, Quotient, generator
from dsfc.trusted.statement import written
from dsfc.trusted.symbols import Symbols


def condition(p: Polynomial, solved: str) -> Condition:
    """Returns the condition that a polynomial is 0, which gives a generator its value."""
    return Condition(stored(p), solved)


def stored(p: Polynomial) -> Coefficient:
    """Returns a polynomial as certificates have it: over the integers, exponents not negative."""
    simple, rest = p.split()
    ((common, _),) = simple.terms.items()
    kept = Polynomial({tuple((g, e) for g, e in common if e > 0): Fraction(1)})
    return tuple((m, c.numerator) for m, c in (kept * rest).ordered)


def polynomial(coefficient: Coefficient) -> Polynomial:
    """Returns a stored polynomial."""
    return Polynomial({m: Fraction(c) for m, c in coefficient})


def least_lag(name: str, absent: int = 0) -> int:
    """Returns how many tokens back the latest token lies that a name reads; `absent` for none."""
    return min(lags(frozenset({name})), default=absent)


def entry_name(array: str, index: tuple[int, ...]) -> str:
    """Returns the name of an entry of an input at the present token."""
    return f"{array}[{','.join(map(str, index))}]@0"


def moved(p: Polynomial, by: int) -> Polynomial:
    """Returns the polynomial with all names some tokens further back."""
    return p.renamed(lambda g: shifted(g, by)) if by else p


def renamed(p: Polynomial, names: Mapping[str, str]) -> Polynomial:
    """Returns the polynomial with some generators replaced by others that may stand in it too."""
    return Quotient(p).substituted({a: Quotient(generator(b)) for a, b in names.items()}).num


@lru_cache(maxsize=256)
def _read(conditions: tuple[Condition, ...]) -> Conditions:
    """The values that conditions give; a search asks for those of one set at each token anew."""
    return Conditions(conditions)


@dataclass(frozen=True, slots=True)
class Branch:
    """A set of conditions of the search."""

    conditions: tuple[Condition, ...]

    def values(self, window: int) -> Mapping[str, Quotient]:
        """Returns the value of each solved generator, at the tokens of a window."""
        return _read(self.conditions).values(window)

    def stops(self) -> bool:
        """Whether a value inside a mixer must be the same at all tokens, other than 0."""
        known = self.values(_read(self.conditions).window)
        solved = [known[c.solved] for c in self.conditions if c.solved.startswith(LABELS)]
        return any(q and not lags(q.names) for q in solved)


def with_condition(branch: Branch, new: Condition) -> Branch:
    """Returns the conditions with one more, its value put into the others."""
    out = []
    for c in branch.conditions:
        p = polynomial(c.polynomial)
        known = _read((new,)).values(reach(p))
        if p.names & known.keys():
            c = condition(Quotient(p).substituted(known).num, c.solved)
        out.append(c)
    return Branch((*out, new))


def divides_alone(claim: Claim) -> bool:
    """Whether one alone divides by sums over its states, the first if it is to be a case.

    No value of a token says what they are, and multiplied out such equations are too long.
    """
    outputs = written(claim, Symbols(), False, None).outputs
    a, b = (any(STATE in g for pair in outputs for x in pair[k].den for g in x.names)
            for k in (0, 1))  # fmt: skip
    return a and not b if claim.case else a != b


def simplest_first(todo: list[Polynomial]) -> list[Polynomial]:
    """Returns the polynomials that are not 0, each once, those of few terms first."""
    return sorted({p for p in todo if p}, key=lambda p: (len(p.terms), p.text))


def matchings(a: list[str], b: list[str]) -> Iterator[list[tuple[str, str]]]:
    """Yields the ways to pair elements of both lists, as many as there can be."""
    if len(a) <= len(b):
        for chosen in permutations(b, len(a)):
            yield list(zip(a, chosen, strict=True))
    else:
        for chosen in permutations(a, len(b)):
            yield list(zip(chosen, b, strict=True))


def nonzero_names(claim: Claim) -> frozenset[str]:
    """Returns the common names of arrays that are declared other than 0."""
    sure = (Constraint.NONZERO, Constraint.POSITIVE, Constraint.UNIT)
    return frozenset(
        array_names(claim, k).get(name, name)
        for k in (False, True)
        for name, promise in promises(system_of(claim, k)).items()
        if promise in sure
    )
