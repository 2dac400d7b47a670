"""All analyses at one point: what has no value says why."""

from __future__ import annotations

import numpy as np
import pytest

from dsfc.analysis.analysis import SEQUENCES, analyse, shorter
from dsfc.analysis.kernel import Kernel
from dsfc.diagnostics.report import DiagnosticError


def _analysed(mixer):
    return analyse(mixer.it.mixer, mixer.system, mixer.structure, mixer.point)


def test_everything_is_told_before_it_is_computed(at) -> None:
    mixer, told = at("rg_lru", tokens=4), list[str]()
    found = analyse(mixer.it.mixer, mixer.system, mixer.structure, mixer.point, told.append)
    assert len(told) == 5 and told[0] == "eigenvalues"
    assert isinstance(found.kernel, Kernel) and found.distances.shape == (SEQUENCES, 4)
    assert (found.distances[0] == found.influence.by_distance).all()


@pytest.mark.full
def test_a_large_mixer_has_the_kernel_of_fewer_tokens(at) -> None:
    found = _analysed(at("gla", tokens=64, d=32, h=1))
    assert found.kernel.values.shape[:2] == (16, 16)
    assert len(found.influence.rows) < 64 and found.influence.rows[-1] == 63


def test_a_point_may_be_shortened(at) -> None:
    assert shorter(at("gla", tokens=6).point, 2).tokens == 2


def test_an_output_that_overflows_is_refused(at) -> None:
    attn = at("softmax", tokens=3, d=4, h=1, params={"W_Q": 1e6 * np.ones((1, 4, 4)),
                                                    "W_K": 1e6 * np.ones((1, 4, 4))})  # fmt: skip
    with pytest.raises(DiagnosticError, match="not finite"):
        _analysed(attn)
