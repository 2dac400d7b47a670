"""What Sphinx needs of dsfc: colours for specs, and pages made from the compiler's own tables."""

from __future__ import annotations

import importlib
import inspect
from typing import Any, ClassVar

import click
import error_pages
from docutils import nodes
from docutils.statemachine import StringList
from pygments.token import Text
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from dsfc.cli import commands
from dsfc.diagnostics.catalogue import CODES
from dsfc.mixer.words import WORDS
from dsfc.syntax.pygments_lexer import DsfLexer

BAR = "\\|"
"""A bar in a cell of a table."""


class Lenient(DsfLexer):
    """Specs, right or wrong: what the language does not know stands in pages of errors as text."""

    tokens: ClassVar[dict[str, list[Any]]] = {"root": [*DsfLexer.tokens["root"], (r".", Text)]}


class Generated(SphinxDirective):
    """A directive in whose place stands Markdown that a method writes.

    Its content is for those who read the source of a page: a sentence that says where they find the
    same.
    """

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Returns the parsed Markdown."""
        self.assert_has_content()
        lines = self.markdown().splitlines()
        return self._parsed(lines)

    def _parsed(self, lines: list[str]) -> list[nodes.Node]:
        """Parses lines as if they stood in the page."""
        content = StringList(lines, source=self.get_source_info()[0])
        holder = nodes.Element()
        self.state.nested_parse(content, 0, holder, match_titles=True)
        return holder.children

    def markdown(self) -> str:
        """Writes the body."""
        raise NotImplementedError  # each directive has its own


class ErrorIndex(Generated):
    """Every code of the catalogue with its page."""

    def markdown(self) -> str:
        """Writes one section per code, in the order of the catalogue."""
        return "\n".join(f"## {code}\n\n{error_pages.page(code)}\n" for code in CODES)


class ErrorLinks(Generated):
    """Links to the pages of all codes."""

    def markdown(self) -> str:
        """Writes them by what finds the mistakes."""
        return error_pages.index()


class ModuleText(Generated):
    """The docstring of a module, which is Markdown."""

    required_arguments = 1

    def markdown(self) -> str:
        """Reads it."""
        return inspect.getdoc(importlib.import_module(self.arguments[0])) or ""


class PrimitiveTable(Generated):
    """Every function that a spec may call."""

    def markdown(self) -> str:
        """Writes one table row per primitive."""
        rows = ["| function | meaning | notes |", "|---|---|---|"]
        for word in WORDS.values():
            if word.kind == "function":
                call = word.calls[0] if word.calls else word.name
                cells = (f"`{call}`", word.meaning, "; ".join(word.notes))
                rows.append(f"| {' | '.join(c.replace('|', BAR) for c in cells)} |")
        return "\n".join(rows)


class CommandTable(Generated):
    """The commands."""

    def markdown(self) -> str:
        """Writes what each does in a line, with a link to its section."""
        rows = ["| command | what it does |", "|---|---|"]
        for name, command in sorted(commands.commands.items()):
            rows.append(f"| [`{name}`](#dsfc-{name}) | {command.get_short_help_str(200)} |")
        return "\n".join(rows)


class CommandLine(Generated):
    """What every command says of itself."""

    def markdown(self) -> str:
        """Writes one section for each."""
        top = click.Context(commands, info_name="dsfc", **commands.context_settings)
        parts = []
        for name, command in sorted(commands.commands.items()):
            context = click.Context(command, parent=top, info_name=name)
            # As wide as a page of these has room for.
            context.max_content_width = context.terminal_width = 88
            parts.append(f"## dsfc {name}\n\n```text\n{command.get_help(context)}\n```\n")
        return "\n".join(parts)


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the lexer and the directives."""
    app.add_lexer("dsf", Lenient)
    app.add_directive("command-line", CommandLine)
    app.add_directive("command-table", CommandTable)
    app.add_directive("error-index", ErrorIndex)
    app.add_directive("error-links", ErrorLinks)
    app.add_directive("module-text", ModuleText)
    app.add_directive("primitive-table", PrimitiveTable)
    return {"parallel_read_safe": True}
