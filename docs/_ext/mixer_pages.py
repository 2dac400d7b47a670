"""The gallery of mixers as Markdown: a page for each shipped spec, and a table of all.

Everything on a page is asked of the compiler when the page is made; nothing is written by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import takewhile

import errata
import kernel_table
import numpy as np
import paper_pages
import picture
import spectrum
from dsfc.backends.torch.cost import Cost, plan_costs

from dsfc.api.decide import claims
from dsfc.api.locate import shipped_names, spec_names
from dsfc.api.pipeline import Compilation, SpecText, read
from dsfc.api.shipped import Kind, shipped_line, shipped_papers
from dsfc.claims.decide import decide
from dsfc.claims.verdict import Decided, Proved, Refuted, Verdict
from dsfc.diagnostics.render import render_all
from dsfc.diagnostics.report import Diagnostic, DiagnosticError
from dsfc.expr.evaluate import NamedArray, evaluate
from dsfc.expr.statements import ClaimStatement, Predicate, PredicateName
from dsfc.expr.text import text
from dsfc.expr.tree import Axis, Expr
from dsfc.papers import Paper
from dsfc.plan.sizes import BATCH, CHUNK, LENGTH
from dsfc.report.formulas import (
    IN_TYPEWRITER,
    definition_rows,
    letter_rows,
    matrix_rows,
    paper_rows,
)
from dsfc.structure.classes import CLASSES
from dsfc.structure.ir import ClassName
from dsfc.structure.render import bound_text
from dsfc.system.ir import System

TOKENS, CHUNKED = 1024, 128
"""Length of the sequence, and tokens of a chunk, that costs are counted for, in a batch of one."""

_APART = {
    Kind.DESCRIBED: "Described",
    Kind.BASE: "Fragments to extend",
    Kind.MODIFIER: "Fragments to use",
}
"""Kinds of specs that do not compile by themselves → the heading of their table."""

_BLOCKS = (
    "Mixers with the convolutions, gates, norms and output maps of a published model: each maps "
    "a sequence of width d to one of width d."
)

_STABLE = ClaimStatement("stable", Predicate(PredicateName.STABLE))


@dataclass(frozen=True)
class _Counting:
    """Sizes and counts as the leaves of a cost."""

    sizes: Mapping[str, int]

    def size(self, axis: Axis) -> int:
        """Size of an axis."""
        return self.sizes[axis.name if axis.name in self.sizes else axis.copy_of or axis.name]

    def param(self, name: str) -> NamedArray:
        """Batch, length and chunk."""
        known = {BATCH.name: 1, LENGTH.name: TOKENS, CHUNK.name: CHUNKED}
        return NamedArray((), np.asarray(float(known[name])))


class Entry:
    """One shipped spec and what the compiler says of it; each value is made once.

    Attributes:
        name: of the spec.
        source: its text.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.spec: SpecText = read(name)
        self.source = self.spec.spec.span.source.text

    @property
    def is_modifier(self) -> bool:
        """Whether it holds modifiers only."""
        return not self.spec.mixers

    @cached_property
    def title(self) -> str:
        """What the spec calls itself."""
        found = re.search(r'^(?:mixer|modifier) [^"\n]*"([^"]+)"', self.source, re.MULTILINE)
        return found[1] if found else self.name

    @cached_property
    def papers(self) -> tuple[Paper, ...]:
        """The papers that it names."""
        return shipped_papers(self.name)

    @cached_property
    def comment(self) -> str:
        """The comment at the head of the spec: what it is."""
        head = takewhile(lambda line: line.startswith("#"), self.source.splitlines())
        return " ".join(line.lstrip("# ") for line in head)

    @cached_property
    def refused(self) -> tuple[Diagnostic, ...]:
        """Why it has no system, or else no module; empty where it compiles."""
        try:
            self.it.module()
        except DiagnosticError as e:
            return e.diagnostics
        return ()

    @cached_property
    def it(self) -> Compilation:
        """The mixer's way through the stages."""
        return self.spec.compilation()

    @cached_property
    def system(self) -> System | None:
        """Its system, None where there is none."""
        try:
            return self.it.system
        except DiagnosticError:
            return None

    @cached_property
    def start(self) -> spectrum.Start:
        """The module as it starts."""
        return spectrum.start(self.it)

    @cached_property
    def spectra(self) -> tuple[spectrum.Spectrum, ...]:
        """Eigenvalues of its states; none where no module is written."""
        return () if self.refused else spectrum.spectra(self.it, self.start)

    @cached_property
    def stability(self) -> Verdict:
        """Whether no transition lengthens a state, decided for every mixer, claimed or not."""
        return decide((_STABLE,), self.it.system, self.it.structure, _no_other)[0].verdict

    def number(self, expr: Expr) -> float:
        """Returns a size or cost at the sizes of the gallery."""
        return float(evaluate(expr, _Counting(self.start.sizes)).data)

    @cached_property
    def decode(self) -> Cost | None:
        """What one token costs when tokens come one by one, None without a state."""
        if self.refused:
            return None
        return next((c for c in plan_costs(self.it.plan) if c.mode == "recurrent"), None)


def _no_other(name: str) -> System:
    raise AssertionError(f"a statement about {name} was not asked for")


@cache
def entry(name: str) -> Entry:
    """Returns a shipped spec."""
    return Entry(name)


# --- one page -------------------------------------------------------------------------------------


def page(name: str) -> str:
    """Returns the page of a spec below its title, as Markdown."""
    e = entry(name)
    return "\n\n".join(s for s in _sections(e) if s) + "\n"


def _sections(e: Entry) -> Iterator[str]:
    # Sphinx puts sections before what stands outside of them.
    of = f", of {e.papers[0].short}" if e.papers else ""
    yield f"## What it is\n\nThe spec `{e.name}`{of}. {_escaped(e.comment)}"
    if e.is_modifier:
        yield "A mixer takes it with `use`; see [](../../language/modifiers.md)."
        yield _spec(e)
        yield _papers(e)
        yield _errata(e)
        return
    if e.system is None:
        yield "## Why it does not compile"
        yield _diagnosis(e)
        yield _spec(e)
        yield from _letters(e)
        yield _papers(e)
        yield _errata(e)
        return
    yield _facts(e)
    yield "## Formula"
    yield _aligned(definition_rows(e.system))
    yield _in_print(e)
    yield from _letters(e)
    yield _spec(e)
    if e.refused:
        yield "## Why it does not compile"
        yield _diagnosis(e)
    yield "## As a system"
    yield _matrices(e.system)
    if not e.refused:
        yield "## Spectrum at the start"
        yield _spectrum(e)
        yield "## Cost"
        yield _cost(e)
        yield "## Kernels"
        yield _kernels(e)
    yield "## What is proved"
    yield _claims(e)
    yield _papers(e)
    yield _errata(e)


def _spec(e: Entry) -> str:
    return f"## Spec\n\n```dsf\n{e.source}```"


def _diagnosis(e: Entry) -> str:
    """Why it does not compile, the file as it is called in a checkout."""
    told = render_all(e.refused).replace(str(e.spec.place.file), f"specs/{e.name}.dsf")
    return f"```text\n{told}\n```"


def _facts(e: Entry) -> str:
    """The properties of a mixer in a list of few lines."""
    s = e.it.structure
    rows = [("class", f"{s.title}, {s.label}: {CLASSES[s.name].form}")]
    rows += [("no finite state", why) for why in dict.fromkeys(s.sums)]
    if s.blocks:
        rows.append(("state", _state(e)))
    rows += [(f"|Λ| of {b.state}", bound_text(b.bound)) for b in s.blocks]
    if not e.refused:
        rows.append(("modes", ", ".join(_modes(e))))
    shown = "\n".join(f"| {name} | {value} |" for name, value in rows)
    return f"| | |\n|---|---|\n{_cells(shown)}"


def _state(e: Entry) -> str:
    """The size of the state in the axes of the spec, and as a number."""
    size = e.it.structure.state_size
    shown = f"`{text(size)}` numbers"
    return shown if e.refused else f"{shown}, {e.number(size):,.0f} {_at(e)}"


def _at(e: Entry) -> str:
    """The sizes that numbers of the page are for."""
    sizes = e.start.sizes
    own = [d.axis for d in e.it.system.axes if d.axis.copy_of is None and d.axis.name in sizes]
    return "at " + ", ".join(f"{a.name} = {sizes[a.name]}" for a in own)


def _modes(e: Entry) -> list[str]:
    plan = e.it.plan
    return [m.name for m in plan.modes if m.legal] + ["step"] * plan.causal


def _in_print(e: Entry) -> str:
    """Where the formulas stand in its papers, as far as the spec says so."""
    found = paper_pages.labelled(e.name)
    shown = "; ".join(f"`{name}` is {_escaped(where)}" for name, where in found)
    letters = "Letters are those of the spec; i is the token, which papers also call t."
    return f"{letters} In the papers {shown}." if shown else letters


def _letters(e: Entry) -> Iterator[str]:
    """Names of the spec beside the letters of each paper, and the formulas in these letters."""
    for paper in e.papers:
        if not paper.letters:
            continue
        yield f"### In the letters of {_escaped(paper.located)}"
        rows = letter_rows(e.it.mixer, paper)
        cells = "\n".join(f"| ${here}$ | ${there}$ |" for here, there in rows)
        yield f"| here | there |\n|---|---|\n{cells}"
        if e.system is not None:
            yield _aligned(definition_rows(e.system, paper))
            yield IN_TYPEWRITER


def _aligned(rows: list[str]) -> str:
    body = " \\\\\n".join(rows)
    return f"$$\n\\begin{{align*}}\n{body}\n\\end{{align*}}\n$$"


def _matrices(system: System) -> str:
    """Λ, B, C and D as LaTeX, and the rows that differ in the paper's gauge."""
    told, rows = matrix_rows(system)
    parts = [told, _aligned(rows)]
    if other := paper_rows(system):
        parts += [
            "In the [paper's gauge](../../theory/gauge.md) the state is stored divided by its "
            "normaliser. There",
            _aligned(other),
        ]
    return "\n\n".join(p for p in parts if p)


def _spectrum(e: Entry) -> str:
    """The pictures, each with what it says in numbers."""
    if not e.spectra:
        kept = "every token" if e.it.structure.sums else "the last tokens"
        return f"It has no state, so no Λ: it keeps {kept}."
    parts = [
        f"Eigenvalues of Λ, with parameters drawn as the module draws them, on "
        f"{spectrum.TOKENS} standard normal tokens, {_at(e)}."
    ]
    for shown, states in _grouped(e.spectra):
        label = f"eigenvalues of the transition of {' and '.join(states)}"
        if np.unique(shown.values).size > 1:
            parts.append(picture.svg(shown.values, label))
        parts.append(_said(shown, states))
    return "\n\n".join(parts)


def _grouped(
    found: tuple[spectrum.Spectrum, ...],
) -> list[tuple[spectrum.Spectrum, list[str]]]:
    """Spectra with the names of all states that have the same."""
    out: list[tuple[spectrum.Spectrum, list[str]]] = []
    for s in found:
        for other, states in out:
            if other.paper == s.paper and np.array_equal(other.values, s.values):
                states.append(s.state)
                break
        else:
            out.append((s, [s.state]))
    return out


def _said(shown: spectrum.Spectrum, states: list[str]) -> str:
    """A spectrum in words."""
    sizes = np.abs(shown.values)
    low, high = float(sizes.min()), float(sizes.max())
    where = ", in the paper's gauge" if shown.paper else ""
    fixed = "the same at every token" if len(shown.values) == 1 else "of each token"
    span = f"|λ| = {low:.4g}" if low == high else f"|λ| from {low:.4g} to {high:.4g}"
    lives = spectrum.memory(shown.values)
    kept = (
        "Nothing is forgotten"
        if all(np.isinf(lives))
        else f"Half of what is stored is gone after {_tokens(lives)} tokens (5th percentile, "
        "median, 95th)"
    )
    return f"Λ of {', '.join(f'`{s}`' for s in states)}{where}, {fixed}: {span}. {kept}."


def _tokens(lives: tuple[float, ...]) -> str:
    return ", ".join("∞" if np.isinf(x) else f"{x:.3g}" for x in lives)


def _cost(e: Entry) -> str:
    """Counts of all modes."""
    costs = plan_costs(e.it.plan)
    if not costs:
        return "No scan: it costs what its own operations cost."
    rows = [
        f"| `{c.mode}` | {e.number(c.operations):,.0f} | {e.number(c.words):,.0f} "
        f"| {e.number(c.calls):,.0f} |"
        for c in costs
    ]
    return (
        f"Counts of its scans, projections not counted, for one sequence of {TOKENS} tokens in "
        f"chunks of {CHUNKED}, {_at(e)}. Words are numbers read and written; a multiply-add is two "
        "operations, and only those in products and transforms count.\n\n"
        "| mode | operations per token | words per token | calls of torch |\n"
        "|---|--:|--:|--:|\n" + "\n".join(rows)
    )


def _kernels(e: Entry) -> str:
    """Which calls run in kernels, and why torch runs the others."""
    told = "What runs its scans; the [table of all](../mixers.md#kernels) says what each call is."
    return f"{told}\n\n{kernel_table.section(e.it)}"


_POINT = 300
"""So many characters of a point are shown; the numbers of a wide mixer would fill the page."""


def _claims(e: Entry) -> str:
    """The claims of a spec with their verdicts, and stability where it is not among them."""
    found = list(claims(e.it))
    lines = [_claim(it) for it in found]
    if not any(it.statement.text == _STABLE.text for it in found) and e.it.structure.blocks:
        lines.append(_claim(Decided(_STABLE, e.stability), " (not claimed by the spec)"))
    return "\n".join(lines) or "The spec claims nothing."


def _claim(it: Decided, note: str = "") -> str:
    shown = f"`{it.statement.text}`{note}"
    match it.verdict:
        case Proved(by):
            return f"- **proved** {shown}: {_escaped(by)}"
        case Refuted(why, point):
            cut = point if len(point) <= _POINT else f"{point[:_POINT]}…"
            where = f"; the point: `{cut}`" if point else ""
            return f"- **refuted** {shown}: {_escaped(why)}{where}"
    return f"- **not decided** {shown}: {_escaped(it.verdict.obstacle)}"


def _papers(e: Entry) -> str:
    """The papers that a spec names, the original first."""
    return "## Papers\n\n" + "\n".join(f"- {paper_pages.reference(p)}" for p in e.papers)


def _errata(e: Entry) -> str:
    """Where its papers print what is not meant."""
    wrong = errata.of_spec(e.name)
    told = "The published form is wrong or unclear here; the spec is the corrected one."
    return f"## Errata\n\n{told}\n\n{wrong}" if wrong else ""


def _escaped(prose: str) -> str:
    """Prose of a spec or a verdict, in which no sign is markup."""
    return re.sub(r"([\\*_`$\[\]<>|])", r"\\\1", prose)


def _cells(rows: str) -> str:
    """Rows of a table whose cells hold bars of absolute values."""
    return re.sub(r"\|(Λ|λ)\|", r"\\|\1\\|", rows)


# --- the table ------------------------------------------------------------------------------------


@cache
def table() -> str:
    """Returns the tables of all specs: one per structure class, one of blocks, as Markdown."""
    kinds = {name: shipped_line(name).kind for name in spec_names()}
    mixers, blocks = (
        [entry(n) for n in spec_names() if kinds[n] is kind] for kind in (Kind.MIXER, Kind.BLOCK)
    )
    parts = []
    for kind in ClassName:
        rows = [e for e in mixers if e.it.structure.name is kind]
        if rows:
            parts.append(f"## {kind.value}\n\n{CLASSES[kind].form.capitalize()}.\n\n{_rows(rows)}")
    parts.append(f"## Blocks\n\n{_BLOCKS}\n\n{_rows(blocks)}")
    return "\n\n".join((*parts, *_apart(kinds))) + "\n"


def _apart(kinds: Mapping[str, Kind]) -> Iterator[str]:
    """Tables of what is no mixer by itself, or none that compiles."""
    for part, title in _APART.items():
        rest = [entry(n) for n in spec_names() if kinds[n] is part]
        lines = "\n".join(f"| {_link(e)} | {_escaped(e.title)} | {_codes(e)} |" for e in rest)
        yield f"## {title}\n\n| spec | | |\n|---|---|---|\n{lines}"


def _rows(entries: list[Entry]) -> str:
    head = "| spec | Λ at the start | state | words per token | stable |\n|---|---|---|--:|---|"
    return "\n".join((head, *(_row(e) for e in entries)))


def _row(e: Entry) -> str:
    first = f"{_link(e)}<br>{_escaped(e.title)}"
    s = e.it.structure
    label = s.label if len(s.blocks) < 2 else s.cells[0]
    small = ""
    if e.spectra:
        shown = e.spectra[-1] if e.spectra[-1].paper else e.spectra[0]
        small = picture.svg(shown.values, f"eigenvalues of {e.name}", small=True)
        small = small.replace("\n", "") + ("paper's gauge" if shown.paper else "")
    size = f"{e.number(s.state_size):,.0f}<br>`{text(s.state_size)}`" if s.blocks else "0"
    cost = "" if e.decode is None else f"{e.number(e.decode.words):,.0f}"
    return f"| {first} | {small} | {label}<br>{size} | {cost} | {_word(e)} |"


def _word(e: Entry) -> str:
    """The verdict on stability in a word."""
    if not e.it.structure.blocks:
        return ""
    return {Proved: "proved", Refuted: "refuted"}.get(type(e.stability), "not decided")


def _link(e: Entry) -> str:
    return f"[{_escaped(e.name)}](mixers/{e.name}.md)"


def _codes(e: Entry) -> str:
    """The codes that a mixer is refused with."""
    if e.is_modifier:
        return ""
    codes = dict.fromkeys(d.code for d in e.refused)
    return ", ".join(f"[{c}](errors.md#{c.lower()})" for c in codes)


def kernels() -> str:
    """Returns the table of which calls run in kernels, of all mixers that compile."""
    mixers = [entry(n) for n in shipped_names() if not entry(n).is_modifier]
    return f"{kernel_table.table({e.name: e.it for e in mixers if not e.refused})}\n"
