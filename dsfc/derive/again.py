"""Derives a System again from the definition that is stored in it.

What is proved of a derived form is said of the definition beside it. The two come from one
derivation, or from a document in which they may be two mixers: so the definition is derived again.
"""

from __future__ import annotations

from contextlib import suppress

from dsfc.derive.derive import derive
from dsfc.diagnostics.report import DiagnosticError
from dsfc.expr.build import mul, ones
from dsfc.expr.tree import Expr
from dsfc.mixer.ir import Definition, Mixer, StateDecl
from dsfc.system.ir import Definition as Defined
from dsfc.system.ir import System


def derived_again(system: System) -> System | None:
    """Returns the System that is derived from a System's definition.

    None where there is none: the definition is no mixer that a spec can mean, or is refused.

    It is the given one, if that was derived from a mixer, but for what a definition does not hold:
    where a value stands in a text, and the continuous form of a flow, of which a definition holds
    the discretised update.

    Args:
        system: one of which the declarations, the definition and the name of the output are read.
    """
    plain = tuple(d for d in system.definition if not d.update)
    updates = tuple(d for d in system.definition if d.update)
    mixer = Mixer(
        name=system.name,
        doc=system.doc,
        axes=tuple(d for d in system.axes if d.axis.copy_of is None),
        inputs=system.inputs,
        params=system.params,
        buffers=system.buffers,
        abstracts=system.abstracts,
        definitions=tuple(Definition(d.name, _of_all_axes(d)) for d in plain),
        states=tuple(
            StateDecl(d.name, d.axes, d.field, d.backward, d.value, None, maximum=d.maximum)
            for d in updates
        ),
        output=system.outputs[0].name,
        claims=(),
        rewrites=(),
    )
    # Derivation asserts what every typed mixer keeps, and the definition of a document may not.
    with suppress(DiagnosticError, AssertionError):
        return derive(mixer)
    return None


def _of_all_axes(d: Defined) -> Expr:
    """The value of a definition with the axes that it is read with."""
    axes = frozenset(d.axes)
    return d.value if d.value.axes == axes else mul(ones(axes), d.value)
