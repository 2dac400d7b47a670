"""Facts about a mixer that no number is computed for: identity, text, claims, relatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape

from dsfc.claims.verdict import Decided, Proved, Refuted
from dsfc.expr.statements import Predicate, PredicateName
from dsfc.expr.text import text
from dsfc.report.formulas import (
    IN_TYPEWRITER,
    definition_rows,
    formula,
    letter_rows,
    mathml,
    matrix_rows,
    paper_rows,
)
from dsfc.report.html import Markup, inline, paragraph, table
from dsfc.report.subject import Compiled, Subject
from dsfc.structure.classes import CLASSES
from dsfc.structure.ir import Bound, BoundKind, Structure
from dsfc.structure.render import bound_text
from dsfc.structure.summary import summary


def identity(s: Subject) -> str:
    """Three lines that need no theory, then the facts."""
    structure = _bounded(s)
    _, *lines = summary(structure, s.compilation.mixer.doc).split("\n")
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
    return f"<ul>{few}</ul>{table(rows)}"


def _bounded(s: Subject) -> Structure:
    """The structure, with the bound on |Λ| that its claims prove where its shape gives none."""
    structure = s.compilation.structure
    unconditional = [c for c in s.claims if c.statement.what == _STABLE and not c.statement.when]
    if not any(isinstance(c.verdict, Proved) for c in unconditional):
        return structure
    bound = Bound(BoundKind.AT_MOST_ONE, "its claim `stable` is proved")
    open_ = (BoundKind.NORM_NEEDED, BoundKind.UNKNOWN)
    blocks = (replace(b, bound=bound) if b.bound.kind in open_ else b for b in structure.blocks)
    return replace(structure, blocks=tuple(blocks))


_STABLE = Predicate(PredicateName.STABLE)


def spec(s: Subject) -> str:
    """The text and the definitions beside Λ, B, C, D."""
    source = s.compilation.spec.span.source.text.strip()
    system = s.compilation.system
    told, rows = matrix_rows(system)
    per = f" ({told[:-1].lower()})" if told else ""
    right = f"<h3>As a system{escape(per)}</h3>{formula(rows)}"
    paper = paper_rows(system)
    if paper:
        right += "<p>In the paper's gauge, the state stored divided by its normaliser:</p>"
        right += formula(paper)
    left = (
        f"<h3>Spec</h3><pre>{escape(source)}</pre>"
        f"<h3>Definition</h3>{formula(definition_rows(system))}{_letters(s)}"
    )
    return f'<div class="beside"><div>{left}</div><div>{right}</div></div>'


def _letters(s: Subject) -> str:
    """Names of the spec beside the letters of each paper, and the definitions in these letters."""
    mixer, system = s.compilation.mixer, s.compilation.system
    shown = ""
    for paper in mixer.papers:
        if paper.letters:
            rows = letter_rows(mixer, paper)
            cells = ([Markup(mathml(side, "inline")) for side in row] for row in rows)
            shown += (
                f"<h3>In the letters of {escape(paper.located)}</h3>"
                f"{table(cells, ('here', 'there'))}"
                f"{formula(definition_rows(system, paper))}{paragraph(IN_TYPEWRITER)}"
            )
    return shown


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
        f"{inline(said)}</li>"
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
        return paragraph("Its modes call operators of PyTorch alone, so there is no text to show.")
    shown = f"<pre>{escape(s.compiled.core)}</pre>"
    return f"<details><summary>Modes of the torch module</summary>{shown}</details>"
