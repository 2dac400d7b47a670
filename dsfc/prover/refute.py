"""The search for a point where two definitions give different outputs.

The order is: length, then sizes, then how large the numbers are. What is found is made simpler
number by number as long as the outputs stay apart. A difference as symbols says where to look and
is never the answer: the point is executed, on the definitions of both specs, by the kernel.
"""

from __future__ import annotations

import dataclasses
import hashlib
import random
from collections.abc import Mapping
from fractions import Fraction
from itertools import product

from dsfc.expr.build import walk
from dsfc.expr.declarations import Constraint, MapTensor, Tensor
from dsfc.expr.json import encode
from dsfc.expr.tree import Expr, Field, Fir, Ref
from dsfc.prover.verdict import Refuted
from dsfc.system.ir import System
from dsfc.system.known import fixed
from dsfc.trusted.claim import Certificate, Claim, Number, Witness
from dsfc.trusted.comparable import array_names, comparable
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.generator_names import shifted
from dsfc.trusted.polynomial import Quotient, TooLarge
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.statement import written
from dsfc.trusted.symbols import Symbols
from dsfc.trusted.witness import LENGTH_LIMIT, check_witness, execute, in_range, place_of

HEIGHTS = (
    (1, 2),
    (1, 2, 3, -1),
    (Fraction(1, 2), 1, 2, 3, -1, -2),
)
"""Numbers that points are made of, in the order tried."""

SIMPLER = (Fraction(0), Fraction(1), Fraction(-1), Fraction(2), Fraction(1, 2))
"""Numbers put in the place of others, the simplest first."""

STEPS, FEW, MANY = 150, 30, 400
"""Executions spent on making a point simpler: few where it has many entries."""


@dataclasses.dataclass(frozen=True, slots=True)
class Effort:
    """How many points are tried.

    Attributes:
        longest: tokens of the longest sequence.
        draws: points per length, sizes and height.
        shortest: tokens of the shortest sequence.
    """

    longest: int
    draws: int
    shortest: int = 1


QUICK = Effort(2, 1)
"""Most pairs that differ do so here, in less time than it takes to look for a proof."""
THOROUGH = Effort(4, 3)
FURTHER = Effort(4, 1)
"""For sizes beyond the least, of what is equal there."""

Sizes = tuple[tuple[str, int], ...]

_Array = tuple[str, Tensor | MapTensor, bool]
"""(name in a, declaration, whether it is an input)."""


def refute(
    claim: Claim, effort: Effort = THOROUGH, sizes: tuple[Sizes, ...] = ()
) -> Refuted | None:
    """Returns a point where the outputs are apart, or None where none was found.

    Args:
        claim: an equality.
        effort: how many points are tried.
        sizes: at which the two are tried, in place of those of the claim.

    Raises:
        Obstacle: a definition cannot be executed.
        ValueError: the systems cannot be put side by side.
    """
    different = dataclasses.replace(claim, equal=False, every=())
    of = arrays(claim)
    seed = hashlib.sha256(repr(encode(_Names(claim.names))).encode()).digest()
    tried = [dataclasses.replace(different, sizes=at) for at in sizes or (claim.sizes,)]
    fitting = [at for at in tried if _fits(at, last=at is tried[-1])]
    for length in range(effort.shortest, effort.longest + 1):
        for number, at in enumerate(fitting):
            for height in HEIGHTS:
                rng = random.Random(seed + bytes((length, number, len(height))))
                for _ in range(effort.draws):
                    gap = _first_gap(at, drawn(at, of, length, height, rng))
                    if gap is not None:
                        return _reported(at, _simplified(at, of, gap))
    return None


def _fits(claim: Claim, last: bool) -> bool:
    """Whether two systems can be put side by side at the sizes of a claim; the last ones must."""
    try:
        comparable(claim)
    except ValueError:
        if last:
            raise
        return False
    return True


def reads_back(claim: Claim, sizes: tuple[Sizes, ...]) -> int:
    """Returns how many tokens back definitions read at some sizes, through one another, at most.

    What a state holds of its own past is left out.
    """
    systems = claim.a, claim.b
    back = max(
        (_Back(s, dict(at)).of(s.outputs[0].name) for s in systems for at in sizes), default=0
    )
    return min(back, LENGTH_LIMIT - 1)


class _Back:
    """How far back each value of a mixer reads at some sizes."""

    def __init__(self, system: System, sizes: Mapping[str, int]) -> None:
        self._read: dict[str, list[Expr]] = {}
        for d in system.definition:
            self._read.setdefault(d.name, []).append(d.value)
        self._sizes = sizes
        self._known: dict[str, int] = {}

    def of(self, name: str) -> int:
        """Returns it for a name; 0 where it is asked for while it is looked for."""
        if name not in self._known:
            self._known[name] = 0
            lags = [0]
            for value in self._read.get(name, ()):
                for e in walk(value):
                    if isinstance(e, Fir):
                        lags.append(self._sizes[e.axis.name] - 1 + self._inside(e.arg, name))
                    if isinstance(e, Ref) and e.name != name and e.at is not None:
                        lags.append(abs(e.at.lag) + self.of(e.name))
            self._known[name] = max(lags)
        return self._known[name]

    def _inside(self, arg: Expr, name: str) -> int:
        read = (e.name for e in walk(arg) if isinstance(e, Ref) and e.name != name)
        return max(map(self.of, read), default=0)


@dataclasses.dataclass(frozen=True, slots=True)
class _Names:
    names: tuple[tuple[str, str], ...]


def arrays(claim: Claim) -> tuple[_Array, ...]:
    """Returns every input, parameter and drawn buffer of both, once."""
    renamed = array_names(claim, True)
    out: dict[str, list[_Array]] = {}
    for system, names in ((claim.a, {}), (claim.b, renamed)):
        inputs = {t.name for t in system.inputs}
        for t in (*system.inputs, *system.params, *system.buffers):
            same = names.get(t.name, t.name)
            out.setdefault(same, []).append((same, t, t.name in inputs))
    known = set(fixed(claim.a)) | {renamed.get(name, name) for name in fixed(claim.b)}
    return tuple(max(array, key=_strictness) for same, array in out.items() if same not in known)


def _strictness(array: _Array) -> bool:
    return isinstance(array[1], Tensor) and array[1].constraint is not Constraint.NONE


def drawn(
    claim: Claim,
    arrays: tuple[_Array, ...],
    length: int,
    height: tuple[Fraction | int, ...],
    rng: random.Random,
) -> Witness:
    """Returns a point of numbers of one height; token and index are not known yet."""
    sizes = dict(claim.sizes)
    values = []
    for name, t, is_input in arrays:
        axes = t.axes if isinstance(t, Tensor) else (*t.map.each, *t.map.target, *t.map.source)
        count = length if is_input else 1
        for a in axes:
            count *= sizes[a.name]
        entries = tuple(_entry(t, height, rng) for _ in range(count))
        values.append((name, entries))
    return Witness(length, tuple(values), 0, ())


def _entry(t: Tensor | MapTensor, height: tuple[Fraction | int, ...], rng: random.Random) -> Number:
    constraint = _constraint(t)
    kind = t.field if isinstance(t, Tensor) else t.map.field
    allowed = [Fraction(x) for x in height if in_range(Fraction(x), constraint)]
    if not allowed:  # of (0, 1)
        allowed = [Fraction(1, 2), Fraction(1, 3)]
    re = rng.choice(allowed)
    im = Fraction(rng.choice(height)) if kind is Field.COMPLEX else Fraction(0)
    return re.numerator, re.denominator, im.numerator, im.denominator


def _first_gap(claim: Claim, point: Witness) -> Witness | None:
    """The point with the last token and first index where the outputs are apart."""
    try:
        a, b = execute(claim, point)
    except Rejected:
        return None
    sizes = dict(claim.sizes)
    shape = [range(sizes[axis.name]) for axis in claim.a.outputs[0].axes]
    for token in reversed(range(point.length)):
        for place, index in enumerate(product(*shape)):
            if not a[token][place].meets(b[token][place]):
                return dataclasses.replace(point, token=token, index=index)
    return None


def _simplified(claim: Claim, arrays: tuple[_Array, ...], point: Witness) -> Witness:
    """The point with each number replaced by the simplest that keeps the outputs apart."""
    declared = {name: t for name, t, _ in arrays}
    left = STEPS if sum(len(entries) for _, entries in point.values) <= MANY else FEW
    for position, (name, entries) in enumerate(point.values):
        if len(entries) > 1:
            for simple in SIMPLER[:2]:
                filled = (simple.numerator, simple.denominator, 0, 1)
                if not in_range(simple, _constraint(declared[name])):
                    continue
                left -= 1
                tried = point
                for k in range(len(entries)):
                    tried = _with(tried, position, k, filled)
                if _apart(claim, tried):
                    point = tried
                    break
    for position, (name, entries) in enumerate(point.values):
        constraint = _constraint(declared[name])
        for k in range(len(entries)):
            for simple in SIMPLER:
                current = point.values[position][1][k]
                new = (simple.numerator, simple.denominator, 0, 1)
                if new == current or left <= 0:
                    break
                if not in_range(simple, constraint):
                    continue
                left -= 1
                tried = _with(point, position, k, new)
                if _apart(claim, tried):
                    point = tried
                    break
    return point


def _constraint(t: Tensor | MapTensor) -> Constraint:
    return t.constraint if isinstance(t, Tensor) else Constraint.NONE


def _with(point: Witness, position: int, k: int, new: Number) -> Witness:
    name, entries = point.values[position]
    changed = (name, (*entries[:k], new, *entries[k + 1 :]))
    values = (*point.values[:position], changed, *point.values[position + 1 :])
    return dataclasses.replace(point, values=values)


def _apart(claim: Claim, point: Witness) -> bool:
    """What `check_witness` says of a point; the two were put side by side already."""
    try:
        a, b = execute(claim, point)
    except Rejected:
        return False
    place = place_of(claim, point.index)
    return not a[point.token][place].meets(b[point.token][place])


def _reported(claim: Claim, point: Witness) -> Refuted:
    gap = check_witness(claim, point)
    try:
        shortest = point.length == 1 or _agree(claim, point.length - 1)
    except (Obstacle, TooLarge, ValueError, ZeroDivisionError):
        shortest = False
    return Refuted(Certificate(claim, point), gap, shortest)


def _agree(claim: Claim, tokens: int) -> bool:
    """Whether the outputs at the first tokens are equal as quotients.

    Raises:
        Obstacle, ValueError, ZeroDivisionError: the claim cannot be written out.
    """
    comparable(claim)
    symbols = Symbols()
    values: dict[str, Quotient] = {}
    for token in range(tokens):
        moment = written(claim, symbols, False, token)
        earlier = {name: q.renamed(_older) for name, q in values.items()}
        if any((a - b).substituted(earlier) for a, b in moment.outputs):
            return False
        values = {name: q.substituted(earlier) for name, q in moment.step.items()}
    return True


def _older(name: str) -> str:
    return shifted(name, 1)
