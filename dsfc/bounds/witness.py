"""The search for a point of a domain where two outputs are far apart, and its execution.

Points are drawn from the domain, at its corners above all, and run in double precision, which only
says where to look. A point counts once both definitions were executed on it with proven bounds: all
limits of the domain hold there, and the outputs differ by more than is asked.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import prod

import numpy as np

from dsfc.bounds.domain import Limits
from dsfc.bounds.pair import Pair, Question
from dsfc.expr.declarations import Constraint, MapTensor, Tensor
from dsfc.expr.tree import Field, Map, Ref
from dsfc.prover.refute import arrays
from dsfc.system.evaluate import Array, evaluate
from dsfc.trusted import balls
from dsfc.trusted.balls import Complex, NotDefined, Real, real
from dsfc.trusted.claim import Claim, Number, Witness
from dsfc.trusted.definition import Execution
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.legal import kept
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.witness import arrays as entries_of
from dsfc.trusted.witness import constants_of, in_range, stored_axes

GRID = 64
"""Points lie on a grid of this many cells between two bounds, and on its corners."""

ENTRIES = 20_000
"""Numbers of a point, at most."""

_PROMISED = {
    Constraint.NONE: (Fraction(-2), Fraction(2)),
    Constraint.NONZERO: (Fraction(-2), Fraction(2)),
    Constraint.POSITIVE: (Fraction(0), Fraction(2)),
    Constraint.NONNEG: (Fraction(0), Fraction(2)),
    Constraint.UNIT: (Fraction(0), Fraction(1)),
}
"""Between which numbers entries without bounds are drawn, by what their declaration promises."""


@dataclass(frozen=True, slots=True)
class Apart:
    """A point of the domain where the outputs differ by more than is asked.

    Attributes:
        question: the question, at the sizes of the point.
        point: the inputs and parameters.
        a: the first output there.
        b: the second.
    """

    question: Question
    point: Witness
    a: Complex
    b: Complex


@dataclass(frozen=True, slots=True)
class Observed:
    """What was seen in double precision: evidence, no proof.

    Attributes:
        points: points of the domain that were run.
        worst: the largest difference of two outputs.
        point: where it is.
    """

    points: int
    worst: float
    point: Witness | None


class Draws:
    """Points of the domain of a question.

    Args:
        question: the question.
        seed: points of one seed are the same on every machine.

    Raises:
        ValueError: no sizes keep what both mixers declare.
        Obstacle: a buffer is drawn, or a map is abstract.
    """

    def __init__(self, question: Question, seed: int = 0) -> None:
        """Chooses the sizes that the question leaves open, as small as can be."""
        sizes = kept(question.a, question.b, dict(question.sizes), 1)
        if sizes is None:
            raise ValueError("no sizes keep what both mixers declare")
        if question.a.abstracts or question.b.abstracts:
            raise Obstacle("an abstract map has no values")
        self.question = replace(question, sizes=tuple(sorted(sizes.items())))
        self.pair = Pair(self.question)
        self.claim = Claim(question.a, question.b, question.names, self.question.sizes, False)
        self.arrays = arrays(self.claim)
        self.sizes = sizes
        count = sum(prod(sizes[a.name] for a in stored_axes(t)) for _, t, _ in self.arrays)
        if count > ENTRIES:
            raise Obstacle(f"a point has more than {ENTRIES} numbers at these sizes")
        self._rng = random.Random(seed)

    def point(self, length: int) -> Witness | None:
        """Returns a point that keeps the limits on arrays; None where it has no values."""
        values = dict[str, list[Number]]()
        for name, t, is_input in self.arrays:
            count = length if is_input else 1
            axes = stored_axes(t)
            for a in axes:
                count *= self.sizes[a.name]
            values[name] = self._entries(name, t, count, length if is_input else 1)
        point = Witness(length, _frozen(values), 0, ())
        for second in (False, True):
            scaled = self._scaled(point, second)
            if scaled is None:
                return None
            point = scaled
        return point

    def nearby(self, point: Witness) -> Witness:
        """Returns a point with some entries changed."""
        rng, values = self._rng, {name: list(entries) for name, entries in point.values}
        name, t, _ = rng.choice(self.arrays)
        low, high = self._ends(name, t)
        entries = values[name]
        how = rng.randrange(3)
        for k in range(len(entries)):
            if how == 0 or rng.random() < 2 / len(entries):
                if how == 1:
                    p, q, r, s = entries[k]
                    flipped = Fraction(-p, q)
                    if low <= flipped <= high and in_range(flipped, _constraint(t)):
                        entries[k] = (-p, q, r, s)
                else:
                    entries[k] = self._entry(t, low, high, rng.choice((0, 1, 2)))
        return replace(point, values=_frozen(values))

    def _ends(self, name: str, t: Tensor | MapTensor) -> tuple[Fraction, Fraction]:
        """Between which numbers entries are drawn."""
        low, high = self.question.domain.ends(name)
        least, most = _PROMISED[_constraint(t)]
        if low is None or (low < least and _constraint(t) is not Constraint.NONE):
            low = least if high is None else min(least, high)
        if high is None or (high > most and _constraint(t) is Constraint.UNIT):
            high = max(most, low)
        return low, high

    def _entries(self, name: str, t: Tensor | MapTensor, count: int, tokens: int) -> list[Number]:
        low, high = self._ends(name, t)
        how, same = self._rng.randrange(4), self._rng.random() < 0.3
        drawn = [self._entry(t, low, high, how) for _ in range(count)]
        if same and tokens > 1:  # one token again and again
            each = count // tokens
            return [drawn[k % each] for k in range(count)]
        return drawn

    def _entry(self, t: Tensor | MapTensor, low: Fraction, high: Fraction, how: int) -> Number:
        """An entry: at the upper end, at either end, or anywhere."""
        rng, constraint = self._rng, _constraint(t)
        options = (
            lambda: high,
            lambda: rng.choice((low, high)),
            lambda: low + (high - low) * Fraction(rng.randrange(GRID + 1), GRID),
            lambda: low + (high - low) * Fraction(rng.randrange(GRID + 1), GRID) ** 2,
        )
        x = options[how]()
        if not in_range(x, constraint):
            x = low + (high - low) * Fraction(rng.randrange(1, GRID), GRID)
        kind = t.field if isinstance(t, Tensor) else t.map.field
        im = Fraction(0)
        if kind is Field.COMPLEX:
            size = max(abs(low), abs(high)) * Fraction(7, 10)
            x, im = (size * Fraction(rng.randrange(-GRID, GRID + 1), GRID) for _ in range(2))
        return x.numerator, x.denominator, im.numerator, im.denominator

    def _scaled(self, point: Witness, second: bool) -> Witness | None:
        """The point with matrices made smaller where what they give breaks a limit."""
        side = self.pair.side(second)
        limited = [x for x in self.question.domain.limits if x.name in side.definitions]
        if not limited:
            return point
        values = dict(point.values)
        for x in limited:
            body = side.definitions[x.name].value
            if (
                not isinstance(body, Map)
                or x.high is None
                or x.axis
                or not isinstance(body.arg, Ref)
            ):
                continue
            seen = self.run(point, second)
            if seen is None or x.name not in seen:
                continue
            largest = float(np.max(np.abs(seen[x.name]), initial=0.0))
            name = side.called[body.map.name]
            if largest > 0 and name in values:
                grid = 1 << max(12, 12 - int(np.log2(float(x.high) / largest)))
                scale = Fraction(int(float(x.high) / largest * grid * (1 - 1e-9)), grid)
                values[name] = tuple(_times(v, scale) for v in values[name])
        return replace(point, values=tuple(values.items()))

    def run(self, point: Witness, second: bool) -> dict[str, Array] | None:
        """Returns all named values of one mixer in double precision; None where there are none."""
        system = self.question.b if second else self.question.a
        side, values = self.pair.side(second), dict(point.values)
        numbers = dict[str, Array]()
        constants = constants_of(self.claim, system, dict(side.called))
        for t in (*system.inputs, *system.params, *system.buffers):
            same = side.called[t.name]
            axes = stored_axes(t)
            shape = [self.sizes[a.name] for a in axes]
            if same in constants:
                flat = [_float(x) for x in constants[same]]
            else:
                flat = [complex(p / q, r / s) for p, q, r, s in values[same]]
                if t in system.inputs:
                    shape = [point.length, *shape]
            kind = t.field if isinstance(t, Tensor) else t.map.field
            array = np.asarray(flat).reshape(shape)
            numbers[t.name] = array if kind is Field.COMPLEX else array.real
        inputs = {t.name: numbers.pop(t.name) for t in system.inputs}
        with np.errstate(all="ignore"):
            out = evaluate(system, inputs, numbers, self.sizes)
        return {**out.streams, **out.states, **out.outputs, **inputs}

    def difference(self, point: Witness) -> float:
        """Returns how far the outputs are apart in double precision; -1 out of the domain."""
        seen = [self.run(point, second) for second in (False, True)]
        ys = list[Array]()
        for second, values in enumerate(seen):
            if values is None or not self._keeps(values, bool(second)):
                return -1.0
            system = self.question.b if second else self.question.a
            ys.append(values[system.outputs[0].name])
        gap = np.abs(ys[0] - ys[1])
        return float(np.max(gap, initial=0.0)) if np.all(np.isfinite(gap)) else -1.0

    def _keeps(self, values: dict[str, Array], second: bool) -> bool:
        """Whether the limits on values hold, as far as double precision says."""
        side = self.pair.side(second)
        names = {d.name: d.axes for d in side.system.definition}
        names |= {t.name: t.axes for t in side.system.inputs}
        for x in self.question.domain.limits:
            if x.name in values and x.name in names:
                array = values[x.name]
                if x.axis:
                    position = [a.name for a in names[x.name]].index(x.axis) - len(names[x.name])
                    array = np.sqrt(np.sum(np.abs(array) ** 2, axis=position))
                elif x.modulus:
                    array = np.abs(array)
                low = -np.inf if x.low is None else float(x.low)
                high = np.inf if x.high is None else float(x.high)
                if not (np.all(array >= low) and np.all(array <= high)):
                    return False
        return True


def _constraint(t: Tensor | MapTensor) -> Constraint:
    return t.constraint if isinstance(t, Tensor) else Constraint.NONE


def _frozen(values: dict[str, list[Number]]) -> tuple[tuple[str, tuple[Number, ...]], ...]:
    return tuple((name, tuple(entries)) for name, entries in values.items())


def _times(v: Number, scale: Fraction) -> Number:
    p, q, r, s = v
    re, im = Fraction(p, q) * scale, Fraction(r, s) * scale
    return re.numerator, re.denominator, im.numerator, im.denominator


def _float(x: Complex) -> complex:
    return complex(float(x.re.low + x.re.high) / 2, float(x.im.low + x.im.high) / 2)


def observe(draws: Draws, length: int, points: int, steps: int) -> Observed:
    """Returns the largest difference seen: of points drawn, and of points near the worst.

    Args:
        draws: where points come from.
        length: tokens of each.
        points: how many are drawn.
        steps: how many near the worst are tried.
    """
    worst, best, run = -1.0, None, 0
    for k in range(points + steps):
        point = draws.point(length) if k < points or best is None else draws.nearby(best)
        seen = -1.0 if point is None else draws.difference(point)
        run += seen >= 0
        if seen > worst:
            worst, best = seen, point
    return Observed(run, max(worst, 0.0), best)


def execute(draws: Draws, point: Witness) -> Apart:
    """Executes a point with proven bounds, and returns where the outputs are farthest apart.

    Raises:
        Rejected: the point is not in the domain, or the outputs may be as near as is asked.
        NotDefined: an output may not exist there.
        Obstacle: a definition cannot be executed.
    """
    question, outputs = draws.question, list[list[list[Complex]]]()
    domain = question.domain
    if point.length < domain.shortest or point.length > (domain.longest or point.length):
        raise Rejected("the sequence is not of a length that is asked about")
    for second in (False, True):
        side = draws.pair.side(second)
        names = dict(side.called)
        constants = constants_of(draws.claim, side.system, names)
        entries = entries_of(
            draws.claim, side.system, names, point.length, dict(point.values), constants
        )
        run = Execution(side.system, draws.sizes, point.length, entries)
        outputs.append(run.output())
        for x in domain.limits:
            name = next((own for own, same in names.items() if same == x.name), x.name)
            if not all(_inside(value, x) for value in _limited(run, x, name, entries)):
                raise Rejected(f"`{x.name}` is not in its bounds")
    axes = [range(draws.sizes[a.name]) for a in question.a.outputs[0].axes]
    best: tuple[Fraction, int, tuple[int, ...], Complex, Complex] | None = None
    for token in range(point.length):
        for place, index in enumerate(product(*axes)):
            a, b = outputs[0][token][place], outputs[1][token][place]
            least = _modulus(a - b).low
            if best is None or least > best[0]:
                best = (least, token, index, a, b)
    if best is None or best[0] <= question.within:
        raise Rejected("the outputs may differ by no more than is asked")
    _, token, index, a, b = best
    return Apart(question, replace(point, token=token, index=index), a, b)


def _limited(
    run: Execution, x: Limits, name: str, entries: dict[str, tuple[Complex, ...]]
) -> Iterator[Complex]:
    """The numbers of one mixer that a limit bounds, at all tokens."""
    t = run.inputs.get(name) or run.stored_as.get(name)
    if t is not None:
        sized = [(a.name, run.sizes[a.name]) for a in stored_axes(t)]
        yield from _lengths(entries[name], sized, x.axis)
        return
    d = run.updates.get(name) or run.definitions.get(name)
    if d is None:
        return
    for token in range(run.length):
        flat = tuple(run.at(d, token, at) for at in run.places(d.axes))
        yield from _lengths(flat, [(a.name, run.sizes[a.name]) for a in d.axes], x.axis)


def _lengths(
    flat: tuple[Complex, ...], axes: list[tuple[str, int]], axis: str
) -> Iterator[Complex]:
    """Entries of an array, or its Euclidean lengths along an axis."""
    if not axis:
        yield from flat
        return
    position = [name for name, _ in axes].index(axis)
    stride = int(np.prod([k for _, k in axes[position + 1 :]], dtype=int))
    size = axes[position][1]
    for block in range(0, len(flat), stride * size):
        for k in range(stride):
            square = real(0)
            for n in range(size):
                part = _modulus(flat[block + k + n * stride])
                square = square + part * part
            yield Complex(balls.sqrt(square), real(0))


def _modulus(x: Complex) -> Real:
    if x.is_real:
        return balls.absolute(x.re)
    parts = [balls.absolute(y) for y in (x.re, x.im)]
    return balls.sqrt(parts[0] * parts[0] + parts[1] * parts[1])


def _inside(value: Complex, x: Limits) -> bool:
    """Whether a number certainly keeps a limit."""
    number = _modulus(value) if x.modulus or not value.is_real else value.re
    return (x.low is None or number.low >= x.low) and (x.high is None or number.high <= x.high)


def refute(draws: Draws, point: Witness) -> Apart | str:
    """Returns a point as a refutation, or why it is none."""
    try:
        return execute(draws, point)
    except (Rejected, NotDefined, Obstacle, ValueError) as e:
        return str(e)
