"""Decided claims as text and as JSON."""

from __future__ import annotations

from typing import Any

from dsfc.claims.verdict import Decided, Proved, Refuted


def report(claims: tuple[Decided, ...]) -> str:
    """Returns claims with their verdicts as text, one to a line; empty if there are none."""
    if not claims:
        return ""
    lines = ["claims"]
    for it in claims:
        match it.verdict:
            case Proved(by):
                lines.append(f"  proved       {it.statement.text}: {by}")
            case Refuted(shown, point):
                lines.append(f"  refuted      {it.statement.text}: {shown}")
                if point:
                    lines.append(f"    point      {point}")
            case _:
                lines.append(f"  not decided  {it.statement.text}: {it.verdict.obstacle}")
    return "\n".join(lines) + "\n"


def as_json(it: Decided) -> dict[str, Any]:
    """Returns a claim and its verdict for tools."""
    out: dict[str, Any] = {"claim": it.statement.text}
    match it.verdict:
        case Proved(by):
            return {**out, "verdict": "proved", "by": by}
        case Refuted(shown, point):
            return {**out, "verdict": "refuted", "shown": shown, "point": point}
    return {**out, "verdict": "unknown", "obstacle": it.verdict.obstacle}
