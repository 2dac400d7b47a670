"""A check for finite values in chunks: what it costs, as measured, and that it sees them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import dsfc
from benchmarks import finite_check

BAR = 0.02
"""Of the recurrence's time: what mixing blocks with NaN token by token may cost finite inputs."""


def test_the_check_sees_every_block_that_holds_a_value_that_is_not_finite(tmp_path: Path) -> None:
    # A mixer of its own: operators of one text are registered once in a process.
    spec = tmp_path / "watched.dsf"
    spec.write_text("mixer watched extends retnet { }\n", encoding="utf-8")
    watched = finite_check.Watched(dsfc.import_module(dsfc.compile(spec, out=tmp_path)))
    layer = watched.layer(d=8, h=2)
    u = torch.randn(1, 200, 8)
    with torch.no_grad():
        layer(u, mode="chunked")
        for at in (0, 100, 199):
            for value in (torch.nan, torch.inf):
                spoilt = u.clone()
                spoilt[:, at] = value
                with pytest.raises(ArithmeticError):
                    layer(spoilt, mode="chunked")


def test_the_check_costs_too_much_of_two_recurrences_of_three() -> None:
    rows = json.loads(finite_check.FILE.read_text(encoding="utf-8"))["specs"]
    assert list(rows) == list(finite_check.SPECS)
    over = [
        name
        for name, lengths in rows.items()
        if all(row["recurrence"]["low"] > BAR for row in lengths.values())
    ]
    assert over == ["retnet", "ssd"]
