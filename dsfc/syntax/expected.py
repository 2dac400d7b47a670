"""What may stand at a place of a text that is being written."""

from __future__ import annotations

from lark import Token
from lark.exceptions import UnexpectedToken

from dsfc.diagnostics.report import DiagnosticError, Reporter
from dsfc.limits import DEFAULT_LIMITS, Limits
from dsfc.source import Source
from dsfc.syntax import grammar, lex

_BODY = (Token("_MIXER", "mixer"), Token("NAME", "any"), Token("LBRACE", "{"))


def expected(source: Source, offset: int, limits: Limits = DEFAULT_LIMITS) -> frozenset[str]:
    """Returns the types of the tokens that the grammar takes at an offset.

    Only the item that the offset is in counts: mistakes above it change nothing. Nothing is
    expected inside comments and strings, nor behind a mistake of the same item.

    Args:
        source: the text.
        offset: code points from its start, not inside a word.
        limits: bounds on size.
    """
    # A brace at the start of a line stands in no comment or string, and closes a unit.
    start = max(source.text.rfind("\n}", 0, offset), 0)
    before = Source(source.name, source.text[start:offset])
    if lex.is_hidden(before):
        return frozenset()
    try:
        read = lex.legal_tokens(before, limits, Reporter())
    except DiagnosticError:
        return frozenset()
    automaton = grammar.automaton()
    try:
        for token in _item(read):
            automaton.feed_token(token)
    except UnexpectedToken:
        return frozenset()
    return frozenset(grammar.accepted(automaton))


def _item(read: list[Token]) -> list[Token]:
    """The tokens of the last item; in a body after those that open one."""
    lead: tuple[Token, ...] = ()
    item: list[Token] = []
    depth = 0
    for token in read:
        match token.type:
            case "LBRACE":
                lead, item, depth = _BODY, [], 0
            case "RBRACE":
                lead, item, depth = (), [], 0
            case lex.SEPARATOR:
                joined = depth or (item and item[-1].type in lex.JOINERS)
                if ";" in token or not joined:
                    item, depth = [], 0
            case "LPAR" | "LSQB":
                depth += 1
                item.append(token)
            case "RPAR" | "RSQB":
                depth -= 1
                item.append(token)
            case kind if depth > 0 and kind in lex.NEVER_IN_BRACKETS:
                # The bracket above was not closed: a new item began before this token.
                item, depth = [*item[-1:], token] if kind == "EQUAL" else [token], 0
            case _:
                item.append(token)
    return [*lead, *item]
