"""The text of a domain: what it says, and what is wrong with it and where."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfc.diagnostics.report import DiagnosticError
from dsfc.syntax.domain import parse_domain


def said(text: str) -> list[tuple[object, ...]]:
    return [(b.name, b.low, b.high, b.axis, b.modulus) for b in parse_domain(text)]


def test_bounds_have_one_end_or_two() -> None:
    assert said("abs(u) <= 2, 0.5 ≤ λ ≤ 9/10") == [
        ("u", None, 2, "", True),
        ("lambda", Fraction(1, 2), Fraction(9, 10), "", False),
    ]
    assert said("norm[n](k) >= 2^-3") == [("k", Fraction(1, 8), None, "n", False)]
    assert said("1 >= u >= -1e-3") == [("u", Fraction(-1, 1000), 1, "", False)]
    assert said("L == 64") == [("L", 64, 64, "", False)]


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("", 1, "no bounds are stated"),
        ("u", 1, "no comparison"),
        ("abs(u) <= 1, v", 14, "no comparison"),
        ("abs(u) <=", 10, "ends within a bound"),
        ("u <= v", 1, "compares one name with numbers"),
        ("1 <= 2", 1, "compares one name with numbers"),
        ("u < 1", 1, "`<=` or with `>=`"),
        ("1 <= u >= 2", 1, "`<=` or with `>=`"),
        ("3 <= u <= 2", 1, "nothing is between 3 and 2"),
        ("exp(u) <= 1", 1, "a bound is one on a name"),
        ("abs[n](u) <= 1", 1, "a bound is one on a name"),
        ("u + 1 <= 2", 1, "a bound is one on a name"),
        ("L <= 1.5", 1, "positive integers"),
        ("L >= 0", 1, "positive integers"),
        ("abs(L) <= 3", 1, "number of tokens"),
        ("u <= 1/0", 6, "a denominator is 0"),
        ("u <= 2^(1/2)", 6, "an exponent"),
        ("u <= 2^9999", 6, "an exponent"),
        ("u <= 2 }", 8, "does not stand in a bound"),
        ("u <= 2; v <= 3", 7, "does not stand in a bound"),
        ("u <= 2 mixer", 8, "does not stand in a bound"),
        ("u = 2", 3, "cannot stand here"),
        ("u <= 2 3", 8, "cannot stand here"),
    ],
)
def test_a_mistake_has_its_place(text: str, column: int, problem: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        parse_domain(text)
    (found,) = caught.value.diagnostics
    assert problem in str(found)
    assert found.span.source.position(found.span.start) == (1, column)


@given(st.text(alphabet="uλL0129.,<=≥()[]{}^*/+-abs norm;'\"#\n", max_size=24))
def test_any_text_is_bounds_or_a_diagnostic(text: str) -> None:
    try:
        assert parse_domain(text)
    except DiagnosticError as e:
        assert e.diagnostics
