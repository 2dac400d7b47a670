"""Conditions that equal outputs force: they are necessary, given those that are assumed.

Some conditions of a claim say which values of both mixers go together; the others are `forced`.
Fix everything but some inputs, the `varied` ones, as queries, keys and values.

Theorem: where what is assumed holds, and the outputs are equal at every token for all values of the
varied inputs, every forced condition holds at every token at which it can be read. Checked are:

1. a varied input stands in no function, no denominator and no forced condition, no condition gives
   it a value, and its range holds an interval; what assumed conditions make of it stands in no
   function either, and may be any number; and nothing is a function of states: so the difference of
   the outputs is a polynomial in the varied inputs, and each coefficient is 0 if it is 0 for all
   their values;
2. while the varied inputs are 0, states that are 0 stay 0: so the states may be taken for 0 before
   any token;
3. of the outputs after r tokens from there, r being how far a forced condition reads back, one
   coefficient is the condition times what is never 0, once the forced conditions before it, in the
   order of the certificate, have given their values: what they give one is multiplied in them, as
   they are written, by what is never 0.

The tokens are the first ones, written out each, and one for all that follow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

from dsfc.expr.declarations import Constraint
from dsfc.expr.interval import REALS
from dsfc.system.known import promises
from dsfc.trusted.claim import Claim, Condition, Conditional
from dsfc.trusted.comparable import array_names, nonzero
from dsfc.trusted.conditions import NOT_ZERO, Conditions, reach
from dsfc.trusted.defined import never_zero
from dsfc.trusted.generalize_inputs import ranges, system_of
from dsfc.trusted.generator_names import LEAF, lags, shifted
from dsfc.trusted.polynomial import ZERO, Monomial, Polynomial, Quotient, generator
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.statement import Moment, state

ANY = (Constraint.NONE, Constraint.NONZERO)
"""Promises that leave intervals of numbers on both sides of 0."""


def check_necessary(claim: Claim, proof: Conditional) -> None:
    """Checks that the forced conditions of a certificate follow from equal outputs.

    Raises:
        Rejected: a check failed.
        Obstacle, ValueError: the claim has no meaning here.
    """
    every = range(len(claim.conditions))
    if not set(proof.forced) <= set(every) or len(set(proof.forced)) != len(proof.forced):
        raise Rejected("the forced conditions are none of the claim, or one stands there twice")
    if claim.case:
        raise Rejected("conditions that only give values to b's own parameters are not forced")
    assumed = tuple(c for k, c in enumerate(claim.conditions) if k not in proof.forced)
    outputs = _Outputs(replace(claim, conditions=assumed), frozenset(proof.varied))
    polynomials = Conditions(claim.conditions).polynomials
    for position, k in enumerate(proof.forced):
        outputs.check_apart(polynomials[k].names)
        known = tuple(claim.conditions[j] for j in proof.forced[:position])
        for token in range(reach(polynomials[k]), outputs.window + reach(polynomials[k]) + 1):
            outputs.check_forced(polynomials[k], known, token)
        outputs.check_value(claim.conditions[k])


class _Outputs:
    """The difference of the outputs from states that are 0, as coefficients of varied inputs."""

    def __init__(self, claim: Claim, varied: frozenset[str]) -> None:
        self.assumed, self.varied, self.sure = claim.conditions, varied, nonzero(claim)
        self.statement = state(claim, False)
        self.window = self.statement.window
        self._found: dict[tuple[int, int], dict[Polynomial, list[Monomial]]] = {}
        timed = {array_names(claim, k).get(t.name, t.name)
                 for k in (False, True) for t in system_of(claim, k).inputs}  # fmt: skip
        if varied - timed or varied & {c.solved.partition("[")[0] for c in claim.conditions}:
            raise Rejected("what is varied is no input, or has a value")
        if any(x.low >= x.high for name, x in ranges(claim).items() if name in varied):
            raise Rejected("what is varied has one value")
        first = [
            _substituted(moment, self.statement.conditions.values(token))
            for token, moment in enumerate(self.statement.first)
        ]
        self.moments = (*first, self.statement.steady)
        if any(moment.heads for moment in self.moments):
            raise Rejected(
                "what is not rational in states may be equal where its arguments are not"
            )
        self.tied = self._made_of_varied(claim)
        for moment in self.moments:
            for q in (*moment.step.values(), *(q for pair in moment.outputs for q in pair)):
                tuple(self._split(q))
            for q in moment.step.values():
                if q.substituted({g: ZERO for g in q.names if g in moment.step or self._is(g)}):
                    raise Rejected("a state does not stay 0 while what is varied is 0")

    def _made_of_varied(self, claim: Claim) -> frozenset[str]:
        """The arrays to which assumed conditions give values made of varied inputs.

        Raises:
            Rejected: one is no array, or may not be any number.
        """
        values = self.statement.conditions.values(self.window)
        tied: set[str] = set()
        while True:
            arrays = self.varied | tied
            names_made = {
                name
                for name, q in values.items()
                if any(f"{array}[" in g for g in q.names for array in arrays)
            }
            entries = {name: LEAF.fullmatch(name.removeprefix("~")) for name in names_made}
            if not all(entries.values()):
                raise Rejected("a condition gives a function a value made of what is varied")
            more = {entry[1] for entry in entries.values() if entry is not None}
            if more <= tied:
                break
            tied |= more
        limits = ranges(claim)
        for second in (False, True):
            names = array_names(claim, second)
            for name, promise in promises(system_of(claim, second)).items():
                if names.get(name, name) in tied and promise not in ANY:
                    raise Rejected("what goes with what is varied may not be any number")
        if any(limits[n] != REALS for n in tied & limits.keys()):
            raise Rejected("what goes with what is varied may not be any number")
        return frozenset(tied)

    def _is(self, name: str) -> bool:
        """Whether a generator is an entry of a varied input, or its conjugate."""
        entry = LEAF.fullmatch(name.removeprefix("~"))
        return entry is not None and entry[1] in self.varied

    def check_apart(self, names: frozenset[str]) -> None:
        """Raises a Rejected if a varied input stands in one of the names."""
        if any(f"{array}[" in g for g in names for array in self.varied):
            raise Rejected("what is varied stands in a function, a denominator or a condition")
        functions = [g for g in names if LEAF.fullmatch(g.removeprefix("~")) is None]
        if any(f"{array}[" in g for g in functions for array in self.tied):
            raise Rejected("what goes with what is varied stands in a function")

    def check_value(self, condition: Condition) -> None:
        """Raises a Rejected if what a condition gives a value may be multiplied by 0 in it."""
        (factor,) = Conditions((condition,)).factors
        if len(factor.terms) != 1 or not all(map(self._nonzero, factor.names)):
            raise Rejected("what a forced condition is solved for may be multiplied by 0")

    def check_forced(self, p: Polynomial, known: tuple[Condition, ...], token: int) -> None:
        """Raises a Rejected if no coefficient at a token is p times what is never 0."""
        wanted, rest = p.split()
        key = reach(p), token
        for again in (False, True):
            if again or key not in self._found:
                values = Conditions((*self.assumed, *known)).values(token)
                self._found[key] = self._coefficients(*key, values)
            if any(self._differ_little(m, wanted) for m in self._found[key].get(rest, ())):
                return
        raise Rejected("a condition is not forced by equal outputs")

    def _differ_little(self, m: Monomial, wanted: Polynomial) -> bool:
        """Whether a monomial is one of a polynomial of one term, times what is never 0."""
        ((n, _),) = wanted.terms.items()
        powers = {g: dict(m).get(g, 0) - dict(n).get(g, 0) for g, _ in (*m, *n)}
        return all(self._nonzero(g) for g, e in powers.items() if e)

    def _nonzero(self, name: str) -> bool:
        """Whether a generator is never 0."""
        now = shifted(name, -min(lags(frozenset({name})), default=0))
        one = Quotient(generator(now))
        return bool(NOT_ZERO.fullmatch(name)) or never_zero(self.statement.symbols, one, self.sure)

    def _coefficients(
        self, back: int, token: int, values: Mapping[str, Quotient]
    ) -> dict[Polynomial, list[Monomial]]:
        """The coefficients of the outputs' difference at a token, from states 0 `back` before.

        Each is a monomial times a polynomial as `Polynomial.split` gives it, sorted by these.
        """
        out: dict[Polynomial, list[Monomial]] = {}
        states: dict[str, Quotient] = {}
        for lag in range(back, -1, -1):
            moment = self.moments[min(token - lag, self.window)]
            names = {g for q in moment.step.values() for g in q.names}
            names |= {g for pair in moment.outputs for q in pair for g in q.names}
            before = {g for g in names if self._is(g) and min(lags(frozenset({g}))) + lag > back}
            held = dict.fromkeys((*moment.step, *before), ZERO) | states
            for a, b in moment.outputs if not lag else ():
                for c in self._split((a - b).substituted(held).substituted(values)):
                    factor, rest = c.split()
                    out.setdefault(rest, []).extend(factor.terms)
            states = {
                name: q.substituted(held).renamed(lambda g: shifted(g, 1))
                for name, q in moment.step.items()
            }
        return out

    def _split(self, q: Quotient) -> Iterator[Polynomial]:
        """The coefficients of the monomials in what is varied, those that are not 0."""
        self.check_apart(frozenset(g for base in q.den for g in base.names))
        parts: dict[Monomial, dict[Monomial, Fraction]] = {}
        for m, c in q.num.terms.items():
            varied = tuple(f for f in m if self._is(f[0]))
            rest = tuple(f for f in m if not self._is(f[0]))
            self.check_apart(frozenset(g for g, _ in rest))
            if any(e < 0 for _, e in varied):
                raise Rejected("what is varied stands in a denominator")
            parts.setdefault(varied, {})[rest] = c
        yield from map(Polynomial, parts.values())


def _substituted(moment: Moment, values: Mapping[str, Quotient]) -> Moment:
    """A token with values put in."""
    step = {name: q.substituted(values) for name, q in moment.step.items()}
    pairs = tuple((a.substituted(values), b.substituted(values)) for a, b in moment.outputs)
    return replace(moment, step=step, outputs=pairs)
