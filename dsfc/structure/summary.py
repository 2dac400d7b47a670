"""What a mixer is, in three lines that need no knowledge of the theory."""

from __future__ import annotations

from dsfc.expr.text import text
from dsfc.structure.ir import BlockStructure, BoundKind, Cell, Structure

_DECAYS = {
    Cell.ID: "no decay: its state keeps the sum of all it has seen",
    Cell.LTI_S: "one fixed decay for each head",
    Cell.LTI_R: "fixed decays, one for each entry of the state",
    Cell.LTI_C: "fixed complex decays, one for each entry of the state: they rotate what they keep",
    Cell.LTI_X: "one fixed matrix",
    Cell.NIL: "nothing kept: each token starts afresh",
    Cell.TV_H: "one decay for each head, from the token",
    Cell.TV_K: "one decay for each key, from the token",
    Cell.TV_V: "one decay for each value channel, from the token",
    Cell.TV_CK: "one decay for each entry of the state, from the token",
    Cell.TV_1: "one decay for each channel, from the token",
    Cell.TV_DPLR: "a decay and a correction of low rank, from the token",
    Cell.TV_X: "a full matrix, from the token",
    Cell.NONE: "an update that is no linear one",
}
"""Cell of Λ → what happens to a state from one token to the next."""

_BOUNDS = {
    BoundKind.LESS_THAN_ONE: "below 1 in size, so it forgets",
    BoundKind.AT_MOST_ONE: "at most 1 in size, so it never grows",
    BoundKind.NORM_NEEDED: "of a size that its norms decide",
    BoundKind.UNKNOWN: "of a size that nothing bounds",
}
"""Bound on |Λ| → what follows; of Λ = I there is nothing to add."""


def summary(structure: Structure, title: str | None) -> str:
    """Returns three lines: what it is called, what its states do, what it costs.

    Args:
        structure: what `classify` gave.
        title: what the spec calls the mixer.
    """
    name = structure.system if title is None else f"{structure.system}: {title}"
    return "\n".join([name, *(f"  {line}" for line in (*_states(structure), _cost(structure)))])


def _states(structure: Structure) -> list[str]:
    """A line for states that do the same."""
    if structure.attentions:
        return ["softmax attention: it weighs all tokens so far"]
    if structure.sums:
        return ["sums over all tokens so far, which no finite state holds"]
    if not structure.blocks:
        return ["no state: it reads the last tokens alone"]
    same: dict[str, list[str]] = {}
    for b in structure.blocks:
        same.setdefault(_decay(b), []).append(b.state)
    if len(same) == 1:
        return list(same)
    return [f"{', '.join(names)}: {what}" for what, names in same.items()]


def _decay(b: BlockStructure) -> str:
    """What happens to a state from one token to the next."""
    what = _DECAYS[b.cell]
    if b.complex_decay and b.cell is not Cell.LTI_C:
        what = what.replace("decay", "complex decay", 1)
    bound = _BOUNDS.get(b.bound.kind, "")
    said = f"{what}; {bound}" if bound and b.cell is not Cell.NIL else what
    return f"{said}; it runs from the end to the start" if b.backward else said


def _cost(structure: Structure) -> str:
    """How time and memory grow."""
    if structure.sums:
        return "a token costs as much as there are tokens before it, and all of them are kept"
    divided = ", and its output is divided by such a state" if structure.ratio else ""
    if not structure.blocks:
        return "time linear in the length, constant memory"
    size = text(structure.state_size)
    return f"time linear in the length, a state of {size} numbers{divided}"
