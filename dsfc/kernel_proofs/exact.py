"""Exact entries of tiles: polynomials over symbols, with exponentials as monomials.

    exp(c₁ m₁ + c₂ m₂ + …) = exp[m₁]^c₁ · exp[m₂]^c₂ · …        m monomials of symbols, c integers

Two entries with one polynomial are one function of the symbols, over the real numbers: sums and
products are those of a ring, an exponential is never 0, and a name that `solved` gives stands for
the polynomial that it was given for. Nothing else is known of an entry, so that a comparison, a
quotient or another function is not decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsfc.expr.table import Primitive
from dsfc.trusted.polynomial import (
    POLYNOMIAL_ONE,
    POLYNOMIAL_ZERO,
    Polynomial,
    TooLarge,
    constant,
    generator,
)

Array = NDArray[Any]


class Undecided(Exception):
    """A kernel computes what these entries do not express; the text says what."""


class Exact:
    """An entry: a polynomial, with the operators that NumPy calls."""

    __slots__ = ("polynomial",)

    def __init__(self, polynomial: Polynomial) -> None:
        self.polynomial = polynomial

    def __add__(self, other: object) -> Any:  # noqa: ANN401 - or NotImplemented
        return self._with(other, lambda a, b: a + b)

    def __sub__(self, other: object) -> Any:  # noqa: ANN401 - or NotImplemented
        return self._with(other, lambda a, b: a + -b)

    def __rsub__(self, other: object) -> Any:  # noqa: ANN401 - or NotImplemented
        return self._with(other, lambda a, b: b + -a)

    def __mul__(self, other: object) -> Any:  # noqa: ANN401 - or NotImplemented
        return self._with(other, lambda a, b: a * b)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Exact:
        return Exact(-self.polynomial)

    def __bool__(self) -> bool:
        """Returns whether the polynomial is not 0: what is 0 everywhere is false."""
        return bool(self.polynomial)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Exact) and self.polynomial == other.polynomial

    def __hash__(self) -> int:
        return hash(self.polynomial)

    def __lt__(self, other: object) -> bool:
        raise Undecided("it compares values")

    __le__ = __gt__ = __ge__ = __lt__

    def __truediv__(self, other: object) -> Exact:
        raise Undecided("it divides values")

    __rtruediv__ = __truediv__

    def _with(self, other: object, join: Callable[[Polynomial, Polynomial], Polynomial]) -> Any:  # noqa: ANN401 - or NotImplemented
        if isinstance(other, np.ndarray):
            return NotImplemented
        try:
            return Exact(join(self.polynomial, polynomial_of(other)))
        except TooLarge as e:
            raise Undecided(f"its values grow too large: {e}") from None


def polynomial_of(entry: object) -> Polynomial:
    """Returns the polynomial of an entry, or of an exact number.

    Raises:
        Undecided: the entry is a floating point number.
    """
    match entry:
        case Exact(polynomial=polynomial):
            return polynomial
        case int() | np.integer() | Fraction():
            return constant(Fraction(int(entry) if isinstance(entry, np.integer) else entry))
        case _:
            raise Undecided(f"it computes with {entry}, which is no exact number")


class ExactNumbers:
    """Exact entries of a kernel.

    Solving a triangular system of n rows multiplies out to 2ⁿ terms. So each entry that one is
    solved for gets a name, and an entry that is a named one plus a few terms is written so.

    Attributes:
        written: how each entry that was solved for is written, in order.
        exponents: what each generator that is an exponential is one of.
    """

    dtype = object

    def __init__(self) -> None:
        self._named: list[tuple[Polynomial, Polynomial]] = []
        self.written: list[Written] = []
        self.exponents: dict[str, Polynomial] = {}

    def number(self, value: Fraction) -> Exact:
        """Returns an exact number as an entry."""
        return Exact(constant(value))

    def apply(self, row: Primitive, args: tuple[Array, ...], axis: int | None) -> Array:
        """Applies a primitive.

        Raises:
            Undecided: it is not the exponential.
        """
        if row.name != "exp":
            raise Undecided(f"it computes {row.name} of values")
        (x,) = args
        return entrywise(self._exponential, x)

    def solved(self, row: Array) -> Array:
        """Returns the same entries, written with names, of which it makes those that it lacks."""
        return entrywise(self._written, row)

    def beside(self) -> ExactNumbers:
        """Returns exact entries with the names that there are now, which makes no further ones."""
        return _Beside(tuple(self._named))

    def _exponential(self, entry: object) -> Exact:
        """Returns exp of a polynomial, as a monomial."""
        out = POLYNOMIAL_ONE
        for monomial, c in polynomial_of(entry).ordered:
            part = Polynomial({monomial: Fraction(1, c.denominator)})
            name = f"exp[{part.text}]"
            self.exponents[name] = part
            out = out * generator(name).power(c.numerator)
        return Exact(out)

    def _written(self, entry: object) -> Exact:
        p = polynomial_of(entry)
        known = recognized(p, self._named)
        if known.name is None and p:
            name = generator(f"w[{len(self._named)}]")
            self._named.append((name, p))
            known = Written(name, POLYNOMIAL_ZERO)
        self.written.append(known)
        return known.entry


class _Beside(ExactNumbers):
    """Exact entries of a recurrence, beside a kernel whose names it knows."""

    def __init__(self, named: tuple[tuple[Polynomial, Polynomial], ...]) -> None:
        self._known = named
        self.written, self.exponents = [], {}

    def _written(self, entry: object) -> Exact:
        known = recognized(polynomial_of(entry), self._known)
        self.written.append(known)
        return known.entry


@dataclass(frozen=True, slots=True)
class Written:
    """A polynomial as a name and a rest; without a name, it is the rest."""

    name: Polynomial | None
    rest: Polynomial

    @property
    def entry(self) -> Exact:
        """The entry."""
        return Exact(self.rest if self.name is None else self.name + self.rest)


def recognized(p: Polynomial, named: Iterable[tuple[Polynomial, Polynomial]]) -> Written:
    """Returns a polynomial with the name that is closest to it, or without one if none is close.

    Args:
        p: the polynomial.
        named: names, each with what it stands for.
    """
    close = [(name, meaning, p + -meaning) for name, meaning in named]
    better = [Written(n, rest) for n, m, rest in close if len(rest.terms) < len(m.terms)]
    return min(better, key=lambda w: len(w.rest.terms), default=Written(None, p))


def symbols(name: str, shape: tuple[int, ...]) -> Array:
    """Returns an array whose entries are symbols, each of its own."""
    out = np.empty(shape, object)
    for place in np.ndindex(*shape):
        out[place] = Exact(generator(f"{name}[{','.join(map(str, place))}]"))
    return out


def entrywise(function: Callable[[Any], Exact], x: Array) -> Array:
    """Returns what a function gives of each entry."""
    out = np.empty(x.shape, object)
    for place in np.ndindex(*x.shape):
        out[place] = function(x[place])
    return out
