"""Proves of a module's recurrence that it is an update rule of ONNX's operator LinearAttention.

The recurrence is lifted from the module's loop, values of a token as inputs of its own, and
compared with the text of the rule: what is read at each token, and the state after it. From states
that are zero both give one function, for all values; every state is reached from zero, as values
are arbitrary, so they do from all states.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from dsfc.api.lift import lift_module
from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.diagnostics.report import DiagnosticError
from dsfc.expr.tree import Axis
from dsfc.programs.linear_attention import OPERATOR, READ, Call, Rule, calls, written
from dsfc.programs.token_loop import NoProgram
from dsfc.prover.equivalent import equivalent
from dsfc.prover.verdict import Proved, Refuted, Unknown
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System


def linear_attention(module: ModuleType, graph: torch.fx.Graph) -> dict[Any, Any]:
    """Returns LinearAttention for each recurrence of a traced layer, once it is proved to be that.

    Args:
        module: the emitted module.
        graph: calls operators of the module; it is changed.

    Raises:
        NoProgram: a recurrence is not proved to be an update rule.
    """
    table = {}
    for candidates in calls(module, graph):
        table[candidates[0].node.target] = written(_proved(module, candidates))
    return table


def _proved(module: ModuleType, candidates: tuple[Call, ...]) -> Call:
    """The first of several calls whose recurrence is proved to be its rule."""
    why = ""
    for call in candidates:
        why = next(filter(None, (_gap(module, call, states) for states in (True, False))), "")
        if not why:
            return call
    raise NoProgram(
        f"that its recurrence is an update rule of {OPERATOR} is not proved; "
        f"of the nearest, {candidates[-1].rule.name}: {why}"
    )


def _gap(module: ModuleType, call: Call, states: bool) -> str:
    """Why states, or what is read, are not proved to be those of the rule; "" if they are."""
    recurrence, shapes = call.recurrence(states)
    file = Path(str(module.__file__))
    try:
        lifted = lift_module(recurrence, "recurrence", file, shapes).compilation.system
        rule = _rule(call.rule, lifted, states)
    except DiagnosticError as e:
        return e.diagnostics[0].message
    verdict = equivalent(lifted, rule)
    if isinstance(verdict, Proved):
        return ""
    what = "the states" if states else "what is read"
    if isinstance(verdict, Refuted):
        return f"{what} of the two differ at some values"
    if isinstance(verdict, Unknown):
        return f"{what}: {verdict.obstacle}"
    return f"{what} are not proved to be the same at all sizes and values"


def _rule(rule: Rule, like: System, states: bool) -> System:
    """The rule as a system of the inputs, and over the axes, of another."""
    heads = [f"heads {d.axis.name}" if d.axis.heads else d.axis.name for d in like.axes]
    (block,) = like.blocks
    lines = [
        "mixer rule {",
        f"  dims {', '.join(heads)}",
        *(f"  input {t.name} : {_product(t.axes)}" for t in like.inputs),
        f"  state S : {_product(block.axes)}",
        *(f"  {line}" for line in rule.update),
        "  y = S" if states else f"  {READ}",
        "}",
    ]
    source = Source(f"{OPERATOR}, {rule.name}", "\n".join(lines) + "\n")
    return SpecText(Place(Path(f"{rule.name}.dsf")), parse(source)).compilation().system


def _product(axes: Iterable[Axis]) -> str:
    return " × ".join(a.name for a in sorted(axes))
