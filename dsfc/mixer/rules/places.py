"""Where a rule points: the place in a text where one name reads another."""

from __future__ import annotations

from dsfc.mixer.merge import Program
from dsfc.source import NOWHERE, Span
from dsfc.syntax import ast


def place(program: Program, owner: str, name: str, *, indexed: bool = False) -> Span:
    """Returns where the update of `owner` reads `name`; the update's name if that is indirect.

    Args:
        program: the text.
        owner: definition or state.
        name: what it reads.
        indexed: whether to look for `name[…]` rather than for `name`.
    """
    update = program.updates.get(owner)
    if update is None:
        return NOWHERE
    nodes = (update.expr,) if isinstance(update, ast.Def) else (update.drift, update.step)
    for node in nodes:
        for part in ast.walk(node):
            plain = isinstance(part, ast.Name) and part.id == name
            at = isinstance(part, ast.Index) and part.name.text == name
            if at if indexed else plain:
                return part.span
    return update.name.span
