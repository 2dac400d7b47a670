from __future__ import annotations

from dsfc.language_server.document import document
from dsfc.language_server.hints import hints
from dsfc.mixer.library import Library
from dsfc.source import Source

TEXT = """mixer m extends qkv {
  param w : d -> h
  state S : h × n × p
  η = exp(w u)
  τ = 1/2
  S = S[i-1] + k ⊗ v
  y = τ * η * q · S
}
"""


def shown(text: str, found) -> str:
    """The text with the hints in it."""
    for hint in sorted(found, key=lambda it: -it.offset):
        text = text[: hint.offset] + hint.text + text[hint.offset :]
    return text


def test_definitions_show_their_axes_and_declared_names_do_not(open_text) -> None:
    it, _ = open_text(TEXT)
    found = hints(it, 0, len(TEXT))
    assert shown(TEXT, found) == TEXT.replace("η =", "η: h =").replace("τ =", "τ: 1 =").replace(
        "y =", "y: h × p ="
    )
    assert [hint.more for hint in found] == ["h, per token", "1, constant", "h × p, from the past"]
    assert hints(it, TEXT.index("τ"), TEXT.index("τ") + 3) == found[1:2]


def test_hints_of_the_last_text_without_mistakes_stay_at_their_names() -> None:
    library = Library()
    whole = document(Source("<text>", TEXT), library)
    text = "# above\n" + TEXT.replace("τ = 1/2", "τ = 1/").replace("  y =", "    y =")
    broken = document(Source("<text>", text), library, whole)
    assert not broken.parsed
    expected = text.replace("η =", "η: h =").replace("    y =", "    y: h × p =")
    assert shown(text, hints(broken, 0, len(text))) == expected


def test_a_mixer_with_a_mistake_of_types_and_none_before_has_no_hints(open_text) -> None:
    text = TEXT.replace("q · S", "q · uu") + "mixer n extends qkv {\n  y = q\n}\n"
    it, _ = open_text(text)
    assert shown(text, hints(it, 0, len(text))) == text.replace("y = q\n", "y: h × n = q\n")
