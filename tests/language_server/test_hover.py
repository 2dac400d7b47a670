from __future__ import annotations

import sys

import pytest

from dsfc.expr.table import SPELLINGS
from dsfc.language_server.hover import hover, meaning
from dsfc.language_server.lookup import definitions
from dsfc.mixer.reserved_names import FORMS


def shown(open_text, text: str) -> str:
    found = hover(*open_text(text))
    return "" if found is None else found.markdown


def test_a_definition_shows_its_shape(open_text) -> None:
    text = "mixer m extends generalized_attn {\n  param w : d -> h\n  ‸η = exp(w u)\n}"
    assert "η = exp(w u)" in shown(open_text, text)
    assert "h, per token" in shown(open_text, text)


def test_a_continued_declaration_shows_its_keyword(open_text) -> None:
    text = "mixer m {\n dims d\n input u : d\n param a : d\n b : d = 1\n y = a * ‸b * u\n}"
    assert "param b : d = 1" in shown(open_text, text)


def test_a_name_of_a_base_shows_the_base(open_text) -> None:
    text = "mixer m extends qkv {\n y = ‸q\n}"
    found = shown(open_text, text)
    assert "q = W_Q u" in found and "from `qkv`, qkv.dsf" in found and "h × n" in found


def test_a_mixer_shows_its_matrices_and_its_class(open_text) -> None:
    found = shown(open_text, "mixer ‸m extends generalized_attn { claim stable }")
    assert "class: scalar" in found
    assert all(f"  {row}" in found for row in ("Λ_i = I_{p n}", "B_i = ", "C_i = ", "D_i = 0"))
    assert shown(open_text, "mixer m extends ‸qkv { y = q }").endswith("a base for others")


CITED = """mixer ‸m {
  paper "Gu, Dao", 2023, "Mamba_*[1]*", arXiv "2312.00752"  "eq. 2"
  dims d
  input u : d
  y = 2 * u
}"""
REFERENCE = "Gu, Dao 2023: Mamba\\_\\*\\[1\\]\\*, arXiv:2312.00752, eq. 2"


def test_a_paper_shows_its_reference_and_its_address(open_text) -> None:
    said = f"{REFERENCE}\n\n<https://arxiv.org/abs/2312.00752>"
    for at in ("paper", '"Gu', "2023", "arXiv", '"eq'):
        assert shown(open_text, CITED.replace("‸", "").replace(f" {at}", f" ‸{at}")) == said
    assert shown(
        open_text,
        CITED.replace("‸", "").replace(', arXiv "2312.00752"', "").replace("paper", "‸paper"),
    ) == REFERENCE.replace(", arXiv:2312.00752", "")
    assert said in shown(open_text, CITED) and "class: " in shown(open_text, CITED)


def test_a_name_shows_its_letters_in_papers(open_text) -> None:
    text = CITED.replace("‸", "").replace(
        '"eq. 2"', '"eq. 2", letters u "x", y "\\mathbf{y}"\n  paper "A", 2024, "T", letters u "z"'
    )
    said = "`x` in Gu and Dao 2023, eq. 2\n\n`z` in A 2024"
    for at in ('u "x"', 'u "z"', "u : d"):
        found = shown(open_text, text.replace(at, f"‸{at}"))
        assert found.startswith("```dsf\ninput u : d\n```") and found.endswith(said)
    assert "`\\mathbf{y}` in Gu and Dao" in shown(open_text, text.replace("y = 2", "‸y = 2"))
    assert shown(open_text, text.replace("letters u", "‸letters u")).startswith(REFERENCE)


def test_a_mixer_that_is_no_system_says_why(open_text) -> None:
    text = "mixer ‸m {\n dims d\n input u : d\n state S : d\n S = S[i-1] * S[i-1] + u\n y = S\n}"
    assert "E-NONLINEAR" in shown(open_text, text) or "E-LINEAR" in shown(open_text, text)


def test_a_mixer_that_takes_long_is_shown_without_its_matrices(
    open_text, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "mixer ‸m extends generalized_attn { claim stable }"
    monkeypatch.setattr("dsfc.language_server.hover.PATIENCE", 0.02)

    def endless(system: object) -> None:
        while True:
            step()

    def step() -> None:
        pass

    monkeypatch.setattr("dsfc.language_server.hover.classify", endless)
    before = sys.gettrace()
    found = shown(open_text, text)
    assert "mixer m extends generalized_attn" in found and "not derived in 0.02 s" in found
    assert sys.gettrace() is before


def test_modifiers_primitives_and_local_names(open_text) -> None:
    assert "fir[t](w, x)" in shown(
        open_text, "mixer m extends qkv { y = q\n use ‸short_conv on q }"
    )
    assert shown(open_text, "mixer m extends qkv { y = ‸exp(q) }") == "`exp`: e^x"
    assert "argument of `f`" in shown(open_text, "mixer m extends qkv { f(a) = ‸a\n y = f(q) }")


@pytest.mark.parametrize("word", [*SPELLINGS, *FORMS])
def test_every_function_of_the_language_has_a_meaning(word: str) -> None:
    assert meaning(word)


def test_nothing_is_shown_of_comments_and_of_broken_texts(open_text) -> None:
    assert hover(*open_text("mixer m extends qkv { y = q # the ‸q\n }")) is None
    assert hover(*open_text("mixer m extends qkv { y = ‸q * }")) is None


def places(open_text, text: str) -> list[str]:
    return [span.text for span in definitions(*open_text(text))]


def test_a_definition_is_found_in_the_text_its_base_and_its_modifier(open_text) -> None:
    state = "mixer m {\n dims d\n input u : d\n state S : d\n S = S[i-1] + u\n y = ‸S\n}"
    assert [span.line for span in definitions(*open_text(state))] == [4, 5]
    (base,) = definitions(*open_text("mixer m extends qkv { y = ‸q }"))
    assert base.source.name.endswith("qkv.dsf") and base.source.line(base.line).strip()[0] == "q"
    (modifier,) = definitions(*open_text("mixer m extends qkv { y = q\n use ‸short_conv on q }"))
    assert modifier.source.name.endswith("short_conv.dsf")
    (bound,) = definitions(*open_text("mixer m extends qkv { y = sum[j ≤ i](q[‸j]) }"))
    assert bound.column == 31
    assert places(open_text, "mixer m extends qkv { y = ‸exp(q) }") == []
