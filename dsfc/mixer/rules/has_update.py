"""W6: every state has an update."""

from __future__ import annotations

from collections.abc import Iterable

from dsfc.diagnostics.catalogue import NoUpdate
from dsfc.diagnostics.report import Reporter
from dsfc.mixer.merge import Program
from dsfc.mixer.rules.names import spelled
from dsfc.syntax import ast


def check_updates(program: Program, names: Iterable[str], reporter: Reporter) -> None:
    """Reports declared states without an update, and flows of what is not a state."""
    for name in names:
        declared = program.declared.get(name)
        state = declared is not None and declared.kind is ast.DeclKind.STATE
        if declared is not None and state and name not in program.updates:
            reporter.add(NoUpdate(declared.name.span, state=spelled(declared.name)))
