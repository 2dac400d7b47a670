"""Notes about what is right and may not be meant: none about shipped specs but on softmax."""

from __future__ import annotations

import pytest

from dsfc.api.locate import shipped_names
from dsfc.api.notes import notes
from dsfc.api.pipeline import read
from dsfc.diagnostics.report import DiagnosticError

NOT_LINEAR = {"lstm", "slstm"}


@pytest.mark.share(6)
@pytest.mark.parametrize("name", shipped_names())
def test_shipped_specs_have_no_note_of_a_mistake(name: str) -> None:
    text = read(name)
    for mixer in text.mixers:
        try:
            said = notes(text.compilation(mixer))
        except DiagnosticError as error:
            assert name in NOT_LINEAR or {d.code for d in error.diagnostics} == {"E-NO-OUTPUT"}
        else:
            assert {d.code for d in said} <= ({"N-CACHE"} if name == "softmax" else set())
