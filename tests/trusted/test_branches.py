"""Complex functions that have another value than real ones of the same number, or alone have one.

log(-1) is iπ where -1 is complex, and has no value where it is real.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import Certificate, Claim, Condition, Conditional, Invariant
from dsfc.trusted.rejected import Rejected

NOTHING = Invariant((), False)


def mixer(body: str) -> System:
    text = Source("m.dsf", f"mixer m {{\n input u\n {body}\n}}\n")
    return SpecText(Place(Path("m.dsf")), parse(text)).compilation("m").system


@pytest.mark.parametrize("rest", [
    "Im(log(cplx(-w, 0)))", "Im(log1p(cplx(-w, 0)))", "Im(cplx(-w, 0)^(1/2))", "Im(cplx(-w, 0)^w)",
])  # fmt: skip
def test_a_complex_number_that_is_real_has_an_imaginary_logarithm(rest: str) -> None:
    """At w = 2 all of them are other than 0."""
    a, b = mixer(f"param w positive\n y = u + {rest} * u"), mixer("param w positive\n y = u")
    with pytest.raises(Rejected, match="another branch"):
        check(write(Certificate(Claim(a, b, (), ()), NOTHING)))


@pytest.mark.parametrize("zero", [
    "sqrt(w) * sqrt(w) - w", "abs(w)^2 - w^2", "relu(w) * relu(-w)", "max(w, 1) * min(w, 1) - w",
    "exp(w / 2)^2 - exp(w)",
])  # fmt: skip
@pytest.mark.parametrize("function", ["log(cplx(-w, {}))", "log1p(cplx(-w - 1, {}))",
                                      "cplx(-w, {})^w", "cplx(-w, {})^(1/3)"])  # fmt: skip
def test_so_has_one_whose_imaginary_part_is_0_by_laws_of_roots(zero: str, function: str) -> None:
    rest = f"Im({function.format(zero)})"
    a, b = mixer(f"param w positive\n y = u + {rest} * u"), mixer("param w positive\n y = u")
    with pytest.raises(Rejected, match=r"another branch|differ"):
        check(write(Certificate(Claim(a, b, (), ()), NOTHING)))


def test_so_has_a_read_out_that_is_real() -> None:
    """Where S is negative the first is y + π; log S stands in both."""
    state = "state S\n S = S[i-1] + u\n y = Re(log(cplx(S, 0)))"
    a, b = mixer(f"{state} + Im(log(cplx(S, 0)))"), mixer(state)
    with pytest.raises(Rejected, match="another branch"):
        check(write(Certificate(Claim(a, b, (), ()), NOTHING)))


@pytest.mark.parametrize("function", ["log({})", "sqrt({})", "({})^(1/2)"])
def test_a_complex_logarithm_leaves_a_its_value_where_a_real_one_does_not(function: str) -> None:
    """At z = -1 the first is u + 0 or u + i, and the second has log(-1) or a real root of -1."""
    shared = f"param z complex\n y = u + Re({function.format('cplx(Re(z), 0)')})"
    real, complex_ = function.format("Re(z)"), f"Re({function.format('cplx(Re(z), 0)')})"
    r_is_0 = Condition((((("r[]", 1),), 1),), "r[]")

    def claim(more: str) -> str:
        b = mixer(f"param r\n {shared} + r * {more}")
        found = Claim(mixer(shared), b, (), (), conditions=(r_is_0,), case=True)
        return write(Certificate(found, Conditional(NOTHING, None, ())))

    check(claim(complex_))
    with pytest.raises(Rejected, match=r"no value where a has one|real in one place"):
        check(claim(real))
