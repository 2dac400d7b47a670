"""Each example of a mistake gets its label, as message of a diagnostic at its place."""

import pytest

from dsfc.diagnostics.report import DiagnosticError
from dsfc.source import Source
from dsfc.syntax.mistakes import MISTAKES
from dsfc.syntax.parse import parse
from dsfc.syntax.recognise import recognise, stop

EXAMPLES = [(mistake.label, text) for mistake in MISTAKES for text in mistake.texts]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda it: it.label)
def test_every_example_is_recognised_as_its_own_mistake(mistake):
    assert mistake.texts
    for text in mistake.texts:
        place = stop(text)
        assert place is not None, text
        assert recognise(place) == mistake.label, text


def test_labels_are_different():
    labels = [mistake.label for mistake in MISTAKES]
    assert len(set(labels)) == len(labels)


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ("y = (q · k) v", "a parenthesis cannot be applied; a product is `·`"),
        ("y = k (x) v", "the ASCII outer product is `(*)`"),
        ("y = 2 v", "a number cannot be applied"),
        ("y = q\n    + v", "a line may break after an operator"),
        ("S += k", "S = S[i-1] + …"),
        ("param w : d, n", "axes are joined by `×`"),
    ],
)
def test_the_message_says_what_to_write(item, words):
    text = f"mixer a {{\n  dims d, n\n  z = 1\n  {item}\n  e = 2\n}}\n"
    with pytest.raises(DiagnosticError) as caught:
        parse(Source("a.dsf", text))
    (found,) = caught.value.diagnostics
    assert found.code == "E-SYNTAX"
    assert words in found.message
    assert found.span.line == 4 + item.count("\n")
