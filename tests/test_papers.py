"""Papers: what identifies them, and how texts refer to them."""

from __future__ import annotations

import pytest

from dsfc.papers import FORMS, Identifier, Letter, Paper, Register


@pytest.mark.parametrize(
    ("register", "legal", "illegal"),
    [
        (
            Register.ARXIV,
            (
                "0704.0001",
                "1412.6980",
                "1501.00001",
                "2312.06635",
                "2312.06635v12",
                "cs/0112017",
                "math.GT/0309136v1",
            ),
            (
                "2300.06635",
                "2313.06635",
                "2312.0663",
                "1412.00663",
                "2312.6635123",
                "2312.06635v0",
                "cs/01120171",
                "2312.066 35",
            ),
        ),
        (
            Register.DOI,
            ("10.1162/neco.1997.9.8.1735", "10.48550/arXiv.2312.06635", "10.1000.10/a(b)<c>;d"),
            ("10.1162/", "doi:10.1162/neco", "11.1162/neco", "10.12/x", "10.1162/a b", "10.1162/é"),
        ),
        (
            Register.URL,
            (
                "https://a.org",
                "https://openreview.net/forum?id=P1TCHxJwLB",
                "https://a-b.co.uk/~x#y",
            ),
            ("http://a.org", "https://a", "https://a.org/ b", 'https://a.org/">', "javascript:0"),
        ),
    ],
)
def test_identifiers_have_the_forms_of_their_registers(
    register: Register, legal: tuple[str, ...], illegal: tuple[str, ...]
) -> None:
    form, example, _ = FORMS[register]
    assert all(form.fullmatch(it) for it in (*legal, example))
    assert not any(form.fullmatch(it) for it in (*illegal, "", f"{example}\n", f" {example}"))


def test_a_reference_names_what_there_is() -> None:
    one = Paper(("Katsch",), False, 2023, "GateLoop")
    assert (one.short, str(one)) == ("Katsch 2023", "Katsch 2023: GateLoop")
    two = Paper(("Gu", "Dao"), False, 2023, "Mamba", Identifier(Register.ARXIV, "2312.00752"), "§3")
    assert two.short == "Gu and Dao 2023" and two.named == "Gu, Dao"
    assert str(two) == "Gu, Dao 2023: Mamba, arXiv:2312.00752, §3"
    more = Paper(("Gu",), True, 2021, "S4", Identifier(Register.URL, "https://a.org/b"))
    assert more.short == "Gu et al. 2021" and str(more) == "Gu et al. 2021: S4, https://a.org/b"
    assert Paper(("A", "B", "C"), False, 2021, "T").short == "A et al. 2021"


def test_a_letter_is_one_symbol() -> None:
    assert Letter("S", "S_Q").symbol.below == "Q"
    with pytest.raises(ValueError):
        _ = Letter("S", "<b>").symbol
    assert not Paper(("A",), False, 2024, "T", letters=(Letter("S", "<b>"),)).writable


def test_an_identifier_is_a_link() -> None:
    links = {r: Identifier(r, example).link for r, (_, example, _) in FORMS.items()}
    assert links[Register.ARXIV] == "https://arxiv.org/abs/2312.06635"
    assert links[Register.DOI] == "https://doi.org/10.1162/neco.1997.9.8.1735"
    odd = Identifier(Register.DOI, "10.1000/a(b)<c>#[d];2-e").link
    assert odd == "https://doi.org/10.1000/a%28b%29%3Cc%3E%23%5Bd%5D;2-e"
    assert links[Register.URL] == "https://openreview.net/forum?id=P1TCHxJwLB"
