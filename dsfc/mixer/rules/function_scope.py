"""W10: functions capture no stream, whether they are called or not."""

from __future__ import annotations

from collections.abc import Iterator

from dsfc.diagnostics.catalogue import Capture
from dsfc.expr.tree import Time
from dsfc.mixer.expressions import Expressions
from dsfc.mixer.merge import Program
from dsfc.mixer.rules.names import spelled
from dsfc.source import Span
from dsfc.syntax import ast


def check_functions(typer: Expressions, program: Program) -> None:
    """Reports streams in the bodies of the mixer's own functions.

    Those that are called report this when they are expanded; this finds the ones that are not.
    """
    for name in sorted(program.own & program.functions.keys()):
        function = program.functions[name]
        hidden = {p.text for p in function.params} | set(_bound(function.expr))
        for word, text, span in _names(function.expr):
            if word not in hidden and _is_stream(typer, program, word):
                typer.add(Capture(span, function=name, stream=text))


def _names(node: ast.Condition) -> Iterator[tuple[str, str, Span]]:
    """Names that are read, with their spelling and place."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            yield part.id, part.span.text or part.id, part.span
        elif isinstance(part, ast.Index):
            yield part.name.text, spelled(part.name), part.span


def _bound(node: ast.Condition) -> Iterator[str]:
    """Indices that sums and products in the expression bind."""
    for part in ast.walk(node):
        if isinstance(part, ast.Relation):
            yield from (n.id for n in part.operands if isinstance(n, ast.Name))


def _is_stream(typer: Expressions, program: Program, name: str) -> bool:
    kind = typer.scope.kind(name)
    if kind is not None:
        return kind in (ast.DeclKind.INPUT, ast.DeclKind.STATE)
    if name not in program.updates:
        return False
    value = typer.definition(name)
    return value is not None and value.time is not Time.CONST
