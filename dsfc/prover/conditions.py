"""The search for conditions under which two systems give equal outputs.

The outputs of the first tokens are written out, in full and without elimination: a case that is of
interest is often that a pivot vanishes. Their difference, split by the monomials in what stays
free, is a list of polynomials that must be 0. Each is factored; factors that cannot be 0 are
dropped, each other factor is a branch. A factor is solved for what it is linear in, the value is
put into what is left, and so on. What comes out is proved by closure, and the kernel says the
last word; nothing here is trusted.

Values inside both mixers are inputs of their own (`dsfc.trusted.generalize_inputs`). Those that
play the same part are set equal first: they stand at the same tokens in what a token gives the next
one's output, with as many entries. One of them may keep a constant factor κ.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations, islice, product

from dsfc.expr.declarations import Constraint, Tensor
from dsfc.prover.condition_polynomials import (
    Branch,
    condition,
    divides_alone,
    entry_name,
    least_lag,
    matchings,
    moved,
    nonzero_names,
    polynomial,
    renamed,
    simplest_first,
    stored,
    with_condition,
)
from dsfc.prover.factors import factors
from dsfc.trusted.claim import Claim, Condition
from dsfc.trusted.comparable import array_names, own_parameters, positive, slots
from dsfc.trusted.conditions import CONSTANT, Conditions
from dsfc.trusted.generalize_inputs import LABELS, system_of
from dsfc.trusted.generator_names import LONGEST_LAG, STATE, lags, shifted
from dsfc.trusted.polynomial import IMAGINARY, Polynomial, Quotient, generator, number, unit
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.rules.markov import Markov
from dsfc.trusted.statement import state, written
from dsfc.trusted.substitute_parameters import substitute_parameters
from dsfc.trusted.symbols import Symbols

LEAF = re.compile(r"([A-Za-z_:][\w:]*)\[([\d,]*)\]@(\d)")
"""An entry of an input at a token, inside the name of a generator."""

ENTRY = re.compile(r"[A-Za-z_:][\w:]*\[[\d,]*\](?:@\d)?")
"""An entry of an input or parameter, inside the name of a generator."""

TOKENS = 3
"""Tokens that are written out, or more where systems that stay the same differ later."""
BRANCHES = 6
"""Sets of conditions that are tried."""
MOST = 112
"""Conditions of one set."""

LONGEST = 32
"""Terms of a condition on a parameter of b alone; what is longer is put in nowhere in time."""

ARRAY = re.compile(r"([A-Za-z_:][\w:]*)\[")
"""An array, inside the name of a generator."""


def candidates(claim: Claim) -> Iterator[tuple[Condition, ...]]:
    """Yields sets of conditions that make the first outputs equal, at most `BRANCHES`.

    Args:
        claim: without conditions.

    Raises:
        Obstacle, TooLarge, ValueError: the claim cannot be written out.
    """
    # A value that is the same at all tokens is little: those that need none come first.
    constant = []
    every = (
        f for conditions in _given(claim) for f in _found(replace(claim, conditions=conditions))
    )
    for branch in islice(every, BRANCHES):
        if claim.free and branch.stops():
            constant.append(branch.conditions)
        else:
            yield branch.conditions
    yield from constant


def _found(claim: Claim) -> Iterator[Branch]:
    """Sets of conditions that hold what a claim assumes already."""
    if divides_alone(claim):
        return
    search = _Search(claim)
    for start in search.starts():
        yield from search.branches(start, 0)


def _given(claim: Claim) -> Iterator[tuple[Condition, ...]]:
    """What is assumed at the start: nothing, or, of a case, that parameters of b alone are 0.

    These stand inside functions of tokens, as r does in exp(-Δ r): no value but 0 makes such a
    function one of fewer tokens, or of none.
    """
    yield ()
    if not claim.case:
        return
    arrays = _Search(claim).inside()
    for count in (1, 2):
        for chosen in combinations(arrays, count):
            entries = [name for array in chosen for name in array]
            if len(entries) <= MOST:
                yield tuple(condition(generator(name), name) for name in entries)


def tokens(claim: Claim) -> int:
    """Returns how many tokens of a claim without conditions are written out."""
    least = TOKENS
    with suppress(Rejected, ValueError):
        if not claim.free:
            statement = state(claim, False)
            least = max(least, statement.window + 1)
            first = Markov(statement).differs_at()
            least = max(least, 0 if first is None else first + 1)
    return min(least, LONGEST_LAG + 1)


class _Search:
    """The first tokens of a claim and what is known of its generators."""

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self.symbols = Symbols()
        self.outputs = self._unrolled()
        self.nonzero = positive(claim) | nonzero_names(claim)
        self.inputs = frozenset(t.name for k in (False, True) for t in system_of(claim, k).inputs)
        self.slots = slots(claim).keys() if claim.case else frozenset()
        self.own = {**own_parameters(claim), **slots(claim)}
        self.kept: frozenset[str] | None = None

    def _unrolled(self) -> list[tuple[tuple[Quotient, Quotient], ...]]:
        out = []
        values: dict[str, Quotient] = {}
        written(self.claim, self.symbols, False, None)  # values are made of what stands there
        put_values = substitute_parameters(
            self.claim, Conditions(self.claim.conditions), self.symbols
        )
        for token in range(tokens(replace(self.claim, conditions=()))):
            moment = written(self.claim, self.symbols, False, token, (), put_values)
            earlier = {name: q.renamed(lambda g: shifted(g, 1)) for name, q in values.items()}
            out.append(
                tuple((a.substituted(earlier), b.substituted(earlier)) for a, b in moment.outputs)
            )
            values = {name: q.substituted(earlier) for name, q in moment.step.items()}
        return out

    @cached_property
    def _theirs(self) -> frozenset[str]:
        """Every generator of b's outputs, at the present token."""
        every = {g for token in self.outputs for _, b in token for g in b.names}
        return frozenset(shifted(g, -least_lag(g)) for g in every)

    @cached_property
    def _counts(self) -> Mapping[str, int]:
        """Array inside a mixer → how many of its entries stand in the outputs."""
        names = {g for token in self.outputs for a, b in token for q in (a, b) for g in q.names}
        entries = {(array, index) for g in names for array, index, _ in LEAF.findall(g)}
        return Counter(array for array, _ in entries if array.startswith(LABELS))

    def inside(self) -> list[tuple[str, ...]]:
        """The entries of each parameter of b alone inside functions of tokens, the fewest first."""
        names = {g for g in self._theirs if lags(frozenset({g})) and g in self.symbols.defined}
        arrays = {array for g in names for array in ARRAY.findall(g)}
        out = []
        for t in system_of(self.claim, True).params:
            same = array_names(self.claim, True).get(t.name, t.name)
            if same not in arrays or self.own.get(same) not in (Constraint.NONE, Constraint.NONNEG):
                continue
            axes = t.axes if isinstance(t, Tensor) else (*t.map.each, *t.map.target, *t.map.source)
            ranges = [range(dict(self.claim.sizes)[a.name]) for a in axes]
            out.append(tuple(f"{same}[{','.join(map(str, at))}]" for at in product(*ranges)))
        return sorted(out, key=len)

    # --- what is set equal ------------------------------------------------------------------------

    def starts(self) -> Iterator[Branch]:
        """Ways to set values of both equal; without free values there is one, which sets none."""
        if not self.claim.free:
            yield Branch(self.claim.conditions)
            return
        ours, theirs = (self._roles(second) for second in (False, True))
        both = {name for name, role in ours.items() if theirs.get(name) == role}
        options = []
        for role in sorted({*ours.values()} & {*theirs.values()}):
            a = sorted(n for n, r in ours.items() if r == role and n not in both)
            b = sorted(n for n, r in theirs.items() if r == role and n not in both)
            # What stands once, and not at the earlier token alone, is a gate: to be solved for.
            if a and b and (role[1] > 1 or role[0] == (1,)):
                options.append(list(matchings(a, b)))
        matched = [[pair for part in chosen for pair in part] for chosen in product(*options)]
        # What one value of the first is may be several factors in the other: it is solved for then.
        order = sorted(ours, key=lambda name: (-max(ours[name][0]), ours[name][1], name))
        fewer = [[p for p in pairs if p[0] != left] for left in order for pairs in matched]
        for pairs in (*matched, *(f for f in fewer if f not in matched)):
            equalities = self._equalities(pairs, frozenset(both))
            if equalities is not None:
                yield equalities

    def _roles(self, second: bool) -> dict[str, tuple[tuple[int, ...], int, bool]]:
        """Array → its part in what one token gives the next output.

        These are the lags at which it stands, how many entries, and whether it stands in the first
        token's output too.

        What stands at one lag alone, with as many entries everywhere, can be set equal to another.
        """
        lags_of: dict[str, set[int]] = {}
        count: dict[str, int] = {}
        for pair in self.outputs[1]:
            entries: dict[str, set[str]] = {}
            for m in pair[second].num.terms:
                leaves = [f for name, _ in m for f in LEAF.findall(name)]
                if not any(lag == "1" for _, _, lag in leaves):
                    continue
                for array, index, lag in leaves:
                    lags_of.setdefault(array, set()).add(int(lag))
                    entries.setdefault(array, set()).add(index)
            for array, indices in entries.items():
                count[array] = max(count.get(array, 0), len(indices))
        # A gate has no part in the output of the first token.
        first = {array for pair in self.outputs[0] for g in pair[second].names
                 for array, _, _ in LEAF.findall(g)}  # fmt: skip
        return {array: (tuple(sorted(lags)), count[array], array in first)
                for array, lags in lags_of.items()}  # fmt: skip

    def _entries(self, second: bool, array: str) -> list[tuple[tuple[int, ...], ...]]:
        """For each output, the entries of an array that stand in it, in order."""
        out = []
        for pair in self.outputs[1]:
            entries = {
                tuple(int(k) for k in index.split(",") if k)
                for name in pair[second].names
                for a, index, _ in LEAF.findall(name)
                if a == array
            }
            out.append(tuple(sorted(entries)))
        return out

    def _equalities(self, pairs: list[tuple[str, str]], both: frozenset[str]) -> Branch | None:
        """The conditions that set arrays equal, entry by entry; None where they do not fit."""
        conditions: list[Condition] = []
        kept = set()
        scaled = False
        for a, b in pairs:
            ours, theirs = self._entries(False, a), self._entries(True, b)
            if any(len(x) != len(y) for x, y in zip(ours, theirs, strict=True)):
                return None
            left = {k for x in ours for k in x}
            right = {k for y in theirs for k in y}
            # One factor may move between two values; κ stands for it at the one without a sum.
            scale = not scaled and len(ours[0]) == 1
            scaled |= scale
            # The one with more entries gets its values from the other; inputs stay as they are.
            weights = ((len(left), a.startswith(LABELS)), (len(right), b.startswith(LABELS)))
            swap = weights[0] < weights[1] or (weights[0] == weights[1] and not scale)
            lost, other = (b, a) if swap else (a, b)
            if not lost.startswith(LABELS):
                return None
            value: dict[tuple[int, ...], tuple[int, ...]] = {}
            for x, y in zip(ours, theirs, strict=True):
                for k, at in zip(*((y, x) if swap else (x, y)), strict=True):
                    if value.setdefault(k, at) != at:
                        return None
            for n, (k, at) in enumerate(sorted(value.items())):
                name = entry_name(lost, k)
                to = generator(entry_name(other, at))
                if scale:
                    to = to * generator(f"κ[{n}]")
                conditions.append(condition(generator(name) + -to, name))
            kept.add(other)
        self.kept = frozenset(kept) | both
        return Branch(tuple(conditions))

    # --- what must vanish -------------------------------------------------------------------------

    def branches(self, branch: Branch, token: int) -> Iterator[Branch]:
        """Conditions that make the outputs equal up to the last token written out."""
        if token == len(self.outputs):
            if not self._vanishes(branch):
                yield branch
            return
        try:
            known = branch.values(token)
            todo = []
            for a, b in self.outputs[token]:
                todo += self._coefficients((a - b).substituted(known).num)
        except (Rejected, ZeroDivisionError):
            return
        todo = sorted(set(todo), key=lambda p: (len(p.terms), p.text))
        yield from self._solved(branch, token, todo)

    def _vanishes(self, branch: Branch) -> bool:
        """Whether conditions make all outputs 0, of which there is nothing to say."""
        with suppress(Rejected, ZeroDivisionError):
            return not any(
                a.substituted(branch.values(token))
                for token, outputs in enumerate(self.outputs)
                for a, _ in outputs
            )
        return True

    def _solved(self, branch: Branch, token: int, todo: list[Polynomial]) -> Iterator[Branch]:
        while todo and not todo[0]:
            todo = todo[1:]
        if not todo:
            yield from self.branches(branch, token + 1)
            return
        if len(branch.conditions) >= MOST:
            return
        for factor in self._factors(todo[0]):
            merged = self._merged(branch, factor)
            if merged is not None:
                more, names = merged
                rest = [renamed(p, names) for p in todo[1:]]
                yield from self._solved(more, token, simplest_first(rest))
                continue
            solved = self._choice(factor)
            if solved is None:
                continue
            now = moved(factor, -min(lags(factor.names), default=0))
            argument = self._argument(now, solved)
            if argument is not None:
                with suppress(Rejected, ZeroDivisionError):
                    # Functions of the argument are others then: all is written out anew.
                    conditions = with_condition(branch, argument).conditions
                    yield from _found(replace(self.claim, conditions=conditions))
                continue
            try:
                new = condition(now, shifted(solved, -least_lag(solved)))
                if self.claim.case and len(new.polynomial) > LONGEST:
                    continue
                more = with_condition(branch, new)
                known = more.values(token)
                rest = [Quotient(p).substituted(known).num for p in todo[1:]]
            except (Rejected, ZeroDivisionError):
                continue
            yield from self._solved(more, token, simplest_first(rest))

    def _argument(self, p: Polynomial, solved: str) -> Condition | None:
        """The value of a parameter of b alone that gives an exponential what p = 0 gives it."""
        head, args = self.symbols.defined.get(solved, ("", ()))
        if not self.claim.case or head != "exp" or lags(p.names):
            return None
        (root,) = args
        power = max(dict(m).get(solved, 0) for m in p.terms)
        whole = Polynomial({
            tuple((g, 1 if g == solved else e) for g, e in m): c for m, c in p.terms.items()
        })  # fmt: skip
        value = Conditions((condition(whole, solved),)).values(0)[solved]
        if not self.symbols.positive(value):
            return None
        logarithm = self.symbols.log(value) / number(power)
        for name in sorted(root.num.names):
            if name.partition("[")[0] not in self.own or name in self.symbols.defined:
                continue
            rest = root / Quotient(generator(name))
            if name not in rest.names:
                return condition((Quotient(generator(name)) - logarithm / rest).num, name)
        return None

    def _coefficients(self, p: Polynomial) -> list[Polynomial]:
        """The coefficients of the monomials in what is free."""
        parts: dict[tuple[tuple[str, int], ...], dict[tuple[tuple[str, int], ...], Fraction]] = {}
        for m, c in p.terms.items():
            free = tuple(f for f in m if self._is_free(f[0]))
            rest = tuple(f for f in m if not self._is_free(f[0]))
            parts.setdefault(free, {})[rest] = c
        return [Polynomial(terms) for _, terms in sorted(parts.items())]

    def _is_free(self, name: str) -> bool:
        arrays = {array for array, _, _ in LEAF.findall(name)}
        if not arrays or STATE in name:
            return False
        if self.slots:
            # A slot's function may hold what only the first has; what both have goes along.
            return not arrays & self.slots and shifted(name, -least_lag(name)) in self._theirs
        return self.kept is None or arrays <= self.kept

    def _factors(self, p: Polynomial) -> list[Polynomial]:
        """The factors of a polynomial that may be 0, the most telling first."""
        if not p:
            return []
        # What stands with a negative exponent is a denominator, so not 0 where both are defined.
        lowest = {g: min(dict(m).get(g, 0) for m in p.terms) for g in p.names - {IMAGINARY}}
        out = [generator(g) for g, e in lowest.items() if e > 0 and not self._is_nonzero(g)]
        clearing, _ = unit(tuple(sorted((g, e) for g, e in lowest.items() if e)), -1)
        rest = p * Polynomial({clearing: Fraction(1)})
        if len(rest.terms) > 1:
            for q in factors(rest):
                if not self._is_positive(q) and not self._is_positive(-q):
                    out.append(q)
        # That one value is 0 comes last, one inside more so: it is what makes outputs vanish.
        return sorted(out, key=lambda q: (len(q.terms) == 1, len(q.terms), _inside(q), q.text))

    def _is_positive(self, p: Polynomial) -> bool:
        """Whether a polynomial is positive term by term."""
        if any(map(CONSTANT.fullmatch, p.names)):
            return False
        # What is read at earlier tokens alone has no name at the present one.
        terms = (Polynomial({m: c}).renamed(lambda g: shifted(g, -least_lag(g)))
                 for m, c in p.terms.items() if len({least_lag(g) for g, _ in m}) <= 1
                 if all(self.symbols.knows(shifted(g, -least_lag(g))) for g, _ in m))  # fmt: skip
        signs = [self.symbols.is_positive(t) for t in terms]
        return len(signs) == len(p.terms) and all(signs)

    def _is_nonzero(self, name: str) -> bool:
        if CONSTANT.fullmatch(name):
            return True
        if self._is_positive(generator(name)):
            return True
        head = self.symbols.defined.get(shifted(name, -least_lag(name)))
        if head is not None and head[0] == "exp":
            return True
        return name.partition("[")[0] in self.nonzero

    def _choice(self, p: Polynomial) -> str | None:
        """What to solve a polynomial for: linear, its coefficient not 0 if that can be."""
        timed = bool(lags(p.names))
        least = min(lags(p.names), default=0)
        ranked = []
        for name in p.names - {IMAGINARY}:
            if self.claim.case and not self._is_own(name):
                continue
            if CONSTANT.fullmatch(name) or not self._is_linear(p, name):
                continue
            if timed and least_lag(name, absent=-1) != least:
                continue
            factor = [tuple(f for f in m if f[0] != name) for m in p.terms if name in dict(m)]
            sure = len(factor) == 1 and all(self._is_nonzero(g) for g, _ in factor[0])
            kind = self._kind(name, p)
            array = name.partition("[")[0]
            kept = self.kept is not None and array in self.kept
            # Of two inner values, the one with more entries is solved for; on a tie, b's.
            order = (-self._counts.get(array, 0), name.startswith(LABELS[0]), name)
            ranked.append((not sure, kind, kept, *order))
        return min(ranked)[-1] if ranked else None

    def _is_own(self, name: str) -> bool:
        """Whether a generator is b's alone, or an exponential of what is."""
        if self.slots or name not in self.symbols.defined:
            return name.partition("[")[0] in self.own
        return any(array in self.own for array in ARRAY.findall(name))

    def _is_linear(self, p: Polynomial, name: str) -> bool:
        """Whether a polynomial is linear in a generator, or in a power of an exponential."""
        powers = {dict(m).get(name, 0) for m in p.terms}
        head = self.symbols.defined.get(name, ("",))[0]
        return powers <= {0, 1} or (self.claim.case and head == "exp" and len(powers - {0}) == 1)

    def _kind(self, name: str, p: Polynomial) -> int:
        """How natural it is to give a generator of p a value, 0 being the most."""
        if shifted(name, -least_lag(name)) in self.symbols.defined:
            # What stands inside a function itself, as e^m in a root of e^2m - 1, is no other.
            rest = {q for q in p.names - {name} if q not in name}
            others = {g for q in rest for g in ENTRY.findall(q)}
            return 0 if set(ENTRY.findall(name)) - others else 6
        inside = {g for q in p.names - {name} for g in ENTRY.findall(q)}
        if set(ENTRY.findall(name)) & inside:
            return 7
        array = name.partition("[")[0]
        if name.startswith(LABELS) and len(lags(p.names)) == 1:
            return 0
        kind = 1 if name.startswith(LABELS) or array in self.own else 3
        return kind + (array in self.nonzero)

    def _merged(self, branch: Branch, p: Polynomial) -> tuple[Branch, Mapping[str, str]] | None:
        """Two numbers κ that must be equal made one, with the name that is gone."""
        names = sorted(p.names)
        if len(names) != 2 or not all(map(CONSTANT.fullmatch, names)):
            return None
        if p.split()[1] not in (generator(names[0]) + -generator(names[1]),
                                generator(names[1]) + -generator(names[0])):  # fmt: skip
            return None
        gone = {names[1]: names[0]}
        conditions = tuple(
            replace(c, polynomial=stored(renamed(polynomial(c.polynomial), gone)))
            for c in branch.conditions
        )
        return Branch(conditions), gone


def _inside(p: Polynomial) -> bool:
    return any(name.startswith(LABELS) for name in p.names)
