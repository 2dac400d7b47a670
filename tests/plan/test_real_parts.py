"""Complex scans of real values of which only real parts are read."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dsfc.api.pipeline import Compilation
from dsfc.expr.tree import Field
from dsfc.fused.real_imag import can_split
from dsfc.plan.real_parts import is_real_to_real
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


@pytest.mark.parametrize(
    ("value", "output", "is_real"),
    [
        ("v u", "Re(q · S)", True),
        ("v u", "Re(w u * (q · S))", True),
        ("v u", "Re(2 * (q · S) + cplx(v u, w u)) + v u", True),
        ("v u", "Re(q · S) + Re(3 * (q · S))", True),
        ("cplx(v u, w u)", "Re(q · S)", False),
        ("v u", "Im(q · S)", False),
        ("v u", "Re(abs(q · S) * (q · S))", False),
        ("v u", "Re(cplx(v u, w u) * (q · S))", False),
        ("v u", "Re((q · S) * (q · S))", False),
        ("v u", "Re((q · S) + conj(q · S) * (q · S))", False),
        ("v u", "Re(q[i-1] · S[i-1])", False),
    ],
)
def test_scans_of_which_nothing_needs_an_imaginary_part(
    value: str, output: str, is_real: bool, load: Callable[[str, str], Compilation]
) -> None:
    plan = load(
        "imaginary_part",
        f"""dims d, n, p
  input u : d
  param v, w : d -> p
        a, b, c : d -> n
  state S : n × p complex
  q = cplx(a u, b u)
  S = cis(c u) * S[i-1] + (a u) ⊗ ({value})
  y = {output}""",
    ).plan
    (scan,) = (k for k in plan.kernels if isinstance(k, Scan))
    assert scan.form is Form.KEYED and is_real_to_real(plan, scan) == is_real
