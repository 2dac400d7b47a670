"""Points: which entry a name reads, which numbers they are made of, and what is no point."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.expr.interval import INF, Interval
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.trusted.balls import Real, real
from dsfc.trusted.claim import Claim, Condition, Exact, Point
from dsfc.trusted.conditions import Conditions
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.polynomial import generator, number
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.rules.point import Evaluated, _ball, inside
from dsfc.trusted.symbols import Symbols
from dsfc.trusted.witness import LENGTH_LIMIT

BODY = "dims n, p\n input u : n × p\n param w positive\n {}\n y = w * u{}"


@cache
def mixer(more: str = "", output: str = "") -> System:
    text = Source("m.dsf", f"mixer m {{ {BODY.format(more, output)}\n}}\n")
    return SpecText(Place(Path("m.dsf")), parse(text)).compilation("m").system


def whole(*values: int) -> tuple[Exact, ...]:
    return tuple((k, 1, 2, 1, 0) for k in values)


CLAIM = Claim(mixer(), mixer("", " * 2"), (), (("n", 2), ("p", 3)))
POINT = Point(2, (("u", whole(*range(12))), ("w", ((3, 2, 2, 1, 0),))), 1, (1, 2))


def evaluated(point: Point = POINT, claim: Claim = CLAIM) -> Evaluated:
    return Evaluated(claim, Symbols(), point)


def test_a_name_reads_one_entry_of_one_token() -> None:
    it = evaluated()
    for name, token, place in (
        ("u[1,2]@0", 1, ("u", 11)),
        ("u[0,2]@0", 1, ("u", 8)),
        ("u[1,0]@1", 1, ("u", 3)),
        ("u[1,0]@1", 0, ("u", -1)),
        ("w[]", 1, ("w", 0)),
    ):
        assert it.place(name, token) == place
    assert it.generator("u[1,2]@0", 1).number == 11
    assert it.generator("u[1,2]@1", 0).number == 0
    assert it.generator("size[p]", 0).number == 3
    for bad in ("u[2,0]@0", "u[0,3]@0"):
        with pytest.raises(Rejected, match="there is no"):
            it.place(bad, 0)
    for bad in ("z[0]@0", "f(u[0,0]@0)"):
        with pytest.raises(Obstacle, match="is not evaluated"):
            it.place(bad, 0)


def test_functions_are_those_of_the_values_of_their_token() -> None:
    symbols = Symbols()
    u, late = (symbols.leaf(f"u[0,1]@{k}", real=True) for k in (0, 1))
    it = Evaluated(CLAIM, symbols, POINT)
    assert it.value(generator("u[0,1]@0") * generator("u[0,1]@1"), 1).number == 7
    assert it.value_of(symbols.log(symbols.exp(u) * symbols.exp(late)), 1).number == 8
    (name,) = symbols.opaque("abs", (u + number(2),), True, False).names
    assert it.generator(name, 1).number == 9 and it.generator(name, 0).number == 3
    later = symbols.opaque("abs", (late + number(2),), True, False)
    assert it.value_of(later, 1).number == 3
    (name,) = symbols.opaque("f", (u,), True, False).names
    with pytest.raises(Obstacle, match="`f` is not evaluated"):
        it.generator(name, 1)


def test_both_outputs_at_the_token_and_index() -> None:
    a, b = evaluated().outputs()
    assert (a.re, b.re) == (real(Fraction(33, 2)), real(33)) and a.is_real and b.is_real
    first = evaluated(replace(POINT, token=0, index=(1, 0)))
    assert first.outputs()[0].re == real(Fraction(9, 2))
    for point in (
        replace(POINT, token=2),
        replace(POINT, token=-1),
        replace(POINT, index=(1,)),
        replace(POINT, index=(1, 2, 0)),
        replace(POINT, index=(2, 0)),
        replace(POINT, index=(0, 3)),
        replace(POINT, index=(0, -1)),
    ):
        with pytest.raises(Rejected):
            evaluated(point).outputs()


@pytest.mark.parametrize("k", range(-2, 3))
@pytest.mark.parametrize("r, s", [(3, 1), (1, 3)])
def test_a_number_is_a_fraction_times_a_power_of_a_logarithm(k: int, r: int, s: int) -> None:
    value: Exact = (-3, 4, r, s, k)
    expected = -0.75 * math.log(r / s) ** k
    found = _ball(value)
    assert found.is_real and abs(float(found.re.low) - expected) < 1e-12
    assert (found.re.low == found.re.high) is (k == 0)
    symbol = evaluated()._number(value)
    at = float(symbol.num.terms[()]) if not k else None
    assert at in (None, -0.75) and bool(symbol.names) is bool(k)


W = {
    "as it is": ((3, 2, 2, 1, 0), ""),
    "a logarithm": ((1, 1, 2, 1, 4), ""),
    "one that is negative, twice": ((1, 1, 1, 2, -4), ""),
    "one that is negative, of a negative number": ((-1, 1, 1, 2, 3), ""),
    "0": ((0, 1, 2, 1, 0), "is not positive"),
    "0 of a logarithm": ((0, 1, 2, 1, 1), "is not positive"),
    "negative": ((-3, 2, 2, 1, 0), "is not positive"),
    "a negative logarithm": ((1, 1, 1, 2, 1), "is not positive"),
    "a negative number of a logarithm": ((-1, 1, 2, 1, 2), "is not positive"),
    "no denominator": ((3, 0, 2, 1, 0), "no number"),
    "a logarithm of 0": ((3, 1, 0, 1, 1), "no number"),
    "a logarithm without denominator": ((3, 1, 2, 0, 1), "no number"),
    "a logarithm of 1": ((3, 1, 2, 2, 1), "no number"),
    "a high power": ((3, 1, 2, 1, 5), "no number"),
    "a low power": ((3, 1, 2, 1, -5), "no number"),
}


@pytest.mark.parametrize("name", W)
def test_what_a_parameter_may_be(name: str) -> None:
    value, why = W[name]
    point = replace(POINT, values=(POINT.values[0], ("w", (value,))))
    if not why:
        evaluated(point)
        return
    with pytest.raises(Rejected, match=why):
        evaluated(point)


U = POINT.values
REFUSED = {
    "no token": (replace(POINT, length=0), "from 1 to"),
    "too many": (replace(POINT, length=LENGTH_LIMIT + 1), "from 1 to"),
    "a name twice": (replace(POINT, values=(*U, U[1])), "two values"),
    "a value less": (replace(POINT, values=U[:1]), "`w` has not 1 entries"),
    "an entry less": (replace(POINT, values=(("u", whole(*range(11))), U[1])), "not 12 entries"),
    "an entry more": (replace(POINT, values=(U[0], ("w", whole(1, 1)))), "`w` has not 1 entries"),
    "a name of nothing": (replace(POINT, values=(*U, ("z", whole(1)))), "nothing of the claim"),
    "a constant that is 0": (replace(POINT, values=(*U, ("κ[0]", whole(0)))), "other than 0"),
    "a constant of two": (replace(POINT, values=(*U, ("κ[0]", whole(1, 1)))), "not one number"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_point(name: str) -> None:
    point, why = REFUSED[name]
    with pytest.raises(Rejected, match=why):
        evaluated(point)


def test_a_constant_is_one_number() -> None:
    it = evaluated(replace(POINT, values=(*U, ("κ[0]", whole(5)))))
    assert it.generator("κ[0]", 1).number == 5
    with pytest.raises(Rejected, match="has no value"):
        it.generator("κ[1]", 1)


def test_a_buffer_has_its_own_value() -> None:
    claim = replace(CLAIM, a=mixer("buffer g = 1 / 2", " * g"))
    it = evaluated(claim=claim)
    assert it.generator("g[]", 0).number == Fraction(1, 2)
    for value in (whole(1), ((1, 2, 2, 1, 0),)):
        with pytest.raises(Rejected, match="a value of its own"):
            evaluated(replace(POINT, values=(*U, ("g", value))), claim)


def test_complex_points_are_not_evaluated() -> None:
    claim = replace(CLAIM, a=mixer("param z complex", " * Re(z)"))
    with pytest.raises(Obstacle, match="complex values"):
        evaluated(replace(POINT, values=(*U, ("z", whole(1)))), claim)


def test_bounds_lie_in_an_interval_with_both_ends() -> None:
    def between(low: int, high: int) -> Real:
        return Real(Fraction(low), Fraction(high))

    closed, opened = Interval(0.0, 2.0), Interval(0.0, 2.0, True, True)
    for x, in_closed, in_opened in (
        (between(0, 2), True, False),
        (between(0, 1), True, False),
        (between(1, 2), True, False),
        (between(1, 1), True, True),
        (between(-1, 1), False, False),
        (between(1, 3), False, False),
    ):
        assert inside(x, closed) is in_closed and inside(x, opened) is in_opened
    assert inside(between(-9, 9), Interval(-INF, INF))
    assert not inside(between(-9, 9), Interval(0.0, INF))
    assert not inside(between(-9, 9), Interval(-INF, 0.0))


def test_a_condition_is_read_from_the_token_that_has_all_before_it() -> None:
    # u[1,0] at a token is u[0,0] before it and 9 more: so at token 1, and not at token 0.
    terms = (((), -9), ((("u[0,0]@1", 1),), -1), ((("u[1,0]@0", 1),), 1))
    now = (((), -9), ((("u[1,0]@0", 1),), 1))
    late, once = (Conditions((Condition(p, "u[1,0]@0"),)) for p in (terms, now))
    it = evaluated()
    assert it.holds(late, 0) and not it.holds(once, 0)
    one = evaluated(replace(POINT, length=1, token=0, values=(("u", whole(*range(6))), U[1])))
    assert one.holds(late, 0)  # it is read nowhere
