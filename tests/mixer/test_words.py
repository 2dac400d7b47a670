"""The words of the language: each has a meaning, and an example that has it and no mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsfc.api.check import checked
from dsfc.api.pipeline import read
from dsfc.diagnostics.report import Reporter
from dsfc.expr.declarations import FlowRule
from dsfc.expr.distributions import DISTRIBUTIONS
from dsfc.expr.statements import PredicateName
from dsfc.expr.table import SPELLINGS
from dsfc.limits import DEFAULT_LIMITS
from dsfc.mixer.reserved_names import FORMS
from dsfc.mixer.words import MEANINGS, WORDS
from dsfc.source import Source
from dsfc.syntax.lex import legal_tokens


def test_every_word_stands_in_the_table_once() -> None:
    rules = {rule.value for rule in FlowRule}
    predicates = {predicate.value for predicate in PredicateName}
    groups = MEANINGS, FORMS, SPELLINGS, DISTRIBUTIONS, rules, predicates, {"i", "first"}
    assert set(WORDS) == {word for group in groups for word in group}
    assert len(WORDS) == sum(map(len, groups))


@pytest.mark.parametrize("name", WORDS)
def test_an_example_has_the_word_and_the_page_is_there(name: str, root: Path) -> None:
    word = WORDS[name]
    tokens = legal_tokens(Source("example", word.example), DEFAULT_LIMITS, Reporter())
    assert name in map(str, tokens)
    assert word.meaning and (root / "docs" / f"{word.page}.md").is_file()


@pytest.mark.share(12)
@pytest.mark.parametrize("name", WORDS)
def test_an_example_compiles_and_its_claims_are_proved(name: str, tmp_path: Path) -> None:
    file = tmp_path / "example.dsf"
    file.write_text(WORDS[name].example, encoding="utf-8")
    found = checked(read(file), str(file))
    notes = {d.code for d in found.diagnostics}
    assert not found.errors and "N-CLAIM" not in notes
    refusals = [m.refusal for m in found.mixers if m.refusal is not None]
    assert bool(refusals) == (name == "abstract")


def test_functions_say_what_they_take() -> None:
    assert WORDS["softmax"].calls == ("softmax[n](x)",) and WORDS["max"].calls == ("max(a, b)",)
    assert WORDS["pi"].calls == () and WORDS["fir"].calls == ("fir[t](w, x)",)
    assert WORDS["cis"].notes[0] == "takes real, gives complex"
    assert WORDS["legs_frequency"].calls == ("legs_frequency[n](x)",)
    assert WORDS["zoh"].calls == ("zoh(Δ)",)
