"""A convolution of real values returns real parts where only those are read."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dsfc.api.pipeline import Compilation
from dsfc.expr.tree import Field
from dsfc.fused.real_imag import can_split
from dsfc.plan.scan_ir import Form, Scan


@pytest.mark.parametrize(
    ("drive", "output", "real"),
    [
        ("u", "Re(S)", True),
        ("1", "Re(S) * u", True),
        ("cplx(u, 2 * u)", "Re(S)", False),
        ("u", "Re(S) + Im(S)", False),
        ("u", "Re(S[i-1])", True),
    ],
)
def test_convolutions(
    drive: str, output: str, real: bool, load: Callable[[str, str], Compilation]
) -> None:
    plan = load(
        "real_parts",
        f"""dims d
  input u : d
  param ω : d
  state S : d complex
  S = 1/2 * cis(ω) * S[i-1] + {drive}
  y = {output}""",
    ).plan
    (scan,) = (k for k in plan.kernels if isinstance(k, Scan))
    assert scan.form is Form.CONVOLUTION and scan.field is Field.COMPLEX and scan.real == real


@pytest.mark.parametrize(
    ("drive", "output", "can"),
    [
        ("u", "Re(S)", True),
        ("cplx(u, 2 * u)", "Re(S)", False),
        ("u", "Im(S)", False),
        ("u", "Re(S[i-1])", False),
    ],
)
def test_complex_scans_that_split(
    drive: str, output: str, can: bool, load: Callable[[str, str], Compilation]
) -> None:
    plan = load(
        "split",
        f"""dims d
  input u : d
  param w : d -> d
  state S : d complex
  S = 1/2 * cis(w u) * S[i-1] + {drive}
  y = {output}""",
    ).plan
    (scan,) = (k for k in plan.kernels if isinstance(k, Scan))
    assert can_split(plan, scan) == can
