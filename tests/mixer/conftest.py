"""How the tests of this folder get a typed mixer from a text or from a shipped spec."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dsfc.diagnostics.report import Diagnostic, DiagnosticError
from dsfc.mixer import Library, resolve
from dsfc.mixer.ir import Mixer
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.syntax.read import read_source

SPECS = Path(__file__).parents[2] / "specs"


@pytest.fixture(scope="session")
def mixer_of() -> Callable[..., Mixer]:
    """Resolves a text; `mixer_of(text, name)` picks one of its mixers."""

    def make(text: str, name: str | None = None, library: Library | None = None) -> Mixer:
        return resolve(parse(Source("<text>", text)), name, library)

    return make


@pytest.fixture(scope="session")
def shipped() -> Callable[[str], Mixer]:
    """Resolves a shipped spec by its name."""
    library = Library(SPECS)

    def make(name: str) -> Mixer:
        return resolve(parse(read_source(SPECS / f"{name}.dsf")), name, library)

    return make


@pytest.fixture(scope="session")
def problems() -> Callable[[str], tuple[Diagnostic, ...]]:
    """The diagnostics of a text, none if it is right."""

    def find(text: str, library: Library | None = None) -> tuple[Diagnostic, ...]:
        try:
            resolve(parse(Source("<text>", text)), None, library)
        except DiagnosticError as error:
            return error.diagnostics
        return ()

    return find
