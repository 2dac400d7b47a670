"""The dependency order of streams and stages: what each needs stands before it.

Where there is a choice, the order of the System is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

from dsfc.expr.graph import depth_first, reachable
from dsfc.expr.tree import Expr
from dsfc.system.ir import ReadOut, Stage, System
from dsfc.system.traverse import names_in, stage_expressions, terms, value_expressions

Home: TypeAlias = Mapping[str, str]
"""State → key of the stage that computes it (`stage_key`)."""


def stage_key(stage: Stage) -> str:
    """Returns the key of a stage among names of streams."""
    return f"stage {stage.blocks[0].state}"


def home_of(stages: Iterable[Stage]) -> Home:
    """Returns the key of the stage of each state."""
    return {b.state: stage_key(s) for s in stages for b in s.blocks}


def needs_of(value: Expr | ReadOut | Stage, home: Home) -> set[str]:
    """Returns the names and the keys of stages that a value or a stage needs.

    Args:
        value: the value of a stream or an output, or a stage.
        home: state → key of its stage.
    """
    if isinstance(value, Stage):
        return names_in(stage_expressions(value))
    read = () if isinstance(value, Expr) else terms(value)
    return names_in(value_expressions(value)) | {home[t.source] for t in read}


def in_order(
    values: Mapping[str, Expr | ReadOut | Stage], home: Home, roots: Iterable[str] | None = None
) -> list[str]:
    """Returns the keys of values and stages, each behind what it needs.

    Args:
        values: name of a stream or key of a stage → its value.
        home: state → key of its stage.
        roots: only these and what they need; None for all.
    """

    def needs(key: str) -> list[str]:
        return sorted(n for n in needs_of(values[key], home) if n in values)

    starts = values if roots is None else [n for n in roots if n in values]
    return depth_first(starts, needs)


def ordered(system: System, reached_only: bool = False) -> System:
    """Returns the System with streams and stages in dependency order.

    Args:
        system: the System.
        reached_only: leave out what no output needs.
    """
    home = home_of(system.stages)
    streams = {s.name: s for s in system.streams}
    stages = {stage_key(s): s for s in system.stages}
    roots = [n for o in system.outputs for n in sorted(needs_of(o.value, home))]
    keys = in_order(_values(system), home, roots if reached_only else None)
    return replace(
        system,
        streams=tuple(streams[k] for k in keys if k in streams),
        stages=tuple(stages[k] for k in keys if k in stages),
    )


def reached_from(system: System, names: Iterable[str]) -> frozenset[str]:
    """Returns the streams, inputs and stages (by `stage_key`) that values depend on.

    Args:
        system: the System.
        names: names of streams and inputs.
    """
    home = home_of(system.stages)
    needs = {key: needs_of(value, home) for key, value in _values(system).items()}
    return reachable(needs, names)


def _values(system: System) -> dict[str, Expr | ReadOut | Stage]:
    values: dict[str, Expr | ReadOut | Stage] = {s.name: s.value for s in system.streams}
    return values | {stage_key(s): s for s in system.stages}
