"""A ratio over a running maximum is the ratio: its outputs are the same for any m and any R."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from dsfc.proof.equivalent import equivalent
from dsfc.proof.verdict import Proved
from dsfc.structure.running_max import unbounded
from dsfc.system.ir import System
from dsfc.transform.running_max import running_max_gauge

MIXERS = ("mlstm", "lln", "lnssm", "rwkv4", "performer")


@pytest.mark.parametrize("name", MIXERS)
def test_states_over_any_exponential_give_the_same_outputs(
    name: str, system: Callable[[str, str], System]
) -> None:
    plain, stored = system("running_max", name), system("running_max", f"{name}_any")
    assert isinstance(equivalent(plain, stored), Proved)


@pytest.mark.parametrize("name", MIXERS)
def test_what_the_compiler_makes_gives_the_same_outputs_for_any_maximum(
    name: str, system: Callable[[str, str], System]
) -> None:
    plain = system("running_max", name)
    stored, _ = running_max_gauge(plain, unbounded(plain), free=True)
    assert len(stored.inputs) == len(plain.inputs) + 2
    assert isinstance(equivalent(replace(plain, inputs=stored.inputs), stored), Proved)
