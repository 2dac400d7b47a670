"""All analyses of a mixer at one point; of each the values, or the reason why it has none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dsfc.analysis.frequency import (
    Response,
    agrees,
    frequencies,
    measured,
    non_negative,
    response,
    time_invariant,
)
from dsfc.analysis.influence import Influence, NoDerivative, influence
from dsfc.analysis.kernel import Kernel, NoKernel, impulse, kernel, token_matrices
from dsfc.analysis.point import Point, tokens_of
from dsfc.analysis.smoothing import Smoothing, smoothing
from dsfc.analysis.spectrum import Array, Spectrum, attention_ratios, spectra
from dsfc.current_search import unheard
from dsfc.diagnostics.catalogue import NoReport
from dsfc.diagnostics.report import DiagnosticError
from dsfc.mixer.ir import Mixer
from dsfc.source import NOWHERE
from dsfc.structure.ir import Structure
from dsfc.system.evaluate import evaluate
from dsfc.system.ir import System

TOKENS = 64
"""Length of the sequences that are analysed."""

LONG = 512
"""Length of an impulse response."""

ROUNDING = 1e-9
"""By how much the modulus of a mode that does not grow may pass 1."""

SEQUENCES = 8
"""Sequences of fresh tokens that the influence by distance is a mean over."""


@dataclass(frozen=True)
class Frequency:
    """The frequency responses of a mixer.

    Attributes:
        exact: from Λ, B, C, D; None where they vary in time or do not say all.
        measured: from Φ at the last tokens.
        never_negative: whether no entry of the kernel is below 0.
        why: why there is no exact one; empty where there is.
    """

    exact: Response | None
    measured: Response
    never_negative: bool
    why: str


@dataclass(frozen=True)
class Analyses:
    """The analyses at one point; a text in the place of a value says why there is none.

    Attributes:
        point: sizes, parameters, tokens.
        spectra: of every state, then those that the paper's gauge changes.
        ratios: η_{i-1} / η_i of softmax attention; None of any other mixer.
        kernel: Φ.
        influence: of all tokens on all, or on some, by the adjoint.
        distances: the influence on the last token by distance, of several sequences,
            `[sequences, τ]`; None where there is no influence.
        frequency: responses.
        smoothing: of every state that is real with a diagonal transition.
    """

    point: Point
    spectra: tuple[Spectrum, ...]
    ratios: Array | None
    kernel: Kernel | str
    influence: Influence | str
    distances: Array | None
    frequency: Frequency | str
    smoothing: tuple[Smoothing, ...]


def analyse(
    mixer: Mixer,
    system: System,
    structure: Structure,
    point: Point,
    tell: Callable[[str], None] = unheard,
) -> Analyses:
    """Returns all analyses of a mixer.

    Args:
        mixer: the mixer.
        system: its System.
        structure: what `classify` gave of it.
        point: sizes, parameters and tokens.
        tell: is told what is computed next.

    Raises:
        DiagnosticError: E-REPORT, the output is not finite.
    """
    with np.errstate(all="ignore"):  # what overflows is told below
        return _analyse(mixer, system, structure, point, tell)


def _analyse(
    mixer: Mixer,
    system: System,
    structure: Structure,
    point: Point,
    tell: Callable[[str], None],
) -> Analyses:
    outputs = evaluate(system, point.inputs, point.params, point.sizes).outputs
    if not all(np.isfinite(y).all() for y in outputs.values()):
        problem = "its output is not finite in float64 at these tokens and parameters"
        raise DiagnosticError((NoReport(NOWHERE, mixer=system.name, problem=problem),))
    tell("eigenvalues")
    values = spectra(system, point)
    ratios = None
    if structure.attentions and point.tokens > 1:
        ratios = attention_ratios(system, structure.attentions[0], point)
    tell("the kernel Φ")
    phi = _kernel(system, structure, point)
    tell("influence")
    whole, distances = _influences(mixer, system, point)
    tell("frequency response")
    heard = _frequency(system, structure, point, phi)
    tell("over-smoothing")
    smooth = smoothing(system, structure, point) if point.tokens > 1 else ()
    return Analyses(point, values, ratios, phi, whole, distances, heard, smooth)


def shorter(point: Point, tokens: int) -> Point:
    """Returns a point with its first tokens alone."""
    return replace(point, inputs={n: x[:tokens] for n, x in point.inputs.items()})


def _kernel(system: System, structure: Structure, point: Point) -> Kernel | str:
    """Φ of all tokens, or of the first of them where that needs too much room."""
    tokens, refused = point.tokens, ""
    while tokens >= min(8, point.tokens):
        try:
            phi = kernel(system, structure, shorter(point, tokens))
            return phi if np.isfinite(phi.values).all() else OVERFLOW
        except NoKernel as e:
            refused = str(e)
            tokens //= 2
    return refused


OVERFLOW = "its numbers overflow in float64 at these tokens"
"""Why there is no value where one is infinite or none."""


def _influences(mixer: Mixer, system: System, point: Point) -> tuple[Influence | str, Array | None]:
    """The map at the given tokens, and the influence by distance over several sequences."""
    tokens = point.tokens
    whole: Influence | str = ""
    for step in (1, 2, 4, 8, 16, 32):
        rows = tuple(range(tokens - 1, -1, -step))[::-1]
        try:
            whole = influence(system, point, rows)
            break
        except NoDerivative as e:
            whole = str(e)
    if isinstance(whole, str):
        return whole, None
    if not np.isfinite(whole.values).all():
        return OVERFLOW, None
    lines = [whole.by_distance]
    for seed in range(1, SEQUENCES):
        other = influence(system, tokens_of(mixer, point, tokens, seed), whole.rows[-1:])
        lines.append(other.by_distance)
    return whole, np.stack(lines)


def _frequency(
    system: System, structure: Structure, point: Point, phi: Kernel | str
) -> Frequency | str:
    if isinstance(phi, str):
        return phi
    if structure.attentions:
        return "softmax attention has weights that depend on the tokens, and no state"
    angles = frequencies()
    rows = max(1, len(phi.values) // 4)
    heard = measured(phi, angles, rows)
    fixed = all(b.transition_fixed and b.drive_fixed and b.read_fixed for b in structure.blocks)
    if not structure.causal:
        why = "it reads tokens to come"
    elif not (fixed and time_invariant(phi)):
        why = "its coefficients depend on the tokens"
    else:
        why = ""
    if why:
        return Frequency(None, heard, non_negative(phi), why)
    long = replace(
        point, inputs={n: np.repeat(x[:1], LONG, axis=0) for n, x in point.inputs.items()}
    )
    try:
        column = impulse(system, long)
        matrices = token_matrices(system, point)
    except NoKernel as e:
        return Frequency(None, heard, non_negative(phi), str(e))
    if np.abs(np.linalg.eigvals(matrices.Lambda)).max(initial=0) > 1 + ROUNDING:
        why = "a mode of its state grows, so that the transform of its kernel has no limit"
        return Frequency(None, heard, non_negative(phi), why)
    if not agrees(matrices, column):
        why = "it reads earlier tokens beside its state"
        return Frequency(None, heard, non_negative(column), why)
    return Frequency(response(matrices, angles), heard, non_negative(column), "")
