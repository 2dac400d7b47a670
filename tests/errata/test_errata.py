"""Every erratum is run by its lane: the printed form fails, the corrected one holds."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from dsfc.api.decide import claims
from dsfc.api.locate import Place
from dsfc.api.pipeline import Compilation, SpecText
from dsfc.claims import verdict as claimed
from dsfc.diagnostics.report import DiagnosticError
from dsfc.prover.equivalent import equivalent
from dsfc.prover.verdict import Proved, Refuted
from dsfc.source import Source
from dsfc.syntax.parse import parse

DATA = tomllib.loads((Path(__file__).parent / "errata.toml").read_text(encoding="utf-8"))
ROWS = DATA["row"]
_spec = importlib.util.spec_from_file_location("scripts", Path(__file__).parent / "scripts.py")
SCRIPTS = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(SCRIPTS)
LANES = ("types", "equiv", "claim", "script")


def compiled(row: dict, form: str, claim: str = "") -> Compilation:
    """The mixer of a form, checked."""
    head = DATA["heads"][row["head"]]["text"] if "head" in row else ""
    base = f" extends {row['head']}" if head else ""
    lines = "\n".join(f"  {line.strip()}" for line in re.split(r";(?![^(]*\))", row[form]))
    if not head:
        lines = lines.strip()
    text = f"{head}\nmixer form{base} {{\n  {lines}\n{claim}}}\n"
    spec = SpecText(Place(Path("errata.dsf")), parse(Source("errata.dsf", text)))
    it = spec.compilation("form")
    assert it.system
    return it


def rows(lane: str) -> list:
    return [pytest.param(r, id=r["id"]) for r in ROWS if r["lane"] == lane]


@pytest.mark.parametrize("row", rows("types"))
def test_the_printed_form_is_no_spec(row: dict) -> None:
    with pytest.raises(DiagnosticError) as caught:
        compiled(row, "printed")
    assert {d.code for d in caught.value.diagnostics} == {row["code"]}
    assert compiled(row, "corrected").system.outputs


@pytest.mark.ci
@pytest.mark.parametrize("row", rows("equiv"))
def test_the_printed_mixer_is_another(row: dict) -> None:
    reference = compiled(row, "reference").system
    assert isinstance(equivalent(reference, compiled(row, "corrected").system), Proved)
    assert isinstance(equivalent(reference, compiled(row, "printed").system), Refuted)


@pytest.mark.ci
@pytest.mark.parametrize("row", rows("claim"))
def test_the_printed_claim_is_refuted(row: dict) -> None:
    claim = f"  claim {row['claim']}\n"
    printed, corrected = (
        claims(compiled(row, form, claim))[-1].verdict for form in ("printed", "corrected")
    )
    assert isinstance(printed, claimed.Refuted)
    assert isinstance(corrected, claimed.Proved)


@pytest.mark.parametrize("row", rows("script"))
def test_the_printed_arithmetic_is_wrong(row: dict) -> None:
    printed, corrected = getattr(SCRIPTS, row["script"])()
    assert not printed and corrected


def test_the_rows_are_whole() -> None:
    assert all(r["lane"] in LANES and len(r["says"]) == 2 and r["about"] for r in ROWS)
    assert max(Counter(r["id"] for r in ROWS).values()) == 1 and len(ROWS) == 67
    forms = {"types": {"printed", "corrected", "code"}, "claim": {"printed", "corrected", "claim"},
             "equiv": {"printed", "corrected", "reference"}, "script": {"script"}}  # fmt: skip
    assert all(forms[r["lane"]] <= r.keys() for r in ROWS)
    assert all(r["printed"] != r["corrected"] for r in ROWS if r["lane"] != "script")
