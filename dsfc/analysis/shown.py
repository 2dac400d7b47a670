"""Analyses as notebooks show them: values, with a picture where matplotlib is installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from dsfc.analysis.analysis import TOKENS
from dsfc.analysis.influence import Influence, influence
from dsfc.analysis.kernel import Kernel, kernel
from dsfc.analysis.point import Array, Point, start
from dsfc.analysis.spectrum import Spectrum, attention_ratios, spectra
from dsfc.mixer.ir import Mixer
from dsfc.structure.ir import Structure
from dsfc.system.ir import System

MISSING = "A picture needs matplotlib: pip install 'dsfc[report]'."
"""The sentence in the place of a picture, where nothing draws one."""


@dataclass(frozen=True)
class Subject:
    """A mixer at a point.

    Attributes:
        mixer: the mixer.
        system: its System.
        structure: what `classify` gave of it.
        point: sizes, parameters and tokens.
    """

    mixer: Mixer
    system: System
    structure: Structure
    point: Point


def at(
    mixer: Mixer,
    system: System,
    structure: Structure,
    sizes: Mapping[str, int] | None = None,
    tokens: int | None = None,
    params: Mapping[str, Array] | None = None,
    inputs: Mapping[str, Array] | None = None,
) -> Subject:
    """Returns a mixer at the parameters that its spec starts from, or at those given.

    Args:
        mixer: the mixer.
        system: its System.
        structure: what `classify` gave of it.
        sizes: by name of the axis; small ones that fit them where left out.
        tokens: L; 64 by default, or as many as `inputs` have.
        params: parameters and buffers by name, as they are stored.
        inputs: `[L, *axes]` by name; standard normal ones where left out.

    Raises:
        DiagnosticError: E-DIM, the sizes do not fit the mixer.
    """
    length = len(next(iter(inputs.values()))) if inputs else tokens or TOKENS
    point = start(mixer, system, length, sizes)
    return Subject(
        mixer,
        system,
        structure,
        Point(
            point.sizes,
            dict(inputs) if inputs else point.inputs,
            {**point.params, **(params or {})},
        ),
    )


@dataclass(frozen=True)
class ShownSpectrum:
    """The eigenvalues of a mixer.

    Attributes:
        spectra: of every state, then those that the paper's gauge changes.
        ratios: η_{i-1} / η_i of softmax attention, `[L - 1, heads, 1]`; None of any other mixer.
        point: sizes, parameters and tokens.
    """

    spectra: tuple[Spectrum, ...]
    ratios: Array | None
    point: Point = field(repr=False)

    def _repr_html_(self) -> str:
        """Returns the eigenvalues as pictures."""

        def drawn(pictures: Any) -> list[tuple[str, str]]:  # noqa: ANN401 - a module
            shown = [
                (f"Λ of {', '.join(states)}" + " in the paper's gauge" * s.paper, s.values)
                for s, states in pictures.grouped(self.spectra)
            ]
            if self.ratios is not None:
                shown.append(("η[i-1] / η[i]", self.ratios))
            return [(name, pictures.spectrum(values, name)) for name, values in shown]

        return _figures(drawn)


@dataclass(frozen=True)
class ShownKernel(Kernel):
    """The kernel Φ of a mixer, with the map of its norms and its memory as pictures."""

    def _repr_html_(self) -> str:
        """Returns ‖Φ_{ij}‖ and ρ(τ) as pictures."""
        return _figures(
            lambda pictures: [
                ("‖Φ_ij‖", pictures.kernel_map(self, "norms of Φ")),
                ("ρ(τ)", pictures.memory({"": self}, "memory function")),
            ]
        )


@dataclass(frozen=True)
class ShownInfluence(Influence):
    """The influence of tokens on outputs, with its map and its fall as pictures."""

    def _repr_html_(self) -> str:
        """Returns I(t, s), and I by distance from the last token, as pictures."""
        line = self.by_distance[None]
        return _figures(
            lambda pictures: [
                ("I(t, s)", pictures.influence_map(self, "influence")),
                ("I by distance", pictures.distances({"": line}, {}, "influence by distance")),
            ]
        )


def spectrum(s: Subject) -> ShownSpectrum:
    """Returns the eigenvalues of a mixer."""
    ratios = None
    if s.structure.attentions and s.point.tokens > 1:
        ratios = attention_ratios(s.system, s.structure.attentions[0], s.point)
    return ShownSpectrum(spectra(s.system, s.point), ratios, s.point)


def phi(s: Subject) -> ShownKernel:
    """Returns the kernel Φ of a mixer.

    Raises:
        NoKernel: it has none, or it needs too much room at these sizes.
    """
    known = kernel(s.system, s.structure, s.point)
    return ShownKernel(known.part, known.inputs, known.values)


def influences(s: Subject) -> ShownInfluence:
    """Returns the influence of every token on every output.

    Raises:
        NoDerivative: it has none, or it needs too much room at these sizes.
    """
    known = influence(s.system, s.point, tuple(range(s.point.tokens)))
    return ShownInfluence(known.rows, np.asarray(known.values))


def _figures(drawn: Callable[[Any], list[tuple[str, str]]]) -> str:
    """Pictures side by side; a sentence where nothing draws them."""
    try:
        from dsfc.analysis import pictures
    except ModuleNotFoundError as e:
        if e.name != "matplotlib":
            raise
        return f"<p>{escape(MISSING)}</p>"
    figures = (
        f'<figure style="flex: 1 1 20rem; max-width: 27rem; margin: 0">{svg}'
        f"<figcaption>{escape(name)}</figcaption></figure>"
        for name, svg in drawn(pictures)
    )
    return f'<div style="display: flex; flex-wrap: wrap; gap: 1rem">{"".join(figures)}</div>'
