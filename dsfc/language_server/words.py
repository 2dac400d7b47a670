"""Keywords and operators at a place of a text, and letters and signs by their names."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from dsfc.diagnostics.report import DiagnosticError, Reporter
from dsfc.language_server.document import Document
from dsfc.mixer.words import MEANINGS
from dsfc.source import Source, Span
from dsfc.syntax.letters import GREEK, SIGNS
from dsfc.syntax.lex import legal_tokens

BACKSLASH: Mapping[str, str] = MappingProxyType(
    {
        **{name: letter for letter, name in GREEK.items() if name not in ("sum", "prod")},
        **SIGNS,
        **{"times": "×", "Sigma": "Σ", "Pi": "Π", "sum": "Σ", "prod": "Π"},
    }
)
"""The name of a letter or sign in LaTeX, without its backslash, and the letter or sign."""


def word_of_language(document: Document, offset: int) -> tuple[Span, str] | None:
    """Returns the keyword or operator at an offset with its meaning, None where there is none."""
    source = document.source
    number, _ = source.position(offset)
    start, line = source.line_starts[number - 1], source.line(number)
    try:
        tokens = legal_tokens(Source("<line>", line), document.library.limits, Reporter())
    except DiagnosticError:
        return None
    for token in tokens:
        place = source.span(start + (token.start_pos or 0), start + (token.end_pos or 0))
        # A sign that is no character of the language was read as the nearest one that is.
        if token in MEANINGS and place.start <= offset < place.end and place.text == token:
            return place, MEANINGS[token]
    return None
