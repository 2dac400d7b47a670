"""Conditions of a claim, as values that they give generators.

A condition is a polynomial that is 0 at every token from which it does not read back before the
first. It is linear in one generator, so it gives that generator a value. Replacing generators by
their values is a map into the field of quotients over those that are left, and an identity there
holds at every point where the conditions do and no denominator is 0: neither those of the systems
nor what multiplies a generator that a condition solves, which is part of the claim.

No value holds a generator that has one, at any token; else what is not 0 as a quotient here could
be 0 for all later tokens, by conditions put one into the other. One kind of generator is excepted:
x with a law x_i = (α x_{i-1} + β) / (γ x_{i-1} + δ), where αδ - βγ is not 0 and none of the four
holds what has a value. Then x_i is such a quotient of x_0 for every i, so it is as independent of
all that is free as x_0 is, and no polynomial in x at one token becomes 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import partial

from dsfc.trusted.claim import Coefficient, Condition
from dsfc.trusted.generator_names import (
    CALL,
    LAG,
    LEAF,
    LONGEST_LAG,
    STATE,
    lags,
    shifted,
)
from dsfc.trusted.padded import padded
from dsfc.trusted.polynomial import IMAGINARY, Monomial, Polynomial, Quotient
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.symbols import Symbols

CONSTANT = re.compile(r"[κγ]\[\d{1,4}\]")
"""Names of the numbers that are a claim's own; no spec can spell them."""

NOT_ZERO = re.compile(r"κ\[\d{1,4}\]")
"""Names of those that are other than 0."""

LIMIT = 256
"""Conditions of one claim."""


def read(coefficient: Coefficient) -> Polynomial:
    """Returns a stored polynomial.

    Raises:
        Rejected: it is not written in the one way.
    """
    monomials = [m for m, _ in coefficient]
    if monomials != sorted(set(monomials)):
        raise Rejected("the terms of a coefficient are not in order")
    for m, c in coefficient:
        names = [name for name, _ in m]
        if names != sorted(set(names)) or c == 0:
            raise Rejected("a term is not in order, or 0")
        if any(not 1 <= e <= 64 or (name == IMAGINARY and e != 1) for name, e in m):
            raise Rejected("an exponent is out of range")
    return Polynomial({m: Fraction(c) for m, c in coefficient})


class Conditions:
    """Conditions and the values that they give.

    Args:
        stored: the conditions of a claim.

    Raises:
        Rejected: one does not give its generator a value.
    """

    def __init__(self, stored: tuple[Condition, ...]) -> None:
        """Solves each condition."""
        if len(stored) > LIMIT:
            raise Rejected(f"there are more than {LIMIT} conditions")
        self.polynomials = tuple(read(c.polynomial) for c in stored)
        self._solved = tuple(
            _solved(p, c.solved) for p, c in zip(self.polynomials, stored, strict=True)
        )
        self._names = tuple(c.solved for c in stored)
        self.factors = tuple(map(multiplier, self.polynomials, self._names))
        self._padded = tuple(c.solved for c in stored if c.padded)
        self._known: dict[int, Mapping[str, Quotient]] = {}
        self._given = frozenset(self._names)
        self._laws = frozenset(
            name
            for name, p in zip(self._names, self.polynomials, strict=True)
            if _is_law(p, name, self._given)
        )
        known = self._instances(self.window)
        for name in self._names:
            if self.touches(known[name].names):
                raise Rejected("what a condition gives a value stands in the value of another")

    def touches(self, names: frozenset[str]) -> bool:
        """Returns whether conditions, at any token, may give names values that depend on others.

        A name with a law may stand at one token: it is then as free as at the first.
        """
        at: dict[str, int] = {}
        for name in names:
            least = min(lags(frozenset({name})), default=0)
            now = shifted(name, -least)
            if now in self._given and (now not in self._laws or at.setdefault(now, least) != least):
                return True
        return False

    @property
    def window(self) -> int:
        """How many tokens back a condition reads."""
        return max((reach(p) for p in self.polynomials), default=0)

    def check(self, symbols: Symbols, solved: frozenset[str]) -> None:
        """Raises a Rejected if a condition speaks of what the claim does not have.

        Args:
            symbols: after the claim was written out.
            solved: common names of inputs, parameters and buffers of both.
        """
        for p in self.polynomials:
            for name in p.names - {IMAGINARY}:
                least = min(lags(frozenset({name})), default=0)
                now = shifted(name, -least)
                entry = LEAF.fullmatch(name.removeprefix("~"))
                leaf = entry is not None and entry[1] in solved
                # A function of an earlier token alone has no generator at the present one.
                is_defined = now in symbols.defined or name in symbols.defined
                known = is_defined and CALL not in name
                if not (CONSTANT.fullmatch(name) or leaf or known):
                    raise Rejected(f"a condition speaks of {name}, which the claim does not have")

    def values(self, window: int) -> Mapping[str, Quotient]:
        """Returns generator → value at a token with `window` tokens before it."""
        if window not in self._known:
            self._known[window] = self._instances(min(window, LONGEST_LAG))
        return self._known[window]

    def at(self, token: int) -> Mapping[str, Quotient]:
        """Returns generator → value at a token, counted from 0: see `padded`."""
        out = dict(self.values(token))
        for name in self._padded:
            value = self.values(self.window)[name]
            for lag in range(token + 1):
                out.setdefault(shifted(name, lag), padded(value, lag, token))
        return out

    def _instances(self, window: int) -> Mapping[str, Quotient]:
        out: dict[str, Quotient] = {}
        for p, name, value in zip(self.polynomials, self._names, self._solved, strict=True):
            timed = bool(LAG.search(name))
            for lag in range(window - reach(p) + 1 if timed else 1):
                at = shifted(name, lag)
                if at in out:
                    raise Rejected(f"two conditions give {name} a value")
                out[at] = value.renamed(partial(shifted, by=lag))
        for _ in range(len(out) + 1):
            if not any(q.names & out.keys() for q in out.values()):
                return out
            out = {name: q.substituted(out) for name, q in out.items()}
        raise Rejected("conditions give a generator a value made of itself")


def _is_law(p: Polynomial, name: str, solved: frozenset[str]) -> bool:
    """Whether p = 0 gives a value by what it was a token before, one to one."""
    before = shifted(name, 1)
    parts: dict[tuple[int, int], dict[Monomial, Fraction]] = {}
    for m, c in p.terms.items():
        powers = dict(m)
        key = powers.pop(name, 0), powers.pop(before, 0)
        parts.setdefault(key, {})[tuple(sorted(powers.items()))] = c
    others = frozenset(g for part in parts.values() for m in part for g, _ in m)
    if any(shifted(g, -min(lags(frozenset({g})), default=0)) in solved for g in others):
        return False
    if not parts.keys() <= {(0, 0), (0, 1), (1, 0), (1, 1)}:
        return False
    both, now, late, rest = (Polynomial(parts.get(k, {}))
                             for k in ((1, 1), (1, 0), (0, 1), (0, 0)))  # fmt: skip
    return bool(now * late + -(both * rest))


def reach(p: Polynomial) -> int:
    """Returns how many tokens back a polynomial reads."""
    return max(lags(p.names), default=0)


def _solved(p: Polynomial, name: str) -> Quotient:
    """The value that p = 0 gives a generator."""
    if name == IMAGINARY or STATE in "".join(p.names):
        raise Rejected("a condition is one on a state, or on the number i")
    if CONSTANT.fullmatch(name):
        raise Rejected("a condition gives a number of the claim's own a value")
    if min(lags(frozenset({name})), default=0):
        raise Rejected("a condition gives a value at an earlier token")
    if bool(LAG.search(name)) != bool(lags(p.names)):
        raise Rejected("a condition gives a number that is the same at all tokens one that is not")
    rest = Polynomial({m: c for m, c in p.terms.items() if name not in dict(m)})
    return -(Quotient(rest) / Quotient(multiplier(p, name)))


def multiplier(p: Polynomial, name: str) -> Polynomial:
    """Returns what a generator is multiplied by in p, which gives it a value where that is not 0.

    Raises:
        Rejected: p does not hold the generator, or is not linear in it.
    """
    factor = {}
    for m, c in p.terms.items():
        powers = dict(m)
        if powers.pop(name, 0) == 1:
            factor[tuple(sorted(powers.items()))] = c
        elif name in dict(m):
            raise Rejected("a condition is not linear in what it gives a value")
    if not factor:
        raise Rejected("a condition does not hold what it gives a value")
    return Polynomial(factor)
