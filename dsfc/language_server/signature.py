"""What the call around the caret takes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from dsfc.language_server.document import Document
from dsfc.language_server.lookup import scope
from dsfc.mixer.words import WORDS
from dsfc.syntax import ast
from dsfc.syntax.format import format_item
from dsfc.syntax.letters import unfold
from dsfc.syntax.open_call import OpenCall, open_calls

_GROUP = re.compile(r"\[([^\]]*)\]|\(([^)]*)\)")
_COMPARES = re.compile("[<>≤≥]")


@dataclass(frozen=True, slots=True)
class Signature:
    """One way to call something.

    Attributes:
        label: the call as it is written.
        indices: where the parts in its `[ ]` stand in the label.
        arguments: where those in its `( )` stand.
        meaning: of what is called, in one line.
    """

    label: str
    indices: tuple[tuple[int, int], ...]
    arguments: tuple[tuple[int, int], ...]
    meaning: str


@dataclass(frozen=True, slots=True)
class Help:
    """The ways to call what stands before the caret.

    Attributes:
        signatures: all of them.
        active: the one that fits what is written so far.
        part: which of its indices and arguments, counted together, is being written.
    """

    signatures: tuple[Signature, ...]
    active: int
    part: int


def signature(document: Document, offset: int) -> Help | None:
    """Returns what the innermost call around an offset takes, None outside of calls.

    Brackets around a value, and the index of a name such as `S[i-1]`, are no calls. What follows
    the offset may have any mistake.
    """
    for call in open_calls(document.source, offset, document.library.limits):
        signatures = _own(document, offset, call.name) or _of_language(call.name)
        if signatures:
            return _help(call, signatures)
    return None


def _help(call: OpenCall, signatures: tuple[Signature, ...]) -> Help:
    fits = [bool(_COMPARES.search(s.label)) == call.compares for s in signatures]
    active = fits.index(True) if any(fits) else 0
    chosen = signatures[active]
    before = 0 if call.indexed else len(chosen.indices)
    return Help(signatures, active, before + call.position)


def _own(document: Document, offset: int, name: str) -> tuple[Signature, ...]:
    """How a function or map of the mixer around an offset is called."""
    unit = document.unit_before(offset)
    introduced = None if unit is None else scope(document, unit).get(name)
    match None if introduced is None else introduced.item:
        case ast.FunDef() as function:
            taken: Iterable[str] = (unfold(param.text) for param in function.params)
        case ast.Decl(type=ast.MapType(source=source)) as function:
            taken = [" × ".join(unfold(axis.text) for axis in source)]
        case _:
            return ()
    return (_signature(f"{unfold(name)}({', '.join(taken)})", format_item(function)),)


def _of_language(name: str) -> tuple[Signature, ...]:
    word = WORDS.get(name)
    return () if word is None else tuple(_signature(call, word.meaning) for call in word.calls)


def _signature(label: str, said: str) -> Signature:
    indices: list[tuple[int, int]] = []
    arguments: list[tuple[int, int]] = []
    for group in _GROUP.finditer(label):
        kind = 1 if group[1] is not None else 2
        at = group.start(kind)
        for part in group[kind].split(", "):
            (indices if kind == 1 else arguments).append((at, at + len(part)))
            at += len(part) + 2
    return Signature(label, tuple(indices), tuple(arguments), said)
