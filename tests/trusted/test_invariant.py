"""Rows and columns: what a combination is, and what passes for none."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.trusted.claim import Claim, Condition, Invariant, Row
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.invariant import (
    Columns,
    ReadRow,
    after,
    check_rows,
    cleared,
    columns,
    difference,
    vanishes,
)
from dsfc.trusted.polynomial import ONE, ZERO, Quotient, generator, number
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.statement import state


def q(name: str) -> Quotient:
    return Quotient(generator(name))


X, Y, A, B = q("$A.x[]"), q("$B.y[]"), q("a[]@0"), q("b[]@0")
x, y = "$A.x[]", "$B.y[]"


def texts(found: Columns) -> dict[tuple[str, ...], str]:
    return {cells: c.text for cells, c in found.items()}


def test_columns_are_the_coefficients_of_products_of_states() -> None:
    found = columns((A * X * X * Y + X * X * Y + A * X + B) / (A + B))
    assert texts(found) == {
        (x, x, y): ((A + ONE) / (A + B)).text,
        (x,): (A / (A + B)).text,
        (): (B / (A + B)).text,
    }
    assert columns(ZERO) == {}
    with pytest.raises(Rejected, match="a state stands in a denominator"):
        columns(A / (X + B))
    with pytest.raises(Obstacle, match="reciprocal of"):
        columns(A + B / X)


def test_what_is_divided_by_is_multiplied_out_where_it_holds_states() -> None:
    for value, whole in (
        (A / (X + B), A),
        (A / X + B, A + B * X),
        (A / X / X + B / Y, A * Y + B * X * X),
        (A / (X + B).power(2) / (A + B), A / (A + B)),
        (A / (A + B).power(2), A / (A + B).power(2)),
        (X * A, X * A),
        (X / A, X / A),
    ):
        assert not cleared(value) - whole
    assert not difference(A / X, B / X) - (A - B)
    assert not difference(X / A, X / A)


def test_a_combination_of_rows_is_read_off_the_pivots() -> None:
    rows = [columns(X - A * Y), columns(Y * Y + B * Y + ONE)]
    rows = [{(x,): rows[0][(x,)], **rows[0]}, {(y, y): rows[1][(y, y)], **rows[1]}]
    for target in (
        ZERO,
        X - A * Y,
        B * X - B * A * Y,
        (X - A * Y) / (A + B),
        X - A * Y + (Y * Y + B * Y + ONE) * A,
    ):
        assert vanishes(columns(target), rows)
    for target in (
        X,
        X - Y,
        ONE,
        X * Y - A * Y * Y,
        Y * Y + B * Y,
        X - A * Y + (Y * Y + B * Y + number(2)),
    ):
        assert not vanishes(columns(target), rows)
        assert not vanishes(columns(target), [])


def test_a_row_after_a_token_has_its_states_updated_and_its_conditions_put_in() -> None:
    row = ReadRow((x,), {(x,): generator("a[]@0"), (x, y): generator("b[]@0")})
    step = {x: X + A, y: Y * B}
    wanted = A * (X + A) + B * (X + A) * (Y * B)
    assert texts(after(row, step, {})) == texts(columns(wanted))
    known = {"b[]@0": A + ONE}
    assert texts(after(row, step, known)) == texts(columns(wanted.substituted(known)))
    # What the update divides by is other than 0.
    divided = after(row, {x: A / (X + B), y: Y}, {})
    assert texts(divided) == texts(columns(A * A + A * B * Y))


def test_conditions_hold_at_the_first_token_and_after() -> None:
    """With z = u at every token, s - z is 0 after each, where s is u."""
    text = Source("m.dsf", "mixer m {\n input u, z\n state s\n s = u\n y = s * z\n}\n")
    of = SpecText(Place(Path("m.dsf")), parse(text)).compilation("m").system
    z_is_u = Condition((((("u[]@0", 1),), -1), ((("z[]@0", 1),), 1)), "z[]@0")

    def proof(k: int) -> Invariant:
        terms = (((), (((("z[]@0", 1),), k),)), (("$A.s[]",), (((), 1),)))
        return Invariant((Row(("$A.s[]",), terms),), False)

    statement = state(Claim(of, of, (), (), conditions=(z_is_u,)), False)
    check_rows(statement, proof(-1))
    with pytest.raises(Rejected, match="does not vanish at the start"):
        check_rows(statement, proof(-2))
    with pytest.raises(Rejected, match="does not vanish at the start"):
        check_rows(state(Claim(of, of, (), ()), False), proof(-1))
