"""Conditions that equal outputs force, and what must not pass for one."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import Certificate, Claim, Condition, Conditional, Invariant, Point
from dsfc.trusted.rejected import Rejected

TEXT = """
mixer a { dims heads h = 1
  input q, r : h;  g, x, w : h
  y = q * g * x + r * (x + w)
}
mixer b { dims heads h = 1
  input q, r : h;  g, u, z : h
  y = q * g * u + r * z
}
mixer c { dims heads h = 1
  input u, f, q : h;  v : h nonneg
  y = u * f + v + q
}
mixer d { dims heads h = 1
  input u, g, q : h
  y = u * g - u * u + q
}
"""


def condition(solved: str, *terms: tuple[int, str]) -> Condition:
    """A condition: its terms are coefficients and products of inputs, as `-1, "g g u"`."""

    def powers(product: str) -> tuple[tuple[str, int], ...]:
        names = product.split()
        return tuple(sorted((f"{n}[0]@0", names.count(n)) for n in set(names)))

    polynomial = tuple(sorted((powers(product), k) for k, product in terms))
    return Condition(polynomial, f"{solved}[0]@0")


def certificate(
    pair: str,
    conditions: tuple[Condition, ...],
    forced: tuple[int, ...],
    varied: tuple[str, ...],
    **values: int,
) -> Certificate:
    read = SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", TEXT)))
    first, second = (read.compilation(name).system for name in pair)
    entries = tuple((n, ((k, 1, 2, 1, 0),)) for n, k in sorted(values.items()))
    claim = Claim(first, second, (), (("h", 1),), True, False, conditions)
    proof = Conditional(Invariant((), False), Point(1, entries, 0, (0,)), (), forced, varied)
    return Certificate(claim, proof)


EQUAL = condition("x", (1, "x"), (-1, "u"))
EQUAL_TIMES_G = condition("x", (1, "g x"), (-1, "g u"))
SUM = condition("z", (1, "u"), (1, "w"), (-1, "z"))
VALUES = {"g": 1, "q": 1, "r": 1, "u": 1, "w": 1, "x": 1, "z": 2}


def of_ab(first: Condition, forced: tuple[int, ...], **changed: int) -> Certificate:
    return certificate("ab", (first, SUM), forced, ("q", "r"), **VALUES | changed)


def test_a_coefficient_that_is_the_condition_forces_it() -> None:
    """r (x + w) and r z are equal for all r if and only if x + w = z, here with x = u."""
    assert check(write(of_ab(EQUAL, (1,)))).claim.conditions == (EQUAL, SUM)


@pytest.mark.parametrize("forced", [(0,), (0, 1)])
def test_a_condition_that_is_multiplied_by_0_gives_nothing_a_value(forced: tuple[int, ...]) -> None:
    """g x = g u is forced, and says nothing of x at g = 0, where x + w = z need not hold."""
    with pytest.raises(Rejected, match="may be multiplied by 0"):
        check(write(of_ab(EQUAL_TIMES_G, forced)))


def test_conditions_hold_at_no_point_where_a_multiplier_is_0() -> None:
    """g x = g u at g = 0 holds for x = 5 and u = 1, and gives x no value."""
    check(write(of_ab(EQUAL_TIMES_G, ())))
    with pytest.raises(Rejected, match="does not hold at the point"):
        check(write(of_ab(EQUAL_TIMES_G, (), g=0, x=5)))


def test_what_is_varied_goes_with_values_that_may_be_any_number() -> None:
    """v = -u u leaves u = 0 alone where v is never negative: f = g does not follow."""
    conditions = condition("v", (1, "v"), (1, "u u")), condition("f", (1, "f"), (-1, "g"))
    values = {"f": 1, "g": 1, "q": 1, "u": 0, "v": 0}
    check(write(certificate("cd", conditions, (), (), **values)))
    with pytest.raises(Rejected, match="may not be any number"):
        check(write(certificate("cd", conditions, (1,), ("u",), **values)))
