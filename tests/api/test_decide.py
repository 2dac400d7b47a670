"""Comparisons of mixers end with an answer or a diagnostic, whatever the mixers are."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsfc.api.decide import equivalent
from dsfc.api.pipeline import read
from dsfc.diagnostics.report import DiagnosticError


def test_a_chain_of_definitions_that_is_too_long_is_a_limit(tmp_path: Path) -> None:
    chain = "; ".join(f"a{k + 1} = (a{k} * z) / (1 + x * x)" for k in range(200))
    file = tmp_path / "chain.dsf"
    file.write_text(
        f"""
mixer plain {{ dims n
  input x, z, u : n
  y = u
}}
mixer long extends plain {{ a0 = x; {chain}; y = u + a200 }}
""",
        encoding="utf-8",
    )
    spec = read(file)
    with pytest.raises(DiagnosticError) as error:
        equivalent(spec.compilation("long"), spec.compilation("plain"))
    assert [d.code for d in error.value.diagnostics] == ["E-LIMIT"]
