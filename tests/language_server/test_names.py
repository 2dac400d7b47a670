from __future__ import annotations

from pathlib import Path

import pytest

from dsfc.language_server.names import Kind, occurrence_at, occurrences
from dsfc.source import Source
from dsfc.syntax.grammar import tokens
from dsfc.syntax.letters import fold
from dsfc.syntax.parse import parse

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("path", sorted((ROOT / "specs").glob("*.dsf")), ids=lambda it: it.stem)
def test_every_name_of_every_spec_is_found_once_at_its_place(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    found = occurrences(parse(Source(path.name, text)))
    assert all(fold(it.span.text) == it.name for it in found)
    lexed = [(t.start_pos, t.end_pos) for t in tokens(text) if t.type == "NAME"]
    assert sorted((it.span.start, it.span.end) for it in found) == lexed


def kinds(text: str) -> dict[str, Kind]:
    return {it.name: it.kind for it in occurrences(parse(Source("<text>", text)))}


def test_an_index_of_a_sum_is_local_and_its_bound_is_not() -> None:
    text = "mixer m { x = sum[j ≤ i](prod[j < l ≤ i](a[l]) * b[j]) }"
    found = kinds(text)
    assert found["j"] is found["l"] is Kind.LOCAL
    assert found["i"] is Kind.WORD
    assert found["a"] is found["b"] is Kind.NAME
    places = [it for it in occurrences(parse(Source("<text>", text))) if it.name == "j"]
    assert len({it.binder for it in places}) == 1 and len(places) == 3


def test_an_axis_in_the_brackets_of_a_sum_is_a_name_of_the_mixer() -> None:
    assert kinds("mixer m { dims n\n x = sum[n](a) }")["n"] is Kind.NAME


def test_an_argument_hides_a_name_only_inside_its_function() -> None:
    spec = parse(Source("<text>", "mixer m { f(a) = a * b\n y = f(a) }"))
    found = [it.kind for it in occurrences(spec) if it.name == "a"]
    assert found == [Kind.LOCAL, Kind.LOCAL, Kind.NAME]


def test_the_index_of_earlier_tokens_is_one_of_its_condition() -> None:
    text = "mixer m { claim equivalent s6 when k · k[j] == 0 for j < i and j > 0 }"
    found = [it for it in occurrences(parse(Source("<text>", text))) if it.name == "j"]
    assert [it.kind for it in found] == [Kind.LOCAL, Kind.LOCAL, Kind.NAME]
    assert found[0].binder == found[1].binder == found[1].span


def test_words_of_claims_are_no_names() -> None:
    found = kinds(
        "mixer m { claim equivalent s6\n claim class scalar\n claim decay(S) < 1\n claim causal }"
    )
    assert found["s6"] is Kind.MIXER and found["S"] is Kind.NAME
    assert {found[word] for word in ("equivalent", "class", "scalar", "decay", "causal")} == {
        Kind.WORD
    }


def test_a_name_in_parentheses_is_the_name_alone() -> None:
    text = "mixer m { y = ( # the (gate)\n  gate ) * 2 }"
    found = occurrence_at(parse(Source("<text>", text)), text.index("gate )"))
    assert found is not None and found.span.text == "gate"
