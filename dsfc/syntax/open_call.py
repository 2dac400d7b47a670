"""The call whose brackets are open at a place of a text that is being written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lark import Token

from dsfc.diagnostics.report import DiagnosticError, Reporter
from dsfc.limits import DEFAULT_LIMITS, Limits
from dsfc.source import Source
from dsfc.syntax import lex
from dsfc.syntax.letters import fold


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A name with brackets behind it that are not closed yet.

    Attributes:
        name: in ASCII.
        indexed: whether the place lies in `[ ]`, and not in `( )`.
        position: how many commas stand before the place in these brackets.
        compares: whether `[ ]` holds a comparison, as in `sum[j ≤ i](`.
    """

    name: str
    indexed: bool
    position: int
    compares: bool


def open_calls(
    source: Source, offset: int, limits: Limits = DEFAULT_LIMITS
) -> tuple[OpenCall, ...]:
    """Returns the calls around an offset, the innermost first.

    Only what stands before the offset counts, so the rest of the text may have any mistake. There
    are none inside comments and strings.

    Args:
        source: the text.
        offset: code points from its start.
        limits: bounds on size.
    """
    # A brace at the start of a line stands in no comment or string, and closes a unit.
    start = max(source.text.rfind("\n}", 0, offset), 0)
    before = Source(source.name, source.text[start:offset])
    if lex.is_hidden(before):
        return ()
    try:
        return tuple(_calls(lex.legal_tokens(before, limits, Reporter())))
    except DiagnosticError:
        return ()


def _calls(tokens: Sequence[Token]) -> list[OpenCall]:
    calls: list[OpenCall] = []
    closed = commas = 0
    compares = False
    for at in range(len(tokens) - 1, -1, -1):
        token = tokens[at]
        match token.type:
            case "RPAR" | "RSQB":
                closed += 1
            case "LPAR" | "LSQB" if closed:
                closed -= 1
            case "LPAR" | "LSQB":
                call = _call(tokens, at, commas, compares)
                calls += [] if call is None else [call]
                commas, compares = 0, False
            case "COMMA" if not closed:
                commas += 1
            case "CMP" if not closed:
                compares = True
            case lex.SEPARATOR if ";" not in token:
                pass  # in brackets, where there are any; else what follows finds none
            case kind if kind in lex.NEVER_IN_BRACKETS:
                break
    return calls


def _call(tokens: Sequence[Token], at: int, commas: int, compares: bool) -> OpenCall | None:
    """The call that an open bracket belongs to; None of brackets around a value."""
    name = at - 1
    indexed = tokens[at].type == "LSQB"
    if not indexed and name >= 0 and tokens[name].type == "RSQB":
        compares = False
        while name >= 0 and tokens[name].type != "LSQB":
            compares |= tokens[name].type == "CMP"
            name -= 1
        name -= 1
    if name < 0 or tokens[name].type != "NAME":
        return None
    return OpenCall(fold(tokens[name]), indexed, commas, compares)
