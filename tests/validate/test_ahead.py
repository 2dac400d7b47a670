"""Modules that read tokens to come, and modules that only say so."""

from __future__ import annotations

from pathlib import Path

import pytest

import dsfc
from dsfc.validate import cost, values
from dsfc.validate.compare import BrokenPromiseError
from dsfc.validate.report import Outcome
from dsfc.validate.run import CHECKS, run
from dsfc.validate.surface import Surface, surface

BY_NAME = {check.name: check for check in CHECKS}


def changed(name: str, old: str, new: str, folder: Path) -> Surface:
    """The surface of a shipped mixer's module, with one change of its text."""
    text = dsfc.load(name).module().text
    assert text.count(old) == 1
    path = folder / f"{name}_changed.py"
    path.write_text(text.replace(old, new), encoding="utf-8")
    return surface(dsfc.import_module(path))


def test_a_module_that_goes_on_from_no_state_says_so(tmp_path: Path) -> None:
    found = changed("dlr_bidirectional", "CAUSAL = False", "CAUSAL = False  # as emitted", tmp_path)
    for check in (values.segments, values.steps, values.memory_of_the_past, cost.streaming):
        assert "E-STEP" in check(found)
    assert "not promised" in values.causality(found)


def test_a_module_that_only_says_it_reads_ahead_breaks_a_promise(tmp_path: Path) -> None:
    found = changed("short_convolution", "\nMODES = ", "\nCAUSAL = False\nMODES = ", tmp_path)
    with pytest.raises(BrokenPromiseError, match="no output looks ahead"):
        values.causality(found)
    with pytest.raises(BrokenPromiseError, match="takes a state"):
        values.segments(found)


def test_a_module_that_hides_that_it_reads_ahead_breaks_a_promise(tmp_path: Path) -> None:
    found = changed("dlr_bidirectional", "CAUSAL = False", "CAUSAL = True", tmp_path)
    for name in ("causality", "segments", "steps"):
        assert run(BY_NAME[name], found).outcome is Outcome.BROKEN
