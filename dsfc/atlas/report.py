"""An atlas as text and as JSON."""

from __future__ import annotations

from typing import Any

import networkx

from dsfc.atlas.ir import FORMAT, Atlas, Found, Pair

SIGN = {"EQ": "=", "COND": "=", "SUB": "⊆", "SLOT": "⊆", "ISO": "≅"}
"""How statements are written between two names."""


def statement(p: Pair) -> str:
    """Returns a proved statement as text: `a = b  where η == 1`, `a ⊆ b  SLOT(token)  where …`.

    What is proved at one size of an axis alone ends in this size: `for d = 2 alone`.
    """
    head = p.statement.partition("(")[0]
    kind = f"  {p.statement}" if head == "SLOT" else ""
    where = f"  where {' and '.join(p.conditions)}" if p.conditions else ""
    sizes = ", ".join(f"{name} = {size}" for name, size in p.sizes)
    alone = f"  for {sizes} alone" if sizes else ""
    return f"{p.a} {SIGN.get(head, p.statement)} {p.b}{kind}{where}{alone}"


def report(atlas: Atlas, explain: bool = False) -> str:
    """Returns an atlas as text.

    Args:
        atlas: what was found.
        explain: whether pairs that are open or were skipped are listed too.
    """
    lines = [f"{len(atlas.nodes)} mixers"]
    kinds: dict[str, list[str]] = {}
    for node in atlas.nodes:
        kinds.setdefault(node.kind, []).append(node.name)
    width = max((len(kind) for kind in kinds), default=0)
    lines += [f"  {kind:{width}}  {', '.join(names)}" for kind, names in sorted(kinds.items())]
    lines += [f"  no system: {name} ({why})" for name, why in atlas.left_out]
    lines += ["", f"proved ({len(atlas.edges)})"]
    lines += [f"  {statement(p)}" for p in atlas.edges] or ["  nothing"]
    sized = [p for p in atlas.pairs if p.found is Found.AT_SIZES]
    if sized:
        lines += ["", f"equal at some sizes, open at others ({len(sized)})"]
        lines += [f"  {statement(p)}" for p in sized]
    families = [sorted(c) for c in networkx.weakly_connected_components(atlas.graph())]
    related = sorted(c for c in families if len(c) > 1)
    if related:
        lines += ["", "families: mixers that proofs connect"]
        lines += [f"  {', '.join(names)}" for names in related]
    refuted = [p for p in atlas.pairs if p.found is Found.REFUTED]
    equal = sum(not p.directed for p in refuted)
    lines += ["", f"refuted for equal parameters: {equal} pairs, each by an executed point"]
    if cases := len(refuted) - equal:
        lines.append(f"no case of the other: {cases} directed pairs, each by one token for ever")
    for outcome, title in ((Found.UNKNOWN, "not decided"), (Found.SKIPPED, "not comparable")):
        lines.append(f"{title}: {atlas.count(outcome)} pairs")
        reasons: dict[str, list[str]] = {}
        for p in atlas.pairs:
            if p.found is outcome:
                reasons.setdefault(p.reason, []).append(f"{p.a}, {p.b}")
        ordered = sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0]))
        for reason, pairs in ordered if explain else ordered[:5]:
            lines.append(f"  {len(pairs):3} {reason}")
            if explain:
                lines += [f"        {pair}" for pair in pairs]
        if not explain and len(ordered) > 5:
            lines.append(f"      and {len(ordered) - 5} more reasons; --explain lists all")
    return "\n".join(lines) + "\n"


def as_json(atlas: Atlas) -> dict[str, Any]:
    """Returns an atlas for tools; equal atlases give equal documents."""
    return {
        "format": FORMAT,
        "mixers": [{"name": n.name, "doc": n.doc, "class": n.kind} for n in atlas.nodes],
        "left_out": [{"name": name, "why": why} for name, why in atlas.left_out],
        "pairs": [
            {
                "a": p.a,
                "b": p.b,
                "verdict": p.found.value,
                "statement": p.statement,
                "conditions": list(p.conditions),
                "directed": p.directed,
                "sizes": dict(p.sizes),
                "reason": p.reason,
            }
            for p in atlas.pairs
        ],
    }
