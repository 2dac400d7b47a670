"""Text to tokens: characters checked, bounds held, newlines that mean nothing dropped.

Illegal characters are reported and read as their nearest legal spelling where that is one
character, so that the rest of the text can still be parsed. No pass changes an offset: tokens point
into the text as given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from lark import Token

from dsfc.diagnostics.catalogue import Character, Limit, SyntaxProblem
from dsfc.diagnostics.report import Label, Reporter
from dsfc.limits import Limits
from dsfc.source import Source, Span
from dsfc.syntax import braces, grammar
from dsfc.syntax.ast import Comment
from dsfc.syntax.letters import advice, describe, fold, is_legal, latex_spelling, legal_spelling

KEYWORDS = frozenset(
    (
        *("_MIXER", "_MODIFIER", "_EXTENDS", "_DIMS", "_CONST", "_BY", "_USE", "_ON", "_CLAIM"),
        *("_PAPER", "_WHEN", "_AND", "_FOR", "DECL", "HEADS", "EACH", "FLAG", "LAYER"),
    )
)
"""Token types of the reserved words."""

SEPARATOR = "_SEP"
_OPENERS = {"LPAR": "RPAR", "LSQB": "RSQB"}
_CLOSERS = frozenset(_OPENERS.values())
JOINERS = frozenset(
    "PLUS MINUS STAR SLASH DOT OUTER CROSS CIRCUMFLEX CMP EQUAL TILDE ARROW COMMA COLON".split()
)
"""Types of the tokens after which a newline means nothing."""
NEVER_IN_BRACKETS = KEYWORDS | {
    "LBRACE", "RBRACE", "STRING", "EQUAL", "TILDE", "COLON", "ARROW", SEPARATOR,
}  # fmt: skip
"""Types of the tokens before which every bracket is closed."""

_ENDLESS = 'this string has no end on its line; close it with `"`'

_SLASHES = "a comment starts with `#`; sizes divide exactly, by `/`"


@cache
def _chunks() -> re.Pattern[str]:
    """Pieces of a text, legal or not: names and numbers are the grammar's, in ASCII digits."""
    terminals = grammar.terminals()
    return re.compile(
        r'(?P<comment>\#[^\n]*)|(?P<slashes>//[^\n]*|/\*.*?\*/)|(?P<string>"[^"\n]*")|(?P<quote>"[^\n]*)'
        rf"|(?P<number>(?a:{terminals['NUMBER']}))|(?P<name>{terminals['NAME']})"
        r"|(?P<legal>\r?\n|\r(?=\n)|!=|[ \t\f+\-*/^.,:;=<>~'(){}\[\]⊗·×≤≥])"
        r"|(?P<latex>\\[A-Za-z]+(?:_(?=\{))?)|(?P<illegal>.)",
        re.DOTALL,
    )


def read_tokens(source: Source, limits: Limits, reporter: Reporter) -> tuple[Token, ...]:
    """Tokens of a text, ready for the parser; what is wrong with them goes to `reporter`.

    Raises:
        DiagnosticError: if the text is larger than `limits`, since reading on would be what they
        forbid.
    """
    size = len(source.text.encode("utf-8", "surrogatepass"))
    if size > limits.bytes:
        reporter.add(
            Limit(
                source.span(0, 0),
                what="size of the text",
                size=f"{size} bytes",
                bound=str(limits.bytes),
            )
        )
        reporter.raise_errors()
    legal = legal_tokens(source, limits, reporter)
    for token in legal:
        _check_size(source, token, limits, reporter)
    return _Layout(source, limits, reporter).of(braces.replaced(source, legal, reporter))


def legal_tokens(source: Source, limits: Limits, reporter: Reporter) -> list[Token]:
    """Tokens of a text as they stand there, newlines too; what is illegal is read as what is near.

    Raises:
        DiagnosticError: there are more tokens or mistakes than `limits` allow.
    """
    legal: list[Token] = []
    for token in grammar.tokens(_legal_text(source, limits, reporter)):
        legal.append(token)
        if len(legal) > limits.tokens:
            reporter.add(
                Limit(_span(source, token), what="tokens", size="more", bound=str(limits.tokens))
            )
            reporter.raise_errors()
    return legal


def is_hidden(source: Source) -> bool:
    """Whether what is written on behind a text stands in a comment or a string."""
    start = source.line_starts[-1]
    last = None
    for chunk in _chunks().finditer(source.text, start):
        last = chunk.lastgroup
    return last in ("comment", "quote")


def comments(source: Source) -> tuple[Comment, ...]:
    """The comments of a text, in order."""
    return tuple(_comments(source))


def _comments(source: Source) -> Iterator[Comment]:
    for chunk in _chunks().finditer(source.text):
        if chunk.lastgroup == "comment":
            start, end = chunk.span()
            line_start = source.text.rfind("\n", 0, start) + 1
            own_line = not source.text[line_start:start].strip(" \t\f\ufeff")
            yield Comment(chunk.group().rstrip(), own_line, Span(source, start, end))


def _legal_text(source: Source, limits: Limits, reporter: Reporter) -> str:
    """The text with every illegal character replaced by a legal one of the same length."""
    pieces: list[str] = []
    broken = -1  # line of the last string without an end
    for chunk in _chunks().finditer(source.text):
        text, kind = chunk.group(), chunk.lastgroup
        if kind in ("comment", "string"):
            pieces.append(_check_hidden(source, chunk, reporter))
        elif kind == "quote":
            span = Span(source, *chunk.span())
            if span.line != broken + 1:  # else it is where a string over two lines ends
                reporter.add(SyntaxProblem(span, problem=_ENDLESS))
            broken = span.line
            pieces.append("0".ljust(len(text)))  # something, so that the definition is not empty
        elif kind == "slashes":
            place = Span(source, chunk.start(), chunk.start() + 2)
            reporter.add(SyntaxProblem(place, problem=_SLASHES))
            pieces.append(re.sub(r"[^\n]", " ", text))
        elif kind == "latex":
            pieces.append(_command(source, chunk, reporter))
        elif kind == "illegal":
            pieces.append(_replace(source, chunk, reporter))
        else:
            pieces.append(text)
        if len(reporter) >= limits.diagnostics:
            reporter.raise_errors()
    return "".join(pieces)


def _check_hidden(source: Source, chunk: re.Match[str], reporter: Reporter) -> str:
    """A comment or string; characters that cannot be seen (bidirectional marks) are reported."""
    text = chunk.group()
    if text.isprintable():
        return text
    for at, char in enumerate(text):
        if not char.isprintable() and char not in "\t\r\u00a0\u2009\u202f\u3000":
            where = Span(source, chunk.start() + at, chunk.start() + at + 1)
            reporter.add(
                Character(where, character=describe(char), hint="remove it: it cannot be seen")
            )
    return text


def _replace(source: Source, chunk: re.Match[str], reporter: Reporter) -> str:
    char = chunk.group()
    if char == "\ufeff" and chunk.start() == 0:
        return " "
    spelling = legal_spelling(char)
    said = advice(char)
    nearest = None if said else {" ": "a space", None: None}.get(spelling, spelling)
    place = Span(source, *chunk.span())
    reporter.add(Character(place, character=describe(char), instead=said, nearest=nearest))
    usable = spelling is not None and len(spelling) == 1 and spelling != '"'
    return spelling if usable and spelling is not None else " "


def _command(source: Source, chunk: re.Match[str], reporter: Reporter) -> str:
    """A command of LaTeX is reported and read as its legal spelling where that is no longer."""
    text = chunk.group()
    command = text[1:].rstrip("_")
    spelling = latex_spelling(command)
    said = "" if spelling else advice("\\")
    place = Span(source, *chunk.span())
    reporter.add(Character(place, character=f"`\\{command}`", instead=said, nearest=spelling))
    word = (spelling or "").partition("[")[0].partition("(")[0] + text[1 + len(command) :]
    usable = all(is_legal(char) or char in "·*⊗≤≥:" for char in word) and len(word) <= len(text)
    return (word if usable else "").rjust(len(text))


def _check_size(source: Source, token: Token, limits: Limits, reporter: Reporter) -> None:
    """Names and numbers no longer than allowed."""
    if token.type == "NAME":
        size, what, bound = len(fold(token)), "length of the name", limits.name_length
    elif token.type == "NUMBER":
        mantissa, _, exponent = token.lower().partition("e")
        if len(exponent.lstrip("+-")) > 9 or abs(int(exponent or 0)) > limits.exponent:
            place = _span(source, token)
            reporter.add(
                Limit(place, what="decimal exponent", size=exponent, bound=str(limits.exponent))
            )
        size, what, bound = (
            len(mantissa.replace(".", "")),
            "digits of the number",
            limits.integer_digits,
        )
    else:
        return
    if size > bound:
        reporter.add(Limit(_span(source, token), what=what, size=str(size), bound=str(bound)))


def _span(source: Source, token: Token) -> Span:
    start = token.start_pos or 0
    return Span(source, start, start + len(token))


@dataclass(frozen=True, slots=True)
class _Open:
    """An open bracket, and how many tokens were out at each newline dropped inside it."""

    token: Token
    newline_at: list[int]


class _Layout:
    """Drops newlines that mean nothing and finds brackets without partner.

    A definition whose brackets do not match is reported here and left out of the result, so that
    the parser does not report it a second time.
    """

    def __init__(self, source: Source, limits: Limits, reporter: Reporter) -> None:
        self._source = source
        self._limits = limits
        self._reporter = reporter
        self._out: list[Token] = []
        self._open: list[_Open] = []
        self._broken = False

    def of(self, tokens: Sequence[Token]) -> tuple[Token, ...]:
        """The tokens the parser sees."""
        for token in tokens:
            self._take(token)
        if self._open:
            self._unclosed()
        self._flush()
        return tuple(_merged(self._out))

    def _take(self, token: Token) -> None:
        if self._open and token.type in NEVER_IN_BRACKETS:
            if token.type == SEPARATOR and ";" not in token:
                self._open[-1].newline_at.append(len(self._out))
                return
            # `f(a = 1)` on one line is a wrong `=`; with a newline before it, the line above is not
            # closed.
            if self._newlines() or token.type in ("LBRACE", "RBRACE", SEPARATOR):
                self._unclosed()
        if (
            token.type == SEPARATOR
            and ";" not in token
            and self._out
            and self._out[-1].type in JOINERS
        ):
            return
        if token.type in ("LBRACE", "RBRACE", SEPARATOR):
            self._flush()
        elif token.type in _OPENERS:
            self._push(token)
        elif token.type in _CLOSERS:
            self._close(token)
        self._out.append(token)

    def _push(self, token: Token) -> None:
        self._open.append(_Open(token, []))
        if len(self._open) > self._limits.nesting:
            place = _span(self._source, token)
            self._reporter.add(
                Limit(
                    place,
                    what="nested brackets",
                    size=str(len(self._open)),
                    bound=str(self._limits.nesting),
                )
            )
            self._reporter.raise_errors()

    def _close(self, token: Token) -> None:
        place = _span(self._source, token)
        if not self._open:
            self._problem(place, f"`{token}` closes nothing; remove it")
            return
        opened = self._open.pop()
        if _OPENERS[opened.token.type] != token.type:
            label = Label(_span(self._source, opened.token), "opened here")
            self._problem(place, f"`{opened.token}` is closed by `{token}`", label)
        elif self._open and opened.newline_at:
            self._open[-1].newline_at.append(opened.newline_at[0])

    def _unclosed(self) -> None:
        """Reports the innermost open bracket; the definition ends at its first newline."""
        innermost = self._open[-1].token
        close = "`)`" if innermost.type == "LPAR" else "`]`"
        place = _span(self._source, innermost)
        self._problem(place, f"`{innermost}` is never closed; write {close} where it ends")
        newlines = self._newlines()
        self._open.clear()
        if newlines:
            rest = self._out[min(newlines) :]
            del self._out[min(newlines) :]
            self._flush()
            self._out += [Token(SEPARATOR, "\n", start_pos=innermost.start_pos), *rest]

    def _newlines(self) -> list[int]:
        return [at for item in self._open for at in item.newline_at]

    def _problem(self, place: Span, problem: str, *labels: Label) -> None:
        self._reporter.add(SyntaxProblem(place, problem=problem, labels=labels))
        self._broken = True

    def _flush(self) -> None:
        """At the end of a definition: leaves it out if its brackets were wrong."""
        if self._broken:
            while self._out and self._out[-1].type not in ("LBRACE", "RBRACE", SEPARATOR):
                self._out.pop()
        self._broken = False


def _merged(tokens: Iterable[Token]) -> Iterator[Token]:
    """The tokens with every run of separators as one."""
    before = ""
    for token in tokens:
        if not (before == token.type == SEPARATOR):
            yield token
        before = token.type
