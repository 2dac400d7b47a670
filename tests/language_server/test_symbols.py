from __future__ import annotations

import pytest

from dsfc.language_server.symbols import Symbol, SymbolKind, symbols

TEXT = """modifier gated on x {
  param W : d -> x
  x = x * silu(W u)
}
mixer m "P" extends qkv {
  dims r = 2, heads g = 4
  param a, b_Δ : h
        c : n
  const τ = 1/2
  state S : h × n × p
  f(z) = exp(z)
  S = S[i-1] + k ⊗ v
  x' = a * x by zoh(1)
  use gated on y
  y = q · S
  claim stable
}
"""


def outline(found: tuple[Symbol, ...]) -> list[tuple[str, str, list[tuple[str, str]]]]:
    return [(s.kind.value, s.name, [(c.kind.value, c.name) for c in s.children]) for s in found]


def test_the_outline_of_a_text(open_text) -> None:
    found = symbols(open_text(TEXT)[0])
    assert outline(found) == [
        ("modifier", "gated", [("param", "W"), ("definition", "x")]),
        (
            "mixer",
            "m",
            [
                ("axis", "r"),
                ("axis", "g"),
                ("param", "a"),
                ("param", "b_Δ"),
                ("param", "c"),
                ("const", "τ"),
                ("state", "S"),
                ("function", "f"),
                ("definition", "S"),
                ("definition", "x"),
                ("use", "gated"),
                ("definition", "y"),
                ("claim", "stable"),
            ],
        ),
    ]
    details = {(s.kind, s.name): s.detail for s in found[1].children}
    assert details[SymbolKind.PARAM, "c"] == "param c : n"
    assert details[SymbolKind.DEFINITION, "y"] == "y = q · S"
    for symbol in (*found, *(child for s in found for child in s.children)):
        assert symbol.span.start <= symbol.place.start < symbol.place.end <= symbol.span.end
        assert symbol.place.text == symbol.name and symbol.span.source.text == TEXT


@pytest.mark.parametrize(
    "right, wrong, lost",
    [
        ("  const τ = 1/2\n", "  const τ = = 1/2\n", {"τ"}),
        ("  y = q · S\n", "  y = q · (S\n", {"y"}),
        ("  y = q · S\n", "  y = q · S }\n", set()),
        ("  y = q · S\n", "  y = { q · S\n", {"y"}),
        ("  param a, b_Δ : h\n", "  param a b_Δ : h\n", {"a", "b_Δ"}),
        ("  claim stable\n}\n", "  claim stable\n", set()),
        ("  x = x * silu(W u)\n}\n", "  x = x * silu(W u)\n", set()),
        ("extends qkv {", "extends {", set()),
        ("extends qkv {", "extends qkv", set()),
        ('"P" ', '"P ', set()),
        ("  S = S[i-1] + k ⊗ v\n", "  S = S[i-1] + k ⊗ −v − √v\n", {"S"}),
    ],
)
def test_a_mistake_takes_its_own_line_from_the_outline(
    open_text, right: str, wrong: str, lost: set[str]
) -> None:
    whole = symbols(open_text(TEXT)[0])
    text = TEXT.replace(right, wrong)
    broken, _ = open_text(text)
    assert text != TEXT and not broken.parsed
    found = symbols(broken)
    assert [s.name for s in found] == ["gated", "m"]
    assert found[0].span.end <= found[1].span.start
    names = [{(c.kind, c.name) for c in s.children} for s in whole]
    left = [{(c.kind, c.name) for c in s.children} for s in found]
    for before, after in zip(names, left, strict=True):
        assert after <= before and {name for _, name in before - after} <= lost
    for symbol in (*found, *(child for s in found for child in s.children)):
        assert symbol.place.text == symbol.name


def test_what_goes_on_below_a_mistake_keeps_its_keyword(open_text) -> None:
    text = "mixer m extends qkv {\n  buffer a b : h\n         c : n\n  y = q\n}"
    (mixer,) = symbols(open_text(text)[0])
    assert [(c.kind.value, c.name) for c in mixer.children] == [
        ("buffer", "c"),
        ("definition", "y"),
    ]


def test_a_claim_over_two_lines_is_one_line_of_the_outline(open_text) -> None:
    (mixer,) = symbols(
        open_text("mixer m extends qkv {\r\n  claim 0 <\r\n    q\r\n  y = q\r\n}")[0]
    )
    assert [c.name for c in mixer.children] == ["0 < q", "y"]
