"""Solving equations between functions of tokens for what the second mixer alone has.

An equation is a polynomial in generators that is 0 for all tokens. Functions with one argument are
undone, maps of tokens are compared entry by entry, and what a token of zeros gives is looked at
first, because maps vanish there. Nothing here is trusted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction

from dsfc.expr.declarations import Constraint
from dsfc.prover.at_zero import at_zero
from dsfc.prover.condition_polynomials import nonzero_names
from dsfc.prover.equation_names import affects, arrays, is_factor, row_entries, split
from dsfc.prover.factors import factors
from dsfc.prover.modular import may_be_linear
from dsfc.trusted.claim import Claim
from dsfc.trusted.comparable import own_parameters, positive, slots
from dsfc.trusted.generator_names import LEAF, STATE, lags
from dsfc.trusted.polynomial import (
    IMAGINARY,
    ONE,
    POLYNOMIAL_ZERO,
    ZERO,
    Polynomial,
    Quotient,
    generator,
    number,
    total,
)
from dsfc.trusted.polynomial import unit as unit_monomial
from dsfc.trusted.symbols import Symbols

DEPTH = 12
"""Functions inside one another that are undone."""

Values = dict[str, Quotient]


class Solver:
    """Solves equations for parameters and slots of b.

    Args:
        claim: that a is a case of b.
        symbols: generators of both, written out.
    """

    def __init__(self, claim: Claim, symbols: Symbols) -> None:
        """Reads what b alone has."""
        self.symbols = symbols
        self.slots = slots(claim)
        self.own = {**own_parameters(claim), **self.slots}
        self.nonzero = positive(claim) | nonzero_names(claim)
        self._plain: dict[str, Quotient] = {}

    def solved(self, p: Polynomial) -> Iterator[Values]:
        """Ways to make a polynomial 0 for all tokens."""
        for factor in self._factors(p):
            yield from self._of_factor(factor)

    def put(self, p: Polynomial, known: Values) -> Polynomial:
        """Returns the numerator with values put in, also into exponentials of what has one.

        It is 0 where it is by known powers of roots.
        """
        at = dict(known)
        for g in p.names & self.symbols.defined.keys():
            head, args = self.symbols.defined[g]
            if head == "exp" and args[0].names & known.keys():
                at[g] = self.symbols.exp(args[0].substituted(known))
        q = Quotient(p).substituted(at)
        return q.num if self.symbols.roots.reduced(q) else POLYNOMIAL_ZERO

    def _of_factor(self, p: Polynomial) -> Iterator[Values]:
        timed = [g for g in p.names if self.is_own(g) and lags(frozenset({g}))]
        if not timed:
            yield from self._together(split(p, self._is_free))
            return
        inside = [g for g in timed if g in self.symbols.defined]
        for g in sorted(timed, key=lambda g: (g in self.symbols.defined, len(g), g)):
            if g not in inside:
                yield from self._for(p, g, 0)
        if not inside:
            return
        if any(";" not in self.symbols.defined[g][0] for g in inside):
            p = self._written_out(Quotient(p)).num
            inside = [g for g in p.names if g in self.symbols.defined and self.is_own(g)
                      and lags(frozenset({g}))]  # fmt: skip
        for g in sorted(inside, key=lambda g: (len(g), g)):
            if ";" in self.symbols.defined[g][0]:
                yield from self._for(p, g, 0)
        parts = split(p, lambda g: LEAF.fullmatch(g) is not None and self._is_free(g))
        zero = [
            q for part in parts if (q := at_zero(self.symbols, self.slots, part)) is not None and q
        ]
        if zero:
            yield from self._together([r for q in zero for r in split(q, self._is_free)])
            return
        for part in parts[:1]:
            for factor in self._factors(part):
                held = [g for g in factor.names if g in inside]
                yield from self._product(factor)
                for g in sorted(held, key=lambda g: (len(g), g)):
                    yield from self._for(factor, g, 0)

    def _together(self, parts: list[Polynomial]) -> Iterator[Values]:
        """Values that make all of some polynomials 0, of which the first has several ways."""
        parts = sorted({p for p in parts if p}, key=lambda p: (len(p.terms), p.text))
        if not parts:
            return
        for first in self._untimed(parts[0]):
            known, good = dict(first), True
            for p in parts[1:]:
                now = self.put(p, known)
                if not now:
                    continue
                if any(affects(n, g) for g in now.names if g in self.symbols.defined
                       for n in known):  # fmt: skip
                    continue  # another value when it is written out anew
                more = next(self._untimed(now), None)
                if more is None:
                    good = False
                    break
                known = {n: q.substituted(more) for n, q in known.items()} | more
            if good:
                yield known

    def _untimed(self, p: Polynomial) -> Iterator[Values]:
        for factor in self._factors(p):
            if lags(factor.names):
                continue
            held = [g for g in factor.names if self.is_own(g) or is_factor(g)]
            order = sorted(held, key=lambda g: (not is_factor(g), g in self.symbols.defined, g))
            yield from self._product(factor)
            for g in order:
                yield from self._for(factor, g, 0)

    def _for(self, p: Polynomial, g: str, depth: int) -> Iterator[Values]:
        """Ways to make p = 0 by what a generator of b is, which it holds in one power alone."""
        twin = f"~{g}"
        if twin in p.names and LEAF.fullmatch(g):
            # A complex number of its own takes a real value.
            p = Quotient(p).substituted({twin: Quotient(generator(g))}).num
        powers = {dict(m).get(g, 0) for m in p.terms} - {0}
        if len(powers) != 1 or depth > DEPTH:
            return
        (power,) = powers
        above = Polynomial({m: c for m, c in p.terms.items() if g not in dict(m)})
        below = Polynomial({
            tuple(f for f in m if f[0] != g): c for m, c in p.terms.items() if g in dict(m)
        })  # fmt: skip
        value = -(Quotient(above) / Quotient(below))
        yield from self.value_of(g, value, power, depth)

    def value_of(self, g: str, value: Quotient, power: int, depth: int) -> Iterator[Values]:
        """Ways to give g^power a value."""
        head, args = self.symbols.defined.get(g, ("", ()))
        if head == "" or is_factor(g):
            others = [n for n in value.names if self.is_own(n)]
            if others and all(self.may_be_zero(n) for n in others):
                with suppress(ZeroDivisionError):
                    zero = dict.fromkeys(others, ZERO)
                    for way in self.value_of(g, value.substituted(zero), power, depth):
                        yield {**zero, **way}
            if len(others) == 1 and value.den == {}:
                yield from self._shared(g, others[0], value)
            if power == 1 and self._may_have(g, value):
                yield {g: value}
            elif power == 2 and (root := self._root(value)) is not None:
                if self._may_have(g, root):
                    yield {g: root}
        elif head == "exp" and self.symbols.positive(value):
            logarithm = self.symbols.log(value) / number(power)
            yield from self._of_argument(args[0], logarithm, depth)
        elif head == "log" and power == 1:
            yield from self._of_argument(args[0], self.symbols.exp(value), depth)
        elif head == "relu" and power == 1 and (self.symbols.positive(value) or not value):
            yield from self._of_argument(args[0], value, depth)
        elif "[" in head and ";" in head and power == 1:
            row = self.row(head, args, value)
            if row is not None:
                yield row

    def _shared(self, g: str, other: str, value: Quotient) -> Iterator[Values]:
        """The product g · other as one of two: what has the index of the other goes to it."""
        entry = LEAF.fullmatch(other)
        product = value * Quotient(generator(other))
        if entry is None or other in product.names or len(product.num.terms) != 1 or product.den:
            return
        ((m, c),) = product.num.terms.items()
        alike = tuple(f for f in m if (leaf := LEAF.fullmatch(f[0])) and leaf[2] == entry[2])
        rest = Polynomial({tuple(f for f in m if f not in alike): c})
        mine, theirs = Quotient(rest), Quotient(Polynomial({alike: Fraction(1)}))
        if alike and self._may_have(g, mine) and self._may_have(other, theirs):
            yield {g: mine, other: theirs}

    def _root(self, q: Quotient) -> Quotient | None:
        if not self.symbols.positive(q):
            return None
        return self.symbols.power(q, number(Fraction(1, 2)))

    def _of_argument(self, argument: Quotient, value: Quotient, depth: int) -> Iterator[Values]:
        yield from self._alike(argument, value, depth)
        p = (argument - value).num
        held = [g for g in argument.num.names if self.is_own(g) and g not in value.names]
        for g in sorted(held, key=lambda g: (g not in self.symbols.defined, g)):
            others = [h for h in held if h != g and self._is_leaf(h) and not lags(frozenset({h}))]
            if others and all(g in dict(m) for m in argument.num.terms):
                # A product with a number of its own: that is put to 1.
                ones = dict.fromkeys(others, ONE)
                for known in self._for(Quotient(p).substituted(ones).num, g, depth + 1):
                    yield {**ones, **known}
            yield from self._for(p, g, depth + 1)

    def _alike(self, argument: Quotient, value: Quotient, depth: int) -> Iterator[Values]:
        """A product of a number and a function where the other is one too: part by part."""
        if argument.den or value.den or len(argument.num.terms) != 1 or len(value.num.terms) != 1:
            return
        ((left, c),), ((right, e),) = argument.num.terms.items(), value.num.terms.items()
        if len(left) != 2 or len(right) != 2 or any(k != 1 for _, k in (*left, *right)):
            return
        (number_b, function_b), (number_a, function_a) = (
            sorted((g for g, _ in m), key=lambda g: g in self.symbols.defined)
            for m in (left, right)
        )
        heads = [self.symbols.defined.get(g, ("", ()))[0] for g in (function_b, function_a)]
        if heads[0] == heads[1] and heads[0] and self.is_own(number_b):
            scale = number(e / c) * Quotient(generator(number_a))
            if self.is_own(function_b) and self._may_have(number_b, scale):
                same = Quotient(generator(function_a))
                for known in self.value_of(function_b, same, 1, depth + 1):
                    yield {number_b: scale, **known}

    def row(self, head: str, args: tuple[Quotient, ...], value: Quotient) -> Values | None:
        """Returns the entries of a map with which one entry of its result is a value."""
        names = row_entries(head, len(args))
        if head.partition("[")[0] not in self.own:
            inner = [g for q in args for g in q.names if self.is_own(g)]
            return None if value or not inner else self._zero(args)
        if not value:
            return dict.fromkeys(names, ZERO)
        leaves = [next(iter(q.names), "") for q in args]
        for leaf, q in zip(leaves, args, strict=True):
            if not leaf or leaf in self.symbols.defined or q - Quotient(generator(leaf)):
                return None
        if not may_be_linear(value, frozenset(leaves), self._entries_of):
            return None
        whole = self._written_out(value)
        out = {}
        rest = whole
        for name, leaf, q in zip(names, leaves, args, strict=True):
            if any(leaf in b.names for b in whole.den):
                return None
            part = Quotient(
                Polynomial({
                    tuple(f for f in m if f[0] != leaf): c
                    for m, c in whole.num.terms.items() if dict(m).get(leaf) == 1
                }),
                whole.den,
            )  # fmt: skip
            if lags(part.names):
                return None
            out[name] = part
            rest = rest - part * q
        return None if rest else out

    def _zero(self, args: tuple[Quotient, ...]) -> Values | None:
        out: Values = {}
        for q in args:
            (g,) = q.names if len(q.names) == 1 else ("",)
            head, inner = self.symbols.defined.get(g, ("", ()))
            row = self.row(head, inner, ZERO) if ";" in head else None
            if row is None:
                return None
            out |= row
        return out

    def _written_out(self, q: Quotient) -> Quotient:
        """A value with results of maps written out in the entries of the maps."""
        if q.text not in self._plain:
            self._plain[q.text] = self._with_maps_written_out(q)
        return self._plain[q.text]

    def _with_maps_written_out(self, q: Quotient) -> Quotient:
        for _ in range(DEPTH):
            known = {}
            for g in q.names:
                entries = self._entries_of(g)
                if entries is not None:
                    known[g] = total(Quotient(generator(name)) * arg for name, arg in entries)
            if not known:
                break
            q = q.substituted(known)
        return q

    def _entries_of(self, g: str) -> list[tuple[str, Quotient]] | None:
        """The entries of a map's row, and what each is multiplied by; None of what is no result."""
        head, args = self.symbols.defined.get(g, ("", ()))
        if ";" not in head or head.startswith("~"):
            return None
        return list(zip(row_entries(head, len(args)), args, strict=True))

    def _factors(self, p: Polynomial) -> list[Polynomial]:
        """The factors of a polynomial that may be 0 by what b alone has, the longest first."""
        lowest = {g: min(dict(m).get(g, 0) for m in p.terms) for g in p.names - {IMAGINARY}}
        out = [generator(g) for g, e in lowest.items() if e > 0 and not self._is_nonzero(g)]
        clearing, _ = unit_monomial(tuple(sorted((g, e) for g, e in lowest.items() if e)), -1)
        rest = p * Polynomial({clearing: Fraction(1)})
        if len(rest.terms) > 1:
            out += [rest] if IMAGINARY in rest.names else factors(rest)
        return sorted(
            (q for q in out if any(self.is_own(g) or is_factor(g) for g in q.names)),
            key=lambda q: (len(q.terms) == 1, len(q.terms), q.text),
        )

    def _is_nonzero(self, g: str) -> bool:
        head = self.symbols.defined.get(g, ("",))[0]
        known = self.symbols.knows(g) and self.symbols.is_positive(generator(g))
        return known or head == "exp" or is_factor(g) or g.partition("[")[0] in self.nonzero

    def is_own(self, g: str) -> bool:
        """Returns whether a generator holds something that b alone has."""
        return not is_factor(g) and any(array in self.own for array in arrays(g))

    def may_be_zero(self, g: str) -> bool:
        """Returns whether an entry that b alone has may be 0."""
        entry = LEAF.fullmatch(g)
        kinds = (Constraint.NONE, Constraint.NONNEG)
        return entry is not None and entry[3] in (None, "0") and self.own.get(entry[1]) in kinds

    def _is_leaf(self, g: str) -> bool:
        return LEAF.fullmatch(g) is not None

    def _is_free(self, g: str) -> bool:
        return bool(lags(frozenset({g}))) and not self.is_own(g)

    def _may_have(self, g: str, value: Quotient) -> bool:
        """Whether a leaf may have a value, as far as its kind says."""
        if any(self.is_own(n) for n in value.names) or STATE in value.text:
            return False
        if is_factor(g):
            return bool(value) and not lags(value.names)
        entry = LEAF.fullmatch(g)
        if entry is None or (lags(value.names) and entry[1] not in self.slots):
            return False
        if entry[3] not in (None, "0") or any(map(is_factor, value.names)):
            return False
        real = self.symbols.is_real(Quotient(generator(g)))
        if real and not all(map(self.symbols.knows, value.names)):
            return False
        if real and value - self.symbols.conjugate(value):
            return False
        kind = self.own[entry[1]]
        if kind is Constraint.UNIT and not self.symbols.positive(ONE - value):
            return False
        return kind not in (Constraint.POSITIVE, Constraint.UNIT) or self.symbols.positive(value)

    def _product(self, p: Polynomial) -> Iterator[Values]:
        """Ways to make p = 0 where one product of exponentials of b has a value."""

        def own(g: str) -> bool:
            return self.is_own(g) and self.symbols.defined.get(g, ("",))[0] == "exp"

        groups: dict[tuple[tuple[str, int], ...], dict[tuple[tuple[str, int], ...], Fraction]] = {}
        for m, c in p.terms.items():
            key = tuple(f for f in m if own(f[0]))
            groups.setdefault(key, {})[tuple(f for f in m if not own(f[0]))] = c
        if len(groups) != 2:
            return
        (first, above), (second, below) = sorted(groups.items(), key=lambda item: len(item[0]))
        value = -(Quotient(Polynomial(above)) / Quotient(Polynomial(below)))
        logarithm = self._logarithm(value)
        if logarithm is None:
            return
        whole = -logarithm
        for m, sign in ((second, 1), (first, -1)):
            for g, e in m:
                whole = whole + self.symbols.defined[g][1][0] * number(sign * e)
        yield from self._sum(whole, 0)

    def _logarithm(self, q: Quotient) -> Quotient | None:
        if self.symbols.positive(q):
            return self.symbols.log(q)
        if q.den or len(q.num.terms) != 1:
            return None
        ((m, c),) = q.num.terms.items()
        heads = [self.symbols.defined.get(g, ("", ())) for g, _ in m]
        if c != 1 or any(head != "exp" for head, _ in heads):
            return None
        out = ZERO
        for (_, args), (_, e) in zip(heads, m, strict=True):
            out = out + args[0] * number(e)
        return out

    def _sum(self, whole: Quotient, depth: int) -> Iterator[Values]:
        """Ways to make a sum 0: logarithms of b first, then what it is linear in."""
        if depth > DEPTH:
            return
        if IMAGINARY in whole.names:
            bar = self.symbols.conjugate(whole)
            unit = Quotient(generator(IMAGINARY))
            real, imaginary = whole + bar, (whole - bar) * unit
            for values in self._sum(real, depth + 1) if real else [{}]:
                rest = imaginary.substituted(values)
                for more in self._sum(rest, depth + 1) if rest else [{}]:
                    yield {**values, **more}
            return
        held = [g for g in whole.num.names
                if self.is_own(g) and self.symbols.defined.get(g, ("",))[0] == "log"]  # fmt: skip
        if not held:
            yield from self._linear(whole, depth)
            return
        g = min(held, key=lambda g: (len(g), g))
        argument = self.symbols.defined[g][1][0]
        terms = [Quotient(Polynomial({m: c})) for m, c in argument.num.ordered]
        terms.sort(key=lambda q: any(self.is_own(h) for h in q.names))
        common = self._logarithm(terms[0])
        if argument.den or len(terms) != 2 or common is None:
            return
        # log(t + P) is written log t + log(1 + P / t).
        inside = terms[1] / terms[0]
        factor = Quotient(
            Polynomial({
                tuple(f for f in m if f[0] != g): c for m, c in whole.num.terms.items()
                if g in dict(m)
            }),
            whole.den,
        )  # fmt: skip
        exponent = self._logarithm(inside)
        if exponent is None or g in factor.names:
            return
        # log(1 + 1 / P) is written log(1 + P) - log P.
        plain = whole - factor * Quotient(generator(g)) + factor * common
        turned = plain + factor * exponent
        own_in = [sum(map(self.is_own, q.num.names - factor.num.names)) for q in (plain, turned)]
        inverse = own_in[1] < own_in[0]
        rest = turned if inverse else plain
        multipliers = [h for h in factor.names if self.is_own(h)]
        for values in self._multipliers(multipliers, rest):
            known = {h: v for h, v in values.items()}
            leaves: Values = {}
            for h, v in known.items():
                way = next(self.value_of(h, v, 1, depth + 1), None)
                if way is None:
                    break
                leaves |= way
            else:
                with suppress(ZeroDivisionError):
                    value = self.symbols.exp(-(rest.substituted(known) / factor.substituted(known)))
                    value = value - ONE
                    target = self._logarithm(value)
                    if target is None or any(self.is_own(n) for n in value.names):
                        continue
                    for more in self._sum((-exponent if inverse else exponent) - target, depth + 1):
                        yield {**leaves, **more}

    def _multipliers(self, own: list[str], rest: Quotient) -> Iterator[Values]:
        """Values for what multiplies a logarithm: what multiplies one in the first, or 1."""
        if not own:
            yield {}
            return
        others = [
            Quotient(Polynomial({tuple(f for f in m if f[0] != g): abs(c)}))
            for m, c in rest.num.terms.items()
            for g, e in m
            if e == 1 and self.symbols.defined.get(g, ("",))[0] == "log"
            and not any(self.is_own(h) for h, _ in m)
        ]  # fmt: skip
        for factor in (*others, ONE):
            if not lags(factor.names):
                yield {own[0]: factor, **dict.fromkeys(own[1:], ONE)}

    def _linear(self, whole: Quotient, depth: int) -> Iterator[Values]:
        """Ways to make 0 what is linear in numbers of b and in results of its maps."""
        start = at_zero(self.symbols, self.slots, whole.num)
        out: Values = {}
        p = whole.num
        if start is not None and start:
            way = next(self._untimed(start), None)
            if way is None:
                return
            out |= way
            p = self.put(p, way)
        if not p:
            yield out
            return
        maps = [
            g for g in p.names if self.is_own(g) and ";" in self.symbols.defined.get(g, ("",))[0]
        ]
        for g in sorted(maps, key=lambda g: (len(g), g)):
            for way in self._for(p, g, depth + 1):
                yield {**out, **way}
        if not maps:
            held = [g for g in p.names if self.is_own(g) and g not in self.symbols.defined]
            for g in sorted(held):
                for way in self._for(p, g, depth + 1):
                    yield {**out, **way}
