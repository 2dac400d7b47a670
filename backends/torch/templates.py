"""The environment of templates: Python's text, and a tag that puts statements in place."""

from __future__ import annotations

from collections.abc import Iterable

from jinja2 import BaseLoader, Environment, StrictUndefined, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser

from .layout import entry, rule, wrapped


class Put(Extension):
    """`{% put lines %}`: each of some lines on a line of its own; nothing of none."""

    tags = {"put"}  # noqa: RUF012 - as the base class has it

    def parse(self, parser: Parser) -> nodes.Node:
        """Parses one tag."""
        line = next(parser.stream).lineno
        text = nodes.Filter(parser.parse_expression(), "on_lines", [], [], None, None)
        return nodes.Output([text], lineno=line)


def environment(loader: BaseLoader) -> Environment:
    """Returns the environment of templates that a loader finds."""
    filling = Environment(
        loader=loader,
        undefined=StrictUndefined,
        extensions=[Put],
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        # The result is Python; names are identifiers, and `header` makes a spec's texts safe.
        autoescape=False,
    )
    filling.globals.update(rule=rule, entry=entry, wrapped=wrapped)
    filling.filters["on_lines"] = _on_lines
    return filling


def _on_lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
