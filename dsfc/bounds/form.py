"""Forms: upper bounds that are sums of terms in the lag of a sum and in unknown bounds of states.

A term is  coefficient · unknown · m^p λ^m,  with m = i - j the lag of a sum over j. What a form
bounds is never above it, whatever the lag, with the unknowns in place of the largest values that
their states have. Coefficients are fractions that are rounded upward to a bounded size.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from dsfc.trusted.entries import Obstacle

BITS = 96
"""Binary digits of a rounded coefficient."""


def up(x: Fraction) -> Fraction:
    """Returns a number of few digits that is not below another, which is at least 0."""
    shift = x.numerator.bit_length() - x.denominator.bit_length() - BITS
    if x == 0 or (x.denominator.bit_length() <= BITS and x.numerator.bit_length() <= BITS):
        return x
    unit = Fraction(2) ** shift
    return Fraction(-((-x / unit).__floor__())) * unit


def power(x: Fraction, n: int) -> Fraction:
    """Returns a number that is not below x^n, for x ≥ 0 and n ≥ 0."""
    out = Fraction(1)
    while n:
        if n % 2:
            out = up(out * x)
        x, n = up(x * x), n // 2
    return out


def geometric(ratio: Fraction, first: int, last: int | None) -> Fraction:
    """Returns a number that is not below Σ ratio^m over first ≤ m ≤ last, for ratio ≥ 0.

    Raises:
        Obstacle: the sum has no end and does not converge.
    """
    if last is not None and last < first:
        return Fraction(0)
    if ratio < 1:
        endless = up(power(ratio, first) / (1 - ratio))
        if last is None:
            return endless
        return min(endless, Fraction(last - first + 1) * power(ratio, first))
    if last is None:
        raise Obstacle("a sum over the past grows without end (bound L, or the decay)")
    if ratio == 1:
        return Fraction(last - first + 1)
    # (r^(last+1) - r^first) / (r - 1), the second power from below by 1.
    return up((power(ratio, last + 1) - 1) / (ratio - 1))


def _weighted(ratio: Fraction, first: int, last: int | None) -> Fraction:
    """A number that is not below Σ m ratio^m over first ≤ m ≤ last."""
    if last is not None and last < first:
        return Fraction(0)
    if ratio < 1:
        tail = first + ratio / (1 - ratio)
        endless = up(power(ratio, first) * tail / (1 - ratio))
        if last is None:
            return endless
        return min(endless, last * geometric(ratio, first, last))
    if last is None:
        raise Obstacle("a sum over the past grows without end (bound L, or the decay)")
    if ratio == 1:
        return Fraction((first + last) * (last - first + 1), 2)
    return up(last * geometric(ratio, first, last))


@dataclass(frozen=True, slots=True, order=True)
class Lagged:
    """A factor m^p λ^m, m being the lag of the sum over `var`."""

    var: str
    p: int
    ratio: Fraction


@dataclass(frozen=True, slots=True)
class Key:
    """The unknown that a term depends on.

    Attributes:
        unknown: a state of one mixer, or a pair of states; () for none.
        lags: a factor for each sum, at most.
        first: whether the term is 0 after the first token.
    """

    unknown: tuple[str, ...] = ()
    lags: tuple[Lagged, ...] = ()
    first: bool = False


CONSTANT = Key()


@dataclass(frozen=True, slots=True)
class Form:
    """A sum of terms, each with another key; coefficients are positive."""

    terms: tuple[tuple[Key, Fraction], ...] = ()

    @property
    def zero(self) -> bool:
        """Whether there is no term."""
        return not self.terms

    @property
    def plain(self) -> Fraction | None:
        """The number that the form is, if it depends on no lag and no unknown."""
        if not self.terms:
            return Fraction(0)
        if all(not key.unknown and not key.lags for key, _ in self.terms):
            return up(sum((c for _, c in self.terms), Fraction(0)))
        return None

    def __add__(self, other: Form) -> Form:
        return total((self, other))

    def __mul__(self, other: Form) -> Form:
        out: dict[Key, Fraction] = {}
        for key, c in self.terms:
            for other_key, d in other.terms:
                both = _joined(key, other_key)
                out[both] = up(out.get(both, Fraction(0)) + c * d)
        return _form(out)

    def times(self, factor: Fraction | int) -> Form:
        """Returns the form multiplied by a number that is at least 0."""
        return _form({key: up(c * factor) for key, c in self.terms})

    def summed(self, var: str, first: int, last: int | None) -> Form:
        """Returns the sum over all lags of one variable from `first` to `last`.

        Raises:
            Obstacle: the sum has no bound.
        """
        out: dict[Key, Fraction] = {}
        for key, c in self.terms:
            here = [x for x in key.lags if x.var == var] or [Lagged(var, 0, Fraction(1))]
            if here[0].p > 1:
                raise Obstacle("a difference of decays stands in a product of differences")
            sum_of = _weighted if here[0].p else geometric
            rest = Key(key.unknown, tuple(x for x in key.lags if x.var != var), False)
            out[rest] = up(out.get(rest, Fraction(0)) + c * sum_of(here[0].ratio, first, last))
        return _form(out)

    def closed(self, unknown: tuple[str, ...], longest: int | None) -> Form:
        """Returns a bound on an unknown that is never above this form, one token earlier in it.

        With s_i ≤ c s_{i-1} + d + e [i = 0] from s_{-1} = 0, all s_i are at most
        d (1 + c + … + c^(L-1)) + e max(1, c^(L-1)).

        Raises:
            Obstacle: there is no bound.
        """
        if any(key.lags for key, _ in self.terms):
            raise Obstacle("a state reads a sum over the past lag by lag")
        slope, rest = Fraction(0), dict[Key, Fraction]()
        last = None if longest is None else longest - 1
        for key, c in self.terms:
            if key.unknown == unknown:
                slope = up(slope + c)
        for key, c in self.terms:
            if key.unknown == unknown:
                continue
            once = key.first and not key.unknown
            if once and slope <= 1:
                factor = Fraction(1)
            else:
                factor = geometric(slope, 0, last)
            plain = Key(key.unknown)
            rest[plain] = up(rest.get(plain, Fraction(0)) + c * factor)
        if not rest:
            return ZERO
        return _form(rest)


def total(forms: Iterable[Form]) -> Form:
    """Returns the sum of forms."""
    out: dict[Key, Fraction] = {}
    for form in forms:
        for key, c in form.terms:
            out[key] = up(out.get(key, Fraction(0)) + c)
    return _form(out)


def _form(terms: dict[Key, Fraction]) -> Form:
    return Form(tuple(sorted(((k, c) for k, c in terms.items() if c), key=lambda x: repr(x[0]))))


def _joined(a: Key, b: Key) -> Key:
    if a.unknown and b.unknown:
        raise Obstacle("a state is multiplied by a state")
    lags = dict[str, Lagged]()
    for x in (*a.lags, *b.lags):
        old = lags.get(x.var)
        lags[x.var] = Lagged(x.var, old.p + x.p, up(old.ratio * x.ratio)) if old else x
    return Key(a.unknown or b.unknown, tuple(sorted(lags.values())), a.first or b.first)


def constant(value: Fraction | int) -> Form:
    """Returns a form that is a number."""
    return _form({CONSTANT: Fraction(value)})


def unknown(*names: str) -> Form:
    """Returns the form that is an unknown."""
    return _form({Key(names): Fraction(1)})


def first_token() -> Form:
    """Returns the form that is 1 at the first token and 0 after it."""
    return _form({Key((), (), True): Fraction(1)})


def decaying(var: str, ratio: Fraction, p: int = 0) -> Form:
    """Returns m^p ratio^m in the lag m of a sum."""
    return _form({Key((), (Lagged(var, p, ratio),)): Fraction(1)})


ZERO = Form()
ONE = constant(1)
