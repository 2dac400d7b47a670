"""Notes about one mixer: text that is right and may not be meant. None is an error."""

from __future__ import annotations

from collections.abc import Iterator

from dsfc.api.pipeline import Compilation
from dsfc.diagnostics.catalogue import (
    CacheNote,
    IdleIndex,
    Stalled,
    Unread,
    WideOutput,
)
from dsfc.diagnostics.report import Diagnostic, nearest
from dsfc.expr.build import walk
from dsfc.expr.over_time import Past
from dsfc.expr.tree import Axis, Bound, Expr, Ref, Time
from dsfc.mixer.shapes import named
from dsfc.mixer.stalled import stalled
from dsfc.source import NOWHERE, Span
from dsfc.syntax import ast
from dsfc.system.ir import Cache, ReadOut
from dsfc.system.traverse import parts


def notes(compilation: Compilation) -> tuple[Diagnostic, ...]:
    """Returns the notes about a mixer that derives.

    Args:
        compilation: the mixer.
    """
    return (
        *_caches(compilation),
        *_idle_indices(compilation),
        *_wide_outputs(compilation),
        *_stalled(compilation),
        *_unread(compilation),
    )


def _caches(compilation: Compilation) -> Iterator[Diagnostic]:
    for tree, span in _read_outs(compilation):
        for node in parts(tree):
            if isinstance(node, Cache):
                yield CacheNote(span or compilation.mixer.span or NOWHERE, why=node.why)


def _read_outs(compilation: Compilation) -> Iterator[tuple[ReadOut, Span | None]]:
    """Yields the read-outs of a system, each with the span of its definition."""
    for stream in compilation.system.streams:
        if not isinstance(stream.value, Expr):
            yield stream.value, stream.span
    for output in compilation.system.outputs:
        yield output.value, _output_span(compilation)


def _output_span(compilation: Compilation) -> Span | None:
    definition = compilation.mixer.definition(compilation.mixer.output)
    return None if definition is None else definition.span


def _idle_indices(compilation: Compilation) -> Iterator[Diagnostic]:
    """Yields a note for each sum over tokens in which no value of a token is read at its index."""
    for definition in compilation.mixer.definitions:
        for node in walk(definition.value):
            if isinstance(node, Past) and _is_idle(node):
                span = definition.span or compilation.mixer.span or NOWHERE
                yield IdleIndex(span, index=node.var, stream=_first_stream(node.body))


def _is_idle(node: Past) -> bool:
    streams = [part for part in walk(node.body) if isinstance(part, Ref)]
    here = any(isinstance(part.at, Bound) and part.at.var == node.var for part in streams)
    return not here and any(part.time is not Time.CONST for part in streams)


def _first_stream(body: Expr) -> str:
    return min(part.name for part in walk(body) if isinstance(part, Ref) and part.at is not None)


def _wide_outputs(compilation: Compilation) -> Iterator[Diagnostic]:
    """Yields a note for an output that has all axes of a state of two axes or more."""
    fed = [frozenset(tensor.axes) for tensor in compilation.system.inputs]
    for output in compilation.system.outputs:
        axes = _plain(output.axes)
        if any(axes <= _plain(taken) for taken in fed):
            continue
        for block in (block for stage in compilation.system.stages for block in stage.blocks):
            kept = _plain(block.axes)
            if len(kept) > 1 and kept <= axes:
                span = _output_span(compilation) or NOWHERE
                extra = kept.difference(*fed) or kept
                shown = " or ".join(f"`sum[{axis.name}](…)`" for axis in sorted(extra))
                yield WideOutput(
                    span, output=output.name, axes=named(output.axes), state=block.state, sums=shown
                )
                break


def _plain(axes: tuple[Axis, ...] | frozenset[Axis]) -> frozenset[Axis]:
    """The axes that do not count heads."""
    return frozenset(axis for axis in axes if not axis.heads)


def _stalled(compilation: Compilation) -> Iterator[Diagnostic]:
    """Yields a note for the parameters that training never moves, at the first of them."""
    mixer = compilation.mixer
    names = stalled(mixer)
    if names:
        spans = {t.name: t.span for t in mixer.params}
        *most, last = (f"`{_written(name, spans[name])}`" for name in names)
        said = f"{', '.join(most)} and {last} start" if most else f"{last} starts"
        yield Stalled(spans[names[0]] or mixer.span or NOWHERE, starts=said)


def _written(name: str, span: Span | None) -> str:
    return name if span is None else span.text or name


def _unread(compilation: Compilation) -> Iterator[Diagnostic]:
    """Yields a note for each definition and parameter of a mixer's own text without a reader."""
    mixer, spec = compilation.mixer, compilation.spec
    parts = (*mixer.inputs, *mixer.params, *mixer.buffers, *mixer.definitions, *mixer.states)
    reached = {part.name: _written(part.name, part.span) for part in parts}
    (*_, unit) = (u for u in _mixers(spec) if u.name.text == compilation.name)
    readers = [(item, _mentioned(item)) for unit in spec.units for item in unit.items]
    for item in unit.items:
        for name in _named(item):
            read = any(name.text in words for other, words in readers if not _defines(other, name))
            if name.text not in reached and not read:
                near = nearest(name.text, reached)
                meant = None if near is None else reached[near]
                yield Unread(name.span, name=name.span.text or name.text, nearest=meant)


def _mixers(spec: ast.Spec) -> Iterator[ast.MixerUnit]:
    return (unit for unit in spec.units if isinstance(unit, ast.MixerUnit))


def _named(item: ast.Item) -> tuple[ast.Ident, ...]:
    """The names that an item of a mixer defines."""
    if isinstance(item, ast.Decl) and item.kind in (ast.DeclKind.PARAM, ast.DeclKind.BUFFER):
        return item.names
    return (item.name,) if isinstance(item, ast.Def) else ()


def _defines(item: ast.Item, name: ast.Ident) -> bool:
    return isinstance(item, ast.Def | ast.Flow) and item.name.text == name.text


def _mentioned(item: ast.Item) -> frozenset[str]:
    """The names that an item of a mixer or modifier reads or rewrites."""
    match item:
        case ast.Def() | ast.FunDef() | ast.Const():
            nodes: tuple[ast.Condition, ...] = (item.expr,)
        case ast.Flow():
            nodes = (item.drift, item.step)
        case ast.Claim():
            nodes = (item.relation, *item.when)
        case ast.Decl(init=ast.Init(expr=first)):
            nodes = (first,)
        case ast.Use():
            return frozenset(target.text for target in item.targets)
        case _:
            nodes = ()
    inside = [part for node in nodes for part in ast.walk(node)]
    return frozenset(
        part.id if isinstance(part, ast.Name) else part.name.text
        for part in inside
        if isinstance(part, ast.Name | ast.Index | ast.Call | ast.Apply)
    )
