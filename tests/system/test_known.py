"""What declarations promise, and that a buffer's own value is believed before its declaration."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.expr.declarations import Constraint, Init
from dsfc.prover.equivalent import equivalent
from dsfc.prover.subsumes import subsumes
from dsfc.prover.verdict import Instance, Proved
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.system.known import promises
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import Certificate
from dsfc.trusted.rejected import Rejected

PLAIN = "param c : d"
BROKEN_AT_TEN = "(d - 10)^2 - 1/2"
"""Positive at all sizes that are tried, and at most others."""


def mixer(declared: str, y: str) -> System:
    text = f"mixer m {{ dims d\n input u : d\n {declared}\n y = {y}\n}}"
    return SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", text))).compilation("m").system


@pytest.mark.parametrize(
    "flag, value, kept",
    [
        ("positive", "d", True),
        ("positive", BROKEN_AT_TEN, False),
        ("nonneg", "(d - 10)^2", True),
        ("nonneg", "d - 20", False),
        ("unit", "1 - 2^(-5 - d)", True),
        ("unit", "0", False),
        ("nonzero", "-d", True),
        ("nonzero", "d - 20", False),
        ("nonzero complex", "cplx(d - 20, 0)", False),
    ],
)
def test_a_buffer_keeps_what_its_value_keeps(flag: str, value: str, kept: bool) -> None:
    system = mixer(f"buffer w {flag} = {value}; {PLAIN}", "Re(w) * c * u")
    promised = Constraint(flag.split()[0])
    assert promises(system) == {
        "u": Constraint.NONE,
        "c": Constraint.NONE,
        "w": promised if kept else Constraint.NONE,
    }
    # A value that is not known is as declared.
    free = replace(system, buffers=tuple(replace(t, init=None) for t in system.buffers))
    assert promises(free)["w"] is promised


def with_value(made: Certificate, value: Init) -> Certificate:
    """The certificate, its buffers with another value."""

    def of(system: System) -> System:
        return replace(system, buffers=tuple(replace(t, init=value) for t in system.buffers))

    return replace(made, claim=replace(made.claim, a=of(made.claim.a), b=of(made.claim.b)))


def value(written: str, flag: str) -> Init:
    (buffer,) = mixer(f"buffer w {flag} = {written}", "w * u").buffers
    assert buffer.init is not None
    return buffer.init


def test_what_a_value_breaks_proves_no_equality() -> None:
    """|w| is w where w is positive, which it is not at d = 10."""
    pair = [[mixer(f"buffer w positive = {w}", y) for y in ("abs(w) * u", "w * u")]
            for w in ("(d - 10)^2 + 1/2", BROKEN_AT_TEN)]  # fmt: skip
    made = equivalent(*pair[0])
    assert isinstance(made, Proved)
    assert not isinstance(equivalent(*pair[1]), Proved)
    with pytest.raises(Rejected):
        check(write(with_value(made.certificate, value(BROKEN_AT_TEN, "positive"))))


def test_what_a_value_breaks_makes_no_case() -> None:
    """The second has the first's function at a = b / w, which is nothing where w is 0."""
    pair = [[mixer(f"buffer w unit = {w}\n param {p} : d", f"{p} * {by} * u + w * u")
             for p, by in (("b", "1"), ("a", "w"))] for w in ("1/2", "0")]  # fmt: skip
    made = subsumes(*pair[0], conditions=True)
    assert isinstance(made, Instance)
    assert not isinstance(subsumes(*pair[1], conditions=True), Instance)
    with pytest.raises(Rejected, match="the outputs differ"):
        check(write(with_value(made.certificate, value("0", "unit"))))
