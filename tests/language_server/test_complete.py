from __future__ import annotations

from pathlib import Path

import pytest

from dsfc.language_server.complete import complete
from dsfc.language_server.document import document
from dsfc.mixer.library import Library
from dsfc.source import Source
from dsfc.syntax.expected import expected
from dsfc.syntax.grammar import tokens

ROOT = Path(__file__).parents[2]

LINEAR = "mixer m {\n  dims d, n\n  input u : d\n  param W : d -> n\n  const P = 2\n  y = u\n"


def labels(open_text, text: str) -> set[str]:
    return {it.label for it in complete(*open_text(text))}


@pytest.mark.parametrize(
    "text, offered, not_offered",
    [
        ("‸", {"mixer", "modifier"}, {"param", "exp"}),
        (LINEAR + "  ‸\n}", {"param", "state", "claim", "use"}, {"mixer", "heads", "on"}),
        (LINEAR + "  z = W ‸\n}", {"u", "W", "P", "exp", "sum"}, {"param", "normal(", "qkv"}),
        (LINEAR + "  param k : ‸\n}", {"d", "n", "each"}, {"u", "W", "exp"}),
        (LINEAR + "  param k : d p‸\n}", {"positive", "unit"}, {"u", "param"}),
        (LINEAR + "  param ‸\n}", set(), {"u", "exp", "d"}),
        (LINEAR + "  dims ‸\n}", {"heads"}, {"u", "exp"}),
        (LINEAR + "  use ‸\n}", {"short_conv", "token_shift"}, {"qkv", "u", "exp"}),
        (LINEAR + "  use short_conv ‸\n}", {"on"}, {"u"}),
        (LINEAR + "  use short_conv on ‸\n}", {"u", "y"}, {"exp", "short_conv"}),
        (LINEAR + "  claim ‸\n}", {"stable", "causal", "u"}, {"param"}),
        (LINEAR + "  z = u # ‸\n}", set(), {"u"}),
        (LINEAR + '  z = u "eq. ‸\n}', set(), {"u"}),
        (LINEAR + '  paper "Gu, Dao", 2023, "T", ‸\n}', {"arXiv", "doi", "url"}, {"u", "exp"}),
        (LINEAR + '  paper "Gu, Dao", 2023,\n  "T",\n a‸\n}', {"arXiv"}, {"u", "exp"}),
        (LINEAR + '  paper "Gu, Dao", ‸\n}', set(), {"u", "exp"}),
        (LINEAR + '  paper "Gu", 2023, "T", l‸\n}', {"letters"}, {"u", "exp"}),
        (LINEAR + '  paper "Gu", 2023, "T"  "§2",\n l‸\n}', {"letters"}, {"u", "arXiv"}),
        (LINEAR + '  paper "Gu", 2023, "T", doi "10.1/a", ‸\n}', {"letters"}, {"u", "doi"}),
        (LINEAR + '  paper "Gu", 2023, "T", letters ‸\n}', {"u", "W", "d", "i"}, {"exp", "doi"}),
        (LINEAR + '  paper "Gu", 2023, "T", letters u "x",\n ‸\n}', {"W", "n"}, {"exp", "letters"}),
        ("mixer m extends ‸", {"qkv", "s6"}, {"short_conv", "exp"}),
        ("mixer m extends qkv {\n  y = ‸\n}", {"q", "W_Q", "u"}, {"qkv"}),
    ],
)
def test_what_is_offered(open_text, text: str, offered: set[str], not_offered: set[str]) -> None:
    found = labels(open_text, text)
    assert offered <= found
    assert not found & not_offered
    assert offered or not found


def test_names_have_their_declaration_and_functions_their_meaning(open_text) -> None:
    found = {it.label: it.detail for it in complete(*open_text(LINEAR + "  z = ‸\n}"))}
    assert found["W"] == "param W : d -> n" and found["tanh"] == "hyperbolic tangent"


def test_a_greek_name_is_found_by_its_ascii_spelling(open_text) -> None:
    (found,) = (
        it
        for it in complete(*open_text("mixer m extends generalized_attn {\n z = ‸\n}"))
        if it.ascii == "eta"
    )
    assert found.label == "η"


def test_names_of_the_last_text_that_could_be_parsed_stay_known() -> None:
    whole = Source("<text>", LINEAR + "}\n")
    library = Library()
    broken = Source("<text>", LINEAR.replace("const P = 2", "const P = ") + "  z = ")
    found = complete(document(broken, library, document(whole, library)), len(broken.text))
    assert {"u", "W"} <= {it.label for it in found}


@pytest.mark.parametrize("name", ["s6", "short_conv", "lru", "normalized_attn"])
def test_what_stands_in_a_spec_was_to_be_expected_there(name: str) -> None:
    source = Source(name, (ROOT / "specs" / f"{name}.dsf").read_text(encoding="utf-8"))
    wrong = [
        (token, token.start_pos)
        for token in tokens(source.text)
        if token.type not in expected(source, token.start_pos or 0)
        and not (token.type == "_SEP" and "\n" in token)
    ]
    assert wrong == []
