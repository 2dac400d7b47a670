"""Every spec that the documentation prints is one that dsfc takes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dsfc.api.pipeline import read

ROOT = Path(__file__).parent.parent.parent
SPEC = re.compile(r"^```dsf\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = sorted((ROOT / "docs").rglob("*.md"))
SPECS = [
    pytest.param(text, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, text in enumerate(SPEC.findall(page.read_text(encoding="utf-8")))
]


@pytest.mark.parametrize("text", SPECS)
def test_a_printed_spec_is_derived_and_classified(text: str, tmp_path: Path) -> None:
    file = tmp_path / "printed.dsf"
    file.write_text(text, encoding="utf-8")
    found = read(file)
    assert found.mixers
    for name in found.mixers:
        assert found.compilation(name).structure


def test_pages_print_specs() -> None:
    assert len(SPECS) > 10
