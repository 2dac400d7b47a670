"""Context parallelism: what a module says besides where processes share a sequence.

In the functional form each scan starts from the state that arrives from the segments before, as
`runtime/ranks.py` composes it of their summaries. This module prints those statements, and says of
each state of a plan what crosses from one process to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files

from dsfc.plan.ir import Plan, Reverse, RunningMax
from dsfc.plan.pairs_ir import AllPairs, Attention
from dsfc.plan.recurrence_ir import Recurrence
from dsfc.plan.scan_ir import Scan

from ..shared.section import Section, extended
from .forms.row import Layout
from .forms.table import FORMS
from .layout import tuple_text, wrapped

RUNTIME = ("summaries", "ranks")
"""Files of the runtime that only modules hold whose sequences processes may share."""


def arriving_state(
    scan: str,
    called: str,
    arguments: list[str],
    options: list[str],
    summary: Callable[[str], tuple[str, list[str]]],
    unused: Callable[[str], str],
) -> tuple[list[str], list[str]]:
    """Returns statements that bind the state which arrives at a scan, and what its operator takes.

    Args:
        scan: its name.
        called: its operator.
        arguments: the operator's tensors, the last of them the state before the first token.
        options: what the operator takes behind them.
        summary: the variable of all tensors but the state → the function of the runtime that
            summarises a segment, and what it takes by name besides options.
        unused: gives an unused variable name.
    """
    *tensors, state = arguments
    tokens, arrived = unused(f"{scan}_tokens"), unused(f"{scan}_arrived")
    bound = f"    {tokens} = ({tensors[0]},)"
    if len(tensors) > 1:
        bound = wrapped(f"{tokens} = ", tensors, "", "    ")
    function, named = summary(tokens)
    items = [called, f"*{tokens}", *named, f"options={tuple_text(options)}"]
    name = unused(f"{scan}_summary")
    lines = [
        bound,
        wrapped(f"{name} = {function}", items, "", "    "),
        f"    {arrived} = _arrived(ranks, {name}, {state})",
    ]
    return lines, [f"*{tokens}", arrived]


def summary(scan: Scan, tokens: str) -> tuple[str, list[str]]:
    """Returns the function that summarises a segment of a scan, and what it takes by name.

    Args:
        scan: the scan, whose operator takes what torch's does.
        tokens: variable of the operator's tensors but for the state.
    """
    if scan.transition is not None:
        return "_mixed", ["lengths=lengths", "modes=MODES"]
    layout = FORMS[scan.form].layout
    if layout is Layout.RESPONSES:
        return "_convolved", ["lengths=lengths", "modes=MODES"]
    value = 0 if scan.read is None else 2
    if FORMS[scan.form].rewrites:
        return "_rewritten", [f"value={value}"]
    if layout is Layout.TILE:
        return "_driven_by_none", [f"drive=({value},)"]
    return "_decayed", [f"log=lambda: {tokens}[-1]" if scan.decay is not None else "log=None"]


def arriving_max(
    output: str, called: str, items: list[str], declared: bool, unused: Callable[[str], str]
) -> list[str]:
    """Returns the statements of a running maximum that starts from what arrives.

    Args:
        output: variable that is bound.
        called: the operator.
        items: its weight, the value before the first token, and the decay or `None`.
        declared: whether it has a gradient. Then the value itself goes from rank to rank: a
            summary would share the gradient of ties otherwise.
        unused: gives an unused variable name.
    """
    weight, last, decay = items
    arrived = unused(f"{output}_arrived")
    if not declared:
        both = unused(f"{output}_inputs")
        summary = f"_largest({called}, *{both}, counts)"
        return [
            wrapped(f"{both} = ", [weight, decay], "", "    "),
            wrapped(f"{arrived} = _arrived", ["ranks", summary, last], "", "    "),
            f"    {output}, _ = {called}({both}[0], {arrived}, {both}[1])",
        ]
    after = unused(f"{output}_after")
    others = ", ".join(x for x in (weight, decay) if x != "None")
    first = f"{arrived}.unsqueeze(1)"
    rows = [f"torch.cat(({first}, {output}), 1)", first, "lengths", '""']
    sent = ["ranks", f"({arrived},)", f"({after}.squeeze(1),)", f"({output},)"]
    return [
        wrapped(f"({arrived},) = _received", ["ranks", f"({last},)", f"[{others}]"], "", "    "),
        wrapped(f"{output}, _ = {called}", [weight, arrived, decay], "", "    "),
        wrapped(f"{after} = _last", rows, "", "    "),
        wrapped(f"{output}, _ = _sent", sent, "", "    "),
    ]


def arriving_states(
    states: list[str], coefficients: list[str], unused: Callable[[str], str]
) -> tuple[list[str], str]:
    """Returns statements that bind the states which arrive at a recurrence, and their variable.

    Args:
        states: before the first token.
        coefficients: what it reads.
        unused: gives an unused variable name.
    """
    arrived = unused("arrived")
    items = ["ranks", tuple_text(states), f"[{', '.join(coefficients)}]"]
    return [wrapped(f"{arrived} = _received", items, "", "    ")], arrived


def leaving_states(outs: list[str], lasts: list[str], arrived: str) -> str:
    """Returns the statement that sends the states after a recurrence to the next process."""
    head = ", ".join([*outs, *lasts]) + ("," if len(outs) + len(lasts) == 1 else "")
    return wrapped(
        f"{head} = _sent", ["ranks", arrived, tuple_text(lasts), tuple_text(outs)], "", "    "
    )


@cache
def runtime(own: Section) -> Section:
    """Returns a runtime section with what processes need that share a sequence."""
    folder = files("dsfc.backends.shared.runtime")
    texts = ((folder / f"{name}.py").read_text(encoding="utf-8") for name in RUNTIME)
    return extended(own, tuple(texts))


def refusal(plan: Plan) -> str | None:
    """Returns why processes cannot share a sequence of a plan, as a clause; None where they can."""
    if any(isinstance(k, Reverse) for k in plan.kernels):
        return "a state runs backwards: it starts after the last token, in the last segment"
    if any(isinstance(k, AllPairs) and k.later for k in plan.kernels):
        return "outputs need all tokens to come"
    if any(isinstance(k, Attention | AllPairs) for k in plan.kernels):
        return (
            "the mixer has no finite state: what an output needs of the past grows with its length"
        )
    return None


def crossing(plan: Plan) -> Iterator[str]:
    """Yields what of each state crosses from process to process, and why, a clause each."""
    for k in plan.kernels:
        if isinstance(k, Scan):
            names = ", ".join(c.state for c in k.columns)
            yield f"{names}: a summary of each segment, h → Λ̄ h + b̄, with {_transition(k)}"
        elif isinstance(k, Recurrence):
            names = ", ".join(s.state for s in k.states)
            yield f"{names}: the state itself, rank after rank, since no scan runs it: {k.why}"
        elif isinstance(k, RunningMax):
            how = (
                "the maximum itself, rank after rank: ties have a gradient"
                if k.declared
                else "a summary, m → max(m + Σ log λ, m̄)"
            )
            yield f"{k.output}: {how}"
    for r in plan.registers:
        yield f"{r.name}: the last values of each segment"


def _transition(k: Scan) -> str:
    if k.transition is not None:
        return "Λ̄ a power of the matrix Λ"
    if FORMS[k.form].rewrites:
        return "Λ̄ a matrix over the keys: what becomes of their unit vectors"
    if k.decay is None:
        return "Λ̄ = 1"
    if FORMS[k.form].layout is Layout.RESPONSES:
        return "Λ̄ a power of λ"
    return "Λ̄ the product of all λ"
