"""Every claim of every shipped spec is proved."""

from __future__ import annotations

from importlib import resources

import pytest

from dsfc.claims.verdict import Proved
from dsfc.decision import claims
from dsfc.diagnostics.report import DiagnosticError
from dsfc.pipeline import read

NAMES = sorted(
    file.name.removesuffix(".dsf")
    for file in resources.files("dsfc.specs").iterdir()
    if file.name.endswith(".dsf")
)


@pytest.mark.parametrize("name", NAMES)
def test_claims_of_shipped_specs_are_proved(name: str) -> None:
    text = read(name)
    for mixer in text.mixers:
        it = text.compilation(mixer)
        try:
            found = claims(it)
        except DiagnosticError as e:
            assert {d.code for d in e.diagnostics} <= {"E-NO-OUTPUT", "E-NONLINEAR-STATE"}
            continue
        assert [c.statement.text for c in found if not isinstance(c.verdict, Proved)] == []


def test_most_specs_claim_something() -> None:
    claiming = [name for name in NAMES if "claim " in _text(name)]
    assert len(claiming) >= 20


def _text(name: str) -> str:
    return (resources.files("dsfc.specs") / f"{name}.dsf").read_text(encoding="utf-8")
