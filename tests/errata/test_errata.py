"""Every erratum that a test can decide is: the printed form fails, the corrected one holds."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from dsfc.api.decide import claims
from dsfc.api.locate import Place, shipped_names
from dsfc.api.pipeline import Compilation, SpecText
from dsfc.api.shipped import shipped_papers
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


FORMS = {
    "types": {"printed", "corrected", "code"},
    "claim": {"printed", "corrected", "claim"},
    "equiv": {"printed", "corrected", "reference"},
    "script": {"script"},
    "none": {"why"},
}
COUNTS = {"D": 27, "R": 17, "N": 17, "G": 11, "S": 22}
"""How many errata a paper has."""


def test_the_rows_are_whole() -> None:
    assert {r["id"] for r in ROWS} == {
        f"{k}{i:02}" for k, n in COUNTS.items() for i in range(1, n + 1)
    }
    assert len(ROWS) == 94 and COUNTS.keys() == DATA["papers"].keys()
    for r in ROWS:
        assert len(r["says"]) == 2 and r["about"] and r["where"]
        assert FORMS[r["lane"]] == FORMS[r["lane"]] & r.keys()
        assert r.get("printed") != r.get("corrected") or r["lane"] in ("script", "none")
        assert set(r.get("specs", ())) <= set(shipped_names())
    assert Counter(r["lane"] for r in ROWS)["none"] == 8


def test_papers_are_those_of_specs() -> None:
    named = {paper for name in shipped_names() for paper in shipped_papers(name)}
    for it in DATA["papers"].values():
        assert len({p.title for p in named if it in (str(p.identifier), p.title)}) == 1


def test_every_script_decides_a_row() -> None:
    scripts = {name for name in vars(SCRIPTS) if re.fullmatch(r"[drngs]\d\d", name)}
    assert scripts == {r["script"] for r in ROWS if r["lane"] == "script"}
