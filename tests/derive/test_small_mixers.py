"""Small mixers: their systems have their values, and are what is written down in `golden/`.

A change of a system that is meant is written down by `python tests/derive/test_small_mixers.py`.
"""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path

import pytest
from small_mixers import DERIVED, REFUSED, small

from dsfc.derive.derive import derive
from dsfc.diagnostics.report import DiagnosticError
from dsfc.expr.text import text as text_of
from dsfc.mixer import Library, resolve
from dsfc.mixer.ir import Mixer
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.index_form import equations
from dsfc.system.ir import Ratio
from dsfc.system.traverse import parts, trees
from dsfc.system.verify import verify

GOLDEN = Path(__file__).parent / "golden"
CASES = [
    pytest.param(table, title, id=f"{table}: {title}")
    for table in DERIVED
    for title in DERIVED[table]
]
TOLERANCE = 1e-11
"""Ten times that of whole specs: quotients by what a state gives are among the values."""


def resolved(text: str) -> Mixer:
    return resolve(parse(Source("<text>", text)), None, Library())


def lowered(text: str) -> str:
    """The system of a mixer as text, its states' definitions, shared passes, each step taken."""
    system = derive(resolved(text))
    shared = (f"{b.state} with {', '.join(b.gauge.shared_with)}" for b in system.blocks
              if b.gauge.shared_with)  # fmt: skip
    meant = (f"{d.name} = {text_of(d.value)}" for d in system.definition if d.update)
    copies = (f"{d.axis.name} of {d.axis.copy_of}" for d in system.axes if d.axis.copy_of)
    guards = (
        f"{n.guard.kind.name} {'' if n.guard.constant is None else text_of(n.guard.constant)}"
        for t in trees(system) for n in parts(t) if isinstance(n, Ratio)
    )  # fmt: skip
    rules = groupby(system.derivation, lambda step: step.rule)
    return (
        equations(system)
        + "".join(f"defined: {line}\n" for line in meant)
        + "".join(f"pair: {line}\n" for line in shared)
        + "".join(f"copy: {line}\n" for line in copies)
        + "".join(f"guard: {line.lower().strip()}\n" for line in guards)
        + "".join(f"{rule}: {'; '.join(s.detail for s in steps)}\n" for rule, steps in rules)
    )


def refusal(text: str) -> str:
    """Code, place, message and hint of each reason why a mixer has no system."""
    with pytest.raises(DiagnosticError) as caught:
        derive(resolved(text))
    lines = []
    for d in caught.value.diagnostics:
        lines.append(f"{d.code} at `{text[d.span.start : d.span.end]}`: {d.message}")
        lines += [f"  hint: {d.hint}"] if d.hint else []
        lines += [
            f"  {label.text} `{text[label.span.start : label.span.end]}`" for label in d.labels
        ]
    return "\n".join(lines) + "\n"


def golden(table: str) -> dict[str, str]:
    """Title → what is written down."""
    held = (GOLDEN / f"{table}.txt").read_text(encoding="utf-8")
    parts = re.split(r"^## (.*)\n", held, flags=re.MULTILINE)[1:]
    return {title: text.strip() + "\n" for title, text in zip(parts[::2], parts[1::2], strict=True)}


@pytest.mark.share(10)
@pytest.mark.parametrize(("table", "title"), CASES)
def test_a_system_is_as_written_down(table: str, title: str) -> None:
    assert lowered(DERIVED[table][title]) == golden(table)[title]


@pytest.mark.share(20)
@pytest.mark.parametrize(
    ("table", "title"), [c for c in CASES if c.values[0] not in ("forms", "states")]
)
def test_a_system_has_the_values_of_its_mixer(table: str, title: str, error_of) -> None:
    mixer = resolved(DERIVED[table][title])
    system = derive(mixer)
    verify(system)
    assert error_of(mixer, system) < TOLERANCE


@pytest.mark.parametrize("title", REFUSED)
def test_a_refusal_says_where_why_and_what_to_do(title: str) -> None:
    assert refusal(small(REFUSED[title])) == golden("refusals")[title]


@pytest.mark.parametrize("table", [*DERIVED, "refusals"])
def test_nothing_else_is_written_down(table: str) -> None:
    assert set(golden(table)) == set(DERIVED.get(table, REFUSED))


def write() -> None:
    """Writes down what the mixers are lowered to now."""
    made = {table: {n: lowered(t) for n, t in rows.items()} for table, rows in DERIVED.items()}
    made["refusals"] = {n: refusal(small(body)) for n, body in REFUSED.items()}
    GOLDEN.mkdir(exist_ok=True)
    for table, rows in made.items():
        text = "\n".join(f"## {title}\n{held}" for title, held in rows.items())
        (GOLDEN / f"{table}.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
