"""What is shown of the name under the pointer, as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dsfc.derive.derive import derive
from dsfc.diagnostics.catalogue import NoOutput
from dsfc.diagnostics.report import DiagnosticError
from dsfc.language_server.document import Document
from dsfc.language_server.lookup import Owner, introductions, unit_named
from dsfc.language_server.names import Kind, Occurrence, occurrence_at
from dsfc.language_server.words import word_of_language
from dsfc.matrices.kronecker_form import kronecker_form
from dsfc.mixer.ir import Mixer
from dsfc.mixer.render import described
from dsfc.mixer.resolve import resolve
from dsfc.mixer.words import WORDS
from dsfc.papers import Paper
from dsfc.resource_limits import Expired, Watch
from dsfc.source import Span
from dsfc.structure.classify import classify
from dsfc.syntax import ast
from dsfc.syntax.format import format_header, format_item

PATIENCE = 2.0
"""Seconds of a core that deriving a mixer may take before what is known is shown without it."""

_PROSE = re.compile(r"([\\*_`$\[\]<>|])")
_ESCAPED = r"\\\1"


@dataclass(frozen=True, slots=True)
class Hover:
    """What to show, and of what part of the text."""

    span: Span
    markdown: str


def hover(document: Document, offset: int) -> Hover | None:
    """Returns what is known of the name or word at an offset, None where there is none.

    A name shows its declaration, its shape and its letters in papers, a mixer its matrices Λ, B, C,
    D and its structure class, a modifier its text, a function, keyword or operator of the language
    its meaning, a paper its reference with a link.
    """
    cited = _cited(document.spec, offset) if document.parsed else None
    if cited is not None and not any(n.span.start <= offset <= n.span.end for n in cited.named):
        return Hover(cited.span, _reference(cited.paper))
    word = word_of_language(document, offset)
    if word is not None:
        return Hover(word[0], f"`{word[0].text}`: {word[1]}")
    occurrence = occurrence_at(document.spec, offset) if document.parsed else None
    if occurrence is None:
        return None
    shown = _shown(document, occurrence)
    return None if shown is None else Hover(occurrence.span, shown)


def meaning(name: str) -> str | None:
    """Returns the one line that says what a word of the language means, None for other words."""
    word = WORDS.get(name)
    return None if word is None else word.meaning


def _shown(document: Document, occurrence: Occurrence) -> str | None:
    match occurrence.kind:
        case Kind.LOCAL if isinstance(occurrence.item, ast.FunDef):
            return f"argument of `{occurrence.item.name}`"
        case Kind.LOCAL:
            return "index of the sum or product around it"
        case Kind.MIXER | Kind.MODIFIER:
            owner = unit_named(document, occurrence.name, occurrence.kind, document.home)
            return None if owner is None else _unit(document, owner)
        case Kind.NAME:
            return _name(document, occurrence) or _of_language(occurrence.name)
    return _of_language(occurrence.name)


def _cited(spec: ast.Spec, offset: int) -> ast.Citation | None:
    """The paper whose item an offset lies in."""
    items = (item for unit in spec.units for item in unit.items)
    return next(
        (
            item
            for item in items
            if isinstance(item, ast.Citation) and item.span.start <= offset <= item.span.end
        ),
        None,
    )


def _reference(paper: Paper) -> str:
    """A paper with a link to where it is kept."""
    kept = paper.identifier
    shown = _PROSE.sub(_ESCAPED, str(paper))
    return shown if kept is None else f"{shown}\n\n<{kept.link}>"


def _of_language(name: str) -> str | None:
    known = meaning(name)
    return None if known is None else f"`{name}`: {known}"


def _name(document: Document, occurrence: Occurrence) -> str | None:
    """Declaration and definition of a name, its shape, and where it comes from."""
    introduced = introductions(document, occurrence)
    if not introduced:
        return None
    lines = [format_item(item.item) for item in introduced if item.item is not None]
    if not lines:
        return f"what modifier `{occurrence.unit.name}` is used on"
    parts = [_code("\n".join(lines))]
    typed = document.typed.get(occurrence.unit.name.text)
    shape = None if typed is None else _type(typed.mixer, occurrence.name)
    if shape is not None:
        parts.append(f"`{occurrence.span.text}` : {shape}")
    if introduced[0].unit is not occurrence.unit:
        parts.append(
            f"from `{introduced[0].unit.name}`, {Path(introduced[0].span.source.name).name}"
        )
    parts += _letters(occurrence.unit, occurrence.name)
    return "\n\n".join(parts)


def _letters(unit: ast.Unit, name: str) -> Iterator[str]:
    """The letters that papers of a unit have for a name, in LaTeX, one text a paper."""
    for paper in ast.papers(unit):
        for letter in paper.letters:
            if letter.name == name:
                yield f"`{letter.latex}` in {_PROSE.sub(_ESCAPED, paper.located)}"


def _type(mixer: Mixer, name: str) -> str | None:
    """The axes, field and time of a definition; the others' stand in their declarations."""
    definition = mixer.definition(name)
    return None if definition is None else described(definition.value)


def _unit(document: Document, owner: Owner) -> str:
    unit = owner.unit
    if isinstance(unit, ast.ModifierUnit):
        return _code("\n".join([f"{format_header(unit)} {{", *map(format_item, unit.items), "}"]))
    head = _code(format_header(unit))
    try:
        with Watch(PATIENCE).watching():
            mixer = resolve(owner.home.spec, unit.name.text, document.library)
            system = derive(mixer)
            structure, form = classify(system), kronecker_form(system)
        known = f"class: {structure.title}\n\n{_code(form, 'text')}"
        return "\n\n".join([head, *map(_reference, mixer.papers), known])
    except Expired:
        return f"{head}\n\nnot derived in {PATIENCE:g} s; `dsfc show` has more time for it"
    except DiagnosticError as e:
        if all(isinstance(d, NoOutput) for d in e.diagnostics):
            return f"{head}\n\nno output `y`: a base for others"
        return f"{head}\n\n" + "\n".join(f"- {d}" for d in e.diagnostics)


def _code(text: str, language: str = "dsf") -> str:
    return f"```{language}\n{text.rstrip()}\n```"
