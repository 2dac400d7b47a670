"""A compiler for sequence mixers: from a `.dsf` text to a module that trains.

    >>> import dsfc
    >>> mixer = dsfc.load("normalized_attn")            # a path, or the name of a shipped spec
    >>> mixer.structure.title
    'scalar'

`load` gives the values of all stages (`.mixer`, `.system`, `.structure`, `.plan`), each made when
first read. `compile` writes a module, `import_module` imports it, `verify` runs it against the
definition, `export` writes a layer as a program for PyTorch or ONNX. Importing dsfc imports nothing
heavy: torch only with `verify`, `export` and emitted modules, SymPy and networkx only where their
objects are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dsfc.api.compile import compile_spec as compile
    from dsfc.api.export import export as export
    from dsfc.api.pipeline import load as load
    from dsfc.api.validate import validate as verify
    from dsfc.diagnostics.report import DiagnosticError as DiagnosticError
    from dsfc.emit.importing import import_module as import_module

__all__ = ["DiagnosticError", "__version__", "compile", "export", "import_module", "load", "verify"]

# Where each public name is defined; looked up when it is first used, because start-up time counts.
_HOMES = {
    "DiagnosticError": ("dsfc.diagnostics.report", "DiagnosticError"),
    "compile": ("dsfc.api.compile", "compile_spec"),
    "export": ("dsfc.api.export", "export"),
    "import_module": ("dsfc.emit.importing", "import_module"),
    "load": ("dsfc.api.pipeline", "load"),
    "verify": ("dsfc.api.validate", "validate"),
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the types stand above
    """Returns a public name, its module imported on first use."""
    import importlib

    if name == "__version__":
        from importlib.metadata import version

        return version("dsfc")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home, attribute = _HOMES[name]
    value = getattr(importlib.import_module(home), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Returns the public names."""
    return sorted(__all__)
