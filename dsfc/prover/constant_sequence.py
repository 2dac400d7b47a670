"""The search for a point that shows a to be no case of b, by one token repeated for ever.

What must be found are values of a's parameters and one token; the rules `constant_sequence` and
`recurrence` of `dsfc.trusted.rules` say the last word. The numbers of the first points are all
alike, those of later ones drawn. What is found is made simpler number by number as long as it
still shows what it must.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice

from dsfc.expr.declarations import Constraint, MapTensor, Tensor
from dsfc.expr.tree import Field
from dsfc.prover.sequence_points import plain_values
from dsfc.system.known import fixed
from dsfc.trusted.balls import NotDefined
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import Certificate, Claim, ConstantSequence, Number
from dsfc.trusted.comparable import comparable
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.polynomial import TooLarge
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.rules.constant_sequence import (
    COMPLEX_ZERO,
    RepeatedToken,
    always_apart,
    growing_axes,
    own_axes,
)
from dsfc.trusted.rules.recurrence import Coefficients, Rolled, applied, distinct, longer
from dsfc.trusted.rules.steady import steady
from dsfc.trusted.witness import LENGTH_LIMIT, in_range, stored_axes

ALIKE = (Fraction(1), Fraction(2), Fraction(1, 2), Fraction(-1), Fraction(-2))
"""Numbers that whole points are made of, in the order tried."""

DRAWN = (Fraction(1), Fraction(2), Fraction(3), Fraction(-1), Fraction(1, 2), Fraction(0))
DRAWS = 6
PLAIN = 16
"""Points at which an array is 0, or all others are."""
LATER = 2
"""How many later tokens are looked at where what is looked for is 0 at the first."""

STEPS, FEW, MANY = 60, 20, 100
"""Points tried on the way to a simpler one: few where a point has many entries."""

_SIMPLER = (Fraction(0), Fraction(1))
_Values = tuple[tuple[str, tuple[Number, ...]], ...]


@dataclass(frozen=True, slots=True)
class _Found:
    values: _Values
    token: int
    place: int
    recurrence: Coefficients = ()


_Shown = Callable[[Claim, _Values], "_Found | None"]
"""What a point shows."""


def no_case(claim: Claim) -> Certificate | str:
    """Returns a certificate that a is no case of b, accepted by the kernel, or why there is none.

    Args:
        claim: the two systems, their names and the sizes of a.

    Raises:
        Obstacle: one of the systems has no bases on constant sequences.
        ValueError: the systems cannot be put side by side.
    """
    claim = replace(claim, equal=False, case=True, every=own_axes(claim), conditions=())
    comparable(claim)
    why = "no base was found that the second cannot have too"
    shown: _Shown = _shown_by_bases
    try:
        point = _first(claim, shown)
    except Obstacle as e:
        point, why = None, str(e)
    if point is None and not _sums_of_powers(claim):
        shown = _shown_by_recurrence
        point = _first(claim, shown)
    if point is None:
        return why
    point = _simplified(claim, point, shown)
    larger = growing_axes(claim)
    if point.recurrence and not point.recurrence[0] and longer(claim, larger):
        larger = ()
    proof = ConstantSequence(
        point.values,
        point.token,
        _index(claim, point.place),
        not point.recurrence and always_apart(claim),
        larger,
        tuple((c.numerator, c.denominator) for c in point.recurrence),
    )
    certificate = Certificate(claim, proof)
    try:
        check(write(certificate))
    except Rejected as e:
        return f"a point was found that the trusted kernel does not accept: {e}"
    return certificate


def _sums_of_powers(claim: Claim) -> bool:
    """Whether the increments of a are sums of powers as soon as those of b are."""
    sizes = dict(claim.sizes)
    try:
        return steady(claim.a, sizes).window <= steady(claim.b, sizes).window
    except Obstacle:
        return False


def _first(claim: Claim, shown: _Shown) -> _Found | None:
    return next(filter(None, (shown(claim, values) for values in _points(claim))), None)


def _shown_by_recurrence(claim: Claim, values: _Values) -> _Found | None:
    """The same where increments are no sum of powers."""
    try:
        rolled = Rolled(claim, values)
        start, order = rolled.first, rolled.order
        end = start + 2 * order + LATER + 1
        rows = rolled.increments(min(end, LENGTH_LIMIT))
    except (Rejected, NotDefined, TooLarge, ZeroDivisionError):
        return None
    for place in range(len(rows[0])):
        s = [row[place] for row in rows]
        mu = _least_recurrence(s[start : start + 2 * order])
        rho = distinct(mu)
        for token in range(start, len(s) - len(rho) + 1):
            if applied(rho, s, token):
                return _Found(values, token, place, mu)
    return None


def _least_recurrence(s: list[Fraction]) -> Coefficients:
    """The polynomial μ of least degree with μ(E) s = 0, as far as s goes (Berlekamp and Massey)."""
    one = Fraction(1)
    now, before, since, gap = [one], [one], 1, one
    length = 0
    for k in range(len(s)):
        off = sum((c * s[k - j] for j, c in enumerate(now) if j <= k), Fraction(0))
        if not off:
            since += 1
            continue
        shift = [Fraction(0)] * since + [off / gap * c for c in before]
        wider = now + [Fraction(0)] * (len(shift) - len(now))
        new = [c - (shift[j] if j < len(shift) else 0) for j, c in enumerate(wider)]
        if 2 * length <= k:
            length, before, gap, since = k + 1 - length, now, off, 1
        else:
            since += 1
        now = new
    return tuple(reversed(now + [Fraction(0)] * (length + 1 - len(now))))[-length - 1 :]


def _shown_by_bases(claim: Claim, values: _Values) -> _Found | None:
    """The token and the entry of the output at which a point shows what it must."""
    try:
        word = RepeatedToken(claim, values)
        if not word.foreign:
            return None
        for token in range(word.first, word.first + LATER + 1):
            for place, part in enumerate(word.parts(token)):
                if not part.meets(COMPLEX_ZERO):
                    return _Found(values, token, place)
    except (Rejected, NotDefined):
        pass
    return None


def _points(claim: Claim) -> Iterator[_Values]:
    known = fixed(claim.a)
    tensors = [t for t in (*claim.a.inputs, *claim.a.params, *claim.a.buffers)
               if t.name not in known]  # fmt: skip
    theirs = {dict(claim.names).get(t.name, t.name): t.constraint for t in claim.b.inputs}
    for x in ALIKE:
        yield tuple((t.name, (_allowed(t, theirs, x),) * _count(claim, t)) for t in tensors)
    if any(_field(t) is Field.COMPLEX for t in tensors):
        yield tuple((t.name, (_turned(t, theirs),) * _count(claim, t)) for t in tensors)
    token = tuple((t.name, (_allowed(t, theirs, ALIKE[0]),) * _count(claim, t))
                  for t in claim.a.inputs)  # fmt: skip
    few = sum(_count(claim, t) for t in tensors) <= MANY
    for values in islice(plain_values(claim), 1, PLAIN if few else 1):
        yield (*token, *values)
    # A square matrix that is triangular, with one number on its diagonal, has no basis of modes.
    squares = {t.name: _triangular(claim, t) for t in tensors}
    if any(squares.values()):
        ones = {t.name: (_allowed(t, theirs, ALIKE[0]),) * _count(claim, t) for t in tensors}
        yield tuple((t.name, squares[t.name] or ones[t.name]) for t in tensors)
    rng = random.Random(5)
    for _ in range(DRAWS):
        yield tuple(
            (t.name, tuple(_allowed(t, theirs, rng.choice(DRAWN)) for _ in range(_count(claim, t))))
            for t in tensors
        )


def _count(claim: Claim, t: Tensor | MapTensor) -> int:
    out, sizes = 1, dict(claim.sizes)
    for axis in stored_axes(t):
        out *= sizes[axis.name]
    return out


def _triangular(claim: Claim, t: Tensor | MapTensor) -> tuple[Number, ...]:
    """Ones on the diagonal of a square matrix and above; () for what is none."""
    if not isinstance(t, MapTensor) or t.map.each or t.map.target != t.map.source:
        return ()
    count = _count(claim, t)
    size = math.isqrt(count)
    return tuple((int(k // size <= k % size), 1, 0, 1) for k in range(count))


def _constraints(t: Tensor | MapTensor, theirs: dict[str, Constraint]) -> tuple[Constraint, ...]:
    if isinstance(t, MapTensor):
        return ()
    return t.constraint, theirs.get(t.name, Constraint.NONE)


def _allowed(t: Tensor | MapTensor, theirs: dict[str, Constraint], x: Fraction) -> Number:
    """A number, or one like it that both declarations allow."""
    constraints = _constraints(t, theirs)
    for near in (x, abs(x), Fraction(1), Fraction(1, 2)):
        if all(in_range(near, c) for c in constraints):
            return near.numerator, near.denominator, 0, 1
    return 1, 1, 0, 1


def _field(t: Tensor | MapTensor) -> Field:
    return t.map.field if isinstance(t, MapTensor) else t.field


def _turned(t: Tensor | MapTensor, theirs: dict[str, Constraint]) -> Number:
    """1 + i of what may be complex, 1 or the like of all else."""
    p, q, *_ = _allowed(t, theirs, ALIKE[0])
    return p, q, int(_field(t) is Field.COMPLEX), 1


def _simplified(claim: Claim, point: _Found, shown: _Shown) -> _Found:
    """The point with each array replaced by 0 or 1, or a number of it, as far as it goes."""
    declared = {t.name: t for t in (*claim.a.inputs, *claim.a.params, *claim.a.buffers)}
    theirs = {dict(claim.names).get(t.name, t.name): t.constraint for t in claim.b.inputs}
    left = STEPS if sum(len(v) for _, v in point.values) <= MANY else FEW
    for position, (name, entries) in enumerate(point.values):
        constraints = _constraints(declared[name], theirs)
        whole = range(len(entries))
        for chosen in (whole, *([k] for k in whole if len(entries) > 1)):
            for x in _SIMPLER:
                current = point.values[position][1]
                new = list(current)
                for k in chosen:
                    new[k] = (x.numerator, x.denominator, 0, 1)
                if tuple(new) == current or left <= 0:
                    break
                if not all(in_range(x, c) for c in constraints):
                    continue
                left -= 1
                values = (*point.values[:position], (name, tuple(new)),
                          *point.values[position + 1 :])  # fmt: skip
                other = shown(claim, values)
                if other is not None:
                    point = other
                    break
    return point


def _index(claim: Claim, place: int) -> tuple[int, ...]:
    out: list[int] = []
    sizes = dict(claim.sizes)
    for axis in reversed(claim.a.outputs[0].axes):
        place, k = divmod(place, sizes[axis.name])
        out.insert(0, k)
    return tuple(out)
