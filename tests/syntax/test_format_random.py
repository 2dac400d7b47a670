"""`fmt` is idempotent and keeps the meaning: on every shipped spec, and on texts nobody wrote.

The meaning of a text is its tree, which has no places in it, and that of a mixer what it resolves
to. Ten thousand texts in the full tier: 10,000 of the grammar, which is all that can stand in a
spec, and a fifth as many well-typed mixers in a layout nobody would choose.
"""

from __future__ import annotations

from importlib.resources import files
from random import Random
from typing import Any

import pytest
from random_texts import (
    LARK,
    LAYOUTS,
    SPELLINGS,
    Drawn,
    laid_out,
    random_text,
    respelled,
    tokens_of,
)
from spec_writer import random_mixer

from dsfc.api.locate import shipped_names
from dsfc.diagnostics.report import DiagnosticError
from dsfc.expr.json import encode
from dsfc.mixer import resolve
from dsfc.mixer.library import Library
from dsfc.source import Source
from dsfc.syntax import ast
from dsfc.syntax.format import format_spec
from dsfc.syntax.parse import parse

TEXTS = {"fast": 100, "ci": 400, "full": 10_000}
MIXERS = {"fast": 20, "ci": 20, "full": 2_000}


def parsed(text: str) -> ast.Spec:
    return parse(Source("a.dsf", text))


def held(text: str) -> str:
    """Holds the forms of a text to what they promise; returns the canonical one."""
    spec = parsed(text)
    said = [it.text for it in spec.comments]
    forms = [format_spec(spec, ascii=ascii) for ascii in (False, True)]
    for form, ascii in zip(forms, (False, True), strict=True):
        again = parsed(form)
        assert again == spec
        assert [it.text for it in again.comments] == said
        assert format_spec(again, ascii=ascii) == form
        assert format_spec(again) == forms[0]  # whatever it was spelled in
    return forms[0]


@pytest.mark.ci
def test_every_text_of_the_grammar_keeps_its_meaning(tier: str) -> None:
    drawn = Drawn()
    for seed in range(TEXTS[tier]):
        text = random_text(seed, drawn)
        try:
            held(text)
        except Exception as e:
            e.add_note(f"seed {seed}: {text!r}")
            raise
    if tier == "fast":
        return  # too few for every alternative
    alternatives = {(rule.origin.name, rule.order) for rule in LARK.rules}
    assert alternatives - set(drawn.rules) == set()
    assert {(k, it) for k, all_ in SPELLINGS.items() for it in all_} - set(drawn.spellings) == set()
    assert [it for it in LAYOUTS if not drawn.layouts[it]] == []


def disordered(text: str, seed: int) -> str:
    """The same spec in another layout and other spellings."""
    random = Random(seed)
    return laid_out(respelled(tokens_of(text), random), random, Drawn())


def meanings(text: str) -> list[Any]:
    """What the mixers of a text resolve to, or what is wrong with them, without places."""
    spec = parsed(text)
    library = Library()
    found = []
    for unit in spec.units:
        if isinstance(unit, ast.MixerUnit):
            try:
                found.append(encode(resolve(spec, unit.name.text, library)))
            except DiagnosticError as e:
                found.append([d.code for d in e.diagnostics])
    return found


@pytest.mark.ci
def test_every_random_mixer_stays_the_same_mixer(tier: str) -> None:
    for seed in range(MIXERS[tier]):
        text = random_mixer(seed)
        other = disordered(text, seed)
        form = held(other)
        meaning = meanings(text)
        assert isinstance(meaning[-1], dict)
        assert meanings(other) == meanings(form) == meaning, f"seed {seed}: {other!r}"


@pytest.mark.share(8)
@pytest.mark.parametrize("name", shipped_names())
def test_every_shipped_spec_stays_the_same_mixer(name: str) -> None:
    text = (files("dsfc.specs") / f"{name}.dsf").read_text(encoding="utf-8")
    meaning = meanings(text)
    assert meanings(held(text)) == meaning
    form = held(disordered(text, 0))
    assert parsed(form) == parsed(text)
    assert meanings(form) == meaning
