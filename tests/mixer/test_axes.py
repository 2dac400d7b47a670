"""Sizes of axes: given, by default, derived, and impossible."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dsfc.diagnostics.report import Diagnostic, DiagnosticError
from dsfc.mixer import sizes
from dsfc.mixer.ir import Mixer

Shipped = Callable[[str], Mixer]


def code(mixer: Mixer, given: dict[str, int]) -> tuple[str, str]:
    with pytest.raises(DiagnosticError) as error:
        sizes(mixer, given)
    found = error.value.diagnostics[0]
    return found.code, found.message


def test_defaults_and_derived_sizes(shipped: Shipped) -> None:
    assert sizes(shipped("normalized_attn"), {"d": 16}) == {"d": 16, "h": 4, "n": 4, "p": 4}
    assert sizes(shipped("normalized_attn"), {"d": 16, "h": 2, "n": 3}) == {
        "d": 16,
        "h": 2,
        "n": 3,
        "p": 8,
    }
    assert sizes(shipped("s6"), {"d": 32, "n": 4})["r"] == 2


def test_a_size_that_does_not_divide(shipped: Shipped) -> None:
    with pytest.raises(DiagnosticError) as error:
        sizes(shipped("normalized_attn"), {"d": 10})
    tail = "comes out as 5/2 for d = 10, h = 4; it must be a positive integer"
    assert [d.message for d in error.value.diagnostics] == [
        f"the size of the axis `{axis}` {tail}" for axis in "np"
    ]


@pytest.mark.parametrize(
    ("given", "expected", "says"),
    [
        ({}, "E-DIM", "`d` must be given"),
        ({"d": 0}, "E-DIM", "positive integer"),
        ({"d": 4, "q": 2}, "E-AXIS", "`q` is not an axis"),
    ],
)
def test_what_cannot_be_solved(
    given: dict[str, int], expected: str, says: str, shipped: Shipped
) -> None:
    found = code(shipped("qlstm"), given)
    assert found[0] == expected
    assert says in found[1]


def test_a_size_is_asked_for_only_where_something_needs_it(
    mixer_of: Callable[..., Mixer],
) -> None:
    mixer = mixer_of("mixer m extends qkv { input q : h × n; y = q }")
    assert sizes(mixer, {"n": 3, "h": 2}) == {"h": 2, "n": 3}
    assert sizes(mixer, {"d": 8})["n"] == 2


def test_exact_roots_and_constants_in_sizes(mixer_of: Callable[..., Mixer]) -> None:
    mixer = mixer_of(
        "mixer m { dims d, n = d^(1/2), m = (d + P) / P - 1; const P = 2; "
        "input u : d × n × m; y = u }"
    )
    assert sizes(mixer, {"d": 16}) == {"d": 16, "n": 4, "m": 8}
    assert code(mixer, {"d": 12})[0] == "E-DIM"


def test_axes_renamed_into_each_other_have_one_size(mixer_of: Callable[..., Mixer]) -> None:
    mixer = mixer_of("mixer m { dims n, m; input u : n; y = u ⊗ rename[n, m](u) }")
    assert sizes(mixer, {"n": 3, "m": 3}) == {"n": 3, "m": 3}
    assert code(mixer, {"n": 3, "m": 2})[0] == "E-DIM"


def test_sizes_of_sizes_end(mixer_of: Callable[..., Mixer]) -> None:
    pairs = ", ".join(
        f"a{k} = a{k - 1} * b{k - 1}, b{k} = a{k - 1} + a{k - 1} * b{k - 1}" for k in range(1, 40)
    )
    text = "mixer m {{ dims d, a0 = d, b0 = d, {}; input u : d; param w : a39 = {}; y = u * {} }}"
    mixer = mixer_of(text.format(pairs, "1", "sum[a39](w)"))
    found = code(mixer, {"d": 2})
    assert found[0] == "E-DIM"
    assert "more than" in found[1]


def test_a_circle_of_sizes_is_shown(problems: Callable[..., tuple[Diagnostic, ...]]) -> None:
    text = "mixer m { dims d, a = b / d, b = c, c = 2 * a, e = e; input u : d; y = u }"
    assert [d.message for d in problems(text)] == [
        "the size of the axis `a` depends on itself (a → b → c → a)",
        "the size of the axis `e` depends on itself (e → e)",
    ]
