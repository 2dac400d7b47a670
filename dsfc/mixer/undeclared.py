"""Going on after a definition that reads its own past: as if it were the state it should be.

That it is not declared is one mistake; whether it could be a state is another question, which is
answered in the same run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dsfc.diagnostics.report import Diagnostic, DiagnosticError
from dsfc.mixer.guess import guessed_axes
from dsfc.mixer.ir import Mixer
from dsfc.mixer.merge import Program
from dsfc.syntax import ast


class UndeclaredStates(DiagnosticError):
    """Definitions read their own past, and nothing else is wrong so far.

    Attributes:
        mixer: what the text would mean with those definitions declared as states.
    """

    def __init__(self, diagnostics: Iterable[Diagnostic], mixer: Mixer) -> None:
        """Keeps the mixer beside the diagnostics."""
        super().__init__(diagnostics)
        self.mixer = mixer


def with_states(program: Program, names: Iterable[str]) -> ast.MixerUnit | None:
    """Returns a mixer's text with definitions declared as states, None if an axis is not clear.

    Args:
        program: the mixer with its bases.
        names: the definitions.
    """
    wanted = tuple(names)
    axes = guessed_axes(program, wanted)
    if set(axes) != set(wanted):
        return None
    added = []
    for name in wanted:
        ident = program.updates[name].name
        words = tuple(ast.Ident(axis, ident.span) for axis in program.dims if axis in axes[name])
        shape = ast.TensorType(words, ident.span) if words else None
        added.append(ast.Decl(ast.DeclKind.STATE, (ident,), shape, span=ident.span))
    return replace(program.unit, items=(*program.unit.items, *added))
