"""Every mixer of the list has a spec that compiles, or is refused with what would bring it in."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import emitted
import pytest

import dsfc
from dsfc.api.locate import shipped_names
from dsfc.expr.table import TABLE
from dsfc.layer_parts import PARTS

ROWS = tomllib.loads((Path(__file__).parent / "literature.toml").read_text(encoding="utf-8"))["row"]
BASES = {"qkv"}  # no mixers of their own


def modifies(name: str) -> list[str]:
    """The shipped mixers that use a modifier; none for a mixer."""
    texts = {n: (emitted.SPECS / f"{n}.dsf").read_text(encoding="utf-8") for n in shipped_names()}
    if not re.search(rf"^modifier {name} ", texts[name], re.M):
        return []
    return [n for n, text in texts.items() if re.search(rf"^ *use {name} on ", text, re.M)]


def refusal(name: str) -> tuple[set[str], str]:
    """Codes and text of what the compiler says; none where it compiles."""
    try:
        dsfc.load(emitted.SPECS / f"{name}.dsf").module()
    except dsfc.DiagnosticError as refused:
        said = [f"{d} {d.hint}" for d in refused.diagnostics]
        return {d.code for d in refused.diagnostics}, " ".join(said)
    return set(), ""


def test_every_row_has_specs_and_every_spec_has_a_row() -> None:
    named = [name for row in ROWS for name in row["specs"]]
    assert sorted(named) == sorted({*shipped_names()} - BASES)
    assert all(row["specs"] and row["mixer"] and row["source"] for row in ROWS)
    assert len({row["mixer"] for row in ROWS}) == len(ROWS)


@pytest.mark.share(3)
@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=row["specs"][0], marks=[pytest.mark.ci] * bool(k % 4))
        for k, row in enumerate(ROWS)
    ],
)
def test_a_row_compiles_or_is_refused_with_its_reason(row: dict) -> None:
    for name in row["specs"]:
        hosts = modifies(name) or [name]
        if any(emitted.text(host) is not None for host in hosts):
            assert "says" not in row, f"{name} compiles"
            continue
        assert "refused" in row, f"{name} is refused: {refusal(name)}"
        codes, said = refusal(name)
        assert codes == {row["refused"]}
        for words in row.get("says", []):
            assert words in said
    for name in row.get("inside", []):
        assert emitted.text(name) is not None


@pytest.mark.ci
@pytest.mark.parametrize("folder", ["dsfc", "backends"])
def test_no_stage_knows_a_mixer_by_name(folder: str) -> None:
    """A mixer is one file: no text of the compiler is the name of one."""
    mixers = {*shipped_names()} - set(TABLE) - set(PARTS)
    for path in (emitted.SPECS.parent / folder).rglob("*.py"):
        tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        texts = {e.value for e in tree if isinstance(e, ast.Constant) and type(e.value) is str}
        assert not texts & mixers, path.name
