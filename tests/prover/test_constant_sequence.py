"""Points at which one token, repeated for ever, shows that a mixer is no case of another."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.prover.constant_sequence import no_case
from dsfc.prover.sizes import chosen
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import Certificate, Claim, ConstantSequence

SPEC = """
mixer complex_mode { dims p
  input u : p
  param λ, c : p complex
  y = Re(sum[j ≤ i](c * λ^(i-j) * u[j]))
}
mixer complex_modes { dims p
  input u : p
  param λ, c, μ, d : p complex
  y = Re(sum[j ≤ i](c * λ^(i-j) * u[j])) + Re(sum[j ≤ i](d * μ^(i-j) * u[j]))
}
mixer real_mode { dims p
  input u : p
  param a, w : p
  y = sum[j ≤ i](w * a^(i-j) * u[j])
}
mixer real_modes { dims p
  input u : p
  param a, b, w, x : p
  y = sum[j ≤ i](w * a^(i-j) * u[j]) + sum[j ≤ i](x * b^(i-j) * u[j])
}
"""


def claim(first: str, second: str) -> Claim:
    read = SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", SPEC)))
    a, b = (read.compilation(name).system for name in (first, second))
    return Claim(a, b, (), chosen(a, b, 1))


@pytest.mark.parametrize("first", ["complex_mode", "complex_modes"])
@pytest.mark.parametrize("second", ["real_mode", "real_modes"])
def test_a_decay_that_is_not_real_is_a_point(first: str, second: str) -> None:
    """Re(c λ^l) is no sum of powers of real numbers where λ is not real, and is not always 0."""
    found = no_case(claim(first, second))
    assert isinstance(found, Certificate), found
    assert check(write(found)).claim == found.claim
    assert isinstance(found.proof, ConstantSequence)
    values = {
        name: complex(p / q, r / s) for name, [(p, q, r, s), *_] in found.proof.values
    }  # fmt: skip
    modes = [("lambda", "c"), ("mu", "d")]
    turning = [(values[k], values[w]) for k, w in modes if k in values and values[k].imag]
    kernel = [sum((w * k**lag).real for k, w in turning) for lag in range(4)]
    assert turning and any(kernel)


@pytest.mark.parametrize(
    "first, second",
    [("complex_mode", "complex_modes"), ("real_mode", "complex_mode"), ("real_mode", "real_modes")],
)
def test_a_case_has_no_point(first: str, second: str) -> None:
    assert isinstance(no_case(claim(first, second)), str)
