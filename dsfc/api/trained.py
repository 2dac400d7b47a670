"""Trained weights of a mixer, as parameters that its analyses take."""

from __future__ import annotations

import tempfile
from pathlib import Path

from dsfc.api.pipeline import Compilation
from dsfc.diagnostics.catalogue import NoReport
from dsfc.diagnostics.report import DiagnosticError
from dsfc.emit.importing import import_module
from dsfc.emit.module import write
from dsfc.source import NOWHERE
from dsfc.validate.trained import Trained
from dsfc.validate.trained import trained as parameters_of
from dsfc.validate.weights import Unfit, read


def trained(compilation: Compilation, weights: Path, module: Path | None = None) -> Trained:
    """Returns the parameters that weights give a mixer, and the sizes that they have.

    Args:
        compilation: the mixer.
        weights: a `state_dict` of its module, saved by torch; nothing in it is executed.
        module: the emitted module, which is imported; by default one is emitted.

    Raises:
        DiagnosticError: E-REPORT, the weights are none of the module; or it does not compile.
    """
    try:
        kept = read(weights)
        with tempfile.TemporaryDirectory() as folder:
            if module is None:
                text = compilation.module()
                module = Path(folder) / f"{text.mixer}.py"
                write(text, module)
            imported = import_module(module)
            return parameters_of(imported, compilation.system, kept, compilation.identifiers())
    except Unfit as e:
        problem = NoReport(NOWHERE, mixer=compilation.name, problem=str(e))
        raise DiagnosticError((problem,)) from None
