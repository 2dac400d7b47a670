"""The guide to a first mixer: its drafts are refused for what it tells, its last is right."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from dsfc.api.compile import compile_spec
from dsfc.api.decide import claims
from dsfc.api.pipeline import load
from dsfc.claims.verdict import Refuted
from dsfc.diagnostics.report import DiagnosticError
from dsfc.prover.equivalent import equivalent
from dsfc.prover.verdict import Proved
from dsfc.prover.verdict import Refuted as Different

PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "write_a_mixer.md"
TEXT = PAGE.read_text(encoding="utf-8")
SED = re.findall(r"^sed '(.*)' keeper\.dsf > \w+\.dsf$", TEXT, re.MULTILINE)
CELLS = re.findall(r"^```\{code-cell\} python3\n(?!%%|:)(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
DRAFTS = re.findall(r"^%%writefile keeper\.dsf\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def _refusal(text: str, folder: Path) -> set[str]:
    file = folder / "keeper.dsf"
    file.write_text(text, encoding="utf-8")
    try:
        it = load(file)
        assert it.module()
        decided = claims(it)
    except DiagnosticError as e:
        return {d.code for d in e.diagnostics}
    return {"E-CLAIM" for it in decided if isinstance(it.verdict, Refuted)}


@pytest.mark.parametrize(
    ("draft", "codes"),
    [
        (0, {"E-CALL", "E-UNKNOWN-NAME"}),
        (1, {"E-NONLINEAR-STATE"}),
        (2, {"E-CLAIM"}),
        (3, set()),
    ],
)
def test_a_draft_is_refused_for_what_the_guide_says(
    draft: int, codes: set[str], tmp_path: Path
) -> None:
    assert len(DRAFTS) == 4
    assert _refusal(DRAFTS[draft], tmp_path) == codes


def test_the_prover_answers_as_the_guide_says(tmp_path: Path) -> None:
    """Both questions: the step towards the new value is the mixer, the read before it is not."""
    verdicts = []
    (tmp_path / "keeper.dsf").write_text(DRAFTS[-1], encoding="utf-8")
    for k, script in enumerate(SED):
        text = DRAFTS[-1]
        for rule in script.split("; "):
            _, old, new, _ = rule.split("/")
            text, times = re.subn(old, new, text)
            assert times == 1
        (tmp_path / f"{k}.dsf").write_text(text, encoding="utf-8")
        verdicts.append(
            equivalent(load(tmp_path / "keeper.dsf").system, load(tmp_path / f"{k}.dsf").system)
        )
    assert [type(v) for v in verdicts] == [Proved, Different]


@pytest.mark.ci
def test_the_module_learns_what_the_guide_trains_it_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cells as they stand, with what they assert of the gate and of decoding."""
    (tmp_path / "keeper.dsf").write_text(DRAFTS[-1], encoding="utf-8")
    compile_spec(tmp_path / "keeper.dsf", out=tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "keeper", raising=False)
    names: dict[str, Any] = {}
    try:
        with torch.random.fork_rng(devices=[]):
            for cell in CELLS:
                exec(compile(cell, PAGE.name, "exec"), names)
    finally:
        sys.modules.pop("keeper", None)
    assert names["losses"][-1] < names["losses"][0] / 20
