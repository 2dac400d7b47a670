"""Decided claims as text and as JSON."""

from __future__ import annotations

from typing import Any

from dsfc.claims.verdict import Decided, Proved, Refuted


def report(claims: tuple[Decided, ...]) -> str:
    """Returns claims with their verdicts as text, one to a line; empty if there are none."""
    if not claims:
        return ""
    lines = ["claims"]
    for claim in claims:
        match claim.verdict:
            case Proved(by):
                lines.append(f"  proved       {claim.statement.text}: {by}")
            case Refuted(shown, point):
                lines.append(f"  refuted      {claim.statement.text}: {shown}")
                if point:
                    lines.append(f"    point      {point}")
            case _:
                lines.append(f"  not decided  {claim.statement.text}: {claim.verdict.obstacle}")
    return "\n".join(lines) + "\n"


def as_json(claim: Decided) -> dict[str, Any]:
    """Returns a claim and its verdict for tools."""
    out: dict[str, Any] = {"claim": claim.statement.text}
    match claim.verdict:
        case Proved(by):
            return {**out, "verdict": "proved", "by": by}
        case Refuted(shown, point):
            return {**out, "verdict": "refuted", "shown": shown, "point": point}
    return {**out, "verdict": "unknown", "obstacle": claim.verdict.obstacle}
