"""What is right and may not be meant: notes about one mixer, none of them an error."""

from __future__ import annotations

from collections.abc import Iterator

from dsfc.api.pipeline import Compilation
from dsfc.diagnostics.catalogue import CacheNote, IdleIndex, WideOutput
from dsfc.diagnostics.report import Diagnostic
from dsfc.expr.build import walk
from dsfc.expr.over_time import Past
from dsfc.expr.tree import Axis, Bound, Expr, Ref, Time
from dsfc.mixer.shapes import named
from dsfc.source import NOWHERE, Span
from dsfc.system.ir import Cache, ReadOut
from dsfc.system.traverse import parts


def notes(compilation: Compilation) -> tuple[Diagnostic, ...]:
    """Returns the notes about a mixer that derives.

    Args:
        compilation: the mixer.
    """
    return (*_caches(compilation), *_idle_indices(compilation), *_wide_outputs(compilation))


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
