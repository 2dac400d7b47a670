"""Where outputs that are proved equal have values, and conditions that hold somewhere.

Each pair was labelled by hand. What a verdict shows at a point is computed again with numpy alone:
both outputs exist at the point of a proof, and one does not where the verdict says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.prover.equivalent import equivalent
from dsfc.prover.report import report
from dsfc.prover.verdict import Conditionally, Proved, ProvedWhereDefined, Refuted, Unknown
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.trusted.check import check, read, write
from dsfc.trusted.claim import Somewhere, Witness
from dsfc.trusted.rejected import Rejected

MIXER = """
mixer {name} {{ dims n
  input u : n
  param a : n {range}
  state S : n
  S = {update}
  y = {output}
}}
"""
SUM = "S[i-1] + u"
Output = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""(u, a, S) → y."""


def mixer(name: str, output: str, declared: str = "", update: str = SUM) -> System:
    text = MIXER.format(name=name, output=output, update=update, range=declared)
    spec = SpecText(Place(Path("it.dsf")), parse(Source("it.dsf", text)))
    return spec.compilation(name).system


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


BOTH = Proved
FIRST, SECOND = "the first has no value somewhere", "the second has no value somewhere"
OUTPUTS: list[tuple[str, Output, str, Output, str, object]] = [
    # Nowhere defined.
    ("log(-1 - u^2) + S", lambda u, a, S: np.log(-1 - u**2) + S,
     "S + log(-1 - u^2)", lambda u, a, S: S + np.log(-1 - u**2), "", Unknown),
    ("log(-1 - u^2)", lambda u, a, S: np.log(-1 - u**2),
     "log(-1 - u^2)", lambda u, a, S: np.log(-1 - u**2), "", Unknown),
    ("sqrt(-1 - u^2) * S", lambda u, a, S: np.sqrt(-1 - u**2) * S,
     "S * sqrt(-1 - u^2)", lambda u, a, S: S * np.sqrt(-1 - u**2), "", Unknown),
    ("S / (u - u)", lambda u, a, S: S / (u - u),
     "2 * S / (u - u)", lambda u, a, S: 2 * S / (u - u), "", Unknown),
    ("S / (u - u)", lambda u, a, S: S / (u - u),
     "S / (u - u)", lambda u, a, S: S / (u - u), "", Unknown),
    # Defined in different places.
    ("a / a * S", lambda u, a, S: a / a * S, "S", lambda u, a, S: S, "", FIRST),
    ("S", lambda u, a, S: S, "S / a * a", lambda u, a, S: S / a * a, "", SECOND),
    ("u * S / u", lambda u, a, S: u * S / u, "S", lambda u, a, S: S, "", FIRST),
    ("S", lambda u, a, S: S, "S * (u - 1) / (u - 1)",
     lambda u, a, S: S * (u - 1) / (u - 1), "", SECOND),
    ("1 / (1 / u) * S", lambda u, a, S: 1 / (1 / u) * S,
     "u * S", lambda u, a, S: u * S, "", FIRST),
    ("S^2 / S", lambda u, a, S: S**2 / S, "S", lambda u, a, S: S, "", FIRST),
    ("S / S", lambda u, a, S: S / S, "u / u", lambda u, a, S: u / u, "", FIRST),
    ("a / a * S", lambda u, a, S: a / a * S, "S", lambda u, a, S: S, "nonneg", FIRST),
    ("tanh(u) / tanh(u) * S", lambda u, a, S: np.tanh(u) / np.tanh(u) * S,
     "S", lambda u, a, S: S, "", FIRST),
    # Defined in the same places, for the declared range.
    ("a / a * S", lambda u, a, S: a / a * S, "S", lambda u, a, S: S, "nonzero", BOTH),
    ("a / a * S", lambda u, a, S: a / a * S, "S", lambda u, a, S: S, "positive", BOTH),
    ("a / a * S", lambda u, a, S: a / a * S, "S", lambda u, a, S: S, "unit", BOTH),
    ("sqrt(a) * sqrt(a) * S", lambda u, a, S: np.sqrt(a) * np.sqrt(a) * S,
     "a * S", lambda u, a, S: a * S, "positive", BOTH),
    ("exp(log(a)) * S", lambda u, a, S: np.exp(np.log(a)) * S,
     "a * S", lambda u, a, S: a * S, "positive", BOTH),
    ("(u^2 + 1) * S / (u^2 + 1)", lambda u, a, S: (u**2 + 1) * S / (u**2 + 1),
     "S", lambda u, a, S: S, "", BOTH),
    ("S / exp(u) * exp(u)", lambda u, a, S: S / np.exp(u) * np.exp(u),
     "S", lambda u, a, S: S, "", BOTH),
    ("log(exp(u)) * S", lambda u, a, S: np.log(np.exp(u)) * S,
     "u * S", lambda u, a, S: u * S, "", BOTH),
    ("S / (1 + exp(a))", lambda u, a, S: S / (1 + np.exp(a)),
     "sigmoid(-a) * S", lambda u, a, S: sigmoid(-a) * S, "", BOTH),
    ("S / u", lambda u, a, S: S / u, "2 * S / (u + u)", lambda u, a, S: 2 * S / (u + u), "", BOTH),
    # Roots and logarithms of what may be negative.
    ("sqrt(a) * sqrt(a) * S", lambda u, a, S: np.sqrt(a) * np.sqrt(a) * S,
     "a * S", lambda u, a, S: a * S, "", FIRST),
    ("exp(log(a)) * S", lambda u, a, S: np.exp(np.log(a)) * S,
     "a * S", lambda u, a, S: a * S, "", FIRST),
    ("sqrt(a^2) * S", lambda u, a, S: np.sqrt(a**2) * S,
     "abs(a) * S", lambda u, a, S: abs(a) * S, "", BOTH),
    ("sqrt(a^2 * u) * S", lambda u, a, S: np.sqrt(a**2 * u) * S,
     "abs(a) * sqrt(u) * S", lambda u, a, S: abs(a) * np.sqrt(u) * S, "", SECOND),
    ("log(a^2) * S", lambda u, a, S: np.log(a**2) * S,
     "2 * log(abs(a)) * S", lambda u, a, S: 2 * np.log(abs(a)) * S, "", BOTH),
    # Different where both have values.
    ("a / a * S", lambda u, a, S: a / a * S, "2 * S", lambda u, a, S: 2 * S, "", Refuted),
    ("sqrt(u^2) * S", lambda u, a, S: np.sqrt(u**2) * S, "u * S", lambda u, a, S: u * S, "",
     Refuted),
]  # fmt: skip


def run(of: Output, point: Somewhere | Witness, size: int) -> np.ndarray:
    """The output at a point: tokens by n. NaN where a step on the way has no value."""
    values = {n: np.array([p / q for p, q, _, _ in v]) for n, v in point.values}
    u = values["u"].reshape(point.length, size)
    try:
        with np.errstate(divide="raise", invalid="raise"):
            return of(u, values.get("a", np.ones(size)), np.cumsum(u, axis=0)) * np.ones_like(u)
    except FloatingPointError:
        return np.full_like(u, np.nan)


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("a", "first", "b", "second", "declared", "label"),
    OUTPUTS,
    ids=[f"{a} | {b} | {declared}" for a, _, b, _, declared, _ in OUTPUTS],
)
def test_pairs_that_are_not_defined_everywhere(
    a: str, first: Output, b: str, second: Output, declared: str, label: object
) -> None:
    verdict = equivalent(mixer("one", a, declared), mixer("other", b, declared))
    if label in (FIRST, SECOND):
        assert isinstance(verdict, ProvedWhereDefined), verdict
        assert verdict.second == (label == SECOND)
    else:
        assert isinstance(verdict, label), verdict
    if isinstance(verdict, Unknown):
        return
    size = dict(verdict.certificate.claim.sizes)["n"]
    if isinstance(verdict, Refuted):
        at = verdict.witness.token, *verdict.witness.index
        left, right = (run(of, verdict.witness, size)[at] for of in (first, second))
        assert np.isfinite([left, right]).all() and abs(left - right) > 1e-9
        return
    defined = verdict.certificate.defined
    left, right = (run(of, defined, size) for of in (first, second))
    assert np.isfinite(left).all() and np.allclose(left, right)
    assert check(write(verdict.certificate)).defined == defined
    if isinstance(verdict, ProvedWhereDefined):
        has, lacks = (first, second) if verdict.second else (second, first)
        assert np.isfinite(run(has, verdict.point, size)).all()
        assert not np.isfinite(run(lacks, verdict.point, size)).all()


UPDATES = [
    ("sigmoid(u) * S[i-1] + u", "S[i-1] + u", "", False),  # σ is below 1
    ("sigmoid(u) * S[i-1] + u", "2 * S[i-1] + u", "", False),
    ("tanh(u) * S[i-1] + u", "2 * S[i-1] + u", "", False),
    ("(2 + sigmoid(u)) * S[i-1] + u", "S[i-1] + u", "", False),
    ("a * S[i-1] + u", "S[i-1] + u", "unit", False),
    ("a * S[i-1] + u", "-S[i-1] + u", "positive", False),
    ("a * S[i-1] + u", "S[i-1] + u", "", True),
    ("a * S[i-1] + u", "S[i-1] / 2 + u", "unit", True),
    ("exp(a) * S[i-1] + u", "2 * S[i-1] + u", "", True),
]


@pytest.mark.share(2)
@pytest.mark.parametrize(("a", "b", "declared", "somewhere"), UPDATES)
def test_conditions_that_hold_nowhere_prove_nothing(
    a: str, b: str, declared: str, somewhere: bool
) -> None:
    pair = mixer("one", "S", declared, a), mixer("other", "S", declared, b)
    verdict = equivalent(*pair, conditions=True)
    assert isinstance(verdict, Conditionally if somewhere else Refuted), verdict


def test_a_value_that_a_definition_never_gives_is_at_no_point() -> None:
    """σ as an input of its own is positive, and still below 1."""
    pair = mixer("one", "S", "", "sigmoid(u) * S[i-1] + u"), mixer("other", "S", "", "S[i-1]/2 + u")
    verdict = equivalent(*pair, conditions=True)
    if isinstance(verdict, Conditionally):
        point = verdict.proof.holds
        gates = [v for n, v in point.values if n not in ("u", "a")]
        assert all(0 < Fraction(p, q) < 1 for v in gates for p, q, *_ in v)


def test_a_point_of_a_certificate_is_executed() -> None:
    pair = mixer("one", "a / a * S"), mixer("other", "S")
    made = equivalent(*pair).certificate
    zero = tuple((n, tuple((0, 1, 0, 1) for _ in v)) for n, v in made.defined.values)
    bad = replace(made, defined=replace(made.defined, values=zero))
    with pytest.raises(Rejected, match="the outputs have no value here"):
        check(write(bad))
    assert read(write(made)) == made


def test_no_difference_has_a_point_where_both_are_defined() -> None:
    made = equivalent(mixer("one", "S"), mixer("other", "2 * S")).certificate
    point = Somewhere(made.proof.length, made.proof.values)
    with pytest.raises(Rejected, match="said of equality without conditions"):
        check(write(replace(made, defined=point)))


def test_a_verdict_says_where_it_holds() -> None:
    same = equivalent(mixer("one", "S"), mixer("other", "2 * S / 2"))
    assert "  defined    wherever both outputs have values, as at a point of 1 token\n" in report(
        same, "one", "other"
    )
