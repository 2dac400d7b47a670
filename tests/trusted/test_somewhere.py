"""Points that say where a claim holds: both outputs have values there, as definitions give them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.expr.interval import INF, Interval
from dsfc.prover.defined import NO_OUTPUT
from dsfc.prover.equivalent import equivalent
from dsfc.prover.subsumes import subsumes
from dsfc.prover.verdict import Instance, Unknown
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.trusted.balls import Complex, Real, Undefined, log, real, sqrt
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import Certificate, Claim, Same, Somewhere
from dsfc.trusted.generalize_inputs import ranges
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.rules.point import inside

TEXT = """
mixer divided { dims n
  input u : n
  y = 1 / u
}
mixer gated { dims n
  input u : n
  state S : n
  g = sigmoid(u)
  S = g * S[i-1] + u
  y = S
}
mixer halved { dims n
  input u : n
  state S : n
  S = S[i-1] / 2 + u
  y = S
}
mixer rooted { dims n
  input u
  param a
  y = sqrt(a) * u
}
mixer times { dims n
  input u
  param c
  y = c * u
}
mixer nowhere { dims n
  input u
  y = u * log(-exp(u))
}
mixer nowhere_times { dims n
  input u
  param c
  y = c * u * log(-exp(u))
}
"""


def system(name: str) -> System:
    text = SpecText(Place(Path("it.dsf")), parse(Source("it.dsf", TEXT)))
    return text.compilation(name).system


def at(u: int) -> Certificate:
    divided = system("divided")
    claim = Claim(divided, divided, (), (("n", 1),))
    return Certificate(claim, Same(), Somewhere(1, (("u", ((u, 1, 0, 1),)),)))


def reason(certificate: Certificate) -> str:
    with pytest.raises(Rejected) as caught:
        check(write(certificate))
    return str(caught.value)


def test_both_outputs_have_values_at_the_point() -> None:
    assert check(write(at(2))).defined == at(2).defined
    assert "the outputs have no value here: a denominator is 0" in reason(at(0))


@pytest.mark.parametrize("file, a, b", [("attention", "post", "eta_late")])
def test_a_difference_has_no_such_point(certificate: Callable, file: str, a: str, b: str) -> None:
    made = certificate(file, a, b)
    point = Somewhere(made.proof.length, made.proof.values)
    why = reason(replace(made, defined=point))
    assert "said of equality without conditions" in why


def test_neither_has_equality_under_conditions(conditional: Callable) -> None:
    made = conditional("lattice", "linear", "template")
    why = reason(replace(made, defined=Somewhere(1, ())))
    assert "said of equality without conditions" in why


@pytest.mark.parametrize(("value", "accepted"), [(1, True), (-1, False)])
def test_a_case_has_a_point_of_the_first_alone(value: int, accepted: bool) -> None:
    """√a · u is c · u with c = √a, wherever it is."""
    found = subsumes(system("rooted"), system("times"), (), True)
    assert isinstance(found, Instance) and found.certificate.defined is not None
    names = [name for name, _ in found.certificate.defined.values]
    assert names == ["u", "a"]
    point = Somewhere(1, tuple((name, ((value, 1, 0, 1),)) for name in names))
    made = replace(found.certificate, defined=point)
    if accepted:
        assert check(write(made)).defined == point
    else:
        assert "the first's output has no value here" in reason(made)


def test_only_axes_of_the_two_have_sizes() -> None:
    made = at(2)
    claim = replace(made.claim, sizes=(("n", 1), ("other", 3)))
    assert "`other` has a size, and is no axis of the two" in reason(replace(made, claim=claim))
    assert reason(replace(made, claim=replace(made.claim, every=("other",))))


def test_what_has_a_value_nowhere_is_no_case_of_anything() -> None:
    found = subsumes(system("nowhere"), system("nowhere_times"), (), True)
    assert isinstance(found, Unknown) and NO_OUTPUT in " ".join(found.tried)


def test_a_value_made_free_stays_where_its_definition_gives_it() -> None:
    """σ(u) is an input of its own, and at no point 1, nor 2."""
    made = equivalent(system("gated"), system("halved"), conditions=True).certificate
    (name,) = (n for n in ranges(made.claim) if n.endswith("g"))
    holds = made.proof.holds
    for k in (1, 2):
        values = tuple(
            (n, tuple((k, 1, 2, 1, 0) for _ in v) if n == name else v) for n, v in holds.values
        )
        bad = replace(made.proof, holds=replace(holds, values=values))
        why = reason(replace(made, proof=bad))
        assert f"`{name}` has a value that its definition never gives" in why


@pytest.mark.parametrize(
    ("interval", "there"),
    [
        (Interval(-INF, INF), [-1, 0, 1]),
        (Interval(0.0, INF), [0, 1]),
        (Interval(0.0, INF, open_low=True), [1]),
        (Interval(-INF, 0.0), [-1, 0]),
        (Interval(-INF, 0.0, open_high=True), [-1]),
    ],
)
def test_bounds_lie_in_an_interval(interval: Interval, there: list[int]) -> None:
    assert [x for x in (-1, 0, 1) if inside(real(x), interval)] == there
    assert inside(Real(real(-1).low, real(1).low), interval) == (len(there) == 3)


def test_what_has_no_value_is_told_from_what_is_not_known() -> None:
    wide = Real(real(-1).low, real(1).low)
    for sure, of in ((True, (real(0), real(-1))), (False, (wide, wide))):
        for what, x in (
            (lambda x: real(1) / x, of[0]),
            (log, of[0]),
            (sqrt, of[1]),
            (lambda x: Complex(real(1), real(0)) / Complex(x, real(0)), of[0]),
        ):
            with pytest.raises(ArithmeticError) as caught:
                what(x)
            assert isinstance(caught.value, Undefined) == sure
