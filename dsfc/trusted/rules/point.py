"""A point of a conditional claim: which conditions hold there, exactly, and the two outputs.

Values are p / q · log(r / s)^k. That a condition holds is an identity of numbers, so intervals
cannot show it: it is evaluated in the same normal form that generators are written in, where
e^{log 2} is 2. That the outputs are apart, or not 0, is shown by executing both definitions.
"""

from __future__ import annotations

from fractions import Fraction

from dsfc.expr.declarations import Constraint, MapTensor, Tensor
from dsfc.expr.interval import INF, Interval
from dsfc.expr.table import row
from dsfc.expr.tree import Field
from dsfc.trusted import balls
from dsfc.trusted.balls import Complex, NotDefined, Real, real
from dsfc.trusted.claim import Claim, Exact, Point
from dsfc.trusted.comparable import array_names
from dsfc.trusted.conditions import CONSTANT, NOT_ZERO, Conditions, reach
from dsfc.trusted.definition import Execution
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.generalize_inputs import ranges, system_of
from dsfc.trusted.generator_names import LEAF, lags, shifted
from dsfc.trusted.polynomial import ZERO, Polynomial, Quotient, number
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.rules.roots import without_powers
from dsfc.trusted.symbols import Symbols
from dsfc.trusted.witness import LENGTH_LIMIT, constants_of, in_range, stored_axes


class Evaluated:
    """The values of generators and both outputs at a point.

    Args:
        claim: whose sizes and systems they are.
        symbols: what the generators of the claim stand for.
        point: the values.

    Raises:
        Rejected: the point is not one of the claim.
    """

    def __init__(self, claim: Claim, symbols: Symbols, point: Point) -> None:
        """Checks that the values are those of the claim, in their ranges."""
        self.claim, self.symbols, self.point = claim, symbols, point
        if not 1 <= point.length <= LENGTH_LIMIT:
            raise Rejected(f"a point has from 1 to {LENGTH_LIMIT} tokens")
        self.stored = dict(point.values)
        if len(self.stored) != len(point.values):
            raise Rejected("a name has two values")
        self.sizes = dict(claim.sizes)
        self.shapes: dict[str, tuple[tuple[int, ...], bool]] = {}
        for second in (False, True):
            self._take(second)
        for name, entries in point.values:
            if CONSTANT.fullmatch(name):
                if len(entries) != 1 or (NOT_ZERO.fullmatch(name) and not entries[0][0]):
                    other = " other than 0" if NOT_ZERO.fullmatch(name) else ""
                    raise Rejected(f"`{name}` is not one number{other}")
            elif name not in self.shapes:
                raise Rejected(f"`{name}` is nothing of the claim")
        for name, interval in ranges(claim).items():
            if not all(inside(_ball(v).re, interval) for v in self.stored[name]):
                raise Rejected(f"`{name}` has a value that its definition never gives")
        self.constants = Symbols()
        self._known: dict[tuple[str, int], Quotient] = {}

    def _take(self, second: bool) -> None:
        """Takes the arrays of one side."""
        system, names = system_of(self.claim, second), array_names(self.claim, second)
        own = constants_of(self.claim, system, names)
        for same, values in own.items():
            exact = tuple(_fraction(v) for v in values)
            if same in dict(self.point.values) or self.stored.setdefault(same, exact) != exact:
                raise Rejected(f"`{same}` has a value of its own")
        inputs = {t.name for t in system.inputs}
        for t in (*system.inputs, *system.params, *system.buffers):
            same = names.get(t.name, t.name)
            if (t.field if isinstance(t, Tensor) else t.map.field) is not Field.REAL:
                raise Obstacle("points with complex values are not evaluated")
            shape = tuple(self.sizes[a.name] for a in stored_axes(t))
            timed = t.name in inputs
            self.shapes[same] = shape, timed
            entries = self.stored.get(same)
            count = self.point.length if timed else 1
            for k in shape:
                count *= k
            if entries is None or len(entries) != count:
                raise Rejected(f"`{same}` has not {count} entries")
            for value in entries:
                _check_number(value, t, same)

    # --- conditions -------------------------------------------------------------------------------

    def holds(self, conditions: Conditions, position: int) -> bool:
        """Returns whether a condition holds at every token where it can be read, exactly.

        That is that it is 0, and that what it gives a value is multiplied by a number other than 0.
        """
        p = conditions.polynomials[position]
        factor = conditions.factors[position]
        first = reach(p)
        tokens = range(first, self.point.length) if lags(p.names) else range(1)
        return all(
            not self.value(p, token) and _is_other_than_0(self.value(factor, token))
            for token in tokens
        )

    def value(self, p: Polynomial, token: int) -> Quotient:
        """Returns a polynomial at a token as a quotient of numbers and logarithms of numbers."""
        return self.value_of(Quotient(p), token)

    def value_of(self, q: Quotient, token: int) -> Quotient:
        """Returns a quotient at a token as one of numbers and logarithms of numbers."""
        value = q.substituted({name: self.generator(name, token) for name in q.names})
        return without_powers(value, self.constants)

    def generator(self, name: str, token: int) -> Quotient:
        """Returns a generator at a token."""
        key = name, token
        if key not in self._known:
            self._known[key] = self._generator(name, token)
        return self._known[key]

    def _generator(self, name: str, token: int) -> Quotient:
        if CONSTANT.fullmatch(name):
            return self._number(self._entry(name, 0))
        least = min(lags(frozenset({name})), default=0)
        now = shifted(name, -least)
        if now in self.symbols.defined:
            head, arguments = self.symbols.defined[now]
            args = tuple(self.value_of(a, token - least) for a in arguments)
            return self._applied(head, args)
        if name.startswith("size["):
            return number(self.sizes[name.removeprefix("size[").removesuffix("]")])
        array, place = self.place(name, token)
        return ZERO if place < 0 else self._number(self._entry(array, place))

    def place(self, name: str, token: int) -> tuple[str, int]:
        """Returns the array of an input or parameter, and which of its entries a token reads.

        The place is negative where a value from before the first token is read.
        """
        leaf = LEAF.fullmatch(name)
        if leaf is None or leaf[1] not in self.shapes:
            raise Obstacle(f"{name} is not evaluated")
        array, index, lag = leaf.groups()
        shape, timed = self.shapes[array]
        place = token - int(lag) if timed else 0
        if place < 0:
            return array, -1
        for size, k in zip(shape, (int(k) for k in index.split(",") if k), strict=True):
            if not k < size:
                raise Rejected(f"there is no {name}")
            place = place * size + k
        return array, place

    def _entry(self, name: str, place: int) -> Exact:
        if name not in self.stored:
            raise Rejected(f"`{name}` has no value")
        return self.stored[name][place]

    def _applied(self, head: str, args: tuple[Quotient, ...]) -> Quotient:
        match head:
            case "exp":
                return self.constants.exp(*args)
            case "log":
                return self.constants.log(*args)
            case "pow":
                return self.constants.power(*args)
        try:
            row(head)
        except LookupError:
            raise Obstacle(f"`{head}` is not evaluated") from None
        return self.constants.primitive(head, args, Field.REAL)

    def _number(self, value: Exact) -> Quotient:
        p, q, r, s, k = value
        out = number(Fraction(p, q))
        return out * self.constants.log(number(Fraction(r, s))).power(k) if k else out

    # --- outputs ----------------------------------------------------------------------------------

    def outputs(self) -> tuple[Complex, Complex]:
        """Returns the two outputs at the token and index of the point, in proven bounds.

        Raises:
            Rejected: they do not exist.
        """
        point = self.point
        place = 0
        axes = self.claim.a.outputs[0].axes
        if not 0 <= point.token < point.length or len(axes) != len(point.index):
            raise Rejected("the token or index is none of the output")
        for axis, k in zip(axes, point.index, strict=True):
            if not 0 <= k < self.sizes[axis.name]:
                raise Rejected("the index does not fit the output")
            place = place * self.sizes[axis.name] + k
        a, b = (self.sequence(second)[point.token][place] for second in (False, True))
        return a, b

    def sequence(self, second: bool) -> list[list[Complex]]:
        """Returns the outputs of a or b, token by token, the last axis running fastest.

        Raises:
            Rejected: they do not exist.
        """
        system, names = system_of(self.claim, second), array_names(self.claim, second)
        entries = {
            t.name: tuple(_ball(v) for v in self.stored[names.get(t.name, t.name)])
            for t in (*system.inputs, *system.params, *system.buffers)
        }
        try:
            return Execution(system, self.sizes, self.point.length, entries).output()
        except NotDefined as e:
            raise Rejected(f"the outputs have no value here: {e}") from None


def _fraction(value: Complex) -> Exact:
    if not value.is_real or not value.re.exact:
        raise Obstacle("a buffer has a fixed value that is no rational number")
    return value.re.low.numerator, value.re.low.denominator, 2, 1, 0


def _check_number(value: Exact, t: Tensor | MapTensor, name: str) -> None:
    p, q, r, s, k = value
    if q < 1 or r < 1 or s < 1 or r == s or abs(k) > 4:
        raise Rejected(f"`{name}` has an entry that is no number")
    positive = p > 0 if r > s or k % 2 == 0 else p < 0
    sign = Fraction(0) if not p else Fraction(1 if positive else -1)
    constraint = t.constraint if isinstance(t, Tensor) else Constraint.NONE
    if constraint is Constraint.UNIT and k:
        raise Obstacle("a logarithm stands where a number between 0 and 1 must")
    if not in_range(sign if k else Fraction(p, q), constraint):
        raise Rejected(f"a value of `{name}` is not {constraint.value}")


def inside(x: Real, interval: Interval) -> bool:
    """Returns whether all between bounds lies in an interval."""
    low, high = interval.low, interval.high
    above = low == -INF or x.low > low or (x.low == low and not interval.open_low)
    below = high == INF or x.high < high or (x.high == high and not interval.open_high)
    return above and below


def _ball(value: Exact) -> Complex:
    p, q, r, s, k = value
    out = real(Fraction(p, q))
    logarithm: Real = balls.log(real(Fraction(r, s))) if k else real(1)
    for _ in range(abs(k)):
        out = out * logarithm if k > 0 else out / logarithm
    return Complex(out, real(0))


def _is_other_than_0(value: Quotient) -> bool:
    """Whether a number is not 0: products of logarithms are not; sums are left undecided."""
    return len(value.num.terms) == 1
