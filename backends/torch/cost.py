"""Costs of modes: counts of torch's operators, operations, words moved, and state.

The counts are of the forward pass as the torch backend runs it, operator by operator: every
intermediate value is written and read again. They rank the modes of one mixer; machines differ in
what a call, an operation and a word take.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dsfc.expr.build import add, mul, num
from dsfc.expr.text import text
from dsfc.expr.tree import Expr, Field
from dsfc.plan.forms.table import FORMS as PLAN_FORMS
from dsfc.plan.ir import Plan
from dsfc.plan.pairs_ir import AllPairs, Attention
from dsfc.plan.recurrence_ir import Recurrence
from dsfc.plan.scan_ir import Scan
from dsfc.plan.sizes import LENGTH, size

from .counts import Counts, attention_counts, pair_counts, stepped_counts
from .forms.table import FORMS


@dataclass(frozen=True, slots=True)
class Cost:
    """Counts of a forward pass, over axis sizes, the batch, the length and the chunk size.

    Attributes:
        mode: which mode.
        calls: operators started, all in all, one after another; see `Counts`.
        operations: in products, per token and batch entry (a multiply-add counts 2).
        words: numbers read and written, per token and batch entry.
        state: numbers in the state.
    """

    mode: str
    calls: Expr
    operations: Expr
    words: Expr
    state: Expr


def plan_costs(plan: Plan) -> tuple[Cost, ...]:
    """Returns what a plan costs in each of its legal modes."""
    scans = [k for k in plan.kernels if isinstance(k, Scan | Recurrence)]
    weighed = [k for k in plan.kernels if isinstance(k, Attention | AllPairs)]
    return tuple(cost_of(scans, m.name, weighed) for m in plan.modes if m.legal)


def costs_text(plan: Plan) -> str:
    """Returns what a plan costs as text, a section of a plan's."""
    costs = plan_costs(plan)
    lines = ["cost (calls in all; operations, words per token)"]
    for c in costs:
        counts = f"{text(c.operations)} operations, {text(c.words)} words"
        lines.append(f"  {c.mode}: {text(c.calls)} calls, {counts}")
    if any(r.grows for r in plan.registers):
        lines.append(f"  state: {text(costs[0].state)} numbers after {text(LENGTH)} tokens")
    return "\n".join(lines) + "\n"


def cost_of(
    scans: Iterable[Scan | Recurrence], mode: str, attentions: Iterable[Attention | AllPairs] = ()
) -> Cost:
    """Returns the cost of running scans, recurrences, attention and all pairs in a mode."""
    calls: list[Expr] = []
    operations: list[Expr] = []
    words: list[Expr] = []
    state: dict[str, Expr] = {}
    for s in scans:
        state |= PLAN_FORMS[s.form].state(s)
        if isinstance(s, Recurrence):
            counted = stepped_counts(s)
            calls.append(counted.calls)
            operations.append(counted.operations)
            words.append(mul(counted.words, add(*(size(x.axes) for x in s.states))))
            continue
        heads, keys = size(s.heads), size(s.keys)
        channels = add(*(size(c.channels) for c in s.columns))
        counted = counts_of(s, mode, keys, channels)
        calls.append(counted.calls)
        operations.append(mul(heads, counted.operations))
        words.append(mul(heads, counted.words))
    for a in attentions:
        state |= PLAN_FORMS[a.form].state(a)
        if isinstance(a, AllPairs):
            counted = pair_counts(a, mode)
            calls.append(counted.calls)
            words.append(mul(size(a.axes), counted.words))
            continue
        heads, keys, channels = size(a.heads), size(a.keys), size(a.channels)
        counted = attention_counts(mode, keys, channels)
        calls.append(counted.calls)
        operations.append(mul(heads, counted.operations))
        words.append(mul(heads, counted.words))
    return Cost(mode, add(*calls), add(*operations), add(*words), add(*state.values()))


def counts_of(scan: Scan, mode: str, keys: Expr, channels: Expr) -> Counts:
    """Returns the counts of one scan.

    With K keys, V channels (columns together), C tokens a chunk, N = L / C chunks, W the tokens
    that a mode takes as one chunk (C, or all L), per token and head, multiply-adds as 2 operations:

        MATRIX       recurrent moves the state 3 times (5 with a decay); others hold W pairs
        KEYED        as MATRIX with a decay; log W levels of blocks scale the keys
        LOW_RANK     as MATRIX with a decay, of twice the pairs; a triangular system of W tokens,
                     and a transition of K × K each chunk
        KEYED_LOW_RANK  as LOW_RANK, with the levels of KEYED for two reads and two keys a token
        SELECTIVE    states of all tokens are held: no products, only words
        ELEMENTWISE  so too, with K = 1
        DENSE        log C rounds of products with powers of Λ, K × K, for all states of a chunk
        DENSE_CONVOLUTION  as CONVOLUTION, of powers of a full matrix
        CONVOLUTION  a kernel of W tokens once a call, then 2 W per token, or log L by FFT

    Args:
        scan: the scan.
        mode: name of the mode.
        keys: number of keys.
        channels: number of channels.
    """
    counts = FORMS[scan.form].counts
    assert counts is not None, f"scans of form {scan.form.value} are no scans"
    counted = counts(scan, mode, keys, channels)
    if scan.field is not Field.COMPLEX:
        return counted
    return Counts(counted.calls, mul(num(4), counted.operations), mul(num(2), counted.words))
