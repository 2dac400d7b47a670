"""The floor that norms divide by: `l2norm` of one entry is u / max(|u|, 1e-12)."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import (
    Certificate,
    Claim,
    Number,
    OutputDifference,
    SeparatingSequences,
    Witness,
)
from dsfc.trusted.rejected import Rejected

TEXT = """
mixer normed { dims n
  input u : n
  y = l2norm[n](u)
}
mixer by_hand { dims n
  input u : n
  y = u / max(abs(u), 1e-12)
}
mixer scaled { dims n
  input u : n
  param w
  y = w * l2norm[n](u)
}
"""

SIZES = (("n", 1),)
BELOW: Number = (1, 10**13, 0, 1)
"""A number below the floor."""


def system(name: str) -> System:
    text = SpecText(Place(Path("floor.dsf")), parse(Source("floor.dsf", TEXT)))
    return text.compilation(name).system


@pytest.mark.parametrize("u", [0.0, 1e-13, -1e-13, 1e-12, 1e-300, 1.0, 3.5])
def test_both_are_one_function_of_floats(u: float) -> None:
    """Of one entry, in float64, as the language says: x / max(‖x‖, 1e-12)."""
    assert u / max(math.sqrt(u * u), 1e-12) == pytest.approx(u / max(abs(u), 1e-12), rel=1e-15)


def test_a_norm_is_not_refuted_to_be_what_it_is() -> None:
    """The literal is 1/10^12; a floor that is the nearest float64 is another number."""
    claim = Claim(system("normed"), system("by_hand"), (), SIZES, equal=False)
    with pytest.raises(Rejected, match="the outputs may be equal here"):
        check(write(Certificate(claim, Witness(1, (("u", (BELOW,)),), 0, (0,)))))


def test_a_norm_by_hand_is_a_case_of_a_factor_times_the_norm() -> None:
    """With w = 1: no certificate shows that there is no such w."""
    claim = Claim(system("by_hand"), system("scaled"), (), SIZES, False, case=True)
    large, small = "l2norm.n[0](1)", "l2norm.n[0](1/10000000000000)"
    letters = ((("u", ((1, 1, 0, 1),)),), (("u", (BELOW,)),))
    parts = (
        OutputDifference(0, 0, (0,), ((((small, 1),), 1),)),
        OutputDifference(1, 0, (0,), ((((large, 1),), -1),)),
    )
    proof = SeparatingSequences((), letters, ((0,), (1,)), True, parts)
    with pytest.raises(Rejected, match="the sum"):
        check(write(Certificate(claim, proof)))
