"""Text of values: numbers are exact, and an aligned text broadcasts as its axes say."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch
from dsfc.backends.torch.code import Binding, Code, number, product
from hypothesis import given
from hypothesis import strategies as st

from dsfc.expr.tree import Axis

AXES = (Axis(0, "h", heads=True), Axis(1, "n"), Axis(2, "p"), Axis(3, "q"))
SIZES = {a: k + 2 for k, a in enumerate(AXES)}
LEAD = (2, 3)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("3", "3"),
        ("-2", "-2"),
        ("1/2", "0.5"),
        ("1/3", "1 / 3"),
        ("-2/7", "-2 / 7"),
        ("1/10", "0.1"),
    ],
)
def test_numbers_are_exact(value: str, text: str) -> None:
    assert number(Fraction(value)) == text


def subsets(of: tuple[Axis, ...]) -> st.SearchStrategy[tuple[Axis, ...]]:
    return st.sets(st.sampled_from(of)).map(lambda found: tuple(a for a in of if a in found))


@given(st.booleans(), st.data())
def test_an_aligned_value_broadcasts_to_the_axes_asked_for(lead: bool, data: st.DataObject) -> None:
    axes = data.draw(subsets(AXES))
    own = data.draw(subsets(axes)) if axes else ()
    value = torch.randn((*(LEAD if lead else ()), *(SIZES[a] for a in own)))
    text = Code("value", own, lead).aligned(axes, True)
    there = eval(text, {"value": value})  # our own text
    whole = torch.zeros(*LEAD, *(SIZES[a] for a in axes))
    shape = [SIZES[a] if a in own else 1 for a in axes]
    wanted = whole + value.reshape(*(LEAD if lead else (1, 1)), *shape)
    assert torch.equal(whole + there, wanted)


@given(st.lists(st.sampled_from(list(Binding)), min_size=2, max_size=4))
def test_a_product_keeps_what_each_factor_means(bindings: list[Binding]) -> None:
    texts = {
        Binding.SUM: "2 + 3",
        Binding.PRODUCT: "12 / 5",
        Binding.UNARY: "-7",
        Binding.POWER: "3 ** 2",
        Binding.ATOM: "11",
    }
    code = product([Code(texts[b], (), False, b, number=True) for b in bindings])
    wanted = 1.0
    for b in bindings:
        wanted *= eval(texts[b])  # our own text
    assert eval(code.text) == pytest.approx(wanted, rel=1e-15)
