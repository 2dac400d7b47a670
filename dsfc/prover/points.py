"""Points where conditions hold exactly: what shows that a conditional claim is about something.

Entries that no condition gives a value are small numbers. Where a condition gives e^m a value, one
entry that m is linear in becomes a logarithm of it, so that the condition holds as an identity.
"""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from fractions import Fraction
from functools import cached_property
from math import lcm

from dsfc.expr.declarations import Constraint, Tensor
from dsfc.expr.interval import REALS
from dsfc.prover.conditions import TOKENS, tokens
from dsfc.prover.gauge import of_identity
from dsfc.system.known import fixed
from dsfc.trusted.balls import Complex, real
from dsfc.trusted.claim import Claim, Conditional, Exact, Invariant, Needed, Point
from dsfc.trusted.comparable import array_names
from dsfc.trusted.conditions import CONSTANT, NOT_ZERO, Conditions, reach, read
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.generalize_inputs import ranges, system_of
from dsfc.trusted.generator_names import LEAF, lags, shifted
from dsfc.trusted.polynomial import IMAGINARY, Quotient, generator, number
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.rules.point import Evaluated, inside
from dsfc.trusted.statement import WrittenClaim, state
from dsfc.trusted.witness import in_range, stored_axes

DRAWS = 24
"""Points tried for one purpose."""

NUMBERS = (Fraction(1), Fraction(2), Fraction(4), Fraction(-1), Fraction(1, 2))
"""What entries are drawn from: quotients of most are powers of 2, with a simple logarithm."""

LEGS = (Fraction(4, 3), Fraction(5, 3))
"""Numbers whose squares differ by 1, for roots of what squares leave."""

_ARRAY = re.compile(r"((?:[AB]:)?[A-Za-z_κγ]\w*)\[")

_ZERO = Complex(real(0), real(0))


def families(claim: Claim) -> tuple[tuple[int, ...], ...]:
    """Returns the conditions of a claim, by position, those on the entries of one array together.

    Args:
        claim: with conditions.
    """
    out: dict[str, list[int]] = {}
    for k, c in enumerate(claim.conditions):
        out.setdefault(_pattern(c.solved), []).append(k)
    return tuple(tuple(ks) for ks in out.values())


def _pattern(name: str) -> str:
    """A name without the positions in it."""
    out, depth = [], 0
    for letter in name:
        depth -= letter == "]"
        if not depth:
            out.append(letter)
        depth += letter == "["
    return "".join(out)


def with_points(
    claim: Claim,
    invariant: Invariant,
    forced: tuple[int, ...] = (),
    varied: tuple[str, ...] = (),
) -> Conditional | None:
    """Returns the proof with the points that were found; None where none has all conditions hold.

    Where equal outputs force conditions, one point is looked for, without what links tokens.

    Args:
        claim: with conditions.
        invariant: of it.
        forced: conditions that equal outputs force, by position.
        varied: the inputs for all values of which they are equal there.
    """
    statement = state(claim, False)
    holds = _found(claim, statement, ())
    if holds is None:
        return None
    needed = []
    later = tokens(dataclasses.replace(claim, conditions=())) - TOKENS
    timed = [f for f in families(claim) if reach(read(claim.conditions[f[0]].polynomial))]
    for family in families(claim):
        if forced and family not in timed[-1:]:
            continue
        point = _moved(claim, statement, family, holds) or _found(claim, statement, family, later)
        if point is not None:
            needed.append(Needed(family, point))
    return Conditional(invariant, holds, tuple(needed), forced, varied)


def _found(
    claim: Claim, statement: WrittenClaim, without: tuple[int, ...], later: int = 0
) -> Point | None:
    """A point where all conditions but some hold and the outputs are apart, or not 0 if none."""
    kept = tuple(c for k, c in enumerate(claim.conditions) if k not in without)
    assumed = Conditions(kept) if without else statement.conditions
    names, arrays = tuple(c.solved for c in kept), _arrays(statement)
    for draw in range(DRAWS):
        rng = random.Random(f"{draw} {without}")
        alike = draw // 3 % 2 == 0
        numbers = NUMBERS[:1] if draw < 3 else NUMBERS
        try:
            tried = _Draw(
                claim, statement, names, assumed, arrays, rng, numbers, alike, later + draw % 3
            )
            point = tried.point()
            placed = _placed(claim, statement, point, without)
        except (Rejected, Obstacle, ZeroDivisionError, ValueError):
            continue
        if placed is not None:
            return placed
    return None


def _moved(
    claim: Claim, statement: WrittenClaim, without: tuple[int, ...], holds: Point
) -> Point | None:
    """The point where all conditions hold, with other numbers for what some give a value.

    A half of a number is in its range, and 1 is where 0 is.
    """
    values = dict(holds.values)
    for name in {claim.conditions[k].solved for k in without}:
        leaf = LEAF.fullmatch(name)
        if leaf is None or leaf[1] not in values:
            return None
        values[leaf[1]] = tuple(
            (*Fraction(p, 2 * q).as_integer_ratio(), r, s, k) if p else _exact(Fraction(1))
            for p, q, r, s, k in dict(holds.values)[leaf[1]]
        )
    with suppress(Rejected, Obstacle, ZeroDivisionError, ValueError):
        point = dataclasses.replace(holds, values=tuple(sorted(values.items())))
        return _placed(claim, statement, point, without)
    return None


def _placed(
    claim: Claim, statement: WrittenClaim, point: Point, without: tuple[int, ...]
) -> Point | None:
    """The point, looking at where the outputs are apart, or not 0."""
    evaluated = Evaluated(claim, statement.symbols, point)
    kept = (k for k in range(len(claim.conditions)) if k not in without)
    if not all(evaluated.holds(statement.conditions, k) for k in kept):
        return None
    a = evaluated.sequence(False)
    b = evaluated.sequence(True) if without else [[_ZERO] * len(row) for row in a]
    sizes = dict(claim.sizes)
    shape = [sizes[x.name] for x in claim.a.outputs[0].axes]
    for token in reversed(range(point.length)):
        for place, (x, y) in enumerate(zip(a[token], b[token], strict=True)):
            if not x.meets(y):
                index: list[int] = []
                for size in reversed(shape):
                    place, k = divmod(place, size)
                    index.insert(0, k)
                return dataclasses.replace(point, token=token, index=tuple(index))
    return None


class _Draw:
    """One point in the making: entries as quotients of numbers and logarithms."""

    def __init__(
        self,
        claim: Claim,
        statement: WrittenClaim,
        names: tuple[str, ...],
        assumed: Conditions,
        arrays: frozenset[str],
        rng: random.Random,
        numbers: tuple[Fraction, ...],
        alike: bool,
        longer: int,
    ) -> None:
        self.claim, self.symbols, self.rng = claim, statement.symbols, rng
        self.numbers, self.alike = numbers, alike
        self.names, self.conditions, every = names, assumed, statement.conditions
        self.length = 1 + longer + max(reach(p) for p in every.polynomials)
        self.read = arrays
        self.window = self.conditions.window
        self.known = self.conditions.values(self.window)
        self.values: dict[str, list[Exact]] = {}
        self._kept: Evaluated | None = None
        self._changed: set[str] = set()
        self.ranges = ranges(claim)
        self._draw(every)

    def _draw(self, every: Conditions) -> None:
        sizes = dict(self.claim.sizes)
        inner, growing = self._inner(), self._growing()
        growth = self.rng.choice((Fraction(2), Fraction(1, 2), Fraction(4)))
        constants = {g for p in every.polynomials for g in p.names if CONSTANT.fullmatch(g)}
        for name in sorted(constants):
            drawn = self.rng.choice(self.numbers[:3])
            self.values[name] = [_exact(drawn if NOT_ZERO.fullmatch(name) else of_identity(name))]
        for second in (False, True):
            system, names = system_of(self.claim, second), array_names(self.claim, second)
            inputs = {t.name for t in system.inputs}
            for t in (*system.inputs, *system.params, *system.buffers):
                if t.name in fixed(system):
                    continue
                same, timed = names.get(t.name, t.name), t.name in inputs
                count = self.length if timed else 1
                for a in stored_axes(t):
                    count *= sizes[a.name]
                constraint = t.constraint if isinstance(t, Tensor) else Constraint.NONE
                if same not in self.read and self._allowed(Fraction(0), constraint, same):
                    self.values[same] = [_exact(Fraction(0))] * count
                    continue
                entries = [self._number(constraint, same, same in inner) for _ in range(count)]
                if self.alike:
                    entries = entries[:1] * count
                if timed and same in growing:
                    each = count // self.length
                    steps = [growth**k for k in range(self.length)]
                    if any(map(self._root, self.names)):
                        steps[: len(LEGS)] = LEGS[: self.length]
                    entries = [_exact(steps[k // each]) for k in range(count)]
                self.values[same] = entries

    def _allowed(self, x: Fraction, constraint: Constraint, name: str) -> bool:
        return in_range(x, constraint) and inside(real(x), self.ranges.get(name, REALS))

    def _number(self, constraint: Constraint, name: str, inner: bool) -> Exact:
        if inner and self._allowed(Fraction(0), constraint, name):
            return _exact(Fraction(0))
        allowed = [x for x in self.numbers if self._allowed(x, constraint, name)]
        return _exact(self.rng.choice(allowed or [Fraction(1, 2)]))

    def _inner(self) -> frozenset[str]:
        """Arrays inside a function inside an exponent: at 0 they leave it a simple number."""
        out = set()
        for name in self.names:
            for q in self.symbols.defined.get(name, ("", ()))[1]:
                for inner in q.names:
                    for argument in self.symbols.defined.get(inner, ("", ()))[1]:
                        out |= {g.partition("[")[0] for g in argument.names}
        return frozenset(out)

    def _growing(self) -> frozenset[str]:
        """Arrays that exponentials get their values from: powers of 2 have simple logarithms."""
        return frozenset(
            g.partition("[")[0]
            for name in self.names
            if name in self.symbols.defined
            for g in self.known[name].names
        )

    def point(self) -> Point:
        """The point, its token and index not chosen yet."""
        # What stands in values of others by its law comes first, one token after the other.
        every = {g for q in self.known.values() for g in q.names}
        laws = [
            name for name in self.names if shifted(name, 1) in every and lags(frozenset({name}))
        ]
        self._leaves(laws)
        self._logarithms()
        self._leaves([name for name in self.names if name not in laws])
        return self._point()

    def _known_at(self, token: int) -> Mapping[str, Quotient]:
        return self.conditions.values(min(token, self.window))

    def _leaves(self, names: list[str]) -> None:
        """Gives entries the values that conditions give them."""
        for name in names:
            if name not in self.symbols.defined:
                for token in self._tokens(name):
                    value = self._known_at(token)[name]
                    self._set(name, token, self._current(value.names).value_of(value, token))

    def _point(self) -> Point:
        values = tuple(sorted((name, tuple(entries)) for name, entries in self.values.items()))
        return Point(self.length, values, 0, (0,) * len(self.claim.a.outputs[0].axes))

    @cached_property
    def _layout(self) -> Evaluated:
        """Where entries are, whatever their values."""
        return self._evaluated()

    def _current(self, names: Collection[str]) -> Evaluated:
        """The values so far, of which those of the arrays inside some names are up to date."""
        arrays = {a for g in names for a in _ARRAY.findall(g)}
        if self._kept is None or self._changed & arrays:
            self._kept, self._changed = self._evaluated(), set()
        return self._kept

    def _evaluated(self) -> Evaluated:
        return Evaluated(self.claim, self.symbols, self._point())

    def _tokens(self, name: str) -> range:
        k = self.names.index(name)
        first = reach(self.conditions.polynomials[k])
        return range(first, self.length) if lags(frozenset({name})) else range(1)

    def _logarithms(self) -> None:
        """Entries that make each e^m what a condition says it is."""
        used: set[tuple[str, int]] = set()
        # Exponentials that conditions speak of and give no value are made rational, where that is
        # simple.
        spoken = {g for p in self.conditions.polynomials for g in p.names} - set(self.names)
        for name in sorted(spoken & self.symbols.defined.keys()):
            head, arguments = self.symbols.defined[name]
            if head != "exp":
                continue
            value = number(self.rng.choice((2, 4)))
            for token in range(self.length) if lags(frozenset({name})) else range(1):
                with suppress(Obstacle):
                    known = self._known_at(token)
                    self._logarithm(arguments[0].substituted(known), value, token, used)
        for name in self.names:
            if name not in self.symbols.defined:
                continue
            head, arguments = self.symbols.defined[name]
            root = self._root(name)
            if head != "exp" and root is None:
                raise Obstacle(f"a condition gives {head} of something a value")
            for token in self._tokens(name):
                known = self._known_at(token)
                if root is not None:
                    self._under_root(root, known[name], token, used)
                else:
                    self._logarithm(arguments[0].substituted(known), known[name], token, used)

    def _root(self, name: str) -> Quotient | None:
        """What a generator is the square root of: it is e^{(log x) / 2} where x is positive."""
        head, arguments = self.symbols.defined.get(name, ("", ()))
        if head != "exp":
            return arguments[0] if head == "sqrt" else None
        for inner in arguments[0].names:
            head, args = self.symbols.defined.get(inner, ("", ()))
            if head == "log" and not arguments[0] * number(2) - Quotient(generator(inner)):
                return args[0]
        return None

    def _under_root(
        self, argument: Quotient, value: Quotient, token: int, used: set[tuple[str, int]]
    ) -> None:
        """An entry that makes c + d e^m the square of a value, unless e^m is given."""
        (name,) = argument.names if len(argument.names) == 1 else ("",)
        head, exponents = self.symbols.defined.get(name, ("", ()))
        powers = {dict(m).get(name, 0): c for m, c in argument.num.terms.items()}
        if head != "exp" or argument.den or len(powers) != 2 or 0 not in powers:
            raise Obstacle("under a root stands more than an exponential and a number")
        if name in self._known_at(token):
            return
        ((power, factor),) = ((k, c) for k, c in powers.items() if k)
        # The value may have a power of e^m as a factor: c + d e^km = r^2 or r^2 e^km.
        times = min((dict(m).get(name, 0) for m in value.num.terms), default=0)
        square = value * value / Quotient(generator(name)).power(2 * times)
        known = self._evaluated().value_of(square, token)
        constant, linear = number(powers[0]), number(factor)
        if not times:
            inner = (known - constant) / linear
        elif 2 * times == power:
            inner = constant / (known - linear)
        else:
            raise Obstacle("a root has the value of another power")
        self._logarithm(exponents[0] * number(power), inner, token, used)

    def _logarithm(
        self, exponent: Quotient, value: Quotient, token: int, used: set[tuple[str, int]]
    ) -> None:
        if exponent.den or len(exponent.num.terms) != 1:
            raise Obstacle("an exponent has more than one term")
        ((m, _),) = exponent.num.terms.items()
        logarithms = sorted(
            (bool(CONSTANT.fullmatch(g)), not lags(frozenset({g})), g)
            for g, e in m
            if e == 1 and g not in value.names and g not in self.symbols.defined
            if g != IMAGINARY and not self.conditions.touches(frozenset({g}))
        )
        if any((g, _at(g, token)) in used for *_, g in logarithms):
            return
        if not logarithms:
            raise Obstacle("an exponent is linear in nothing")
        name = logarithms[0][-1]
        other = exponent / Quotient(generator(name))
        evaluated = self._current({*other.names, *value.names})
        rest = evaluated.value_of(other, token)
        inner = evaluated.value_of(value, token)
        self._set(name, token, evaluated.constants.log(inner) / rest)
        used.add((name, _at(name, token)))

    def _set(self, name: str, token: int, value: Quotient) -> None:
        self._changed.add(name.partition("[")[0])
        if CONSTANT.fullmatch(name):
            self.values[name] = [_stored(value)]
            return
        array, place = self._layout.place(name, token)
        if array not in self.values:
            raise Obstacle(f"`{array}` has a value of its own")
        self.values[array][place] = _stored(value)


def _arrays(statement: WrittenClaim) -> frozenset[str]:
    """Arrays that the claim reads at all."""
    moments = (*statement.first, statement.steady)
    every = [q for m in moments for q in (*m.step.values(), *(q for p in m.outputs for q in p))]
    names = {name for q in every for name in q.names}
    names |= {g for c in statement.conditions.polynomials for g in c.names}
    return frozenset(array for name in names for array in _ARRAY.findall(name))


def _at(name: str, token: int) -> int:
    """The token that a name means, seen from a token; 0 where it means all."""
    delays = lags(frozenset({name}))
    return token - min(delays) if delays else 0


def _exact(value: Fraction) -> Exact:
    return value.numerator, value.denominator, 2, 1, 0


def _stored(value: Quotient) -> Exact:
    """A number as points have it."""
    if not value:
        return _exact(Fraction(0))
    if not value.den and len(value.num.terms) > 1:
        return _one_logarithm(value)
    if value.den or len(value.num.terms) != 1:
        raise Obstacle("a value is a quotient of logarithms")
    ((m, c),) = value.num.terms.items()
    if not m:
        return _exact(c)
    if len(m) > 1:
        raise Obstacle("a value is a product of logarithms")
    ((name, power),) = m
    inner = name.removeprefix("log(").removesuffix(")")
    if not inner.isdigit():
        raise Obstacle("a value is no logarithm")
    return c.numerator, c.denominator, int(inner), 1, power


def _one_logarithm(value: Quotient) -> Exact:
    """Σ c_p log p as one logarithm: (1 / q) log Π p^(q c_p)."""
    q = lcm(*(c.denominator for c in value.num.terms.values()))
    inner = Fraction(1)
    for m, c in value.num.terms.items():
        if len(m) != 1 or m[0][1] != 1 or abs(q * c) > 16:
            raise Obstacle("a value is no logarithm")
        base = m[0][0].removeprefix("log(").removesuffix(")")
        if not base.isdigit():
            raise Obstacle("a value is no logarithm")
        inner *= Fraction(int(base)) ** int(q * c)
    return 1, q, inner.numerator, inner.denominator, 1
