"""Which mixers are exported to what, as Markdown, from what `tests/programs/elsewhere.py` left."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[2] / "tests" / "campaigns" / "exports.json"

TARGETS = {"torch": "torch.export", "aoti": "AOTInductor", "onnx": "ONNX"}
"""Target → what the page calls it."""

_TAKES = {"whole": "", "step": ", a step"}


def read() -> dict[str, Any]:
    """Returns what came of each mixer, by name."""
    mixers: dict[str, Any] = json.loads(DATA.read_text("utf-8"))["mixers"]
    return mixers


def table(mixers: dict[str, Any]) -> str:
    """Returns a row for each mixer, the refusals below, and what all ran with, in Markdown.

    Args:
        mixers: as `read` returns them.
    """
    columns = [(to, takes) for to in TARGETS for takes in _TAKES]
    head = ["mixer", *(TARGETS[to] + _TAKES[takes] for to, takes in columns)]
    rows = [
        [f"`{name}`", *(_cell(came.get(to, {}).get(takes)) for to, takes in columns)]
        for name, came in mixers.items()
    ]
    lines = [head, ["---"] * len(head), *rows]
    whole = "\n".join("| " + " | ".join(row) + " |" for row in lines)
    refused = "\n".join(f"- {line}" for line in refusals(mixers))
    return "\n\n".join((whole, refused, _runs(mixers))) + "\n"


def refusals(mixers: dict[str, Any]) -> Iterator[str]:
    """Yields what the diagnostic says of each mixer and target that is refused."""
    for name, came in mixers.items():
        for to, title in TARGETS.items():
            said = {takes: came.get(to, {}).get(takes, {}).get("refused") for takes in _TAKES}
            if said["whole"] == said["step"] is not None:
                yield f"`{name}`, {title}: {said['whole']}"
                continue
            for takes, text in said.items():
                if text is not None:
                    yield f"`{name}`, {title}{_TAKES[takes]}: {text}"


def _cell(came: dict[str, Any] | None) -> str:
    if came is None:
        return "not run"
    return f"{came['error']:.0e}" if "error" in came else "refused"


def _runs(mixers: dict[str, Any]) -> str:
    """With what all ran, and when; each circumstance once."""
    every = [came[to] for came in mixers.values() for to in TARGETS if to in came]
    runs = dict.fromkeys(
        f"{one['date']} with {', '.join(f'{name} {v}' for name, v in one['versions'].items())}"
        for one in every
    )
    return f"Run on {'; on '.join(runs)}."
