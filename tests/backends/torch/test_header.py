"""What a module says of its origin is text, whatever a spec says."""

from __future__ import annotations

from dataclasses import replace

import pytest
from dsfc.backends.torch.header import about

import dsfc


@pytest.mark.parametrize(
    ("doc", "said"),
    [
        (None, "s6."),
        ("Selective", "s6: Selective."),
        ("Selective.", "s6: Selective."),
        ('""" ends\nhere \\', "s6: ??? ends?here ?."),
    ],
)
def test_a_mixer_is_presented_in_a_sentence_that_ends_no_docstring(
    doc: str | None, said: str
) -> None:
    assert about(replace(dsfc.load("s6").plan, doc=doc)) == said
