"""Finds values of b's own parameters by matching both mixers token by token.

Entries of b's states are taken for those of a in order, each up to a constant factor κ. So decays,
what is added to the states, and outputs are equal one by one, as functions of the tokens alone.
These equations are short. Each is solved for what b alone has, wherever it stands: inside functions
with one argument the functions are undone, `exp(W_f u) = 1 / exp(W_z u)` gives `W_f u = -W_z u`,
and maps of tokens are compared entry by entry. What a token of zeros gives is looked at first,
because maps vanish there. What is found is put in, all is written out anew, and so on. Nothing here
is trusted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import count, islice
from math import gcd, prod

from dsfc.prover.condition_polynomials import condition, polynomial
from dsfc.prover.equation_names import FACTOR, affects, is_factor, split
from dsfc.prover.solve_for_own import Solver, Values
from dsfc.trusted.alpha_rename import alpha_rename
from dsfc.trusted.claim import Claim, Coefficient, Condition
from dsfc.trusted.conditions import Conditions
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.generator_names import LEAF, STATE, lags
from dsfc.trusted.polynomial import (
    IMAGINARY,
    ONE,
    ZERO,
    Polynomial,
    Quotient,
    generator,
)
from dsfc.trusted.polynomial import unit as unit_monomial
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.statement import written
from dsfc.trusted.substitute_parameters import substitute_parameters
from dsfc.trusted.symbols import Symbols

ROUNDS = 24
"""Times that the two mixers are written out, with more values each time."""
MOST = 20_000
"""Terms of all equations."""
BRANCHES = 24
"""Sets of values that are looked at."""
DEPTH = 12
"""Times that values are put in on the way to a claim."""

ROW = re.compile(r"\[[\d,]*;[\d,]*\]")
"""The row of a map in the name of its result."""

Function = tuple[str, Coefficient, Coefficient]


class WrittenOut:
    """Claims that were written out and solved: a longer search goes on where a shorter one ended.

    Those with factors between states are asked about once, and are not kept.
    """

    def __init__(self) -> None:
        """Starts with none."""
        self._rounds: dict[Claim, _Round] = {}

    def of(self, claim: Claim, scales: Values, scaled: bool) -> _Round:
        """Returns both mixers of a claim with the values that it gives."""
        if scaled:
            return _Round(alpha_rename(claim), scales, scaled)
        if claim not in self._rounds:
            self._rounds[claim] = _Round(alpha_rename(claim), scales, scaled)
        return self._rounds[claim]


def matched(
    claim: Claim,
    rounds: int = ROUNDS,
    scaled: tuple[bool, ...] = (False, True),
    known: WrittenOut | None = None,
) -> Iterator[Claim]:
    """Yields claims that a is a case of b, with conditions that match their tokens.

    Args:
        claim: without conditions.
        rounds: how often the two are written out.
        scaled: whether states of b may be those of a up to a factor, in turn.
        known: what was written out before, None for nothing.

    Raises:
        Obstacle, TooLarge, ValueError: the claim cannot be written out.
    """
    before = known or WrittenOut()
    for factors in scaled:
        ways = _matched(claim, {}, factors, 0, iter(range(rounds)), before)
        yield from islice(ways, BRANCHES)


LONGEST = 300
"""Terms of a common denominator of two values that are set equal."""


def _matched(
    claim: Claim,
    scales: Values,
    scaled: bool,
    depth: int,
    rounds: Iterator[int],
    known: WrittenOut,
) -> Iterator[Claim]:
    if next(rounds, None) is None:
        return
    round_ = known.of(claim, scales, scaled)
    if not any(round_.equations):
        yield claim
        return
    if depth == DEPTH or sum(len(p.terms) for p in round_.equations) > MOST:
        return
    for values in round_.solutions():
        finer = round_.finer(values)
        values = {n: q.substituted(finer) for n, q in values.items()}
        factors = {name: q for name, q in values.items() if name.startswith(FACTOR)}
        conditions = [round_.rewritten(c, finer | factors) for c in claim.conditions]
        functions = list(claim.functions)
        more = dict(scales)
        for name, value in values.items():
            if name.startswith(FACTOR):
                more[name] = value
                continue
            conditions.append(condition((Quotient(generator(name)) - value).num, name))
            functions += [f for f in round_.functions(value) if f not in functions]
        with suppress(Rejected, Obstacle, ZeroDivisionError):
            later = replace(claim, conditions=tuple(conditions), functions=tuple(functions))
            yield from _matched(later, more, scaled, depth + 1, rounds, known)


class _Round(Solver):
    """Both mixers written out with the values so far, and what has to vanish."""

    def __init__(self, claim: Claim, scales: Values, scaled: bool) -> None:
        super().__init__(claim, Symbols())
        self.scales, self.scaled = scales, scaled
        moment = written(claim, self.symbols, False, None)
        conditions = Conditions(claim.conditions)
        put = substitute_parameters(claim, conditions, self.symbols)
        # What stands in a value is known before values are put in, or is listed.
        self.before = frozenset(self.symbols.defined)
        if claim.functions or put:
            moment = written(claim, self.symbols, False, None, (), put)
        known = conditions.values(max(conditions.window, self.symbols.reach))
        step = {name: q.substituted(known) for name, q in moment.step.items()}
        outputs = [(a.substituted(known), b.substituted(known)) for a, b in moment.outputs]
        self.equations = self._equations(step, outputs)
        self._solutions: list[Values] = []
        self._search = self._solved()

    def _equations(
        self, step: Mapping[str, Quotient], outputs: list[tuple[Quotient, Quotient]]
    ) -> list[Polynomial]:
        theirs = self._places(step)
        pairs = [(a, b.substituted(theirs)) for a, b in outputs]
        for name, same in theirs.items():
            (mine,) = (g for g in same.names if STATE in g)
            factor = same / Quotient(generator(mine))
            pairs.append((factor * step[mine], step[name].substituted(theirs)))
        out: dict[Polynomial, None] = {}
        for pair in pairs:
            for p in _differences(*pair):
                for part in self._real_parts(p):
                    out[part] = None
        return sorted(filter(None, out), key=lambda p: (len(p.terms), self._pairs(p), p.text))

    def _pairs(self, p: Polynomial) -> int:
        """How many products of two entries of b have one index: they say least of each."""
        held = [[leaf[2] for g, _ in m if self.is_own(g) and (leaf := LEAF.fullmatch(g))]
                for m in p.terms]  # fmt: skip
        return sum(len(indices) - len(set(indices)) for indices in held)

    def _real_parts(self, p: Polynomial) -> list[Polynomial]:
        """An equation, as two where it is complex and all that it is solved for is real."""
        q = Quotient(p)
        own = [g for g in p.names if self.is_own(g) or is_factor(g)]
        leaves = {leaf[0] for g in own for leaf in LEAF.finditer(g)}
        known = [g for g in leaves if self.symbols.knows(g)]
        real = all(self.symbols.is_real(Quotient(generator(g))) for g in known)
        if not all(map(self.symbols.knows, p.names)):
            return [p]
        if any(map(is_factor, p.names)) or self.symbols.is_real(q) or not real:
            return [p]
        bar = self.symbols.conjugate(q)
        return [p, (q + bar).num, ((q - bar) * Quotient(generator(IMAGINARY))).num]

    def _places(self, step: Mapping[str, Quotient]) -> Values:
        """Entry of a state of b → the entry of a that it is taken for, times κ."""
        mine, theirs = ([g for g in step if g.startswith(STATE + side)] for side in "AB")
        if len(mine) != len(theirs):
            raise Obstacle("the two have different numbers of states")
        pairs = list(zip(mine, theirs, strict=True))
        for a, b in zip(mine, theirs, strict=True):
            if f"~{a}" in step and f"~{b}" not in step:
                raise Obstacle("a state of the first is complex, and none of the second")
            if f"~{b}" in step:
                pairs.append((f"~{a}" if f"~{a}" in step else a, f"~{b}"))
        out = {}
        for a, b in pairs:
            name = f"{FACTOR}{b.removeprefix('~')}".replace(STATE, "")
            scale = self.scales.get(name, Quotient(generator(name)) if self.scaled else ONE)
            out[b] = scale * Quotient(generator(a))
        return out

    def solutions(self) -> Iterator[Values]:
        """Yields values for some of what b alone has, each looked for once.

        A search that was broken off begins again.
        """
        for k in count():
            if k == len(self._solutions):
                try:
                    self._solutions.append(next(self._search))
                except StopIteration:
                    return
                except BaseException:
                    self._solutions, self._search = [], self._solved()
                    raise
            yield self._solutions[k]

    def _solved(self) -> Iterator[Values]:
        """Yields values for some of what b alone has, from the shortest equations first.

        What one equation alone gives a value has no other. Where there is no such equation, values
        are taken together that equations of one length give.
        """
        together = self._forced()
        if together is None:
            return  # nothing makes it 0
        if together:
            yield together
        first: list[Iterator[Values]] = []
        length = 0
        for p in self.equations:
            if not p or any(affects(n, g) for g in p.names if g in self.symbols.defined
                            for n in together):  # fmt: skip
                continue
            now = self.put(p, together)
            if not now or (length and len(now.terms) > length):
                continue
            ways = self.solved(now)
            best = next(ways, None)
            if best is None:
                continue
            length = length or len(now.terms)
            first.append(ways)
            if any(n in together for n in best):
                continue
            if any(name in q.names for q in best.values() for name in together):
                best = {n: q.substituted(together) for n, q in best.items()}
            together = {n: q.substituted(best) for n, q in together.items()} | best
        if together:
            yield together
        for ways in first[:2]:
            yield from islice(ways, 4)
        if not together:
            yield from self._guesses()
            yield from self._nothing_inside()
        if not together and self.scaled:
            left = {g for p in self.equations for g in p.names if is_factor(g)}
            if left:
                yield dict.fromkeys(left, ONE)

    def _forced(self) -> Values | None:
        """Values that equations give of which each holds one thing of b; None if one holds none.

        Functions of b that an equation gives a value hide what stands in them: two numbers of b may
        be told by what one function of both is, and by another equation that holds one of the two.
        """
        out: Values = {}
        functions = self._functions_of_own()
        for p in self.equations:
            now = self.put(p, out)
            own = self._held(now)
            if now and not own and not out:
                return None
            if len(own) > 1:
                now = _with(now, functions)
                own = self._held(now)
            if len(own) != 1 or own & self.symbols.defined.keys():
                continue
            best = next(self.solved(now), {})
            if best.keys() == own:
                out |= best
        return out

    def _functions_of_own(self) -> Values:
        """Functions of several numbers of b that equations give a value, the first for each."""
        out: Values = {}
        for p in self.equations:
            own = self._held(p)
            g = min(own, default="")
            if len(own) == 1 and g not in out and g in self.symbols.defined:
                out |= _linear(p, g)
        return out

    def _held(self, p: Polynomial) -> frozenset[str]:
        """What an equation holds of b, and factors between states."""
        return frozenset(g for g in p.names if self.is_own(g) or is_factor(g))

    def _guesses(self) -> Iterator[Values]:
        """Maps inside functions as maps of the first, or as their opposites, all rows alike."""
        every = [g for p in self.equations for g in sorted(p.names) if lags(frozenset({g}))
                 and self.symbols.defined.get(g, ("",))[0] == "exp"]  # fmt: skip
        rows = {self._row_of(g): g for g in every}
        first = [g for g in dict.fromkeys(every) if self.equations and g in self.equations[0].names]
        for mine in filter(self.is_own, first):
            for theirs in (g for g in first if not self.is_own(g)):
                for power in (-1, 1):
                    values: Values = {}
                    for (name, where), g in rows.items():
                        other = rows.get((self._row_of(theirs)[0], where))
                        if name == self._row_of(mine)[0] and other is not None:
                            value = Quotient(generator(other)).power(power)
                            values |= next(self.value_of(g, value, 1, 0), {})
                    if values:
                        yield values

    def _nothing_inside(self) -> Iterator[Values]:
        """Arrays inside functions put to 0, each as a whole."""
        out: dict[str, Values] = {}
        for p in self.equations:
            for g in sorted(p.names & self.symbols.defined.keys()):
                for inner in self._inside(g):
                    head, args = self.symbols.defined.get(inner, ("", ()))
                    if self.may_be_zero(inner) and "@" not in inner:
                        out.setdefault(inner.partition("[")[0], {})[inner] = ZERO
                    elif ";" in head and self.is_own(inner):
                        row = self.row(head, args, ZERO) or {}
                        name = min(row, default="").partition("[")[0]
                        out.setdefault(name, {}).update(row)
        yield from filter(None, out.values())

    def _inside(self, g: str) -> Iterator[str]:
        """A generator and all that it is a function of."""
        yield g
        for q in self.symbols.defined.get(g, ("", ()))[1]:
            for name in sorted(q.names):
                yield from self._inside(name)

    def _row_of(self, g: str) -> tuple[str, tuple[str, ...]]:
        """The maps inside a function, and the rows of them."""
        text = self.symbols.defined[g][1][0].text
        return ROW.sub("[;]", text), tuple(ROW.findall(text))

    def finer(self, values: Values) -> Values:
        """Exponentials that are powers of others in values, which stand in their places then."""
        out: Values = {}
        mine = [q for name, q in values.items() if not name.startswith(FACTOR)]
        for g in sorted({g for q in mine for g in q.names} - self.before):
            root = self.symbols.roots.of(g)
            if root is not None and self.symbols.defined[g][0] == "exp":
                exponent, power = root
                (whole,) = power.names if len(power.names) == 1 else ("",)
                if whole and power == generator(whole):
                    out[whole] = Quotient(generator(g)).power(exponent)
        return out

    def rewritten(self, c: Condition, finer: Values) -> Condition:
        """A condition with such exponentials put in."""
        p = polynomial(c.polynomial)
        return c if not p.names & finer.keys() else condition(self.put(p, finer), c.solved)

    def functions(self, value: Quotient) -> list[Function]:
        """Returns the functions that a value is made of, and both mixers are not, inner first."""
        out: list[Function] = []
        for g in sorted(value.names):
            head, args = self.symbols.defined.get(g, ("", ()))
            if head in ("log", "exp") and g not in self.before:
                q = args[0]
                out += [f for f in self.functions(q) if f not in out]
                out.append((head, *_fraction(q)))
        return out


def _linear(p: Polynomial, g: str) -> Values:
    """What p = 0 makes a generator, nothing where p holds other powers of it than one of 1, -1."""
    powers = {dict(m).get(g, 0) for m in p.terms} - {0}
    if powers not in ({1}, {-1}):
        return {}
    parts = (Polynomial({m: c for m, c in p.terms.items() if (g in dict(m)) is held})
             for held in (False, True))  # fmt: skip
    rest, held = map(Quotient, parts)
    (power,) = powers
    value = -(rest / held) * Quotient(generator(g)).power(power)
    return {g: value.power(power)} if value else {}


def _with(p: Polynomial, values: Values) -> Polynomial:
    """The numerator with values put in, unless that divides by 0."""
    with suppress(ZeroDivisionError):
        return Quotient(p).substituted(values).num
    return p


def _differences(a: Quotient, b: Quotient) -> list[Polynomial]:
    """What vanishes where two values are equal, split by the monomials in states."""
    if any(STATE in g for q in (a, b) for base in q.den for g in base.names):
        return split((a - b).num, lambda g: STATE in g)
    parts: list[dict[tuple[tuple[str, int], ...], Quotient]] = []
    for q in (a, b):
        of: dict[tuple[tuple[str, int], ...], dict[tuple[tuple[str, int], ...], Fraction]] = {}
        for m, c in q.num.terms.items():
            states = tuple(f for f in m if STATE in f[0])
            of.setdefault(states, {})[tuple(f for f in m if STATE not in f[0])] = c
        parts.append({m: Quotient(Polynomial(terms), q.den) for m, terms in of.items()})
    out = []
    for m in {**parts[0], **parts[1]}:
        left, right = (part.get(m, ZERO) for part in parts)
        size = prod(len(base.terms) ** e for base, e in (left.den | right.den).items())
        if size <= LONGEST:  # others stay for the proof
            out.append((left - right).num)
    return out


def _fraction(q: Quotient) -> tuple[Coefficient, Coefficient]:
    """A quotient as certificates have it."""
    above, below = q.num, Polynomial({(): Fraction(1)})
    for base, exponent in q.den.items():
        below = below * base.power(exponent)
    low: dict[str, int] = {}
    scale = 1
    for part in (above, below):
        for m, c in part.terms.items():
            scale = scale * c.denominator // gcd(scale, c.denominator)
            for name, e in m:
                low[name] = min(low.get(name, 0), e)
    clearing, _ = unit_monomial(tuple(sorted((g, e) for g, e in low.items() if e)), -1)
    factor = Polynomial({clearing: Fraction(scale)})
    terms = [tuple((m, c.numerator) for m, c in (part * factor).ordered) for part in (above, below)]
    return terms[0], terms[1]
