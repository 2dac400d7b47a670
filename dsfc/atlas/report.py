"""An atlas as text and as JSON."""

from __future__ import annotations

import json
from typing import Any

import networkx

from dsfc.atlas.ir import FORMAT, Atlas, Family, Found, Pair

SIGN = {"EQ": "=", "COND": "=", "SUB": "⊆", "SLOT": "⊆", "ISO": "≅"}
"""How statements are written between two names."""


def statement(p: Pair, first: bool = False) -> str:
    """Returns a proved statement as text: `a = b  where η == 1`, `a ⊆ b  SLOT(token)  where …`.

    What is proved at one size of an axis alone ends in this size: `for d = 2 alone`.

    Args:
        p: what is proved.
        first: whether the first of several conditions stands for all.
    """
    head = p.statement.partition("(")[0]
    kind = f"  {p.statement}" if head == "SLOT" else ""
    conditions = p.conditions[:1] if first else p.conditions
    more = f" and {len(p.conditions) - 1} more" * (first and len(p.conditions) > 1)
    where = f"  where {' and '.join(conditions)}{more}" if conditions else ""
    return f"{p.a} {SIGN.get(head, p.statement)} {p.b}{kind}{where}{alone(p)}"


def alone(p: Pair) -> str:
    """Returns the sizes that a proof speaks of alone: `  for d = 2 alone`, or an empty text."""
    sizes = ", ".join(f"{name} = {size}" for name, size in p.sizes)
    return f"  for {sizes} alone" if sizes else ""


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
    for family in (Family.EQUAL, Family.CONDITIONAL, Family.CASE):
        edges = [p for p in atlas.edges if p.family is family]
        lines += [f" {family} ({len(edges)})"] * bool(edges)
        lines += [f"  {statement(p)}" for p in edges]
    lines += ["  nothing"] * (not atlas.edges)
    sized = [p for p in atlas.pairs if p.found is Found.AT_SIZES]
    if sized:
        lines += ["", f"equal at some sizes, open at others ({len(sized)})"]
        lines += [f"  {statement(p)}" for p in sized]
    connected = [sorted(c) for c in networkx.weakly_connected_components(atlas.graph())]
    related = sorted(c for c in connected if len(c) > 1)
    if related:
        lines += ["", "families: mixers that proofs connect"]
        lines += [f"  {', '.join(names)}" for names in related]
    refuted = [p for p in atlas.pairs if p.found is Found.REFUTED]
    equal = sum(not p.directed for p in refuted)
    lines += ["", f"refuted for equal parameters: {equal} pairs, each by an executed point"]
    if cases := len(refuted) - equal:
        lines.append(f"no case of the other: {cases} directed pairs, each by a few sequences")
    for outcome, title in ((Found.UNKNOWN, "not decided"), (Found.SKIPPED, "not comparable")):
        lines.append(f"{title}: {_counted(atlas, outcome)}")
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


ABOUT = {"EQ": "equal", "COND": "equal where conditions hold", "SUB": "a case", "SLOT": "a case"}
"""What is asked, by the kind of a statement."""


def _counted(atlas: Atlas, outcome: Found) -> str:
    """How many pairs have an outcome, for each thing that was asked if there are several."""
    counts: dict[str, int] = {}
    for p in atlas.pairs:
        if p.found is outcome:
            about = ABOUT.get(p.statement.partition("(")[0], p.statement)
            counts[about] = counts.get(about, 0) + 1
    if set(counts) <= {"equal"}:
        return f"{counts.get('equal', 0)} pairs"
    return ", ".join(f"{n} whether {about}" for about, n in counts.items())


def json_text(atlas: Atlas) -> str:
    """Returns an atlas as JSON text, with a line for each mixer and each pair."""
    document = as_json(atlas)
    parts = []
    for name, value in document.items():
        if isinstance(value, list):
            items = ",\n  ".join(json.dumps(item, ensure_ascii=False) for item in value)
            parts.append(f'"{name}": [\n  {items}]' if value else f'"{name}": []')
        else:
            parts.append(f'"{name}": {json.dumps(value)}')
    return "{" + ",\n ".join(parts) + "}\n"


def as_json(atlas: Atlas) -> dict[str, Any]:
    """Returns an atlas for tools; equal atlases give equal documents."""
    return {
        "format": FORMAT,
        "mixers": [
            {"name": n.name, "doc": n.doc, "class": n.kind, "text": n.text} for n in atlas.nodes
        ],
        "complete": atlas.complete,
        "left_out": [{"name": name, "why": why} for name, why in atlas.left_out],
        "pairs": [
            {
                "a": p.a,
                "b": p.b,
                "verdict": p.found.value,
                "family": p.family.value,
                "statement": p.statement,
                "conditions": list(p.conditions),
                "directed": p.directed,
                "sizes": dict(p.sizes),
                "reason": p.reason,
            }
            for p in atlas.pairs
        ],
    }


def statements_about(name: str, text: str | bytes) -> tuple[str, ...]:
    """Returns what an atlas, as `json_text` writes it, proves of a mixer and others.

    Args:
        name: of the mixer.
        text: the JSON.

    Raises:
        ValueError: it is no such text; the message says why.
    """
    try:
        document = json.loads(text)
        if document["format"] != FORMAT:
            raise ValueError(f"its format is {document['format']}, and this version reads {FORMAT}")
        pairs = [_pair(p) for p in document["pairs"] if name in (p["a"], p["b"])]
    except (KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError("it lacks what an atlas has") from None
    shown = (Found.PROVED, Found.AT_SIZES)
    return tuple(statement(p) for p in pairs if p.found in shown)


def _pair(p: dict[str, Any]) -> Pair:
    return Pair(
        str(p["a"]),
        str(p["b"]),
        Found(p["verdict"]),
        str(p["statement"]),
        tuple(map(str, p["conditions"])),
        directed=bool(p["directed"]),
        sizes=tuple((str(n), int(k)) for n, k in p["sizes"].items()),
    )
