"""The sections of a report: each has a title, a definition, and what it says of one mixer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dsfc.report.analyses import (
    eigenvalues,
    frequency,
    frequency_together,
    influences,
    influences_together,
    kernels,
    memories,
    memories_together,
    over_smoothing,
    point,
)
from dsfc.report.facts import claims, emitted, identity, relatives, spec
from dsfc.report.resources import resources
from dsfc.report.subject import Subject


@dataclass(frozen=True)
class Section:
    """A section of a report.

    Attributes:
        title: its title.
        definition: what is meant, as HTML; empty where the title says it.
        body: what it says of one mixer, as HTML.
        together: a chart of several mixers, as HTML; empty where they stand side by side alone.
    """

    title: str
    definition: str
    body: Callable[[Subject], str]
    together: Callable[[Sequence[Subject]], str] = lambda subjects: ""


def sections() -> Mapping[str, Section]:
    """Returns the sections in their order, by anchor."""
    return _SECTIONS


_SECTIONS: Mapping[str, Section] = {
    "identity": Section("What it is", "", identity),
    "system": Section("The spec and its system", "", spec),
    "point": Section("Where it is analysed", "", point),
    "eigenvalues": Section(
        "Eigenvalues",
        "The eigenvalues λ of the transition Λ<sub>i</sub>, over tokens and by head. Those of a "
        "Λ that varies in time belong to the <em>gauge</em>, the basis that the state is stored "
        "in: the lowered gauge is what dsfc derives, in the paper's gauge the state is divided by "
        "its normaliser, Λ<sub>i</sub> = η<sub>i-1</sub>/η<sub>i</sub>. The half-life of λ is "
        "ln ½ / ln |λ|. What does not depend on a gauge is in the next sections.",
        eigenvalues,
    ),
    "memory": Section(
        "Memory",
        "ρ(τ) is the mean of ‖Φ<sub>t,t-τ</sub>‖ over the last quarter of the tokens t: how much "
        "of the token τ before is read. Effective memory is Σ τρ(τ) / Σ ρ(τ) over τ ≥ 1; the "
        "horizon is the last τ at which ρ is at least ε of its largest value. No gauge has a part "
        "in it.",
        memories,
        memories_together,
    ),
    "kernel": Section(
        "Kernel and influence",
        "y<sub>i</sub> = Σ<sub>j</sub> Φ<sub>ij</sub> u<sub>j</sub> with "
        "Φ<sub>ij</sub> = C<sub>i</sub> Λ<sub>i</sub> ⋯ Λ<sub>j+1</sub> B<sub>j</sub>, "
        "coefficients and denominators as these tokens make them; ‖·‖ is the Frobenius norm. "
        "I(t, s) = ‖∂y<sub>t</sub>/∂u<sub>s</sub>‖ is the derivative of all there is, coefficients "
        "included. Neither depends on a gauge.",
        kernels,
    ),
    "influence": Section(
        "Influence against distance",
        "The mean of I(t, t - τ) over sequences, t the last token. If coefficients at a token are "
        "functions of that token alone and "
        "|λ| ≤ a &lt; 1, then for s &lt; t I(t, s) ≤ C a<sup>t-s</sup> (C′ + C″/(1 - a)), with "
        "constants over these tokens: the corrected form of the recency theorem, which needs one a "
        "below 1 for all tokens, and token-local coefficients.",
        influences,
        influences_together,
    ),
    "frequency": Section(
        "Frequency response",
        "H(e<sup>iθ</sup>) = D + C (1 - Λ e<sup>-iθ</sup>)<sup>-1</sup> B of a mixer that does not "
        "vary in time; its gain is the largest singular value. Low-pass: no gain is above that at "
        "θ = 0. A kernel without negative entries is low-pass; real decays alone are not enough. "
        "What is measured is the transform of Φ at the last tokens.",
        frequency,
        frequency_together,
    ),
    "smoothing": Section(
        "Over-smoothing",
        "h<sub>t</sub> = A<sub>t</sub> h<sub>t-1</sub> + Δ<sub>t</sub> b<sub>t</sub> in a channel, "
        "Δ the factor of the input that is a function of A. If A ∈ [0, 1], Δ ≥ 0, A + Δ ≤ 1 and "
        "min b ≤ 0 ≤ max b, then max |h<sub>t</sub> - h<sub>s</sub>| ≤ (1 - A<sub>min</sub>"
        "<sup>T-1</sup>)(max b - min b): the corrected form, channel by channel. Sharpness is "
        "(T Σ‖x‖² - ‖Σx‖²) / ((T - 1) Σ‖x‖²): 0 where all tokens are equal, 1 where they are "
        "orthogonal. It is of the state in the lowered gauge.",
        over_smoothing,
    ),
    "resources": Section("Resources", "", resources),
    "claims": Section(
        "Claims",
        "What the spec claims, with what shows it. A proof is one in exact arithmetic, and a "
        "refutation was executed.",
        claims,
    ),
    "relatives": Section("Relatives", "", relatives),
    "module": Section("Emitted module", "", emitted),
}
