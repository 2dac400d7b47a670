"""Reads emitted text as an enemy would have written it.

Emitted modules run where specs from strangers were compiled. Every text is parsed again and held
against a short list: what it imports, and words that reach an evaluator.
"""

from __future__ import annotations

import ast

IMPORTS = frozenset(
    {
        "__future__",
        "collections.abc",
        "dataclasses",
        "functools",
        "math",
        "torch",
        "torch.nn",
        "torch.nn.functional",
        "torch.utils",
        "torch.utils.flop_counter",
        "torch.serialization",
        "triton",
        "triton.language",
        "typing",
    }
)
FORBIDDEN = frozenset(
    {"eval", "exec", "compile", "open", "input", "breakpoint", "globals", "vars", "__import__"}
)
DUNDERS = frozenset({"__all__", "__init__", "__name__", "__file__"})


class EmissionError(Exception):
    """Emitted text that is not what a backend may write: a fault of the compiler."""


def audit(text: str) -> None:
    """Checks emitted text.

    Raises:
        EmissionError: it does not parse, imports something unexpected, or names an evaluator.
    """
    try:
        tree = ast.parse(text)
    except SyntaxError as e:
        raise EmissionError(f"line {e.lineno} does not parse: {e.msg}") from e
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                _imported(alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            _imported(node.module or ".", node.lineno)
        elif isinstance(node, ast.Name) and node.id in FORBIDDEN:
            raise EmissionError(f"line {node.lineno} names {node.id}")
        elif isinstance(node, ast.Attribute) and node.attr.startswith("__"):
            if node.attr not in DUNDERS:
                raise EmissionError(f"line {node.lineno} reads {node.attr}")


def _imported(name: str, line: int) -> None:
    if name not in IMPORTS:
        raise EmissionError(f"line {line} imports {name}")
