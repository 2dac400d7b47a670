"""The mixers of a text, for an atlas."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dsfc.api.decide import claims
from dsfc.api.pipeline import read
from dsfc.atlas.build import Charted
from dsfc.atlas.ir import Node
from dsfc.expr.statements import PredicateName


@pytest.fixture
def chart(tmp_path: Path) -> Callable[[str], tuple[Charted, ...]]:
    """The mixers of a text."""

    def charted(text: str) -> tuple[Charted, ...]:
        file = tmp_path / "family.dsf"
        file.write_text(text, encoding="utf-8")
        spec = read(file)
        out = []
        for name in spec.mixers:
            it = spec.compilation(name)
            node = Node(name, it.mixer.doc or "", it.structure.title)
            out.append(Charted(node, it.system, claims(it, PredicateName.EQUIVALENT)))
        return tuple(out)

    return charted
