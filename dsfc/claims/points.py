"""Points at which a claim is executed, and the search for one where it fails.

A point is sizes, a length, and rational values of inputs, parameters and drawn buffers in their
declared ranges. What is executed there has exact numbers or proven bounds, so a failure at a point
is a proof that the claim does not hold. That none was found is no proof of anything.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from dsfc.expr.declarations import Constraint, MapTensor, Tensor
from dsfc.expr.tree import Axis, Expr, Field, Ref
from dsfc.prover.refute import HEIGHTS, SIMPLER
from dsfc.prover.report import decimal_text, is_short
from dsfc.prover.sizes import chosen, declared
from dsfc.system.ir import Definition, System
from dsfc.system.known import fixed
from dsfc.trusted.balls import Complex, NotDefined, Real, real
from dsfc.trusted.definition import Execution
from dsfc.trusted.entries import Index, Obstacle
from dsfc.trusted.witness import in_range, stored_axes

DRAWS = 4
"""Points per length, sizes and height of the numbers."""
LONGEST = 3
"""Tokens of the longest sequence."""
STEPS = 150
"""Executions spent on making a point simpler."""

NONE_BOUND: Mapping[str, int] = {}
"""No index stands for a token."""

Number = tuple[Fraction, Fraction]
"""Real and imaginary part."""


@dataclass(frozen=True, slots=True)
class Point:
    """Where a claim is executed.

    Attributes:
        sizes: of every axis, by name.
        length: number of tokens.
        values: (name, entries in the order of the stored array; inputs one token after the other).
    """

    sizes: tuple[tuple[str, int], ...]
    length: int
    values: tuple[tuple[str, tuple[Number, ...]], ...]

    @property
    def text(self) -> str:
        """The point in one line."""
        shown = [f"{name} = {_entries(values)}" for name, values in self.values]
        sizes = ", ".join(f"{name} = {size}" for name, size in self.sizes)
        tokens = "1 token" if self.length == 1 else f"{self.length} tokens"
        return f"{tokens}, {sizes}; {'; '.join(shown)}" if shown else f"{tokens}, {sizes}"


def _entries(values: tuple[Number, ...]) -> str:
    inner = [str(re) if not im else f"{re} + {im} i" for re, im in values]
    return inner[0] if len(inner) == 1 else f"[{', '.join(inner)}]"


class Running(Execution):
    """A mixer executed at a point; streams of its system have values too."""

    def __init__(self, system: System, point: Point) -> None:
        """Takes the point; nothing is executed yet."""
        sizes = dict(point.sizes)
        arguments = {
            name: tuple(Complex(real(re), real(im)) for re, im in values)
            for name, values in point.values
        }
        at = Execution(system, sizes, 1, {})
        axes = {t.name: stored_axes(t) for t in system.buffers}
        for name, value in fixed(system).items():
            arguments[name] = tuple(at.value(value, place) for place in at.places(axes[name]))
        super().__init__(system, sizes, point.length, arguments)
        self.point = point
        for s in system.streams:
            if isinstance(s.value, Expr):
                self.definitions.setdefault(s.name, Definition(s.name, s.value, s.axes, s.field))
        self._made = {s.name for s in system.streams} - self.definitions.keys()

    def ref(self, ref: Ref, at: Index) -> Complex:
        """Returns the value of a name.

        Raises:
            Obstacle: it is a read-out of states that the derivation made, which no definition says.
        """
        if ref.name in self._made:
            raise Obstacle(f"`{ref.name}` is read off states by the derived form alone")
        return super().ref(ref, at)

    def entry(
        self, e: Expr, token: int, at: Index, bound: Mapping[str, int] = NONE_BOUND
    ) -> Complex:
        """Returns the entry of an expression at a token, its indices bound to others."""
        before, self._token = self._token, token
        outer, self._bound = self._bound, bound
        try:
            return self.value(e, at)
        finally:
            self._token, self._bound = before, outer

    def outputs(self, token: int) -> list[Complex | None]:
        """Returns the entries of the output at a token, None where there is no value."""
        out = self.system.outputs[0]
        definition = self.definitions[out.name]
        values: list[Complex | None] = []
        for at in self.places(out.axes):
            try:
                values.append(self.at(definition, token, at))
            except NotDefined:
                values.append(None)
                self._token, self._bound = 0, {}
        return values

    def everywhere(self, *parts: Expr) -> Iterator[tuple[int, dict[Axis, int]]]:
        """Yields every token and index that some expressions have values at."""
        axes = tuple(sorted(frozenset().union(*(e.axes for e in parts))))
        for token in range(self.length):
            for at in self.places(axes):
                yield token, at


Heights = tuple[tuple[Fraction | int, ...], ...]

Failure = Callable[[Running], str | None]
"""Says how a claim fails at a point, None where it does not, or nothing is proved."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A point where a claim fails, and how."""

    point: Point
    how: str


def search(
    system: System, fails: Failure, shortest: int = 1, heights: Heights = HEIGHTS
) -> Failed | str:
    """Returns a point where a claim fails, made simple, or why none can be tried or was found.

    Args:
        system: whose inputs and parameters are chosen.
        fails: the claim.
        shortest: tokens of the shortest sequence tried.
        heights: numbers that points are made of, in the order tried.
    """
    said = f"it held where it was tried, on up to {max(shortest, LONGEST)} tokens"
    try:
        least = (chosen(system, system, k) for k in (1, 2))
        tried_at = tuple(dict.fromkeys((*least, *declared(system, system))))
    except ValueError as e:
        return str(e)
    for length in range(shortest, max(shortest, LONGEST) + 1):
        for number, sizes in enumerate(tried_at, 1):
            for height in heights:
                rng = random.Random(1000 * length + 10 * number + len(height))
                for _ in range(DRAWS):
                    point = _drawn(system, sizes, length, height, rng)
                    try:
                        how = tried(system, fails, point)
                    except Obstacle as e:
                        return f"it cannot be executed: {e}"
                    if how is not None:
                        return _simplified(system, fails, Failed(point, how))
    return said


def tried(system: System, fails: Failure, point: Point) -> str | None:
    """Returns how a claim fails at a point; None where it does not, or has no value.

    Raises:
        Obstacle: something cannot be executed at all.
    """
    try:
        return fails(Running(system, point))
    except NotDefined:
        return None


# --- drawing --------------------------------------------------------------------------------------


def arrays(system: System) -> tuple[tuple[str, Tensor | MapTensor, bool], ...]:
    """Returns (name, declaration, whether an input) of everything that a point gives a value."""
    known = fixed(system)
    return tuple(
        (t.name, t, t in system.inputs)
        for t in (*system.inputs, *system.params, *system.buffers)
        if t.name not in known
    )


def _drawn(
    system: System,
    sizes: tuple[tuple[str, int], ...],
    length: int,
    height: tuple[Fraction | int, ...],
    rng: random.Random,
) -> Point:
    by_name = dict(sizes)
    values = []
    for name, t, is_input in arrays(system):
        axes = t.axes if isinstance(t, Tensor) else (*t.map.each, *t.map.target, *t.map.source)
        count = length if is_input else 1
        for a in axes:
            count *= by_name[a.name]
        values.append((name, tuple(_number(t, height, rng) for _ in range(count))))
    return Point(sizes, length, tuple(values))


def _number(
    t: Tensor | MapTensor, height: tuple[Fraction | int, ...], rng: random.Random
) -> Number:
    allowed = [Fraction(x) for x in height if in_range(Fraction(x), _constraint(t))]
    re = rng.choice(allowed or [Fraction(1, 2), Fraction(1, 3)])  # of (0, 1)
    kind = t.field if isinstance(t, Tensor) else t.map.field
    im = Fraction(rng.choice(height)) if kind is Field.COMPLEX else Fraction(0)
    return re, im


def _constraint(t: Tensor | MapTensor) -> Constraint:
    return t.constraint if isinstance(t, Tensor) else Constraint.NONE


def _simplified(system: System, fails: Failure, failed: Failed) -> Failed:
    """The point with each number replaced by the simplest at which the claim fails."""
    declared: Mapping[str, Tensor | MapTensor] = {name: t for name, t, _ in arrays(system)}
    left = STEPS
    for position, (name, entries) in enumerate(failed.point.values):
        for k in range(len(entries)):
            for simple in SIMPLER:
                new = (simple, Fraction(0))
                if new == failed.point.values[position][1][k] or left <= 0:
                    break
                if not in_range(simple, _constraint(declared[name])):
                    continue
                left -= 1
                point = _with(failed.point, position, k, new)
                try:
                    how = tried(system, fails, point)
                except Obstacle:
                    continue
                if how is not None:
                    failed = Failed(point, how)
                    break
    return failed


def _with(point: Point, position: int, k: int, new: Number) -> Point:
    name, entries = point.values[position]
    changed = (name, (*entries[:k], new, *entries[k + 1 :]))
    return replace(point, values=(*point.values[:position], changed, *point.values[position + 1 :]))


def changed_at(point: Point, system: System, tokens: range) -> Point:
    """Returns a point with other inputs at some tokens, in their ranges."""
    inputs = {t.name: t for t in system.inputs}
    values = []
    for name, entries in point.values:
        if name in inputs:
            each = len(entries) // point.length
            entries = tuple(
                _other(x, inputs[name]) if k // each in tokens else x for k, x in enumerate(entries)
            )
        values.append((name, entries))
    return replace(point, values=tuple(values))


def _other(x: Number, t: Tensor) -> Number:
    if t.constraint is Constraint.UNIT:
        return x[0] / 2, x[1]
    return (x[0] * 2, x[1]) if t.constraint is Constraint.NONZERO else (x[0] + 1, x[1])


# --- numbers --------------------------------------------------------------------------------------


def shown(value: Complex) -> str:
    """Returns a value as text: exact, or to nine digits."""
    re = _real(value.re)
    return re if value.is_real else f"{re} + {_real(value.im)} i"


def _real(x: Real) -> str:
    if x.exact and is_short(x.low, 24):
        return str(x.low)
    return f"{decimal_text(x.low, 9)}…"


def place(token: int, at: Index) -> str:
    """Returns a token and an index as text."""
    where = ", ".join(f"{a.name} = {k}" for a, k in at.items())
    return f"token {token}" + (f", {where}" if where else "")
