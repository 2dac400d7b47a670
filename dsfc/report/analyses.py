"""The analyses of a mixer as HTML: charts, tables, and what they come to in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from dsfc.analysis import pictures
from dsfc.analysis.analysis import LONG, Analyses
from dsfc.analysis.frequency import Response
from dsfc.analysis.influence import rate, slowest, unbounded
from dsfc.analysis.kernel import EPSILON, Kernel
from dsfc.analysis.spectrum import Spectrum, memory
from dsfc.report.html import figure, gallery, number, paragraph, table
from dsfc.report.subject import Subject


def point(s: Subject) -> str:
    """Where the analyses are made."""
    known = s.start.point
    own = [d.axis for d in s.compilation.system.axes if d.axis.copy_of is None]
    sizes = ", ".join(f"{a.name} = {known.sizes[a.name]}" for a in own if a.name in known.sizes)
    source = s.source or "Parameters are as the spec starts them, tokens are standard normal."
    return paragraph(f"{known.tokens} tokens, {sizes}, seed 0. {source}")


def eigenvalues(s: Subject) -> str:
    """The spectrum of each state, in each gauge, at the start and trained."""
    parts = []
    for when, a in s.analyses.items():
        figures, said = [], []
        for shown, states in pictures.grouped(a.spectra):
            what = f"Λ of {', '.join(states)}{_gauge(shown)}, {when}"
            said.append(paragraph(f"{what}: {spectrum_words(shown)}"))
            if np.ptp(np.abs(shown.values)) == 0 and not np.iscomplexobj(shown.values):
                continue  # one number
            figures.append(figure(pictures.spectrum(shown.values, what), what))
            label = f"sizes of the eigenvalues of {what}"
            figures.append(
                figure(pictures.sizes_of_eigenvalues(shown.values, label), f"|λ|, {what}")
            )
        if a.ratios is not None:
            what = f"η[i-1] / η[i] of softmax, {when}"
            figures.append(figure(pictures.spectrum(a.ratios, what), what))
            figures.append(figure(pictures.sizes_of_eigenvalues(a.ratios, what), f"sizes, {what}"))
            said.append(
                paragraph(
                    f"Softmax attention has no finite state, so no Λ. What papers call its "
                    f"eigenvalues are the ratios of its normalisers: from "
                    f"{number(float(a.ratios.min()))} to {number(float(a.ratios.max()))}."
                )
            )
        if not a.spectra and a.ratios is None:
            said.append(paragraph("It has no state, so no Λ."))
        parts.append("".join(said) + gallery(figures))
    return "".join(parts)


def _gauge(shown: Spectrum) -> str:
    return " in the paper's gauge" if shown.paper else ""


def spectrum_words(shown: Spectrum) -> str:
    """Returns a spectrum in words: its span and its half-lives."""
    sizes = np.abs(shown.values)
    low, high = float(sizes.min()), float(sizes.max())
    fixed = "the same at every token" if shown.fixed else "of each token"
    span = f"|λ| = {low:.4g}" if low == high else f"|λ| from {low:.4g} to {high:.4g}"
    lives = memory(shown.values)
    if all(np.isinf(lives)):
        return f"{fixed}, {span}; nothing is forgotten."
    halves = ", ".join(number(float(f"{x:.3g}")) for x in lives)
    return f"{fixed}, {span}; half-lives {halves} tokens (5th percentile, median, 95th)."


def memories(s: Subject) -> str:
    """The memory function, with what it comes to."""
    known = _kernels([s])
    absent = dict.fromkeys(_absent(a, when) for when, a in s.analyses.items())
    said = "".join(paragraph(x) for x in absent if x)
    if not known:
        return said
    rows = [(when, k.effective_memory, _horizon(k)) for when, k in known.items()]
    head = ("", "effective memory, tokens", f"horizon ε = {EPSILON}, tokens")
    label = f"memory function of {s.name}"
    return said + table(rows, head) + gallery([figure(pictures.memory(known, label), label)])


def _horizon(k: Kernel) -> int | str:
    """The horizon; of what reaches over the whole sequence that it may be longer."""
    return f"{k.horizon} or more" if k.horizon == len(k.memory) - 1 else k.horizon


def memories_together(subjects: Sequence[Subject]) -> str:
    """The memory functions of all mixers in one chart."""
    known = _kernels(subjects)
    label = f"memory functions of {', '.join(s.name for s in subjects)}"
    return gallery([figure(pictures.memory(known, label), label)]) if known else ""


def _kernels(subjects: Sequence[Subject]) -> dict[str, Kernel]:
    return {
        (when if len(subjects) == 1 else _named(s, when)): a.kernel
        for s in subjects
        for when, a in s.analyses.items()
        if not _absent(a, when) and isinstance(a.kernel, Kernel)
    }


def _absent(a: Analyses, when: str) -> str:
    """Why there is nothing to draw of Φ, as a sentence; empty where there is."""
    if isinstance(a.kernel, str):
        return f"There is no Φ: {a.kernel}."
    if a.kernel.norms.any():
        return ""
    return f"Φ is 0 at these parameters and tokens, {when}{_part(a)}."


def _named(s: Subject, when: str) -> str:
    return s.name if s.trained is None else f"{s.name} {when}"


def kernels(s: Subject) -> str:
    """Φ as a map, and the map of influence."""
    parts, figures = [], []
    for when, a in s.analyses.items():
        absent = _absent(a, when)
        if absent:
            parts.append(paragraph(absent))
        elif isinstance(a.kernel, Kernel):
            what = f"‖Φ_ij‖ of {s.name}, {when}"
            inputs = ", ".join(a.kernel.inputs)
            figures.append(
                figure(pictures.kernel_map(a.kernel, what), f"{what}; u is {inputs}{_part(a)}")
            )
        if isinstance(a.influence, str):
            parts.append(paragraph(f"There is no map of influence: {a.influence}."))
        elif not a.influence.values.any():
            parts.append(paragraph(f"I(t, s) is 0 at these parameters and tokens, {when}."))
        else:
            what = f"I(t, s) of {s.name}, {when}"
            figures.append(figure(pictures.influence_map(a.influence, what), what))
    return "".join(parts) + gallery(figures)


def _part(a: Analyses) -> str:
    """The part of the output that Φ is of, where that is not all of it."""
    if isinstance(a.kernel, str) or a.kernel.part == "y":
        return ""
    return f", of the linear part {a.kernel.part}"


def influences(s: Subject) -> str:
    """Influence by distance beside its bound."""
    parts, figures, rows = [], [], []
    for when, a in s.analyses.items():
        if isinstance(a.influence, str) or a.distances is None:
            parts.append(paragraph(f"There is none: {a.influence}."))
            continue
        what = f"influence by distance of {s.name}, {when}"
        why = unbounded(s.compilation.system, s.compilation.structure, a.spectra)
        largest, fall = slowest(a.spectra), rate(a.distances.mean(axis=0))
        limit = None if why else largest
        if fall is not None:
            drawn = pictures.distances({when: a.distances}, {when: limit}, what)
            figures.append(figure(drawn, f"{what}, mean of {len(a.distances)} sequences"))
        rows.append(
            (
                when,
                "no past" if fall is None else fall,
                "no state" if largest is None else largest,
                "no bound" if not limit else float(-np.log(limit)),
            )
        )
        words = (
            f"The bound says nothing: {why}."
            if why
            else "The conditions of the bound hold at these tokens."
        )
        parts.append(paragraph(f"{when}: {words}" if s.trained else words))
    head = ("", "fall of log I a token", "a = max |λ|", "log(1/a)")
    return (table(rows, head) if rows else "") + "".join(parts) + gallery(figures)


def influences_together(subjects: Sequence[Subject]) -> str:
    """The influence by distance of all mixers in one chart."""
    known = {
        _named(s, when): a.distances
        for s in subjects
        for when, a in s.analyses.items()
        if a.distances is not None
    }
    label = f"influence by distance of {', '.join(s.name for s in subjects)}"
    return gallery([figure(pictures.distances(known, {}, label), label)]) if known else ""


def frequency(s: Subject) -> str:
    """Gains over frequency, and whether it is low-pass."""
    parts, figures = [], []
    for when, a in s.analyses.items():
        if isinstance(a.frequency, str):
            parts.append(paragraph(f"There is no response: {a.frequency}."))
            continue
        if _absent(a, when):
            parts.append(paragraph(_absent(a, when)))
            continue
        known = {"of Φ, measured": a.frequency.measured}
        if a.frequency.exact is not None:
            known = {"of Λ, B, C, D": a.frequency.exact, **known}
        what = f"frequency response of {s.name}, {when}"
        figures.append(figure(pictures.responses(known, what), f"{what}{_part(a)}"))
        parts.append(paragraph(_low_pass(a)))
    return "".join(parts) + gallery(figures)


def _low_pass(a: Analyses) -> str:
    assert not isinstance(a.frequency, str)
    f = a.frequency
    shown: Response = f.exact or f.measured
    kind = (
        "" if f.exact else f"It has no response of its own, because {f.why}; of Φ at these tokens, "
    )
    if shown.low_pass:
        said = "no gain is above that at θ = 0: low-pass, at the frequencies looked at"
        if f.exact and f.never_negative:
            said += f"; no entry of its kernel is below 0 over {LONG} tokens, which makes it so"
    else:
        said = f"the largest gain is at θ = {number(shown.peak / np.pi)} π: not low-pass"
    return f"{kind}{said if kind else said[0].upper() + said[1:]}."


def frequency_together(subjects: Sequence[Subject]) -> str:
    """The responses of all mixers in one chart."""
    known = {
        _named(s, when): a.frequency.exact or a.frequency.measured
        for s in subjects
        for when, a in s.analyses.items()
        if not isinstance(a.frequency, str) and not _absent(a, when)
    }
    label = f"frequency responses of {', '.join(s.name for s in subjects)}"
    return gallery([figure(pictures.responses(known, label), label)]) if known else ""


def over_smoothing(s: Subject) -> str:
    """The bound on over-smoothing and what is measured."""
    parts = []
    for when, a in s.analyses.items():
        rows = [
            (
                x.state,
                x.coupling,
                x.violations,
                x.covered,
                "–" if x.attained is None else x.attained,
                *x.sharpness,
            )
            for x in a.smoothing
        ]
        if not rows:
            parts.append(paragraph("It has no real state with a diagonal transition."))
            continue
        head = ("state", "Δ", "A + Δ ≤ 1 fails", "channels covered", "of the bound attained",
                "sharpness of h", "of h less its mean")  # fmt: skip
        parts.append((f"<h3>{escape(when)}</h3>" if s.trained else "") + table(rows, head))
    return "".join(parts)
