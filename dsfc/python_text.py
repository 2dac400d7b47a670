"""Reads the text of a Python module; one thread at a time."""

from __future__ import annotations

import ast
from threading import Lock

_PARSER = Lock()
"""CPython 3.11 counts the depth of the tree it makes in one place for all threads (gh-106905)."""


def parsed(text: str | bytes) -> ast.Module:
    """Returns the syntax tree of a module.

    Raises:
        SyntaxError: the text is no Python.
        ValueError: the text holds a null byte.
    """
    with _PARSER:
        return ast.parse(text)


def names_in(tree: ast.AST) -> frozenset[str]:
    """Returns the variables, functions and classes that a syntax tree names."""
    return frozenset(n.id for n in ast.walk(tree) if isinstance(n, ast.Name))
