"""The sections of a report: each has a title, a definition, and what it says of one mixer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from dsfc.analysis import pictures
from dsfc.analysis.accounts import CHUNKED, LENGTHS, WIDTH, Account
from dsfc.analysis.analysis import Analyses
from dsfc.analysis.frequency import Response
from dsfc.analysis.influence import slowest
from dsfc.analysis.kernel import EPSILON, Kernel
from dsfc.analysis.spectrum import Spectrum, memory
from dsfc.claims.verdict import Decided, Proved, Refuted
from dsfc.expr.text import text
from dsfc.report.formulas import definition_rows, formula, matrix_rows, paper_rows
from dsfc.report.subject import Compiled, Subject
from dsfc.structure.classes import CLASSES
from dsfc.structure.render import bound_text
from dsfc.structure.summary import summary


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


def table(rows: Iterable[Sequence[object]], head: Sequence[str] = ()) -> str:
    """Returns a table; cells are text, and numbers stand to the right."""

    def cell(value: object, tag: str) -> str:
        kind = ' class="number"' if isinstance(value, int | float) else ""
        shown = number(value) if isinstance(value, int | float) else escape(str(value))
        return f"<{tag}{kind}>{shown}</{tag}>"

    lines = [f"<tr>{''.join(cell(h, 'th') for h in head)}</tr>"] if head else []
    lines += [f"<tr>{''.join(cell(c, 'td') for c in row)}</tr>" for row in rows]
    return f'<div class="scroll"><table>{"".join(lines)}</table></div>'


def number(value: float) -> str:
    """Returns a number for a reader: few digits, ∞ where it has no bound."""
    if np.isinf(value):
        return "∞"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}".replace(",", "\u202f")
    return f"{value:.4g}"


def figure(svg: str, caption: str) -> str:
    """Returns a chart with its caption, which is text."""
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


def paragraph(said: str) -> str:
    """Returns a text as a paragraph; nothing of an empty one."""
    return f"<p>{escape(said)}</p>" if said else ""


def gallery(figures: Iterable[str]) -> str:
    """Returns figures side by side, as far as there is room."""
    return f'<div class="figures">{"".join(figures)}</div>'


# --- what it is -----------------------------------------------------------------------------------


def identity(s: Subject) -> str:
    """Three lines that need no theory, then the facts."""
    structure = s.compilation.structure
    title, *lines = summary(structure, s.compilation.mixer.doc).split("\n")
    few = "".join(f"<li>{escape(line.strip())}</li>" for line in lines)
    rows: list[Sequence[object]] = [
        ("class", f"{structure.title}, {structure.label}: {CLASSES[structure.name].form}"),
        ("causal", "yes" if structure.causal else "no: it reads tokens to come"),
    ]
    rows += [("no finite state", why) for why in dict.fromkeys(structure.sums)]
    if structure.blocks:
        rows.append(("state", f"{text(structure.state_size)} numbers"))
    rows += [(f"|Λ| of {b.state}", bound_text(b.bound)) for b in structure.blocks]
    if isinstance(s.compiled, Compiled):
        rows.append(("modes of its module", ", ".join(s.compiled.modes)))
    else:
        rows.append(("does not compile", s.compiled))
    return f"<p><b>{escape(title)}</b></p><ul>{few}</ul>{table(rows)}"


def spec(s: Subject) -> str:
    """The text and the definitions beside Λ, B, C, D."""
    source = s.compilation.spec.span.source.text.strip()
    system = s.compilation.system
    told, rows = matrix_rows(system)
    parts = [f"<h3>As a system{escape(f' ({told[:-1].lower()})' if told else '')}</h3>"]
    parts.append(formula(rows))
    paper = paper_rows(system)
    if paper:
        parts.append("<p>In the paper's gauge, the state stored divided by its normaliser:</p>")
        parts.append(formula(paper))
    return (
        f'<div class="beside"><div><h3>Spec</h3><pre>{escape(source)}</pre></div>'
        f"<div><h3>Definition</h3>{formula(definition_rows(system))}</div></div>{''.join(parts)}"
    )


# --- analyses -------------------------------------------------------------------------------------


def point(s: Subject) -> str:
    """Where the analyses are made."""
    known = s.start.point
    own = [d.axis for d in s.compilation.system.axes if d.axis.copy_of is None]
    sizes = ", ".join(f"{a.name} = {known.sizes[a.name]}" for a in own if a.name in known.sizes)
    given = s.given or "Parameters are as the spec starts them, tokens are standard normal."
    return paragraph(f"{known.tokens} tokens, {sizes}, seed 0. {given}")


def eigenvalues(s: Subject) -> str:
    """The spectrum of each state, in each gauge, at the start and trained."""
    parts = []
    for when, a in s.analyses.items():
        figures, said = [], []
        for shown, states in pictures.grouped(a.spectra):
            what = f"Λ of {', '.join(states)}{_gauge(shown)}, {when}"
            figures.append(figure(pictures.spectrum(shown.values, what), what))
            label = f"sizes of the eigenvalues of {what}"
            figures.append(
                figure(pictures.sizes_of_eigenvalues(shown.values, label), f"|λ|, {what}")
            )
            said.append(paragraph(f"{what}: {spectrum_words(shown)}"))
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
        if not figures:
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
    if not known:
        return paragraph(f"There is no Φ: {s.start.kernel}.")
    rows = [(when, k.effective_memory, k.horizon) for when, k in known.items()]
    head = ("", "effective memory, tokens", f"horizon ε = {EPSILON}, tokens")
    label = f"memory function of {s.name}"
    return table(rows, head) + gallery([figure(pictures.memory(known, label), label)])


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
        if isinstance(a.kernel, Kernel)
    }


def _named(s: Subject, when: str) -> str:
    return s.name if s.trained is None else f"{s.name} {when}"


def kernels(s: Subject) -> str:
    """Φ as a map, and the map of influence."""
    parts, figures = [], []
    for when, a in s.analyses.items():
        if isinstance(a.kernel, Kernel):
            what = f"‖Φ_ij‖ of {s.name}, {when}"
            part = "" if a.kernel.part == "y" else f", of its linear part {a.kernel.part}"
            inputs = ", ".join(a.kernel.inputs)
            figures.append(
                figure(pictures.kernel_map(a.kernel, what), f"{what}; u is {inputs}{part}")
            )
        else:
            parts.append(paragraph(f"There is no Φ: {a.kernel}."))
        if isinstance(a.influence, str):
            parts.append(paragraph(f"There is no map of influence: {a.influence}."))
        else:
            what = f"I(t, s) of {s.name}, {when}"
            figures.append(figure(pictures.influence_map(a.influence, what), what))
    return "".join(parts) + gallery(figures)


def influences(s: Subject) -> str:
    """Influence by distance beside its bound."""
    parts, figures, rows = [], [], []
    for when, a in s.analyses.items():
        if isinstance(a.influence, str) or a.distances is None:
            parts.append(paragraph(f"There is none: {a.influence}."))
            continue
        what = f"influence by distance of {s.name}, {when}"
        largest = slowest(a.spectra)
        drawn = pictures.distances({when: a.distances}, {when: largest}, what)
        figures.append(figure(drawn, f"{what}, mean of {len(a.distances)} sequences"))
        bound = -np.log(largest) if largest is not None and 0 < largest < 1 else None
        rows.append(
            (
                when,
                a.influence.rate,
                "no state" if largest is None else largest,
                "no bound" if bound is None else float(bound),
            )
        )
        parts.append(paragraph(_bound_words(largest, s)))
    head = ("", "fall of log I a token", "a = max |λ|", "log(1/a)")
    return (table(rows, head) if rows else "") + "".join(parts) + gallery(figures)


def _bound_words(largest: float | None, s: Subject) -> str:
    """Whether the bound says something of a mixer."""
    structure = s.compilation.structure
    if largest is None:
        return "It has no state, so the bound says nothing of it."
    if structure.filters:
        return (
            "It reads earlier tokens beside its state: in the bound s stands for the last of them."
        )
    if not all(b.cell.diagonal for b in structure.blocks):
        return "Its Λ is not diagonal: the bound takes ‖Λ‖, which eigenvalues do not bound."
    if largest >= 1:
        return "Its largest |λ| is not below 1, so the bound says nothing: it need not forget."
    return "Its largest |λ| at these tokens is below 1, so that influence falls exponentially."


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
        known = {"of Φ, measured": a.frequency.measured}
        if a.frequency.exact is not None:
            known = {"of Λ, B, C, D": a.frequency.exact, **known}
        what = f"frequency response of {s.name}, {when}"
        figures.append(figure(pictures.responses(known, what), what))
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
            said += "; and no entry of its kernel is below 0, from which it follows"
    else:
        said = f"the largest gain is at θ = {number(shown.peak / np.pi)} π: not low-pass"
    return f"{kind}{said if kind else said[0].upper() + said[1:]}."


def frequency_together(subjects: Sequence[Subject]) -> str:
    """The responses of all mixers in one chart."""
    known = {
        _named(s, when): a.frequency.exact or a.frequency.measured
        for s in subjects
        for when, a in s.analyses.items()
        if not isinstance(a.frequency, str)
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


# --- costs, claims, text --------------------------------------------------------------------------


def resources(s: Subject) -> str:
    """Multiply-adds, numbers moved, state and cache."""
    if isinstance(s.compiled, str):
        return paragraph(f"It does not compile: {s.compiled}.")
    a = s.compiled.account
    own = [d.axis for d in s.compilation.system.axes if d.axis.copy_of is None]
    at = ", ".join(f"{x.name} = {a.sizes[x.name]}" for x in own if x.name in a.sizes)
    rows: list[Sequence[object]] = [
        ("linear maps, multiply-adds a token", a.projections),
        ("recurrence as written, multiply-adds a token", a.recurrence),
        ("bytes a token that kernels must move for its scans", a.compulsory * WIDTH),
        ("state, bytes", a.state * WIDTH),
        ("kept of each token, bytes", a.kept * WIDTH),
        ("cache of softmax attention as wide, bytes a token", a.cache * WIDTH),
        ("its memory is smaller than that cache from, tokens", a.crossover),
    ]
    return (
        paragraph(f"Sizes of a layer: {at}; one sequence, numbers of {WIDTH} bytes.")
        + table(rows)
        + _modes(a)
        + _memory(s.name, a)
        + _calls(s.compiled)
    )


def _modes(a: Account) -> str:
    """Costs by mode and length: a chart of what torch's operators move, and a table of both."""
    if not a.modes:
        return paragraph("It has no scan.")
    names = list(dict.fromkeys(m.mode for m in a.modes))
    picked = [LENGTHS[1], LENGTHS[-1]]
    rows = []
    for name in names:
        by = {m.length: m for m in a.modes if m.mode == name}
        numbers = [x for n in picked for x in (round(by[n].macs), round(by[n].words) * WIDTH)]
        rows.append((name, *numbers))
    head = ["mode"]
    for n in picked:
        head += [f"multiply-adds, L = {n}", f"bytes, L = {n}"]
    drawn = {
        name: (np.array(LENGTHS), np.array([m.words * WIDTH for m in a.modes if m.mode == name]))
        for name in names
    }
    label = "bytes a token by mode and length"
    chart = ""
    if any(y.any() for _, y in drawn.values()):
        chart = figure(pictures.mode_costs(drawn, "bytes a token", label), label)
    return (
        f"<h3>By mode and length, without kernels</h3>"
        f"{paragraph(f'Scans alone, a token; chunks of {CHUNKED}. Multiply-adds are those of products of matrices.')}"
        f"{table(rows, head)}{gallery([chart])}"
    )


def _memory(name: str, a: Account) -> str:
    """The state beside a cache."""
    lengths = np.array(LENGTHS)
    drawn = {
        name: (lengths, np.array([max(1, a.memory(int(n))) * WIDTH for n in LENGTHS])),
        "softmax cache": (lengths, lengths * a.cache * WIDTH),
    }
    label = f"memory of {name} and of a cache of keys and values"
    return gallery([figure(pictures.mode_costs(drawn, "bytes", label), label)])


def _calls(c: Compiled) -> str:
    """Which calls run in kernels."""
    rows = []
    for title, covered in c.coverage.items():
        for call in covered.calls:
            why = "; ".join(dict.fromkeys(r.why for r in call.reasons))
            rows.append((title, str(call.call), str(call.runs), why))
    return f"<h3>With kernels</h3>{table(rows, ('target', 'call', 'runs', 'why not'))}"


def claims(s: Subject) -> str:
    """The claims with what was found."""
    if not s.claims:
        return paragraph("The spec claims nothing.")
    return f"<ul>{''.join(_claim(c) for c in s.claims)}</ul>"


def _claim(c: Decided) -> str:
    match c.verdict:
        case Proved(by):
            word, said = "proved", by
        case Refuted(shown, at):
            word, said = "refuted", shown + (f"; the point: {at}" if at else "")
        case _:
            word, said = "not decided", c.verdict.obstacle
    kind = word.replace(" ", "-")
    return (
        f'<li><b class="{kind}">{word}</b> <code>{escape(c.statement.text)}</code>: '
        f"{escape(said)}</li>"
    )


def relatives(s: Subject) -> str:
    """Statements about other mixers."""
    if s.relatives is None:
        return (
            "<p>Not asked. <code>dsfc atlas --format json</code> compares mixers, and "
            "<code>--atlas FILE</code> puts what it proved here.</p>"
        )
    if not s.relatives:
        return paragraph("The atlas proves nothing of this mixer and another one.")
    return f"<ul>{''.join(f'<li><code>{escape(x)}</code></li>' for x in s.relatives)}</ul>"


def emitted(s: Subject) -> str:
    """The modes of the emitted module."""
    if isinstance(s.compiled, str):
        return paragraph(f"It does not compile: {s.compiled}.")
    if not s.compiled.core.strip():
        return paragraph("Its module has no mode of its own.")
    return f"<details><summary>Modes of the torch module</summary><pre>{escape(s.compiled.core)}</pre></details>"


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
        "ρ(τ) is the mean of ‖Φ<sub>t,t-τ</sub>‖ over tokens t: how much of the token τ before is "
        "read. Effective memory is Σ τρ(τ) / Σ ρ(τ) over τ ≥ 1; the horizon is the last τ at which "
        "ρ is at least ε of its largest value. No gauge has a part in it.",
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
        "The mean of I(t, t - τ). If coefficients at a token are functions of that token alone and "
        "|λ| ≤ a &lt; 1, then for s &lt; t I(t, s) ≤ C a<sup>t-s</sup> (C′ + C″/(1 - a)), with constants "
        "over these tokens: the corrected form of the recency theorem. It needs a uniform a below 1, and "
        "token-local coefficients.",
        influences,
        influences_together,
    ),
    "frequency": Section(
        "Frequency response",
        "H(e<sup>iθ</sup>) = D + C (1 - Λ e<sup>-iθ</sup>)<sup>-1</sup> B of a mixer that does not "
        "vary in time; its gain is the largest singular value. Low-pass: no gain is above that at "
        "θ = 0. A kernel without negative entries is low-pass; real decays alone are not enough. What "
        "is measured is the transform of Φ at the last tokens.",
        frequency,
        frequency_together,
    ),
    "smoothing": Section(
        "Over-smoothing",
        "h<sub>t</sub> = A<sub>t</sub> h<sub>t-1</sub> + Δ<sub>t</sub> b<sub>t</sub> in a channel, Δ "
        "the factor of the input that is a function of A. If A ∈ [0, 1], Δ ≥ 0, A + Δ ≤ 1 and "
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
