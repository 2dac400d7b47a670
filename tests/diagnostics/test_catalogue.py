"""Every code has a page with a wrong and a right spec, and a message that says what to change."""

import dataclasses
import inspect
import re

import pytest

from dsfc.diagnostics import catalogue
from dsfc.diagnostics.catalogue import CODES, examples, explain
from dsfc.diagnostics.report import Diagnostic, DiagnosticError, Severity, Stage
from dsfc.source import NOWHERE, Source
from dsfc.syntax.parse import parse

CLASSES = list(CODES.values())
ABOUT_SPECS = [code for code in CODES if CODES[code].stage is not Stage.TOOL]


def sample(kind):
    """A diagnostic of a class, with the names of its fields as their values."""
    own = [it.name for it in dataclasses.fields(kind) if it.name not in Diagnostic.__slots__]
    return kind(NOWHERE, **{name: f"<{name}>" for name in own})


def test_codes_are_unique_and_all_exported():
    classes = [it for it in vars(catalogue).values() if inspect.isclass(it)]
    own = {it for it in classes if issubclass(it, Diagnostic) and it is not Diagnostic}
    assert own == set(CLASSES)
    assert len({it.code for it in own}) == len(own)
    assert {it.__name__ for it in own} <= set(catalogue.__all__)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda it: it.code)
class TestEveryCode:
    def test_name_and_severity_agree(self, kind):
        assert re.fullmatch(r"[EN](-[A-Z]+)+", kind.code)
        assert (kind.severity is Severity.NOTE) == kind.code.startswith("N")

    def test_the_message_uses_every_field(self, kind):
        diagnostic = sample(kind)
        for item in dataclasses.fields(kind):
            if item.name not in Diagnostic.__slots__:
                assert f"<{item.name}>" in diagnostic.message
        assert "\n" not in diagnostic.message
        assert "x" in dataclasses.replace(diagnostic, nearest="x").message

    def test_it_is_frozen_and_a_value(self, kind):
        diagnostic = sample(kind)
        assert diagnostic == sample(kind)
        assert hash(diagnostic) == hash(sample(kind))
        with pytest.raises(dataclasses.FrozenInstanceError):
            diagnostic.hint = "no"

    def test_the_page_has_a_meaning(self, kind):
        page = explain(kind.code.lower())
        assert page.startswith(f"{kind.code}: ")
        assert len(page.split("\n\n")) >= 2


@pytest.mark.parametrize("code", ABOUT_SPECS)
def test_the_right_spec_of_a_page_parses_and_the_wrong_one_fails_where_it_should(code):
    wrong, right = examples(code)
    assert parse(Source("right", right)).units
    if CODES[code].stage is Stage.PARSE:
        with pytest.raises(DiagnosticError) as caught:
            parse(Source("wrong", wrong))
        assert {it.code for it in caught.value.diagnostics} == {code}
    else:
        assert parse(Source("wrong", wrong)).units


def test_codes_of_the_tool_have_commands_and_the_others_specs():
    for code in CODES:
        assert (examples(code) is None) == (code not in ABOUT_SPECS)
        assert (examples(code, "console") is None) == (code in ABOUT_SPECS)


def test_there_is_no_page_for_another_code():
    with pytest.raises(KeyError):
        explain("E-NOTHING")


@pytest.mark.parametrize(
    ("diagnostic", "message"),
    [
        (
            catalogue.ShapeAdd(
                NOWHERE, left="{h,n}", right="{h}", repair="broadcast with `⊗ ones[n]`"
            ),
            "cannot add axes {h,n} and {h}; broadcast with `⊗ ones[n]`",
        ),
        (
            catalogue.UnknownAxis(NOWHERE, owner="w", axis="m", known="axes are d"),
            "`w`: `m` is not an axis; axes are d",
        ),
        (
            catalogue.UnknownName(NOWHERE, name="gaet", nearest="gate"),
            "`gaet` is not defined; did you mean `gate`?",
        ),
        (
            catalogue.Recursion(
                NOWHERE,
                name="x",
                what="its own past",
                path="x → x[i-1]",
                repair="declare `state x : …`",
            ),
            "`x` reads its own past (x → x[i-1]); declare `state x : …`",
        ),
    ],
)
def test_messages_as_the_language_states_them(diagnostic, message):
    assert diagnostic.message == message
