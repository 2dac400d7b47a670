"""How calls are refused: wrong numbers of arguments, wrong brackets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsfc.diagnostics.catalogue import Arguments
from dsfc.syntax import ast

if TYPE_CHECKING:
    from dsfc.mixer.expressions import Expressions


def wrong(typer: Expressions, node: ast.Call, problem: str) -> None:
    """Reports a call with the wrong arguments or brackets."""
    typer.add(Arguments(node.span, function=node.name.text, problem=problem))


def count(typer: Expressions, node: ast.Call, number: int) -> bool:
    """Whether a call has that many arguments; reports if it has not."""
    if len(node.args) == number:
        return True
    plural = "argument" if number == 1 else "arguments"
    wrong(typer, node, f"takes {number} {plural}, got {len(node.args)}")
    return False
