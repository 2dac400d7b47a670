"""Every place of a text where a name stands, and what kind of name it is there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from dsfc.expr.reserved_names import FIRST, TIME
from dsfc.expr.statements import FOLLOWED_BY, PredicateName
from dsfc.mixer.claims import DECAY
from dsfc.source import Span
from dsfc.syntax import ast

_BEFORE = re.compile(r"(?:[(\s]|#[^\n]*\n)*")
"""What the span of a name in parentheses holds before the name."""
_WORD = re.compile(r"\w+")
_BINDERS = frozenset({"sum", "prod"})


class Kind(Enum):
    """What a name stands for, as far as the text around it says."""

    NAME = "a name of the mixer or modifier, of a base, or of the language"
    LOCAL = "an argument of a function or an index of a sum"
    MIXER = "a mixer"
    MODIFIER = "a modifier"
    WORD = "a word of the language"


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A name at a place.

    Attributes:
        name: in ASCII.
        span: the name alone.
        unit: the mixer or modifier it stands in.
        introduces: whether it is declared or defined here.
        item: the item it stands in, if in one.
        binder: of a local name, the place where it was bound.
    """

    name: str
    span: Span
    kind: Kind
    unit: ast.Unit
    introduces: bool = False
    item: ast.Item | None = None
    binder: Span | None = None


def occurrences(spec: ast.Spec) -> tuple[Occurrence, ...]:
    """Returns all names of a text, unit by unit."""
    return tuple(occurrence for unit in spec.units for occurrence in _Unit(unit).occurrences())


def occurrence_at(spec: ast.Spec, offset: int) -> Occurrence | None:
    """Returns the name that an offset lies in or just behind, the one that begins there first."""
    around = [
        occurrence
        for occurrence in occurrences(spec)
        if occurrence.span.start <= offset <= occurrence.span.end
    ]
    return max(around, key=lambda occurrence: occurrence.span.start, default=None)


def items_introducing(unit: ast.Unit, name: str) -> tuple[Occurrence, ...]:
    """Returns where a unit declares or defines a name, in the order of the text."""
    occurrences_of_unit = _Unit(unit).occurrences()
    return tuple(
        occurrence
        for occurrence in occurrences_of_unit
        if occurrence.introduces and occurrence.kind is Kind.NAME and occurrence.name == name
    )


class _Unit:
    """One walk over a unit."""

    def __init__(self, unit: ast.Unit) -> None:
        self._unit = unit
        self._item: ast.Item | None = None

    def occurrences(self) -> Iterator[Occurrence]:
        unit = self._unit
        kind = Kind.MODIFIER if isinstance(unit, ast.ModifierUnit) else Kind.MIXER
        yield self._of(unit.name, kind, introduces=True)
        if isinstance(unit, ast.ModifierUnit):
            yield self._of(unit.target, introduces=True)
        elif unit.base is not None:
            yield self._of(unit.base, Kind.MIXER)
        for item in unit.items:
            self._item = item
            yield from self._in_item(item)

    def _of(self, ident: ast.Ident, kind: Kind = Kind.NAME, introduces: bool = False) -> Occurrence:
        return Occurrence(ident.text, ident.span, kind, self._unit, introduces, self._item)

    def _word(self, span: Span) -> Occurrence:
        return Occurrence(span.text, span, Kind.WORD, self._unit)

    def _in_item(self, item: ast.Item) -> Iterator[Occurrence]:
        match item:
            case ast.Dims():
                for dim in item.dims:
                    yield self._of(dim.name, introduces=True)
                    if dim.size is not None:
                        yield from self._expr(dim.size, {})
            case ast.Decl():
                yield from (self._of(name, introduces=True) for name in item.names)
                yield from map(self._of, _axes(item.type))
                if item.init is not None:
                    yield from self._expr(item.init.expr, {})
            case ast.Const() | ast.Def():
                yield self._of(item.name, introduces=True)
                yield from self._expr(item.expr, {})
            case ast.FunDef():
                yield self._of(item.name, introduces=True)
                bound = {param.text: param.span for param in item.params}
                yield from (self._local(p.text, p.span, p.span) for p in item.params)
                yield from self._expr(item.expr, bound)
            case ast.Flow():
                yield self._of(item.name, introduces=True)
                yield from self._expr(item.drift, {})
                yield Occurrence(item.rule.text, item.rule.span, Kind.WORD, self._unit)
                yield from self._expr(item.step, {})
            case ast.Use():
                yield self._of(item.modifier, Kind.MODIFIER)
                yield from map(self._of, item.targets)
            case ast.Claim():
                yield from self._claim(item)
            case ast.Citation():
                yield from map(self._word, item.words)
                yield from (self._read(n.text, n.span, {}, claimed=False) for n in item.named)
            case ast.Layer():
                yield from map(self._word, item.words)

    def _claim(self, item: ast.Claim) -> Iterator[Occurrence]:
        match item.relation:
            case ast.Apply(name=ast.Ident(text=word) as name, operand=ast.Name() as about) if (
                word in {p.value for p in FOLLOWED_BY}
            ):
                yield Occurrence(word, name.span, Kind.WORD, self._unit)
                kind = Kind.MIXER if word == PredicateName.EQUIVALENT else Kind.WORD
                yield Occurrence(about.id, _bare(about.span), kind, self._unit, item=item)
            case relation:
                yield from self._expr(relation, {}, claimed=True)
        for condition in item.when:
            over = condition.over if isinstance(condition, ast.Relation) else None
            bound = {} if over is None else dict(_bindings((over,), {}))
            yield from self._expr(condition, bound, claimed=True)
            if over is not None:
                yield from self._expr(over, bound)

    def _local(self, name: str, span: Span, binder: Span) -> Occurrence:
        return Occurrence(name, span, Kind.LOCAL, self._unit, span == binder, self._item, binder)

    def _expr(
        self, node: ast.Condition, bound: Mapping[str, Span], claimed: bool = False
    ) -> Iterator[Occurrence]:
        """Names inside an expression; the height of expressions is bounded by the parser."""
        match node:
            case ast.Name():
                yield self._read(node.id, _bare(node.span), bound, claimed)
            case ast.Index() | ast.Call() | ast.Apply():
                yield self._read(node.name.text, node.name.span, bound, claimed)
        inner = dict(bound)
        if isinstance(node, ast.Call) and node.name.text in _BINDERS:
            inner.update(_bindings(node.brackets, bound))
        for child in ast.children(node):
            yield from self._expr(child, inner, claimed)

    def _read(self, name: str, span: Span, bound: Mapping[str, Span], claimed: bool) -> Occurrence:
        if name in bound:
            return self._local(name, span, bound[name])
        words = {*PredicateName, DECAY} if claimed else set()
        kind = Kind.WORD if name in (TIME, FIRST) or name in words else Kind.NAME
        return Occurrence(name, span, kind, self._unit, item=self._item)


def _axes(written: ast.Type | None) -> Iterable[ast.Ident]:
    match written:
        case ast.TensorType():
            return written.axes
        case ast.MapType():
            return (*written.each, *written.source, *written.target)
    return ()


def _bindings(
    brackets: Iterable[ast.Condition], bound: Mapping[str, Span]
) -> Iterator[tuple[str, Span]]:
    """The index that `sum[j ≤ i]` or `prod[j < l ≤ i]` binds: the first name that is new."""
    for bracket in brackets:
        if isinstance(bracket, ast.Relation):
            for operand in bracket.operands:
                new = isinstance(operand, ast.Name) and operand.id not in (TIME, *bound)
                if isinstance(operand, ast.Name) and new:
                    yield operand.id, _bare(operand.span)
                    break


def _bare(span: Span) -> Span:
    """The span of a name without the parentheses around it."""
    skipped = _BEFORE.match(span.source.text, span.start, span.end)
    start = span.start if skipped is None else skipped.end()
    word = _WORD.match(span.source.text, start, span.end)
    return Span(span.source, start, span.end if word is None else word.end())
