"""Which modes a module names, and what it takes if nothing is said."""

from __future__ import annotations

import pytest
from dsfc.backends.torch.modes import CHUNK, CROSSOVER, Modes, modes

import dsfc
from dsfc.plan.ir import Form


def test_the_least_of_several_scans_counts() -> None:
    both = Modes(("recurrent", "chunked"), frozenset({Form.SELECTIVE, Form.ELEMENTWISE}))
    assert both.crossover == CROSSOVER[Form.SELECTIVE] < CROSSOVER[Form.ELEMENTWISE]
    assert both.chunk == CHUNK[Form.SELECTIVE] < CHUNK[Form.ELEMENTWISE]


@pytest.mark.parametrize(
    ("legal", "items", "choices"),
    [
        (("recurrent",), '"recurrent",', "`auto` or `recurrent`"),
        (("a", "b"), '"a", "b"', "`auto`, `a` or `b`"),
    ],
)
def test_modes_are_listed_as_text_and_as_a_tuple(
    legal: tuple[str, ...], items: str, choices: str
) -> None:
    found = Modes(legal, frozenset())
    assert (found.items, found.choices) == (items, choices)


def test_the_forms_are_those_of_the_scans() -> None:
    assert modes(dsfc.load("s6").plan).forms == {Form.SELECTIVE}
    assert modes(dsfc.load("s6").plan).default_chunk == "CHUNK"


def test_without_a_recurrence_there_is_nothing_to_choose(load) -> None:
    found = modes(load("gate", "dims d\ninput u : d\ny = silu(u)").plan)
    assert not found.scans and found.default_chunk == "64"
