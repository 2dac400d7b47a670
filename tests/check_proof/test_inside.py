"""Values of parameters that stand inside functions of b: what they show, and what they must not."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsfc.check_proof.check import check, write
from dsfc.check_proof.claim import Certificate, Claim, Condition, Conditional, Invariant
from dsfc.check_proof.rejected import Rejected
from dsfc.locate import Place
from dsfc.pipeline import SpecText
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System

SIZES = (("h", 2),)


def mixer(body: str) -> System:
    text = Source("m.dsf", f"mixer m {{ dims h = 2\n {body}\n}}\n")
    return SpecText(Place(Path("m.dsf")), parse(text)).compilation("m").system


def value(solved: str, *terms: tuple[int, dict[str, int]]) -> Condition:
    """That solved · 1 + terms is 0."""
    every = ((1, {solved: 1}), *terms)
    return Condition(tuple(sorted((tuple(sorted(m.items())), c) for c, m in every)), solved)


def verdict(a: str, b: str, *conditions: Condition, case: bool = True) -> str:
    """Why the checker refuses that a is a case of b without states; empty if it accepts."""
    left, right = mixer(a), mixer(b)
    sizes = SIZES if left.axes or right.axes else ()
    claim = Claim(left, right, (), sizes, case=case, conditions=conditions)
    try:
        check(write(Certificate(claim, Conditional(Invariant((), False), None, ()))))
    except Rejected as e:
        return str(e)
    return ""


PLAIN = "input u\n y = u"
HALF = "input u\n buffer g = 1 / 2\n y = g * u"
ZERO, ONE = value("r[]"), value("r[]", (-1, {}))
LOG_2 = value("r[]", (-1, {"log(2)": 1}))

ACCEPTED = {
    "0 in an exponential": (PLAIN, "input u\n param r\n y = exp(-r * u) * u", ZERO),
    "0 where it may be": (PLAIN, "input u\n param r nonneg\n y = exp(-r * u) * u", ZERO),
    "an angle of 0": (PLAIN, "input u\n param r\n y = cos(r * u) * u", ZERO),
    "a complex value": ("input u\n param w\n y = w * u",
                        "input u\n param r complex\n y = Re(r * u)",
                        value("r[]", (-1, {"w[]": 1}))),
    "1/2 in (0, 1)": (HALF, "input u\n param r unit\n y = exp(log(r)) * u",
                      Condition((((), -1), ((("r[]", 1),), 2)), "r[]")),
    "log 2": (HALF, "input u\n param r positive\n y = exp(-r) * u", LOG_2),
    "the logarithm of a parameter": (
        "input u\n param w positive\n y = w * u", "input u\n param r\n y = exp(r) * u",
        value("r[]", (-1, {"log(w[])": 1}))),
    "a divisor of which a value is positive": (
        PLAIN, "input u\n param r\n y = u * exp(r * u) / (1 + r)", ZERO),
    "a number that is a buffer": ("input u\n buffer g = 1\n y = g * u", PLAIN),
}  # fmt: skip


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_values_inside_functions_show(name: str) -> None:
    assert verdict(*ACCEPTED[name]) == ""


UNDEFINED = "leave a function without one"
REFUSED = {
    "another value": (PLAIN, "input u\n param r\n y = exp(-r * u) * u", ONE, "outputs differ"),
    "none": (PLAIN, "input u\n param r\n y = exp(-r * u) * u", "outputs differ"),
    "0 where it may not be": (PLAIN, "input u\n param r positive\n y = exp(-r * u) * u", ZERO,
                              "may not be positive"),
    "1 outside of (0, 1)": (PLAIN, "input u\n param r unit\n y = exp(log(r) * u) * u", ONE,
                            "may not be unit"),
    "-1 outside of (0, 1)": (PLAIN, "input u\n param r unit\n y = exp(r + 1) * u",
                             value("r[]", (1, {})), "may not be unit"),
    "0 where it is other than 0": (PLAIN, "input u\n param r nonzero\n y = exp(r * u) * u", ZERO,
                                   "may not be nonzero"),
    "-1 where it is not negative": (PLAIN, "input u\n param r nonneg\n y = exp(r + 1) * u",
                                    value("r[]", (1, {})), "may not be nonneg"),
    "the logarithm of 0": (PLAIN, "input u\n param r\n y = u + r * log(r)", ZERO, UNDEFINED),
    "an unknown divisor": (
        "input u\n param w\n y = u", "input u\n param r, w\n y = u * exp((r - w) * u) / (r / w)",
        value("r[]", (-1, {"w[]": 1})), UNDEFINED),
    "a power of 0": (PLAIN, "input u\n param r\n y = u * exp(r * u) + r * r^(-1 / 2)", ZERO,
                     UNDEFINED),
    "a norm of 0": (PLAIN, "input u\n param r : h\n y = u + sum[h](r * l2norm[h](r))",
                    value("r[0]"), value("r[1]"), UNDEFINED),
    "a logarithm of no prime": (
        "input u\n buffer g = 1 / 4\n y = g * u", "input u\n param r positive\n y = exp(-r) * u",
        value("r[]", (-1, {"log(4)": 1})), "which the claim does not have"),
    "a logarithm of any number": (
        "input u\n param w\n y = w * u", "input u\n param r\n y = exp(r) * u",
        value("r[]", (-1, {"log(w[])": 1})), "which the claim does not have"),
    "a real angle that is not": (
        "input u\n param w\n y = exp(w) * u", "input u\n param r\n y = Re(cis(r)) * u",
        value("r[]", (1, {"i": 1, "w[]": 1})), ""),
    "one entry of two": (PLAIN, "input u\n param r : h\n y = exp(sum[h](r) * u) * u",
                         value("r[0]"), "outputs differ"),
    "the first's parameter": ("input u\n param r\n y = exp(r * u) * u", PLAIN, ZERO,
                              "outputs differ"),
    "a buffer of another number": (HALF, PLAIN, "outputs differ"),
    "a buffer that is a parameter of the first": (
        "input u\n param g\n y = g * u", "input u\n buffer g = 1\n y = g * u", "smaller range"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_they_do_not_show(name: str) -> None:
    *row, why = REFUSED[name]
    found = verdict(*row)
    assert found and why in found


def test_a_ratio_of_states_takes_no_values() -> None:
    """Its denominator might vanish."""
    b = "input u\n param r\n state s\n s = s[i-1] + exp(r * u)\n y = u * s / s"
    assert "ratio of states" in verdict(PLAIN, b, ZERO)


def test_without_a_case_there_is_nothing_to_show() -> None:
    assert "something else is claimed" in verdict(PLAIN, PLAIN, case=False)
    assert verdict(PLAIN, PLAIN) == ""
