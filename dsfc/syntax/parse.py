"""Text to syntax tree, with every mistake the text has.

The LALR automaton is fed token by token. Where it cannot go on, the mistake is reported and reading
starts again at the next definition (or the next mixer), as if the wrong one were not there; so one
run finds one mistake per definition, and none that only follows from another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lark import Token, Tree
from lark.exceptions import UnexpectedToken

from dsfc.diagnostics.catalogue import Character, Keyword, SyntaxProblem
from dsfc.diagnostics.report import (
    Diagnostic,
    DiagnosticError,
    Label,
    Reporter,
    Severity,
    in_order,
)
from dsfc.limits import DEFAULT_LIMITS, Limits
from dsfc.source import Source, Span
from dsfc.syntax import ast, grammar, lex
from dsfc.syntax.build import Builder
from dsfc.syntax.recognise import BEHIND, Place, recognise
from dsfc.syntax.token_names import STARTERS, expectation, name_of, near_word

_UNITS = frozenset({"_MIXER", "_MODIFIER"})
_END = "$END"
_BOUNDARIES = frozenset({lex.SEPARATOR, "LBRACE", "RBRACE"})
_ENDS = frozenset({lex.SEPARATOR, "RBRACE", _END})
# What makes the automaton ready for a definition after a mistake: the tree is not used any more.
_RESUME = (Token("_MIXER", "mixer"), Token("NAME", "resumed"), Token("LBRACE", "{"))
_LAYER = "behind `layer` stand `norm` and `gate`, as in `layer norm rms, gate silu`"


class IllegalCharacters(DiagnosticError):
    """Some characters are illegal, and nothing else is wrong with the writing of the text.

    Attributes:
        spec: what the text says with the nearest legal characters in their place.
    """

    def __init__(self, diagnostics: Iterable[Diagnostic], spec: ast.Spec) -> None:
        """Keeps the spec beside the diagnostics."""
        super().__init__(diagnostics)
        self.spec = spec

    def beside(self, others: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
        """Returns these diagnostics with errors of the spec, but of lines with such characters.

        What such a line means is a guess, and what is wrong with it may be the guess alone.
        """
        lines = {item.span.line for item in self.diagnostics}
        errors = (item for item in others if item.severity is Severity.ERROR)
        return in_order((*self.diagnostics, *(e for e in errors if e.span.line not in lines)))


def parse(source: Source, limits: Limits = DEFAULT_LIMITS) -> ast.Spec:
    """Returns the syntax tree of a spec text.

    Args:
        source: the text; ASCII and Greek spellings, LF and CRLF, with or without a byte-order mark.
        limits: bounds on size and nesting.

    Raises:
        IllegalCharacters: with every `E-CHAR`, where nothing else is wrong.
        DiagnosticError: with every mistake found (`E-SYNTAX`, `E-CHAR`, `E-KEYWORD`, `E-LIMIT`).
    """
    reporter = Reporter()
    tokens = lex.read_tokens(source, limits, reporter)
    tree = _Reading(source, tokens, limits, reporter).run()
    if tree is None or not all(isinstance(item, Character) for item in reporter.errors):
        reporter.raise_errors()
    assert tree is not None  # no tree means a reported mistake
    spec = Builder(source, limits, reporter).spec(tree, lex.comments(source))
    if reporter.errors and all(isinstance(item, Character) for item in reporter.errors):
        raise IllegalCharacters(reporter, spec)
    reporter.raise_errors()
    return spec


class _Reading:
    """One pass of the automaton over the tokens of a text."""

    def __init__(
        self, source: Source, tokens: Sequence[Token], limits: Limits, reporter: Reporter
    ) -> None:
        end = Token(_END, "", start_pos=len(source.text))
        self._source = source
        self._tokens = [*tokens, end]
        self._limits = limits
        self._reporter = reporter
        self._automaton = grammar.automaton()
        self._brace: Token | None = None
        self._lines = {item.span.line for item in reporter}  # of mistakes in the characters

    def run(self) -> Tree[Token] | None:
        """The parse tree, or None after a mistake."""
        at, clean = 0, True
        while at < len(self._tokens):
            token = self._tokens[at]
            try:
                tree = self._automaton.feed_token(token)
            except UnexpectedToken:
                clean = False
                self._report(at)
                if len(self._reporter) >= self._limits.diagnostics:
                    break
                at = self._resume(at)
                continue
            if token.type in ("LBRACE", "RBRACE"):
                self._brace = token if token.type == "LBRACE" else None
            at += 1
        return tree if clean else None

    # Going on after a mistake

    def _resume(self, at: int) -> int:
        """Where to go on; the automaton is made ready for it."""
        here = self._tokens[at].type
        if here == _END:
            return at + 1
        self._automaton = grammar.automaton()
        if (
            self._starts_unit(at) and self._brace is not None
        ):  # the brace of the unit above is missing
            self._brace = None
            return at
        if self._brace is None:
            return self._next_unit(at)
        while self._tokens[at].type not in _ENDS and not self._starts_unit(at):
            at += 1
        self._enter_body()
        return at

    def _starts_unit(self, at: int) -> bool:
        """Whether a unit begins here, and not a definition of something called `mixer`."""
        return self._tokens[at].type in _UNITS and self._tokens[at + 1].type == "NAME"

    def _next_unit(self, at: int) -> int:
        """After a mistake outside braces: the body if there is one, else the next unit."""
        if self._tokens[at].type == "RBRACE":
            return at + 1
        if self._tokens[at].type in _UNITS:
            at += 1
        while self._tokens[at].type not in (*_UNITS, "LBRACE", _END):
            at += 1
        if self._tokens[at].type != "LBRACE":
            return at
        self._brace = self._tokens[at]
        self._enter_body()
        return at + 1

    def _enter_body(self) -> None:
        for token in _RESUME:
            self._automaton.feed_token(token)

    # Saying what is wrong

    def _report(self, at: int) -> None:
        """Reports a mistake, unless a wrong character in the same definition explains it."""
        start = at
        while start > 0 and self._tokens[start - 1].type not in _BOUNDARIES:
            start -= 1
        problem = self._problem(at)
        first = self._span(self._tokens[start]).line
        if self._lines.isdisjoint(range(first, problem.span.line + 1)):
            self._reporter.add(problem)

    def _problem(self, at: int) -> Diagnostic:
        token = self._tokens[at]
        span = self._span(token)
        if self._brace is not None and (token.type == _END or self._starts_unit(at)):
            label = Label(self._span(self._brace), "opened here")
            return SyntaxProblem(span, problem="`}` is missing before this place", labels=(label,))
        place = Place(
            self._automaton.parser_state.position, self._tokens[max(0, at - BEHIND) : at], token
        )
        accepted = grammar.accepted(self._automaton)
        misspelt = self._misspelt(at, accepted)
        if misspelt is not None:
            return misspelt
        known = self._flag_first(at) or recognise(place)
        if known is not None:
            return SyntaxProblem(span, problem=known, found=name_of(token))
        word = self._keyword(at, "NAME" in accepted)
        if word is not None:
            return Keyword(self._span(word), word=str(word), nearest=f"{word}_")
        wanted = expectation(accepted)
        return SyntaxProblem(
            span, problem=f"{name_of(token)} cannot stand here; expected {wanted}", expected=wanted
        )

    def _misspelt(self, at: int, accepted: set[str]) -> SyntaxProblem | None:
        """A name that stands where a word of the language is meant, with that word."""
        token, before = self._tokens[at], self._tokens[at - 1] if at else None
        if token.type != "NAME":
            return None
        word = near_word(str(token), accepted)
        if word is None and before is not None and before.type == "NAME":
            starts = at == 1 or self._tokens[at - 2].type in _BOUNDARIES
            token, word = before, near_word(str(before), STARTERS) if starts else None
        if word is None:
            return None
        if word == token:  # it is one only before the parts of a layer
            return SyntaxProblem(self._span(token), problem=_LAYER)
        problem = f"`{token}` is no word of the language"
        return SyntaxProblem(self._span(token), problem=problem, nearest=word)

    def _flag_first(self, at: int) -> str | None:
        """What to say of a flag before a declaration: `backward state S : h`."""
        flag, *words = map(str, self._tokens[at : at + 3])
        if flag not in tuple(ast.Flag) or not words or words[0] not in tuple(ast.DeclKind):
            return None
        return f"a flag stands after the axes: write `{' '.join(words)} : … {flag}`"

    def _keyword(self, at: int, name_accepted: bool) -> Token | None:
        """The reserved word that was meant as a name, if one was."""
        token, before = self._tokens[at], self._tokens[at - 1] if at else None
        if token.type in lex.KEYWORDS and name_accepted:
            return token
        defines = token.type in ("EQUAL", "QUOTE", "LSQB", "LPAR", "COLON")
        return before if before is not None and before.type in lex.KEYWORDS and defines else None

    def _span(self, token: Token) -> Span:
        start = token.start_pos or 0
        length = len(str(token).split("\n")[0]) if token.type == lex.SEPARATOR else len(token)
        return Span(
            self._source, start, min(start + max(length, 1), max(len(self._source.text), start))
        )
