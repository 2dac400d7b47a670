"""Eigenvalues of the transition of a mixer at the start, of layers of the size of the gallery.

They are those of `dsfc.analysis`; here are the sizes, and heads stand beside one another.
"""

from __future__ import annotations

from dataclasses import replace

from dsfc.analysis import spectrum
from dsfc.analysis.point import Point
from dsfc.analysis.point import start as start_at
from dsfc.analysis.spectrum import Spectrum, memory
from dsfc.api.pipeline import Compilation

__all__ = ["TOKENS", "Spectrum", "Start", "memory", "spectra", "start"]

SIZES, TOKENS = ((64, 4, 16),), 32
"""The axis d, axes of heads, other axes that have no size of their own; tokens that are drawn."""

Start = Point


def start(it: Compilation, tokens: int = TOKENS) -> Start:
    """Returns a mixer as its spec starts it, with standard normal tokens, all from seed 0.

    Args:
        it: the mixer.
        tokens: L.

    Raises:
        DiagnosticError: it does not derive.
    """
    return start_at(it.mixer, it.system, tokens, tried=SIZES)


def spectra(it: Compilation, begun: Start) -> tuple[Spectrum, ...]:
    """Returns the spectrum of every state, then those that the paper's gauge changes.

    Args:
        it: the mixer.
        begun: sizes, parameters and tokens.

    Returns:
        Spectra with values `[tokens, eigenvalues]`.
    """
    return tuple(
        replace(s, values=s.values.reshape(len(s.values), -1))
        for s in spectrum.spectra(it.system, begun)
    )
