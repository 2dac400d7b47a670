"""Values of parameters that stand inside functions of b: what they show, and what they must not."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.prover.subsumes import subsumes
from dsfc.prover.verdict import Instance
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import Certificate, Claim, Condition, Conditional, Invariant
from dsfc.trusted.conditions import Conditions
from dsfc.trusted.defined import Defined, never_zero
from dsfc.trusted.elementary import IMAGINARY_UNIT
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.polynomial import ONE, ZERO, Quotient, total
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.substitute_parameters import literals, substitute_parameters
from dsfc.trusted.symbols import Symbols

SIZES = (("h", 2),)


def mixer(body: str) -> System:
    text = Source("m.dsf", f"mixer m {{ dims h = 2\n {body}\n}}\n")
    return SpecText(Place(Path("m.dsf")), parse(text)).compilation("m").system


def value(solved: str, *terms: tuple[int, dict[str, int]]) -> Condition:
    """That solved · 1 + terms is 0."""
    every = ((1, {solved: 1}), *terms)
    return Condition(tuple(sorted((tuple(sorted(m.items())), c) for c, m in every)), solved)


def verdict(
    a: str,
    b: str,
    *conditions: Condition,
    case: bool = True,
    apart: tuple[str, ...] = (),
) -> str:
    """Why the kernel refuses that a is a case of b without states; empty if it accepts."""
    left, right = mixer(a), mixer(b)
    sizes = SIZES if left.axes or right.axes else ()
    claim = Claim(left, right, (), sizes, case=case, conditions=conditions, apart=apart)
    try:
        check(write(Certificate(claim, Conditional(Invariant((), False), None, ()))))
    except Rejected as e:
        return str(e)
    return ""


PLAIN = "input u\n y = u"
HALF = "input u\n buffer g = 1 / 2\n y = g * u"
WU = "input u\n param w\n y = w * u"
AT_0, AT_1 = value("r[]"), value("r[]", (-1, {}))
LOG_2 = value("r[]", (-1, {"log(2)": 1}))

ACCEPTED = {
    "0 in an exponential": (PLAIN, "input u\n param r\n y = exp(-r * u) * u", AT_0),
    "0 where it may be": (PLAIN, "input u\n param r nonneg\n y = exp(-r * u) * u", AT_0),
    "an angle of 0": (PLAIN, "input u\n param r\n y = cos(r * u) * u", AT_0),
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
        PLAIN, "input u\n param r\n y = u * exp(r * u) / (1 + r)", AT_0),
    "a number that is a buffer": ("input u\n buffer g = 1\n y = g * u", PLAIN),
}  # fmt: skip


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_values_inside_functions_show(name: str) -> None:
    assert verdict(*ACCEPTED[name]) == ""


ACCEPTED |= {
    "what the first divides by": ("input u\n param w\n y = u / w",
                                  "input u\n param r, w\n y = u * exp(r * u) / w", AT_0),
    "a logarithm that the first has": ("input u\n y = log(u)",
                                       "input u\n param r\n y = log(u) * exp(r * u)", AT_0),
    "a divisor that need not be 0": (PLAIN, "input u\n param r, s\n y = u + r / s", AT_0),
    "a divisor declared other than 0": (
        "input u\n param w nonzero\n y = w * u",
        "input u\n param r, w nonzero\n y = u * w^2 / r", value("r[]", (-1, {"w[]": 1}))),
    "a divisor on the unit circle": (PLAIN, "input u\n param r\n y = Re(u / cis(r * u))", AT_0),
    "a natural power": (PLAIN, "input u\n param r\n y = u + r^2 * exp(r)", AT_0),
    "a root of what is positive": (
        "input u\n param w positive\n y = w * u",
        "input u\n param r, w positive\n y = sqrt(r) * u",
        value("r[]", (-1, {"w[]": 2}))),
    "a real tangent": (PLAIN, "input u\n param r\n y = u + tanh(r * u)", AT_0),
    "tanh between 0 and 1": (
        "input u\n param s positive\n y = exp(-s) * u", "input u\n param r\n y = tanh(r) * u",
        Condition((((("log(-1+exp(s[]))", 1),), 1), ((("log(1+exp(s[]))", 1),), -1),
                   ((("r[]", 1),), 2)), "r[]")),
}  # fmt: skip


@pytest.mark.parametrize("name", ACCEPTED)
def test_where_the_second_has_values(name: str) -> None:
    assert verdict(*ACCEPTED[name]) == ""


UNDEFINED = "b may have no value where a has one"
REFUSED = {
    "another value": (PLAIN, "input u\n param r\n y = exp(-r * u) * u", AT_1, "outputs differ"),
    "none": (PLAIN, "input u\n param r\n y = exp(-r * u) * u", "outputs differ"),
    "0 where it may not be": (PLAIN, "input u\n param r positive\n y = exp(-r * u) * u", AT_0,
                              "may not be positive"),
    "1 outside of (0, 1)": (PLAIN, "input u\n param r unit\n y = exp(log(r) * u) * u", AT_1,
                            "may not be unit"),
    "-1 outside of (0, 1)": (PLAIN, "input u\n param r unit\n y = exp(r + 1) * u",
                             value("r[]", (1, {})), "may not be unit"),
    "0 where it is other than 0": (PLAIN, "input u\n param r nonzero\n y = exp(r * u) * u", AT_0,
                                   "may not be nonzero"),
    "-1 where it is not negative": (PLAIN, "input u\n param r nonneg\n y = exp(r + 1) * u",
                                    value("r[]", (1, {})), "may not be nonneg"),
    "the logarithm of 0": (PLAIN, "input u\n param r\n y = u + r * log(r)", AT_0, UNDEFINED),
    "an unknown divisor": (
        WU, "input u\n param r, w\n y = u * exp((r - w) * u) * w^2 / r",
        value("r[]", (-1, {"w[]": 1})), UNDEFINED),
    "a power of 0": (PLAIN, "input u\n param r\n y = u * exp(r * u) + r * r^(-1 / 2)", AT_0,
                     UNDEFINED),
    "a logarithm of no prime": (
        "input u\n buffer g = 1 / 4\n y = g * u", "input u\n param r positive\n y = exp(-r) * u",
        value("r[]", (-1, {"log(4)": 1})), "which the claim does not have"),
    "a logarithm of any number": (
        "input u\n param w\n y = w * u", "input u\n param r\n y = exp(r) * u",
        value("r[]", (-1, {"log(w[])": 1})), "which the claim does not have"),
    "a number of the claim's own": (
        PLAIN, "input u\n param r, s\n y = r * s * u", value("r[]", (-1, {"κ[0]": 1})),
        Condition((((), -1), ((("s[]", 1), ("κ[0]", 1)), 1)), "s[]"),
        "made of a number of the claim's own"),
    "a real angle that is not": (
        "input u\n param w\n y = exp(w) * u", "input u\n param r\n y = Re(cis(r)) * u",
        value("r[]", (1, {"i": 1, "w[]": 1})), ""),
    "one entry of two": (PLAIN, "input u\n param r : h\n y = exp(sum[h](r) * u) * u",
                         value("r[0]"), "outputs differ"),
    "the first's parameter": ("input u\n param r\n y = exp(r * u) * u", PLAIN, AT_0,
                              "outputs differ"),
    "a buffer of another number": (HALF, PLAIN, "outputs differ"),
    "a buffer that is a parameter of the first": (
        "input u\n param g\n y = g * u", "input u\n buffer g = 1\n y = g * u", "outputs differ"),
}  # fmt: skip


W_OF_U = "W[;0](u[0]@0,u[1]@0)", "W[;1](u[0]@0,u[1]@0)"
REFUSED |= {
    "a divisor that cancels": (
        PLAIN, "input u\n param r\n y = u * (r / r) + r * u", AT_0, UNDEFINED),
    "a logarithm that cancels": (
        PLAIN, "input u\n param r\n y = u + log(r) - log(r) + r * u", AT_0, UNDEFINED),
    "a logarithm that is multiplied by 0": (
        PLAIN, "input u\n param r\n y = u + r * (log(r) - log(r + 1))", AT_0, UNDEFINED),
    "a logarithm of an input": (PLAIN, "input u\n param r\n y = u + r * log(u)", AT_0, UNDEFINED),
    "a divisor that is a slot": (PLAIN, "input u, z\n y = u * (z / z) + z", value("z[]@0"),
                                 UNDEFINED),
    "a logarithm of a slot": (PLAIN, "input u, z\n y = z + log(z) - log(z)",
                              value("z[]@0", (-1, {"u[]@0": 1})), UNDEFINED),
    "a divisor that is the first's parameter": (WU, "input u\n param w\n y = u * w * w / w",
                                                UNDEFINED),
    "a logarithm of the first's parameter": (
        WU, "input u\n param r, w\n y = u * w + r * log(w)", AT_0, UNDEFINED),
    "log1p below -1": (WU, "input u\n param r, w\n y = u * w + r * log1p(w)", AT_0, UNDEFINED),
    "a root of what may be negative": (
        WU, "input u\n param r, w\n y = u * w + r * sqrt(w)", AT_0, UNDEFINED),
    "a negative power": (WU, "input u\n param r, w\n y = u * w + r * w^(-1)", AT_0, UNDEFINED),
    "another power than the first's": (
        "input u\n param w\n y = w^(1 / 2) * u",
        "input u\n param r, w\n y = w^(1 / 2) * u + r * w^(-1 / 2)", AT_0, UNDEFINED),
    "a square that is below 1": (
        "input u\n param w positive\n y = exp(log((exp(w) - 1)^2)) * u",
        "input u\n param r positive\n y = exp(r) * u",
        value("r[]", (-1, {"log(1+-2*exp(w[])+exp(w[])^2)": 1})), "may not be positive"),
    "a logarithm that the first reads later": (
        "input u\n state s\n s = s[i-1] + log(u)\n y = s[i-1]",
        "input u\n param r\n state s\n s = s[i-1] + log(u)\n y = s[i-1] + r * log(u)", AT_0,
        UNDEFINED),
    "a logarithm that the first reads later, by another state": (
        "input u\n state s, t\n s = 1 / 2 * s[i-1] + t[i-1]\n t = s[i-1] + log(u)\n y = s",
        "input u\n param r\n state s, t\n s = 1 / 2 * s[i-1] + t[i-1]\n t = s[i-1] + log(u)\n"
        " y = s + r * log(u)", AT_0, UNDEFINED),
    "a logarithm that the second reads later, by another state": (
        "input u\n state s, t\n s = 1 / 2 * s[i-1] + t[i-1]\n t = s[i-1] + u\n y = s",
        "input u\n param r\n state s, t\n s = 1 / 2 * s[i-1] + t[i-1]\n"
        " t = s[i-1] + u + r * log(u)\n y = s", AT_0, UNDEFINED),
    "a logarithm that the first reads once": (
        "input u\n y = log(u)",
        "input u\n param r\n state s\n s = s[i-1] + r * log(u)\n y = log(u) + s", AT_0, UNDEFINED),
    "a pole of a complex tangent": (
        PLAIN, "input u\n param r complex\n y = Re(u + (r - cplx(0, 1)) * tanh(r))",
        value("r[]", (-1, {"i": 1})), UNDEFINED),
    "values of a map": (
        "input u : h\n y = u * u", "input u : h\n param W : h -> h\n y = W u",
        value(W_OF_U[0], (-1, {"u[0]@0": 2})), value(W_OF_U[1], (-1, {"u[1]@0": 2})),
        "not b's alone"),
    "a parameter at a token": (PLAIN, "input u\n param r\n y = u * exp(r) * exp(-r)",
                               value("r[]@0", (-1, {"u[]@0": 1})), "not b's alone"),
    "a slot at no token": (PLAIN, "input u, z\n y = u * exp(z) * exp(-z)", value("z[]"),
                           "not b's alone"),
    "a function of states": (
        "input u\n state s\n s = s[i-1] + u\n y = exp(abs(s[i-1])) * u + abs(s[i-1])",
        "input u, z\n state s\n s = s[i-1] + u\n y = z * u + abs(s[i-1])",
        value("z[]@0", (-1, {"exp(call<0,abs>[]@0)": 1})), "which the claim does not have"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_they_do_not_show(name: str) -> None:
    *row, why = REFUSED[name]
    found = verdict(*row)
    assert found and why in found


def test_what_the_first_reads_now_excuses_the_second() -> None:
    """log u stands in an update of both that the output reads at the same token."""
    a = mixer("input u\n state s\n s = s[i-1] + log(u)\n y = s")
    b = mixer("input u\n param r\n state s\n s = exp(r * u) * s[i-1] + log(u)\n y = s + r * log(u)")
    assert isinstance(subsumes(a, b, conditions=True), Instance)


def test_what_is_never_0() -> None:
    """What has one sign term by term, and products of what is never 0."""
    s = Symbols()
    x, z, w = s.leaf("x[]@0", True), s.leaf("z[0]", False), s.leaf("w[]", True)
    a, e = s.leaf("a[]", True, positive=True), s.exp(x)
    low, turned = s.conjugate(z), s.exp(IMAGINARY_UNIT * x)
    for q in (IMAGINARY_UNIT, ONE + e, -ONE - e, a, -a, e * w, w / a, turned, z * low * a,
              ONE / (ONE + e), w / (e + a)):  # fmt: skip
        assert never_zero(s, q, frozenset({"w", "z"}))
    tanh = s.opaque("tanh", (x,), real=True, positive=False)
    for q in (ZERO, x, x * a, a - e, a + w, w + z, turned + ONE, tanh):
        assert not never_zero(s, q, frozenset({"w", "z"}))
    for q in (w, z, low, w * a):
        assert not never_zero(s, q, frozenset())


@pytest.mark.parametrize(
    "head, some, none",
    [
        ("/", ("a", "-a-1", "w"), ("x", "a-1", "0")),
        ("log1p", ("a", "a-1"), ("x", "-a", "w")),
        ("tanh", ("x", "0"), ("z", "x+z")),
        ("log", ("a", "a+1"), ("x", "a-1", "0", "w")),
    ],
)
def test_where_a_function_has_a_value(
    head: str, some: tuple[str, ...], none: tuple[str, ...]
) -> None:
    s = Symbols()
    known = {"x": s.leaf("x[]@0", True), "z": s.leaf("z[]", False), "w": s.leaf("w[]", True),
             "a": s.leaf("a[]", True, positive=True), "1": ONE, "0": ZERO}  # fmt: skip

    def of(text: str) -> Quotient:
        parts = text.replace("-", "+-").split("+")
        return total(known[p] if p[0] != "-" else -known[p[1:]] for p in parts if p)

    for text in (*some, *none):
        for update in (False, True):
            asked = Defined(s, frozenset({"w"}), {})
            if text in some:
                asked.check(head, of(text), update)
                continue
            with pytest.raises(Obstacle, match=f"in `{head}`"):
                asked.check(head, of(text), update)
            # What stands in the same function of a is no more than a has.
            asked.note(head, of(text), update)
            asked.check(head, of(text), update)
            with pytest.raises(Obstacle):
                asked.check("log" if head == "/" else "/", of(text) - known["x"], update)


def test_what_the_first_needs_at_a_token_it_needs_not_later() -> None:
    """A divisor of an output is none of later outputs, unless it is the same at all tokens."""
    s = Symbols()
    x, w = s.leaf("x[]@0", True), s.leaf("w[]", True)
    it = Defined(s, frozenset(), {"y[]@0": x})
    it.note("/", x, False)
    it.note("/", w, False)
    it.check("/", x, False)
    it.check("/", w, True)
    it.check("/", s.leaf("y[]@0", True), False)
    with pytest.raises(Obstacle):
        it.check("/", x, True)
    it.note("/", x, True)
    it.check("/", x, True)


def test_a_ratio_of_states_takes_no_values() -> None:
    """Its denominator might vanish."""
    b = "input u\n param r\n state s\n s = s[i-1] + {}\n y = u * s / s"
    assert "a denominator of states" in verdict(PLAIN, b.format("u * exp(r * u)"), AT_0)
    assert verdict(PLAIN, b.format("exp(r * u)"), AT_0) == ""
    a = "input u\n state s\n s = s[i-1] + u\n y = log(s) + u"
    b = "input u\n param r\n state s\n s = s[i-1] + u\n y = log(s) + u * exp(r * u)"
    assert "`log` of states" in verdict(a, b, AT_0)


def test_values_of_the_seconds_own_parameters_are_put_in() -> None:
    b = mixer("input u, z\n param r, w\n y = exp(-r * w * u) * z")
    symbols = Symbols()
    symbols.leaf("w[]", real=True)
    conditions = Conditions((
        AT_0,
        value("w[]", (-2, {})),
        value("z[]@0", (-1, {"u[]@0": 1})),
    ))  # fmt: skip
    claim = Claim(mixer(WU), b, (), (), case=True)
    assert {n: q.text for n, q in substitute_parameters(claim, conditions, symbols).items()} == {
        "r[]": "0"
    }
    for other in ({"case": False}, {"equal": False}):
        assert substitute_parameters(replace(claim, **other), conditions, symbols) == {}
    # A value that speaks of what is not there is none.
    by_w = Conditions((value("r[]", (-1, {"w[]": 1})),))
    assert substitute_parameters(claim, by_w, Symbols()) == {}
    assert substitute_parameters(claim, by_w, symbols)["r[]"].text == "w[]"


def test_buffers_of_one_number_are_that_number() -> None:
    """Those with axes, and 0, where one size is spoken of alone."""
    of = mixer("""input u : h
    buffer a = 1 / 2
    buffer b = 3
    buffer c = 0
    buffer d = log(2)
    buffer e : h = 5 * ones[h]; f : h = iota[h]; g : h = ones[h] / 3; z : h = 0
    y = u * (a + b + c + d + e + f + g + z)""")
    claim = Claim(of, mixer("input u : h\n y = u"), (), SIZES)
    scalars, all_ = {"a": Fraction(1, 2), "b": 3}, {"c": 0, "e": 5, "g": Fraction(1, 3), "z": 0}
    assert literals(claim, False) == scalars and literals(claim, True) == {}
    for one in (replace(claim, case=True), replace(claim, conditions=(AT_0,))):
        assert literals(one, False) == scalars | all_


def test_without_a_case_there_is_nothing_to_show() -> None:
    assert "something else is claimed" in verdict(PLAIN, PLAIN, case=False)
    assert verdict(PLAIN, PLAIN) == ""


def test_a_parameter_of_one_name_may_be_the_seconds_own() -> None:
    """r of the second is tanh r of the first, if it is said to be another; an input is the same."""
    a, b = "input u\n param r\n y = exp(r) * u", "input u\n param r\n y = r * u"
    own = value("r_[]", (-1, {"exp(r[])": 1}))
    assert verdict(a, b, own, apart=("r",)) == ""
    assert "which the claim does not have" in verdict(a, b, own)
    assert "no case of b is claimed" in verdict(a, b, own, apart=("r",), case=False)
    for name in ("u", "r_", "y"):
        assert f"`{name}` is told apart" in verdict(a, b, own, apart=(name,))
