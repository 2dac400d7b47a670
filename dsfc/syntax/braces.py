"""Braces inside a definition, as LaTeX writes them: reported, and read as brackets.

In a spec braces hold the body of a unit and nothing else. `S_{i-1}` is read as `S[i-1]`, any other
pair as parentheses, so that the rest of the text can still be parsed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lark import Token

from dsfc.diagnostics.catalogue import SyntaxProblem
from dsfc.diagnostics.report import Reporter
from dsfc.source import Source, Span

_SEPARATOR = "_SEP"
_EDGES = frozenset({_SEPARATOR, "LBRACE", "RBRACE"})
_HEADS = frozenset({"_MIXER", "_MODIFIER"})
_PROBLEM = "braces hold the body of a mixer"


def replaced(source: Source, tokens: Sequence[Token], reporter: Reporter) -> list[Token]:
    """Returns the tokens with every pair of braces inside a definition as brackets.

    Args:
        source: the text.
        tokens: its tokens, newlines too.
        reporter: takes the pairs, but those on a line with another mistake.
    """
    out: list[Token] = []
    wrong = {item.span.line for item in reporter}
    ends: dict[int, Token] = {}
    head = inside = False
    for at, token in enumerate(tokens):
        start = not out or out[-1].type in _EDGES
        head = token.type in _HEADS if start else head
        if at in ends:
            out.append(ends.pop(at))
            continue
        end = None
        if token.type == "LBRACE" and inside and not start and not head:
            end = _partner(tokens, at)
        if end is None:
            inside = token.type == "LBRACE" or (inside and token.type != "RBRACE")
            out.append(token)
            continue
        before = out[-1]
        subscript = before.type == "NAME" and len(before) > 1 and before.endswith("_")
        if subscript:
            out[-1] = Token("NAME", str(before).rstrip("_"), start_pos=before.start_pos)
        opened, closed = ("LSQB", "RSQB") if subscript else ("LPAR", "RPAR")
        out.append(Token(opened, "[" if subscript else "(", start_pos=token.start_pos))
        ends[end] = Token(closed, "]" if subscript else ")", start_pos=tokens[end].start_pos)
        problem = _problem(source, before if subscript else None, token, tokens[end])
        if problem.span.line not in wrong:
            reporter.add(problem)
    return out


def _partner(tokens: Sequence[Token], at: int) -> int | None:
    """Where the brace that is opened at a token is closed, on the same line; None if nowhere."""
    depth = 0
    for end in range(at, len(tokens)):
        token = tokens[end]
        if token.type == _SEPARATOR:
            return None
        depth += (token.type == "LBRACE") - (token.type == "RBRACE")
        if depth == 0:
            return end
    return None


def _problem(source: Source, name: Token | None, opened: Token, closed: Token) -> SyntaxProblem:
    start, end = opened.start_pos or 0, (closed.start_pos or 0) + 1
    inner = source.text[start + 1 : end - 1].strip()
    if name is None:
        return SyntaxProblem(Span(source, start, end), problem=_PROBLEM, nearest=f"({inner})")
    word = str(name).rstrip("_")
    if word not in ("sum", "prod"):
        inner = re.sub(r"\bt\b", "i", inner)  # papers number tokens by t
    span = Span(source, name.start_pos or 0, end)
    return SyntaxProblem(span, problem=_PROBLEM, nearest=f"{word}[{inner}]")
