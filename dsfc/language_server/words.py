"""Meanings of keywords and operators, one line each, and letters and signs by their names."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from dsfc.diagnostics.report import DiagnosticError, Reporter
from dsfc.language_server.document import Document
from dsfc.source import Source, Span
from dsfc.syntax.letters import GREEK, SIGNS
from dsfc.syntax.lex import legal_tokens

_OUTER = "outer product: the axes of both sides, which may share `heads` axes only"
_DOT = "contraction: the one shared axis that is not a `heads` axis disappears"
_UP_TO = "comparison: at most; `sum[j ≤ i](…)` sums over the past"
_DOWN_TO = "comparison: at least"

MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        "mixer": "a sequence mixer: its axes, inputs, parameters and definitions",
        "modifier": "definitions that mixers take in with `use`",
        "extends": "takes all of another mixer; what is defined again takes its place",
        "dims": "axes, each with a size or one that the caller of the module gives",
        "heads": "an axis that everything done per head shares: both sides of `⊗` may have it",
        "input": "a stream that the module takes",
        "param": "a trained tensor, or a linear map `d -> h`",
        "buffer": "a fixed tensor or linear map",
        "state": "a value that goes on from token to token; `S[i-1]` is the one before",
        "abstract": "a function of which nothing is known",
        "each": "one linear map for each entry of an axis, `each h : d -> n`",
        "const": "a number",
        "by": "how a flow `x' = …` becomes a recurrence: `zoh`, `bilinear` or `euler` of a step",
        "use": "applies a modifier to definitions",
        "on": "what a modifier is used on",
        "claim": "what `dsfc check` proves or refutes",
        "paper": "a paper that the mixer is of",
        "layer": "norm and gate of the layer that `dsfc compile --layer` writes around the mixer",
        "when": "conditions of a claim",
        "and": "one condition more",
        "for": "the earlier tokens for which a condition holds",
        "complex": "complex values",
        "positive": "values above 0",
        "nonneg": "values that are 0 or above",
        "unit": "values above 0 and below 1",
        "nonzero": "values that are not 0",
        "backward": "a state that runs from the end of the sequence to its start",
        "+": "sum of values with equal axes; a value without axes may be added to any",
        "-": "difference of values with equal axes, or the negative of a value",
        "*": "elementwise product: one side has all axes of the other. In a shape, `×`",
        "/": "elementwise quotient: one side has all axes of the other",
        "^": "power; binds tighter than a sign, and `a^b^c` is `a^(b^c)`",
        "⊗": f"{_OUTER}. In ASCII `(*)`",
        "(*)": f"{_OUTER}. Also written `⊗`",
        "·": f"{_DOT}. In ASCII `.`",
        ".": f"{_DOT}. Also written `·`",
        "×": "both axes of a shape, in any order. In ASCII `*`",
        "->": "a linear map from the axes before to the axes behind",
        "'": "a flow: the derivative of a state in time",
        "=": "a definition; behind a declaration, the first value",
        "~": "how the first values are drawn",
        "==": "comparison: equal",
        "!=": "comparison: not equal",
        "<": "comparison: below; `prod[j < l ≤ i](…)` multiplies over a stretch of tokens",
        ">": "comparison: above",
        "≤": f"{_UP_TO}. In ASCII `<=`",
        "<=": f"{_UP_TO}. Also written `≤`",
        "≥": f"{_DOWN_TO}. In ASCII `>=`",
        ">=": f"{_DOWN_TO}. Also written `≥`",
    }
)
"""Word or operator, as it is written, and what it means."""

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
