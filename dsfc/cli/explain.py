"""`dsfc explain WORD`: the page of a diagnostic, a word of the language, a class or a mixer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from dsfc.cli.colours import code as as_code
from dsfc.cli.colours import heading
from dsfc.cli.usage import examples

if TYPE_CHECKING:
    from dsfc.mixer.words import Word

_FENCE = re.compile(r"^```(?:(\w+) (wrong|right))?$")
_INLINE = re.compile(r"`[^`\n]+`")


@click.command(
    cls=examples(
        ("dsfc explain E-SHAPE-MUL", "what a mistake is, and how to put it right"),
        ("dsfc explain fir", "how a function of the language is called, with an example"),
        ("dsfc explain gla", "what a shipped mixer is, and its papers"),
        ("dsfc explain", "all codes and words"),
    ),
    context_settings={"ignore_unknown_options": True},  # `->` is a sign of the language
    short_help="Explain a code, a word of the language or a shipped mixer.",
)
@click.argument("word", required=False)
def explain(word: str | None) -> None:
    """Explain a code, a word of the language or a shipped mixer.

    WORD is the code in brackets in a message, such as E-SHAPE-MUL; a keyword, sign or function of
    the language, such as heads, ⊗ or fir; a structure class, such as per_key; or a shipped mixer,
    such as gla. Without it all codes and words are listed.
    """
    from dsfc.diagnostics import catalogue
    from dsfc.diagnostics.report import nearest

    if word is None:
        for line in _listed():
            click.echo(line)
        return
    if word.upper() in catalogue.CODES:
        pages = [_rendered(catalogue.explain(word))]
    else:
        pages = list(_pages(word))
    if not pages:
        near = nearest(word.upper(), catalogue.CODES) or nearest(word, _known())
        hint = f"; did you mean `{near}`?" if near else "; `dsfc explain` lists all"
        raise click.UsageError(f"no code, word of the language or shipped mixer is {word}{hint}")
    for number, page in enumerate(pages):
        if number:
            click.echo()
        for line in page:
            click.echo(line)


def _listed() -> Iterator[str]:
    """All codes and words, each with what it means in a line."""
    from dsfc.diagnostics import catalogue
    from dsfc.mixer.words import WORDS
    from dsfc.structure.classes import CLASSES

    codes = {c: (kind.__doc__ or "").splitlines()[0] for c, kind in sorted(catalogue.CODES.items())}
    words = {word.name: word.meaning for word in WORDS.values()}
    classes = {name.value: f"Λ depends on: {row.decay}" for name, row in CLASSES.items()}
    groups = {"codes": codes, "words of the language": words, "structure classes": classes}
    for title, group in groups.items():
        yield heading(f"{title}:")
        for name, meaning in group.items():
            yield f"  {heading(f'{name:<16}')} {meaning}"
        yield ""
    yield "`dsfc list` lists the shipped mixers."


def _known() -> tuple[str, ...]:
    """What can be explained beside codes."""
    from dsfc.api.locate import spec_names
    from dsfc.mixer.words import WORDS
    from dsfc.structure.classes import CLASSES

    return (*WORDS, *(name.value for name in CLASSES), *spec_names())


def _pages(word: str) -> Iterator[Iterator[str]]:
    """The pages of a word; `softmax` is a function, a class and a mixer."""
    from dsfc.api.locate import spec_names
    from dsfc.mixer.words import WORDS
    from dsfc.structure.classes import CLASSES

    if word in WORDS:
        yield _word(WORDS[word])
    if word in {name.value for name in CLASSES}:
        yield _class(word)
    if word in spec_names():
        yield _shipped(word)


def _word(word: Word) -> Iterator[str]:
    yield f"{heading(word.name)}, a {word.kind}: {_inline(word.meaning)}"
    if unsaid := [call for call in word.calls if call not in word.meaning]:
        yield f"  called: {', '.join(map(as_code, unsaid))}"
    yield from (f"  {note}" for note in word.notes)
    yield heading("example:")
    yield from (f"    {as_code(line)}" for line in word.example.splitlines())
    yield f"more: {word.page} in the docs"


def _class(name: str) -> Iterator[str]:
    from dsfc.structure.classes import CLASSES
    from dsfc.structure.ir import ClassName

    row = CLASSES[ClassName(name)]
    yield f"{heading(name)}, a structure class: Λ depends on: {row.decay}"
    yield f"  mixers: {', '.join(row.examples)}"
    yield f"  runs as: {row.form}"
    yield "more: theory/structure in the docs"


def _shipped(name: str) -> Iterator[str]:
    from dsfc.api.shipped import Kind, shipped_line

    line = shipped_line(name)
    kinds = {
        Kind.MIXER: "a shipped mixer",
        Kind.BLOCK: "a shipped block, a mixer with what stands around it in a model",
        Kind.BASE: "a shipped base, which mixers extend",
        Kind.MODIFIER: "a shipped modifier, which mixers use",
        Kind.DESCRIBED: "a shipped mixer that this version does not compile",
    }
    yield f"{heading(name)}, {kinds[line.kind]}: {line.title}"
    if line.structure:
        yield f"  class: {line.structure}"
        yield f"  size of its state: {line.state}"
        yield f"  targets with kernels for all of it: {', '.join(line.kernels) or 'none'}"
    yield from (f"  {paper}" for paper in line.papers)
    if line.kind in (Kind.MIXER, Kind.BLOCK):
        shown = f"dsfc show {name}", f"dsfc compile {name}"
        yield f"{as_code(shown[0])} prints its matrices, {as_code(shown[1])} writes its module"
    yield f"more: reference/mixers/{name} in the docs"


def _rendered(page: str) -> Iterator[str]:
    """The lines of a page for people: titles stand out, examples are indented under their names."""
    first, *rest = page.splitlines()
    yield heading(first)
    fenced = False
    for line in rest:
        fence = _FENCE.match(line)
        if fence is not None:
            fenced = not fenced
            if fenced:
                yield heading(f"{fence[2]}:")
        elif fenced:
            yield f"    {as_code(line)}" if line else ""
        else:
            yield _inline(line)


def _inline(text: str) -> str:
    return _INLINE.sub(lambda inline: as_code(inline[0]), text)
