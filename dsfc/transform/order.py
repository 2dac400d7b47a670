"""Dependency order of streams and stages, kept as given where there is a choice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from dsfc.expr.tree import Expr
from dsfc.system.ir import ReadOut, Stage, Stream, System
from dsfc.system.traverse import expressions, names_in, stage_expressions, terms
from dsfc.transform.flatten import stage_key


def needs_of_tree(tree: ReadOut, home: Mapping[str, str]) -> set[str]:
    """Returns the names and stages a read-out needs.

    Args:
        tree: the read-out.
        home: state → key of its stage (`stage_key`).
    """
    return names_in(expressions(tree)) | {home[t.source] for t in terms(tree)}


def needs_of(item: Stream | Stage, home: Mapping[str, str]) -> set[str]:
    """Returns the names and stages a stream or stage needs."""
    if isinstance(item, Stage):
        return names_in(stage_expressions(item))
    if isinstance(item.value, Expr):
        return names_in((item.value,))
    return needs_of_tree(item.value, home)


def ordered(system: System, reached_only: bool = False) -> System:
    """Returns the System with streams and stages in dependency order.

    Args:
        system: the System.
        reached_only: leave out what no output needs.
    """
    home = {b.state: stage_key(s) for s in system.stages for b in s.blocks}
    items: dict[str, Stream | Stage] = {s.name: s for s in system.streams}
    items |= {stage_key(s): s for s in system.stages}
    wanted = [n for o in system.outputs for n in sorted(needs_of_tree(o.value, home))]
    found: list[str] = []
    done: set[str] = set()
    for start in wanted if reached_only else items:
        stack: list[tuple[str, bool]] = [(start, False)]
        while stack:
            key, ready = stack.pop()
            if key not in items:
                continue
            if ready:
                found.append(key)
            elif key not in done:
                done.add(key)
                stack.append((key, True))
                stack.extend((n, False) for n in sorted(needs_of(items[key], home), reverse=True))
    made = [items[k] for k in found]
    return replace(
        system,
        streams=tuple(i for i in made if isinstance(i, Stream)),
        stages=tuple(i for i in made if isinstance(i, Stage)),
    )


def reached_from(system: System, names: Iterable[str]) -> frozenset[str]:
    """Returns the streams, inputs and stages (by `stage_key`) that values depend on.

    Args:
        system: the System.
        names: names of streams and inputs.
    """
    home = {b.state: stage_key(s) for s in system.stages for b in s.blocks}
    items: dict[str, Stream | Stage] = {s.name: s for s in system.streams}
    items |= {stage_key(s): s for s in system.stages}
    pending, seen = list(names), set[str]()
    while pending:
        key = pending.pop()
        if key not in seen:
            seen.add(key)
            if key in items:
                pending.extend(needs_of(items[key], home))
    return frozenset(seen)
