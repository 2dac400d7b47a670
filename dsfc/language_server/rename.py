"""Another name for one thing, at every place where it stands, in every file that shares it.

A name is renamed in the first base that mentions it and in all that extend that one, in the folder
of the text. What cannot be done everywhere is refused, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from dsfc.diagnostics.report import DiagnosticError
from dsfc.expr.distributions import DISTRIBUTIONS
from dsfc.expr.reserved_names import FIRST, TIME
from dsfc.expr.table import SPELLINGS
from dsfc.language_server.document import Document, document
from dsfc.language_server.edits import Edit, applied
from dsfc.language_server.lookup import unit_named
from dsfc.language_server.names import Kind, Occurrence, occurrence_at, occurrences
from dsfc.language_server.references import family, heirs, mentions, texts_beside
from dsfc.mixer.reserved_names import FORMS, OUTPUT
from dsfc.source import Source, Span
from dsfc.syntax import ast
from dsfc.syntax.grammar import terminals
from dsfc.syntax.letters import fold, is_legal
from dsfc.syntax.lex import KEYWORDS
from dsfc.syntax.parse import parse


class Refused(Exception):
    """A name cannot be changed; the message says why."""


def renamable(document: Document, offset: int) -> Span:
    """Returns the name at an offset that may be renamed.

    Raises:
        Refused: there is none.
    """
    return _asked(document, offset).span


def rename(
    document: Document, offset: int, name: str, open_texts: Iterable[ast.Spec] = ()
) -> tuple[Edit, ...]:
    """Returns the changes that give what stands at an offset another name.

    Args:
        document: the text.
        offset: inside the name.
        name: the new one, in Greek or ASCII.
        open_texts: texts that the editor has open and that stand for their files.

    Raises:
        Refused: the name is reserved, taken or no name; the change would reach a file that is not
            in the folder; or a text would have a mistake more.
    """
    texts = {
        spec.span.source.name: spec
        for spec in (*texts_beside(document), *open_texts, document.spec)
    }
    document = replace(document, library=document.library.holding(texts.values()))
    occurrence = _asked(document, offset)
    new = fold(name)
    _check_word(name, document)
    if new == occurrence.name:
        return ()
    if occurrence.kind is Kind.LOCAL:
        places = _of_local(document, occurrence, new)
    elif occurrence.kind is Kind.NAME:
        places = list(_of_name(document, occurrence, new, texts.values()))
    else:
        places = _of_unit(document, occurrence, new)
    edits = tuple(Edit(place.span, name) for place in places)
    _check_meaning(document, edits, texts)
    return edits


def _asked(document: Document, offset: int) -> Occurrence:
    occurrence = occurrence_at(document.spec, offset) if document.parsed else None
    if occurrence is None:
        raise Refused(
            "there is no name here" if document.parsed else "the text has mistakes of syntax"
        )
    if occurrence.kind is Kind.WORD or occurrence.name == OUTPUT:
        raise Refused(f"`{occurrence.span.text}` is a word of the language")
    if occurrence.kind in (Kind.MIXER, Kind.MODIFIER):
        _check_unit(document, occurrence)
    elif occurrence.kind is Kind.NAME and not family(document, occurrence):
        raise Refused(f"`{occurrence.span.text}` is not declared or defined in a spec")
    return occurrence


def _check_unit(document: Document, occurrence: Occurrence) -> None:
    own = any(u.name.text == occurrence.name for u in document.spec.units)
    if not own:
        raise Refused(f"`{occurrence.name}` stands in another file")
    if document.path.stem == occurrence.name:
        raise Refused(f"`{occurrence.name}` is found by the name of its file; rename both by hand")


def _check_word(name: str, document: Document) -> None:
    # A word that is reserved only before another one, such as `layer`, is a name all the same.
    is_word = any(re.fullmatch(terminals()[kind], fold(name)) for kind in KEYWORDS)
    known = {*SPELLINGS, *FORMS, *DISTRIBUTIONS, TIME, FIRST, OUTPUT}
    if is_word or fold(name) in known:
        raise Refused(f"`{name}` is a word of the language")
    if not name or not all(map(is_legal, name)) or name[0] == "_" or name[0].isdigit():
        raise Refused(f"`{name}` is no name: a letter, then letters, digits and _")
    if len(fold(name)) > document.library.limits.name_length:
        raise Refused(f"a name has at most {document.library.limits.name_length} characters")


def _of_local(document: Document, occurrence: Occurrence, new: str) -> list[Occurrence]:
    """The places of an argument or index."""
    item = [
        o
        for o in occurrences(document.spec)
        if o.item is occurrence.item and o.unit is occurrence.unit
    ]
    if any(o.name == new for o in item):
        raise Refused(f"`{new}` stands in the same definition")
    return [o for o in item if o.kind is Kind.LOCAL and o.binder == occurrence.binder]


def _of_unit(document: Document, occurrence: Occurrence, new: str) -> list[Occurrence]:
    """The places of a mixer or modifier; not named like the file, it is seen in its text only."""
    if any(u.name.text == new for u in document.spec.units):
        raise Refused(f"`{new}` is another mixer or modifier of this text")
    return [
        o
        for o in occurrences(document.spec)
        if o.name == occurrence.name and o.kind is occurrence.kind
    ]


def _of_name(
    document: Document, occurrence: Occurrence, new: str, texts: Collection[ast.Spec]
) -> Iterator[Occurrence]:
    """The places of a name in the first base that mentions it, and in all that extend that one."""
    root = family(document, occurrence)[-1].unit
    source = root.span.source
    if not any(root is unit for spec in texts for unit in spec.units):
        where = Path(source.name).name
        raise Refused(f"`{occurrence.span.text}` comes from {where}, which is not in this folder")
    if isinstance(root, ast.ModifierUnit):
        _check_made(root, occurrence.name, texts)
    for there, unit in heirs(document, root, texts):
        if any(o.name == new for o in occurrences(ast.Spec((unit,)))):
            raise Refused(f"`{new}` stands in `{unit.name}`")
        _check_modifiers(there, unit, (occurrence.name, new))
        yield from mentions(unit, occurrence.name)


def _check_modifiers(document: Document, unit: ast.Unit, names: Collection[str]) -> None:
    """A modifier may read names of the mixer that uses it; it would not follow the change."""
    for use in unit.items:
        owner = None
        if isinstance(use, ast.Use):
            owner = unit_named(document, use.modifier.text, Kind.MODIFIER, document.home)
        if owner is not None:
            inside = [o for o in occurrences(ast.Spec((owner.unit,))) if o.kind is Kind.NAME]
            own = {o.name for o in inside if o.introduces}
            if any(o.name in names and o.name not in own for o in inside):
                raise Refused(f"modifier `{owner.unit.name}` reads a name of `{unit.name}`")


def _check_made(modifier: ast.ModifierUnit, name: str, texts: Iterable[ast.Spec]) -> None:
    """A mixer may say `q_short_conv_w` of what a modifier brings; it would not follow."""
    generated = f"_{modifier.name}_{name}"
    if any(o.name.endswith(generated) for spec in texts for o in occurrences(spec)):
        raise Refused(f"a spec of this folder speaks of `…{generated}`")


def _check_meaning(
    edited: Document, edits: tuple[Edit, ...], texts: Mapping[str, ast.Spec]
) -> None:
    """Whatever the rules above forgot: a text has no mistake more than before."""
    sources = {name: spec.span.source for name, spec in texts.items()}
    changed = {edit.span.source.name for edit in edits}
    for name in changed:
        own = [edit for edit in edits if edit.span.source.name == name]
        sources[name] = Source(name, applied(sources[name].text, own))
    try:
        after = [parse(source, edited.library.limits) for source in sources.values()]
    except DiagnosticError as e:
        raise Refused(e.diagnostics[0].message) from None
    library = edited.library.holding(after)
    for name in sorted(changed):
        old = document(texts[name].span.source, edited.library).diagnostics
        new = document(sources[name], library).diagnostics
        if len(new) > len(old):
            raise Refused(f"{Path(name).name}: {new[0].message}")
