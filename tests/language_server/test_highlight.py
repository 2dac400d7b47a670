from __future__ import annotations

from pathlib import Path

import pytest

from dsfc.language_server.document import document
from dsfc.language_server.highlight import Mark, Role, highlight
from dsfc.mixer.library import Library
from dsfc.source import Source
from dsfc.syntax.grammar import tokens
from dsfc.syntax.lex import KEYWORDS

ROOT = Path(__file__).parents[2]

TEXT = """mixer m "P, eq. 1" extends qkv {  # of keys
  param a : h positive;  b : d -> n
  const c = 1/2
  state S : h × n × p
  score(l, r) = l · r
  S = a * S[i-1] + c * k ⊗ v
  y = score(q, S) + sum[j ≤ i](exp(q · k[j]) * v[j])
  use short_conv on k
}
"""


def roles(open_text, text: str) -> dict[str, set[tuple[Role, frozenset[Mark]]]]:
    found: dict[str, set[tuple[Role, frozenset[Mark]]]] = {}
    for word in highlight(open_text(text)[0]):
        found.setdefault(word.span.text, set()).add((word.role, word.marks))
    return found


def test_words_have_their_roles(open_text) -> None:
    found = roles(open_text, TEXT)
    new = frozenset({Mark.INTRODUCED})
    none = frozenset()
    fixed, state, word = (frozenset({m}) for m in (Mark.FIXED, Mark.STATE, Mark.LANGUAGE))
    assert found["m"] == {(Role.MIXER, new)} and found["qkv"] == {(Role.MIXER, none)}
    assert found["short_conv"] == {(Role.MODIFIER, none)}
    assert found['"P, eq. 1"'] == {(Role.STRING, none)}
    assert found["# of keys"] == {(Role.COMMENT, none)}
    assert found["param"] == found["positive"] == found["use"] == {(Role.KEYWORD, none)}
    assert found["⊗"] == found["·"] == found["->"] == found["="] == {(Role.OPERATOR, none)}
    assert found["2"] == {(Role.NUMBER, none)}
    assert found["a"] == {(Role.HELD, new), (Role.HELD, none)}
    assert found["c"] == {(Role.VALUE, fixed | new), (Role.VALUE, fixed)}
    assert found["S"] == {(Role.VALUE, state | new), (Role.VALUE, state)}
    assert found["score"] == {(Role.FUNCTION, new), (Role.FUNCTION, none)}
    assert found["l"] == {(Role.LOCAL, new), (Role.LOCAL, none)}
    assert found["j"] == {(Role.LOCAL, new), (Role.LOCAL, none)}
    assert found["exp"] == found["sum"] == {(Role.FUNCTION, word)}
    assert found["i"] == {(Role.KEYWORD, none)}
    assert found["h"] == {(Role.AXIS, none)} and found["q"] == {(Role.VALUE, none)}
    assert "," not in found and ":" not in found


def test_a_line_with_a_mistake_keeps_the_roles_of_its_names(open_text) -> None:
    broken = TEXT.replace("S = a * S[i-1]", "S = * a S[i-1] exp(")
    assert not open_text(broken)[0].parsed
    at = broken.index("S = *")
    line = {
        w.span.text: w.role
        for w in highlight(open_text(broken)[0])
        if at <= w.span.start < broken.index("\n", at)
    }
    assert line["S"] is Role.VALUE and line["a"] is Role.HELD and line["c"] is Role.VALUE
    assert line["exp"] is Role.FUNCTION and line["⊗"] is Role.OPERATOR and line["i"] is Role.KEYWORD
    rest = {w.span.text: w.role for w in highlight(open_text(broken)[0])}
    assert rest["score"] is Role.FUNCTION and rest["j"] is Role.LOCAL


@pytest.mark.share(6)
@pytest.mark.parametrize("path", sorted((ROOT / "specs").glob("*.dsf")), ids=lambda it: it.stem)
def test_every_token_but_punctuation_of_every_spec_is_a_word(path: Path) -> None:
    source = Source("<text>", path.read_text(encoding="utf-8"))
    words = {w.span.start: w for w in highlight(document(source, Library()))}
    punctuation = {"LBRACE", "RBRACE", "LPAR", "RPAR", "LSQB", "RSQB", "COMMA", "COLON", "_SEP"}
    lexed = {t.start_pos: t for t in tokens(source.text) if t.type not in punctuation}
    assert {at for at, w in words.items() if w.role is not Role.COMMENT} == set(lexed)
    for at, token in lexed.items():
        assert words[at].span.text == token
        assert token.type not in KEYWORDS or words[at].role in (Role.KEYWORD, Role.OPERATOR)
        assert token.type != "NAME" or words[at].role not in (Role.OPERATOR, Role.NUMBER)


def test_a_character_that_the_language_does_not_know_is_no_word(open_text) -> None:
    found = roles(open_text, 'mixer m extends qkv {\n  y = q − 1 # …\n  z = "open\n}\n')
    assert "−" not in found and found["q"] == {(Role.VALUE, frozenset())}
    assert '"open' not in found and "# …" in found


def test_line_ends_belong_to_no_word(open_text) -> None:
    text = TEXT.replace("\n", "  \r\n")
    assert roles(open_text, text) == roles(open_text, TEXT)
