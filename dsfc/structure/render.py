"""Structures as stable text."""

from __future__ import annotations

from dsfc.expr.build import add
from dsfc.expr.text import text
from dsfc.structure.classes import CLASSES
from dsfc.structure.ir import Attention, BlockStructure, Bound, BoundKind, Structure
from dsfc.system.ir import Coupling, Decay, Guard, LogForm


def render(structure: Structure) -> str:
    """Returns the structure as text, one property per line.

    Args:
        structure: what `classify` gave.
    """
    row = CLASSES[structure.name]
    lines = [
        f"structure of {structure.system}",
        f"  class       {structure.title} ({structure.label})",
        f"  computed by {row.form}",
        f"  causal      {'yes' if structure.causal else 'no'}",
        f"  state       {_state(structure)}",
    ]
    lines += [f"  no finite state: {why}" for why in structure.sums]
    for block in structure.blocks:
        lines += _block(block)
    for a in structure.attentions:
        lines += _attention(a)
    for ratio in structure.ratios:
        over = f"{', '.join(ratio.numerators)} / {', '.join(ratio.denominators) or 'token-wise'}"
        guard = "" if ratio.guard.constant is None else f", guard {_guard(ratio.guard)}"
        lines.append(f"  ratio {over}{guard}")
    return "\n".join(lines) + "\n"


def _state(structure: Structure) -> str:
    """The size of the state; where all tokens are kept it grows with each."""
    fixed = f"{text(structure.state_size)} numbers per sequence"
    if not structure.sums:
        return fixed
    kept = add(*(a.kept for a in structure.attentions))
    grows = f"{text(kept)} for each token" if structure.attentions else "all tokens"
    return f"{fixed}, and {grows}" if structure.blocks else f"{grows}: it grows with the sequence"


def _attention(a: Attention) -> list[str]:
    groups = (a.heads, a.keys, a.channels)
    axes = " / ".join(" ".join(x.name for x in g) or "·" for g in groups)
    return [
        "  softmax attention",
        f"    axes      {axes}  (head / key / channel)",
        f"    scale     {text(a.scale)}",
        f"    query     {text(a.query)}",
        f"    key       {text(a.key)}",
        f"    value     {text(a.value)}",
    ]


def _guard(guard: Guard) -> str:
    return guard.kind.value + (f" with {text(guard.constant)}" if guard.constant else "")


def _block(b: BlockStructure) -> list[str]:
    known = (("Λ", b.transition_fixed), ("B", b.drive_fixed), ("C", b.read_fixed))
    fixed = [name for name, is_fixed in known if is_fixed]
    lines = [
        f"  block {b.state}: {b.label}, {b.name.value}",
        f"    axes      {b.axes_text}  (head / key / channel), {b.field.name.lower()}",
        f"    fixed     {', '.join(fixed) or 'nothing'}",
        f"    log λ     {decay_text(b.decay)}",
        f"    coupling  {coupling_text(b.coupling)}",
        f"    |Λ|       {bound_text(b.bound)}",
        f"    read      {b.read.value}",
    ]
    if b.pair:
        lines.append(f"    pair      {b.pair}")
    return lines


def decay_text(decay: Decay | None) -> str:
    """Returns the logarithm of a decay as text; a dash when there is no diagonal."""
    if decay is None:
        return "–"
    out = text(decay.log)
    if decay.phase is not None:
        out += f", phase {text(decay.phase)}"
    return out if decay.form is LogForm.EXACT else f"{out}  (of the computed value)"


def coupling_text(coupling: Coupling) -> str:
    """Returns a coupling as text."""
    if coupling.scale is None:
        return coupling.kind.value
    return f"{coupling.kind.value}, a = {text(coupling.scale)}"


def bound_text(bound: Bound) -> str:
    """Returns a bound with its reason as text."""
    if bound.kind is BoundKind.NORM_NEEDED and bound.diagonal is not None:
        return f"diagonal {bound.diagonal.value}; a norm argument is needed: {bound.reason}"
    return f"{bound.kind.value}: {bound.reason}"
