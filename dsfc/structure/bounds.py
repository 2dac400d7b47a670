"""Bounds on decays by interval arithmetic and a vertex rule; only what is proved is stated.

Ranges come from the primitive table and from the constraints of declarations. Two evaluations are
intersected: over the expression as written, and over its normal form (where a² is a square, not a
product of two independent factors). The vertex rule: a polynomial that is affine in each of several
bounded atoms takes its extremes at corners of their box; intervals alone give lb + (1 − lb)σ only
[0, 2]. A share: a term x / (r + Σ x) with x ≥ 0 and r > 0 is less than 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import reduce
from itertools import product
from types import MappingProxyType

from dsfc.expr.build import add, mul, neg, num, walk
from dsfc.expr.build import power as power_of
from dsfc.expr.declarations import Constraint
from dsfc.expr.interval import INF, NONNEG, POSITIVE, REALS, Interval, exactly, plus, times
from dsfc.expr.normal import normalise
from dsfc.expr.polynomial import Monomial, Polynomial, order_key
from dsfc.expr.ranges import ONE, PROMISED, above, inside, power
from dsfc.expr.ranges import Ranges as Written
from dsfc.expr.table import row
from dsfc.expr.tree import Add, Expr, Field, Now, Param, Prim, Reduce, Reduction, Ref, Time
from dsfc.structure.ir import Bound, BoundKind
from dsfc.system.inline import inliner_of
from dsfc.system.ir import Decay, KeptFlow, LogForm, MaxPlus, System
from dsfc.system.known import fixed, promises

_NOTHING = Interval(0.0, 0.0)
_CORNERS = 8
"""Atoms beyond which the vertex rule is not tried: it looks at 2^atoms corners."""


def constraints_of(system: System) -> dict[str, Interval]:
    """Returns the ranges that the declarations promise, by name of input, parameter or buffer.

    A buffer has the value that the spec gives it, which may break a promise at some sizes. The
    promise says what other values it may be given, so both are in the range.
    """
    tensors = (*system.inputs, *system.params, *system.buffers)
    out = {
        t.name: PROMISED[c]
        for t in tensors
        if (c := getattr(t, "constraint", Constraint.NONE)) is not Constraint.NONE
    }
    for name, value in fixed(system).items():
        if value.field is Field.REAL:
            interval = Ranges({}).of(value)
            out[name] = out[name].hull(interval) if name in out else interval
    return out


def nonzero_of(system: System) -> frozenset[str]:
    """Returns the inputs, parameters and buffers that are declared other than 0, and are."""
    return frozenset(n for n, c in promises(system).items() if c is Constraint.NONZERO)


def ranges_of(system: System) -> Ranges:
    """Returns ranges of a System's expressions, from its declarations and running maxima."""
    inline = inliner_of(system).of
    facts = {inline(e): _AT_MOST_0 for e in _below_maxima(system)}
    return Ranges(constraints_of(system), nonzero_of(system), facts)


_AT_MOST_0 = Interval(-INF, 0.0)


def _below_maxima(system: System) -> Iterator[Expr]:
    """Yields log λ + m_{i-1} - m_i and log w - m_i of each running maximum, the largest of both."""
    for s in system.streams:
        if isinstance(s.value, MaxPlus):
            over = frozenset(s.axes)
            now, before = (Ref(s.name, over, s.field, Time.TOKEN, Now(lag)) for lag in (0, 1))
            yield add(s.value.log_decay, before, neg(now))
            yield add(s.value.log_weight, neg(now))


class Ranges(Written):
    """Ranges of real expressions, definitions inlined; remembers what it has seen."""

    def __init__(
        self,
        known: Mapping[str, Interval],
        nonzero: frozenset[str] = frozenset(),
        facts: Mapping[Expr, Interval] = MappingProxyType({}),
    ) -> None:
        """Takes what is known of leaves; other leaves are any real number.

        Args:
            known: ranges of leaves by name.
            nonzero: leaves that are not 0.
            facts: ranges of expressions, definitions inlined, known from elsewhere.
        """
        super().__init__(known)
        self._nonzero = nonzero
        self._facts = facts

    def of(self, expr: Expr) -> Interval:
        """Returns an interval that contains every value of a real expression."""
        interval = self._done.get(expr)
        if interval is None:
            interval = _meet(self.written(expr), self._normal(normalise(expr)))
            if expr in self._facts:
                interval = _meet(interval, self._facts[expr])
            self._done[expr] = interval
        return interval

    def modulus(self, expr: Expr) -> Interval:
        """Returns an interval that contains |x| for every value of an expression."""
        if expr.field is Field.REAL:
            return _meet(row("abs").range(self.of(expr)), self.size(expr))
        return self.size(expr)

    def size(self, e: Expr) -> Interval:
        """Returns what the factors of an expression say of |x|."""
        match e:
            case Param(name=name) | Ref(name=name) if name in self._nonzero:
                return POSITIVE if isinstance(e, Param) or inside(e) else NONNEG
        return super().size(e)

    def written(self, e: Expr) -> Interval:
        """Returns the range of an expression as it is written, given those of its parts."""
        interval = super().written(e)
        return _meet(interval, self._square_length(e)) if isinstance(e, Reduce) else interval

    def _square_length(self, e: Reduce) -> Interval:
        """Σ c x² over an axis along which x has unit length: x / max(|x|, ε) is never longer."""
        factored = normalise(e.arg).single
        if e.how is not Reduction.SUM or factored is None:
            return REALS
        monomial, coefficient = factored
        rest = exactly(coefficient)
        unit = False
        for atom, exponent in monomial:
            normed = isinstance(atom, Prim) and atom.name == "l2norm" and atom.axis == e.axis
            if normed and exponent == 2 and not unit:
                unit = True
            elif e.axis not in atom.axes and atom.field is Field.REAL:
                rest = times(rest, power(self.of(atom), exponent))
            else:
                return REALS
        return times(rest, Interval(0.0, 1.0)) if unit else REALS

    # --- the normal form --------------------------------------------------------------------------

    def _normal(self, p: Polynomial) -> Interval:
        atoms = sorted(p.atoms(), key=order_key)
        if any(a.field is Field.COMPLEX for a in atoms):
            return REALS
        ranges = {a: self._atom(a) for a in atoms}
        terms = [times(exactly(c), self._term(m, ranges)) for m, c in p.terms]
        out = reduce(plus, terms, Interval(0.0, 0.0))
        return _meet(out, self._vertices(p, ranges))

    def _term(self, m: Monomial, ranges: Mapping[Expr, Interval]) -> Interval:
        interval = _monomial(m, ranges)
        for k, (whole, exponent) in enumerate(m):
            rest = (*m[:k], *m[k + 1 :])
            if exponent == -1 and isinstance(whole, Add) and _monomial(rest, ranges).low >= 0:
                interval = _meet(interval, self._share(rest, whole))
        return interval

    def _share(self, part: Monomial, whole: Expr) -> Interval:
        """The range of x / (r + c Σ x) for x ≥ 0: below 1 where r > 0 and c ≥ 1."""
        terms = normalise(whole).terms
        for term, coefficient in terms:
            for total, exponent in term:
                if not isinstance(total, Reduce) or total.how is not Reduction.SUM or exponent != 1:
                    continue
                around = [power_of(a, num(e)) for a, e in term if a is not total]
                summand = normalise(mul(*around, total.arg)).single
                # What stands around the sum must be the same number at all its places.
                if any(total.axis in a.axes for a in around) or summand is None:
                    continue
                others = [(m, c) for m, c in terms if m != term]
                rest = reduce(plus, (self._written_term(m, c) for m, c in others), _NOTHING)
                if summand[0] == part and coefficient * summand[1] >= 1 and above(rest, 0.0):
                    return Interval(0.0, 1.0, open_high=True)
        return REALS

    def _written_term(self, m: Monomial, coefficient: Fraction) -> Interval:
        return times(exactly(coefficient), _monomial(m, {a: self._atom(a) for a, _ in m}))

    def _atom(self, a: Expr) -> Interval:
        interval = self.written(a)
        return _meet(interval, self._facts[a]) if a in self._facts else interval

    def _vertices(self, p: Polynomial, ranges: Mapping[Expr, Interval]) -> Interval:
        """The hull of the values at the corners, for a polynomial affine in bounded atoms."""
        affine = all(e == 1 for m, _ in p.terms for _, e in m)
        bounded = all(r.low > -INF and r.high < INF for r in ranges.values())
        if not affine or not bounded or not 1 < len(ranges) <= _CORNERS:
            return REALS
        atoms = list(ranges)
        corners: dict[tuple[bool, ...], Interval] = {}
        for choice in product((False, True), repeat=len(atoms)):
            ends = (
                ranges[a].high if c else ranges[a].low for a, c in zip(atoms, choice, strict=True)
            )
            at = {a: Interval(x, x) for a, x in zip(atoms, ends, strict=True)}
            terms = [times(exactly(c), _monomial(m, at)) for m, c in p.terms]
            corners[choice] = reduce(plus, terms, Interval(0.0, 0.0))
        hull = reduce(Interval.hull, corners.values())
        lowest = frozenset(c for c, r in corners.items() if r.low == hull.low)
        highest = frozenset(c for c, r in corners.items() if r.high == hull.high)
        box = [ranges[a] for a in atoms]
        return Interval(hull.low, hull.high, not _taken(lowest, box), not _taken(highest, box))


def _taken(corners: frozenset[tuple[bool, ...]], box: list[Interval]) -> bool:
    """Whether a point of the box may have the extreme value that these corners have.

    Where a function affine in each atom takes an extreme, it is constant along every atom that
    stands inside its interval: a whole face of corners has the value. Corners whose rounded value
    is not the extreme do not have it.
    """
    sides = [
        [(False, True)] + [(False,)] * (not r.open_low) + [(True,)] * (not r.open_high) for r in box
    ]
    return any(corners.issuperset(product(*face)) for face in product(*sides))


def _meet(a: Interval, b: Interval) -> Interval:
    """The intersection; both contain the same values, so it is not empty but for rounding."""
    out = a.meet(b)
    return out if out.low <= out.high else a


def _monomial(m: Monomial, ranges: Mapping[Expr, Interval]) -> Interval:
    return reduce(times, (power(ranges[a], e) for a, e in m), ONE)


# --- bounds on |Λ| --------------------------------------------------------------------------------


def modulus_of(decay: Decay, ranges: Ranges) -> Interval:
    """Returns an interval that contains |λ|."""
    out = ranges.modulus(decay.value)
    if decay.form is LogForm.EXACT:
        out = _meet(out, row("exp").range(ranges.of(decay.log)))
    return out


def is_positive(decay: Decay, ranges: Ranges) -> bool:
    """Returns whether λ is e^log for all values: a positive real, or of closed polar form."""
    if decay.form is LogForm.EXACT:
        return True
    if decay.value.field is Field.REAL:
        return above(ranges.of(decay.value), 0.0)
    logs = [e for e in walk(decay.log) if isinstance(e, Prim) and e.name in _LOGS]
    return decay.phase is not None and all(above(ranges.of(e.args[0]), _LOGS[e.name]) for e in logs)


_LOGS = {"log": 0.0, "log1p": -1.0}
"""Logarithms and the point above which they are defined."""


def diagonal_bound(decay: Decay, flow: KeptFlow | None, ranges: Ranges) -> Bound:
    """Returns what is proved of |λ| for the diagonal of a transition.

    Args:
        decay: its decay, definitions inlined.
        flow: the continuous form (definitions inlined): a diagonal with negative real part gives
            |λ| < 1 under all three rules when the step is positive.
        ranges: ranges of leaves.
    """
    if normalise(decay.value).constant == 1:
        return Bound(BoundKind.EQUAL_ONE, "Λ = I")
    size = modulus_of(decay, ranges)
    kind = _kind(size)
    if kind is not BoundKind.UNKNOWN:
        return Bound(kind, f"|λ| lies in {interval_text(size)}")
    if flow is not None and not flow.low_rank:
        step = ranges.of(flow.step)
        real = ranges.real_part(flow.diagonal)
        if above(step, 0.0):
            if real.high < 0 or (real.high == 0 and real.open_high):
                return Bound(BoundKind.LESS_THAN_ONE, "Re A < 0 and Δ > 0")
            if real.high <= 0:
                return Bound(BoundKind.AT_MOST_ONE, "Re A ≤ 0 and Δ > 0")
    return Bound(BoundKind.UNKNOWN, f"|λ| lies in {interval_text(size)}")


def _kind(size: Interval) -> BoundKind:
    if size.low == size.high == 1:
        return BoundKind.EQUAL_ONE
    if size.high < 1 or (size.high == 1 and size.open_high):
        return BoundKind.LESS_THAN_ONE
    return BoundKind.AT_MOST_ONE if size.high == 1 else BoundKind.UNKNOWN


def interval_text(a: Interval) -> str:
    """Returns an interval in the usual notation."""
    left = "(" if a.open_low or a.low == -INF else "["
    right = ")" if a.open_high or a.high == INF else "]"
    return f"{left}{_end(a.low)}, {_end(a.high)}{right}"


def _end(x: float) -> str:
    if x in (INF, -INF):
        return "∞" if x > 0 else "−∞"
    return f"{x:g}".replace("-", "−")
