from __future__ import annotations

import pytest

from dsfc.source import Source
from dsfc.syntax.open_call import OpenCall, open_calls


def calls(text: str) -> list[tuple[str, bool, int, bool]]:
    found = open_calls(Source("<text>", text), len(text))
    return [(c.name, c.indexed, c.position, c.compares) for c in found]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("", []),
        ("mixer m { y = f(a, b", [("f", False, 1, False)]),
        ("mixer m { y = f(g(a), (b, c", [("f", False, 1, False)]),
        ("mixer m { y = sum[j ≤ i](q · k[j", [("k", True, 0, False), ("sum", False, 0, True)]),
        ("mixer m { y = sum[j ≤ i, n", [("sum", True, 1, True)]),
        ("mixer m { W_Δ(", [("W_Delta", False, 0, False)]),
        ("mixer m { y = f(a)", []),
        ("mixer m { y = (a", []),
        ("mixer m { y = f(a\n  + g(b", [("g", False, 0, False), ("f", False, 0, False)]),
        ("mixer m { y = f(a; z = g(", [("g", False, 0, False)]),
        ("mixer m { y = f(a\n}\nmixer n { z", []),
        ("mixer m { y = f(a # g(", []),
        ("](", []),
        ("f](", []),
        ("[[f](", []),
    ],
)
def test_the_calls_around_the_end_of_a_text(text: str, expected: list) -> None:
    assert calls(text) == expected


def test_what_follows_the_place_does_not_count() -> None:
    text = "mixer m { y = f(a, b) ) ] } {"
    at = text.index("b)")
    assert open_calls(Source("<text>", text), at) == (OpenCall("f", False, 1, False),)
