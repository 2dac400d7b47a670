"""Values that conditions give, beside the equations that they solve."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dsfc.trusted.claim import Condition
from dsfc.trusted.conditions import LIMIT, Conditions, read
from dsfc.trusted.polynomial import Quotient
from dsfc.trusted.rejected import Rejected

X, Y, Z, W = (f"{name}[0]@0" for name in "xyzw")
X1, Y1, Z1 = (f"{name}[0]@1" for name in "xyz")
X2, Y2 = (f"{name}[0]@2" for name in "xy")
A = "a[0]"


def condition(solved: str, *terms: tuple[int, dict[str, int]], padded: bool = False) -> Condition:
    polynomial = tuple(sorted((tuple(sorted(m.items())), c) for c, m in terms))
    return Condition(polynomial, solved, padded)


def at(q: Quotient, values: dict[str, Fraction]) -> Fraction:
    def of(p) -> Fraction:
        out = Fraction(0)
        for m, c in p.terms.items():
            for name, exponent in m:
                c = c * values[name] ** exponent
            out += c
        return out

    out = of(q.num)
    for base, exponent in q.den.items():
        out /= of(base) ** exponent
    return out


def test_a_value_solves_its_condition() -> None:
    """(2 a + 3 y²) x - 5 y + 7 = 0, at this token and, where it reads none before, at all."""
    made = Conditions((
        condition(X, (2, {A: 1, X: 1}), (3, {Y: 2, X: 1}), (-5, {Y: 1}), (7, {})),
    ))  # fmt: skip
    point = {A: Fraction(2), Y: Fraction(3), Y1: Fraction(-1)}
    for name, y in ((X, 3), (X1, -1)):
        x = at(made.values(1)[name], point)
        assert (4 + 3 * y * y) * x - 5 * y + 7 == 0
    assert made.window == 0
    assert set(made.values(0)) == {X} and set(made.values(2)) == {X, X1, X2}


def test_a_condition_is_read_where_it_reads_nothing_from_before_the_first_token() -> None:
    """x_i = y_{i-1} says nothing of the first token."""
    made = Conditions((condition(X, (1, {X: 1}), (-1, {Y1: 1})),))
    assert made.window == 1
    assert set(made.values(0)) == set() and set(made.values(1)) == {X}
    assert set(made.values(2)) == {X, X1} and made.values(2)[X1].names == {Y2}
    assert set(made.at(0)) == set() and set(made.at(1)) == {X}


def test_a_condition_on_a_parameter_is_one_at_all_tokens() -> None:
    made = Conditions((condition(A, (1, {A: 1}), (-2, {"b[0]": 1})),))
    for window in (0, 1, 3):
        assert set(made.values(window)) == {A}


def test_padded_values_are_those_with_0_before_the_first_token() -> None:
    made = Conditions((condition(X, (1, {X: 1}), (-2, {Y: 1}), (-3, {Y1: 1}), padded=True),))
    point = {Y: Fraction(5), Y1: Fraction(7), Y2: Fraction(11)}
    assert {name: at(q, point) for name, q in made.at(0).items()} == {X: 10}
    assert {name: at(q, point) for name, q in made.at(1).items()} == {X: 31, X1: 14}
    assert at(made.at(2)[X1], point) == 14 + 33 and at(made.at(2)[X2], point) == 22


def test_values_are_put_into_one_another() -> None:
    made = Conditions((
        condition(X, (1, {X: 1}), (-2, {Y: 1})),
        condition(Y, (1, {Y: 1}), (-3, {Z: 1})),
        condition(Z, (1, {Z: 1}), (-5, {W: 1})),
    ))  # fmt: skip
    assert [at(made.values(0)[name], {W: Fraction(1)}) for name in (X, Y, Z)] == [30, 15, 5]


def law(alpha: int, beta: int, gamma: int, delta: int) -> Condition:
    """X (γ x₁ + δ) = α x₁ + β."""
    terms = ((gamma, {X: 1, X1: 1}), (delta, {X: 1}), (-alpha, {X1: 1}), (-beta, {}))
    return condition(X, *(t for t in terms if t[0]))


@pytest.mark.parametrize(
    ("coefficients", "free"),
    [
        ((1, 0, 0, 1), True),
        ((2, 3, 0, 1), True),
        ((0, 1, 1, 0), True),
        ((1, 1, 1, 2), True),
        ((1, 1, 1, 1), False),
        ((2, 1, 4, 2), False),
        ((0, 1, 0, 1), False),
        ((1, -1, -1, 1), False),
    ],
)
def test_what_is_one_to_one_in_what_it_was_is_as_free_as_at_first(
    coefficients: tuple[int, int, int, int], free: bool
) -> None:
    """αδ - βγ is other than 0."""
    alpha, beta, gamma, delta = coefficients
    assert bool(alpha * delta - beta * gamma) is free
    try:
        made = Conditions((law(*coefficients),))
    except Rejected as e:
        assert not free and "value of another" in str(e)
    else:
        assert made.touches(frozenset({X})) is not free
        assert made.touches(frozenset({X1})) is not free
        assert made.touches(frozenset({X, X1})) and not made.touches(frozenset({Y, Y1, A}))


def test_a_law_holds_nothing_that_has_a_value() -> None:
    """x_i = y x_{i-1} where y has a value, at this token or another."""
    for y in (Y, Y1):
        with pytest.raises(Rejected, match="value of another"):
            Conditions((
                condition(X, (1, {X: 1}), (-1, {X1: 1, y: 1})),
                condition(Y, (1, {Y: 1}), (-1, {Y1: 1})),
            ))  # fmt: skip


def test_there_are_as_many_conditions_as_the_bound() -> None:
    many = tuple(condition(f"a[{k}]", (1, {f"a[{k}]": 1})) for k in range(LIMIT + 1))
    assert len(Conditions(many[:LIMIT]).values(0)) == LIMIT
    with pytest.raises(Rejected, match="more than 256"):
        Conditions(many)


@pytest.mark.parametrize(
    ("coefficient", "why"),
    [
        (((((A, 1),), 1), ((), 1)), "not in order"),
        ((((), 1), ((), 2)), "not in order"),
        (((((Y, 1), (X, 1)), 1),), "not in order, or 0"),
        (((((X, 1), (X, 1)), 1),), "not in order, or 0"),
        ((((), 0),), "not in order, or 0"),
        (((((X, 0),), 1),), "out of range"),
        (((((X, -1),), 1),), "out of range"),
        (((((X, 65),), 1),), "out of range"),
        ((((("i", 2),), 1),), "out of range"),
        (((((X, 1),), 1), (((X, 64),), 2)), ""),
        ((((("i", 1),), 1),), ""),
        ((), ""),
    ],
)
def test_a_polynomial_is_written_in_one_way(coefficient, why: str) -> None:
    if why:
        with pytest.raises(Rejected, match=why):
            read(coefficient)
    else:
        assert tuple((m, int(c)) for m, c in read(coefficient).terms.items()) == coefficient
