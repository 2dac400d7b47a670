"""The ways to run the scans of a plan: which are legal, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dsfc.plan.forms.table import FORMS
from dsfc.plan.ir import Mode
from dsfc.plan.pairs_ir import AllPairs, Attention
from dsfc.plan.recurrence_ir import Recurrence
from dsfc.plan.scan_ir import Scan


@dataclass(frozen=True, slots=True)
class ModeRow:
    """One way to run a scan.

    Attributes:
        name: as users write it.
        why: the reason where it is legal.
        why_not: the reason where it is not.
        resets: whether a sequence may start inside a row: packing needs Λ per token.
    """

    name: str
    why: str
    why_not: str
    resets: bool = True


MODES = (
    ModeRow(
        "recurrent",
        "every finite system has one",
        "",
    ),
    ModeRow(
        "chunked",
        "transitions of a chunk compose",
        "",
    ),
    ModeRow(
        "scan",
        "in log L rounds by (Λ₂Λ₁, Λ₂b₁ + b₂)",
        "Λ is a full matrix, or products of it are: they cost more than the steps that they save",
    ),
    ModeRow(
        "parallel",
        "all pairs of tokens at once",
        "pairs of tokens make no product of matrices: λ has channel axes, a token rewrites, "
        "or Λ is full",
    ),
    ModeRow(
        "fft",
        "Λ, B and C are the same at every token",
        "Λ, B or C depends on the token, or a full Λ mixes what goes in and out",
        resets=False,
    ),
)
"""Every mode of scans, in the order they are named."""

_NO_STATE = "no state of finite size sums up what came before"
ATTENTION_MODES = (
    ModeRow("recurrent", "one token after another, over what is kept of all", ""),
    ModeRow("chunked", "", _NO_STATE),
    ModeRow("scan", "", _NO_STATE),
    ModeRow(
        "parallel",
        "all pairs of tokens at once, written out: has derivatives of any order",
        "",
    ),
    ModeRow("fft", "", "weights depend on the tokens", resets=False),
    ModeRow(
        "fused",
        "all pairs in PyTorch's scaled_dot_product_attention, never stored; first derivatives",
        "a sum over tokens is no mean with exponential weights",
    ),
)
"""Every mode of what weighs all tokens, in the order they are named."""


def modes_of(scans: Sequence[Scan | Attention | AllPairs | Recurrence]) -> tuple[Mode, ...]:
    """Returns every mode, legal where each scan has it, with the reason.

    What is stepped token by token has one mode, and so has what weighs all tokens beside states.
    """
    out = []
    alone = recurrent_only(scans)
    if alone is not None:
        rest = (row.name for row in MODES if row.name != "recurrent")
        return (Mode("recurrent", True, ONLY), *(Mode(n, False, alone) for n in rest))
    weighs = any(isinstance(s, Attention | AllPairs) for s in scans)
    paired = "; ".join(dict.fromkeys(s.why for s in scans if isinstance(s, AllPairs)))
    for row in ATTENTION_MODES if weighs else MODES:
        legal = all(row.name in FORMS[s.form].modes for s in scans)
        why = row.why if legal else row.why_not
        if paired and row.name == "parallel":
            why = f"all pairs of tokens, in blocks of `chunk`: the only form, {paired}"
        out.append(Mode(row.name, legal, why))
    return tuple(out)


ONLY = "the only form"
"""Why a mode is legal that is the only one."""


def recurrent_only(kernels: Sequence[Scan | Attention | AllPairs | Recurrence]) -> str | None:
    """Returns why nothing but one token after another runs all kernels; None where more does."""
    stepped = [k.why for k in kernels if isinstance(k, Recurrence)]
    if stepped:
        return "; ".join(dict.fromkeys(stepped))
    if len({isinstance(k, Attention | AllPairs) for k in kernels}) > 1:
        if any(isinstance(k, Attention) for k in kernels):
            return "softmax attention stands beside states that recur"
        return "a sum without a finite state stands beside states that recur"
    return None
