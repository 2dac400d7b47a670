"""Increments that are no sum of powers: what the rule rests on, what it must not accept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText, read
from dsfc.expr.build import prim
from dsfc.expr.declarations import Constraint
from dsfc.expr.tree import Field, Now, Ref, Time
from dsfc.prover.constant_sequence import _least_recurrence, no_case
from dsfc.prover.sizes import chosen
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import Definition
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import Certificate, Claim, ConstantSequence
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.rules.constant_sequence import check_constant_sequence
from dsfc.trusted.rules.recurrence import Rolled, _divided, applied, distinct, trimmed
from dsfc.trusted.witness import LENGTH_LIMIT

TEXT = read(Path(__file__).parents[2] / "prover" / "pairs" / "dense.dsf")


@cache
def system(name: str):
    return TEXT.compilation(name).system


def compiled(body: str, dims: str = ""):
    first = f"dims {dims}" if dims else "input u"
    text = f"mixer m {{\n  {first}\n  {body}\n}}\n"
    return SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", text))).compilation("m").system


def claim(a, b) -> Claim:
    return Claim(a, b, (), chosen(a, b, 1), equal=False, case=True)


@cache
def made(a: str, b: str) -> Certificate:
    found = no_case(claim(system(a), system(b)))
    assert isinstance(found, Certificate), found
    return found


def rejected(certificate: Certificate) -> str:
    with pytest.raises((Rejected, Obstacle, ValueError, ZeroDivisionError)) as caught:
        check_constant_sequence(certificate.claim, certificate.proof)
    return str(caught.value)


def on_claim(c: Certificate, **changed) -> Certificate:
    return replace(c, claim=replace(c.claim, **changed))


def on_proof(c: Certificate, **changed) -> Certificate:
    return replace(c, proof=replace(c.proof, **changed))


# --- what it rests on -----------------------------------------------------------------------------

SMALL = st.integers(-3, 3).map(Fraction)
ROOTS = st.lists(SMALL.filter(bool), min_size=1, max_size=3, unique=True)


def times(p: tuple, q: tuple) -> tuple:
    out = [Fraction(0)] * (len(p) + len(q) - 1)
    for i, x in enumerate(p):
        for j, y in enumerate(q):
            out[i + j] += x * y
    return tuple(out)


def with_roots(roots: list[Fraction], *more: int) -> tuple:
    out = (Fraction(1),)
    for root, count in zip(roots, more or (1,) * len(roots), strict=True):
        for _ in range(count):
            out = times(out, (-root, Fraction(1)))
    return out


@given(roots=ROOTS, data=st.data(), zeros=st.integers(0, 2), factor=SMALL.filter(bool))
def test_different_roots_are_taken_once(roots, data, zeros: int, factor: Fraction) -> None:
    counts = [data.draw(st.integers(1, 3)) for _ in roots]
    p = (Fraction(0),) * zeros + tuple(factor * c for c in with_roots(roots, *counts))
    found = distinct(p)
    once = with_roots(roots)
    assert tuple(c / found[-1] for c in found) == once


@pytest.mark.parametrize(
    "p, q, quotient, rest",
    [
        ((-1, 0, 1), (1, 1), (-1, 1), ()),
        ((5, -3, 0, 2), (2, 1), (5, -4, 2), (-5,)),
        ((1, 2, 3, 4, 6), (1, 0, 2), (0, 2, 3), (1,)),
        ((1, 1), (2, 4), (Fraction(1, 4),), (Fraction(1, 2),)),
        ((7, 3), (2,), (Fraction(7, 2), Fraction(3, 2)), ()),
    ],
)
def test_a_quotient_has_a_rest_of_lower_degree(p, q, quotient, rest) -> None:
    """The lowest coefficient comes first."""
    assert _divided(tuple(map(Fraction, p)), tuple(map(Fraction, q))) == (quotient, rest)


@settings(max_examples=40)
@given(roots=ROOTS, weights=st.lists(SMALL.filter(bool), min_size=3, max_size=3), gap=SMALL)
def test_what_is_a_sum_of_powers_goes_and_nothing_else(roots, weights, gap) -> None:
    """Σ w λ^l is taken away by its roots; a term l λ^l of weight `gap` is not."""
    powers = [sum(w * x**k for w, x in zip(weights, roots, strict=False)) for k in range(12)]
    s = [x + gap * k * roots[0] ** k for k, x in enumerate(powers)]
    mu = _least_recurrence(s)
    assert len(mu) == len(roots) + 1 + bool(gap)
    assert not any(applied(mu, s, k) for k in range(12 - len(mu) + 1))
    left = [applied(distinct(mu), s, k) for k in range(12 - len(roots))]
    assert all(left) if gap else not any(left)


@given(s=st.lists(SMALL, min_size=8, max_size=8))
def test_the_least_recurrence_holds_as_far_as_is_known(s: list[Fraction]) -> None:
    mu = _least_recurrence(s)
    assume(len(mu) <= 5)
    assert trimmed(mu) == mu
    assert not any(applied(mu, s, k) for k in range(8 - len(mu) + 1))


def test_states_are_rolled_out_as_the_definition_goes() -> None:
    c = made("jordan_one", "modes")
    rolled = Rolled(c.claim, c.proof.values)
    assert rolled.order == 2 and rolled.first == 2
    u = dict(c.proof.values)["u"][0]
    assert rolled.increments(6) == [[Fraction(k * u[0], u[1])] for k in range(6)]


# --- what is accepted and what is not -------------------------------------------------------------

JORDAN, TAPS = ("jordan", "modes"), ("four_taps", "modes")


def test_another_recurrence_that_holds_will_do() -> None:
    c = made(*JORDAN)
    mu = tuple(Fraction(p, q) for p, q in c.proof.recurrence)
    wider = times(mu, (Fraction(-5), Fraction(2)))
    check(write(on_proof(c, recurrence=tuple((x.numerator, x.denominator) for x in wider))))


def test_the_first_may_have_axes() -> None:
    body = "dims h, n\n param a, w : h\n state s, r : h\n s = a * s[i-1] + u\n"
    one = compiled(f"{body} r = a * r[i-1] + s\n y = sum[h](w * r)")
    found = no_case(claim(one, system("modes")))
    assert isinstance(found, Certificate) and found.proof.recurrence
    check_constant_sequence(found.claim, found.proof)
    assert "may be a sum of powers" in rejected(with_value(found, "w", 0))


ATTACKS: dict[str, tuple[str, Callable[[Certificate], Certificate]]] = {
    "all parameters": ("one of a point", lambda c: on_proof(c, always=True)),
    "nothing": ("the recurrence is 0", lambda c: on_proof(c, recurrence=((0, 1),))),
    "no denominator": ("", lambda c: on_proof(c, recurrence=((1, 0), (1, 1)))),
    "a number": ("do not obey", lambda c: on_proof(c, recurrence=((1, 1),))),
    "another": ("do not obey", lambda c: on_proof(c, recurrence=((1, 1), (3, 1)))),
    "bases instead": ("", lambda c: on_proof(c, recurrence=())),
    "an early token": ("is none", lambda c: on_proof(c, token=1)),
    "a token without end": ("is none", lambda c: on_proof(c, token=LENGTH_LIMIT)),
    "a long recurrence": ("is none", lambda c: on_proof(c, recurrence=((1, 1),) * 99)),
    "another entry": ("", lambda c: on_proof(c, index=(0,))),
    "a value twice": (
        "two values",
        lambda c: on_proof(c, values=(*c.proof.values, c.proof.values[0])),
    ),
    "no values": ("", lambda c: on_proof(c, values=())),
    "a value of nothing": (
        "of nothing that a has",
        lambda c: on_proof(c, values=(*c.proof.values, ("x", ((1, 1, 0, 1),)))),
    ),
    "larger sizes of nothing": ("larger sizes", lambda c: on_proof(c, larger=("x",))),
    "equality": ("something else is claimed", lambda c: on_claim(c, equal=True)),
    "mere difference": ("something else is claimed", lambda c: on_claim(c, case=False)),
    "all sizes of nothing": ("not b's own", lambda c: on_claim(c, every=("x",))),
    "no sequence": ("", lambda c: with_value(c, "u", 0)),
}


def with_value(c: Certificate, name: str, x: int) -> Certificate:
    values = ((n, ((x, 1, 0, 1),) if n == name else v) for n, v in c.proof.values)
    return on_proof(c, values=tuple(values))


@pytest.mark.parametrize("pair", [JORDAN, TAPS])
@pytest.mark.parametrize("attack", ATTACKS)
def test_no_attack_is_accepted(pair: tuple[str, str], attack: str) -> None:
    reason, change = ATTACKS[attack]
    assert reason in rejected(change(made(*pair)))


def test_poles_that_are_apart_are_a_sum_of_powers() -> None:
    c = made("two_poles", "modes")
    at = {n: Fraction(v[0][0], v[0][1]) for n, v in c.proof.values}
    assert at["a"] == at["b"]
    mu = with_roots([Fraction(1), Fraction(2)])
    moved = with_value(with_value(c, "a", 1), "b", 2)
    moved = on_proof(moved, recurrence=tuple((int(x), 1) for x in mu))
    assert "may be a sum of powers" in rejected(moved)


@pytest.mark.parametrize("b", ["any_input", "any_mode", "any_taps"])
def test_a_kernel_that_ends_may_be_one_of_a_slot_or_a_filter(b: str) -> None:
    own = ("t",) if b == "any_taps" else ()
    forged = on_claim(made(*TAPS), b=system(b), every=own, sizes=(("t", 1),) if own else ())
    assert "as many tokens as the first" in rejected(forged)


LATE = "input x : t\n param w\n s = sum[t](x)\n y = w * s[i-3]"


@pytest.mark.parametrize(
    "dims, taps, sizes, grows",
    [
        ("t", "t", {"t": 1}, True),
        ("t, r = 2 * t", "r", {"r": 2, "t": 1}, True),
        ("r, t = 2 * r", "r", {"r": 1, "t": 2}, True),
        ("t, r", "r", {"r": 1, "t": 1}, False),
    ],
)
def test_a_filter_may_have_more_taps_at_larger_sizes_of_the_first(
    dims: str, taps: str, sizes: dict[str, int], grows: bool
) -> None:
    """With four taps it reads three tokens back, as the first does."""
    a = compiled(LATE, "t")
    b = compiled(f"input x : t\n param v : {taps}\n s = sum[t](x)\n y = fir[{taps}](v, s)", dims)
    one = Claim(a, b, (), tuple(sizes.items()), equal=False, case=True)
    x, w = ((1, 1, 0, 1),) * sizes["t"], ((1, 1, 0, 1),)
    proof = ConstantSequence((("x", x), ("w", w)), 3, (), False, (), ((0, 1), (0, 1), (1, 1)))
    check(write(Certificate(one, proof)))
    larger = Certificate(one, replace(proof, larger=("t",)))
    if grows:
        assert "as many tokens as the first" in rejected(larger)
        found = no_case(replace(one, sizes=chosen(a, b, 1)))
        assert isinstance(found, str) or not found.proof.larger
    else:
        check(write(larger))


def test_a_filter_of_known_length_is_spoken_of() -> None:
    one = on_claim(made(*TAPS), b=system("any_taps"), every=(), sizes=(("t", 1),))
    check(write(one))
    assert rejected(on_claim(one, sizes=(("t", 4),)))


def test_the_token_must_be_one_of_the_second_too() -> None:
    c = made(*JORDAN)
    inputs = tuple(replace(t, constraint=Constraint.POSITIVE) for t in c.claim.b.inputs)
    bounded = on_claim(c, b=replace(c.claim.b, inputs=inputs))
    assert "positive" in rejected(with_value(bounded, "u", -1))


def test_states_that_are_not_those_of_the_definition() -> None:
    c = made(*JORDAN)
    forged = replace(c.claim.a, definition=system("jordan_series").definition)
    assert "does not go on" in rejected(on_claim(c, a=forged))
    other = compiled("param a\n state s\n s = exp(a) * s[i-1] + u\n y = s")
    forged = replace(c.claim.a, definition=other.definition)
    assert "no rational values" in rejected(with_value(on_claim(c, a=forged), "a", 1))
    u = Ref("u", frozenset(), Field.REAL, Time.TOKEN, Now(0))
    output = c.claim.a.outputs[0]
    turned = Definition(output.name, prim("cplx", u, u), output.axes, Field.COMPLEX)
    kept = tuple(d for d in c.claim.a.definition if d.name != output.name)
    forged = replace(c.claim.a, definition=(*kept, turned))
    assert "no rational values" in rejected(on_claim(c, a=forged))


@pytest.mark.parametrize(
    "body, reason",
    [
        ("param a\n state s\n s = exp(a) * s[i-1] + u\n y = s", "not rational"),
        ("param a\n state s\n s = a * s[i-1] + u\n y = tanh(s)", "function of states"),
        ("param a\n state s\n s = a * s[i-1] + u\n y = s * s", "multiplied"),
        ("state s, r\n s = s[i-1] + u\n x = 2 * s\n r = x * r[i-1] + u\n y = r", "multiplied"),
        (
            "state s, r\n s = s[i-1] + u\n x = tanh(s)\n r = r[i-1] + x\n y = r",
            "function of states",
        ),
    ],
)
def test_what_is_not_rational_and_affine_is_not_spoken_of(body: str, reason: str) -> None:
    c = made(*JORDAN)
    assert reason in rejected(on_claim(c, a=compiled(body)))


def test_what_the_second_is_must_be_known() -> None:
    c = made(*JORDAN)
    assert "coupled" in rejected(on_claim(c, b=system("rotation_block"), every=()))


CLOCK = """state a1, a2, a3, b1, b2, b3, b4
  a1 = a3[i-1] + first
  a2 = a1[i-1]
  a3 = a2[i-1]
  b1 = b4[i-1] + first
  b2 = b1[i-1]
  b3 = b2[i-1]
  b4 = b3[i-1]
"""
"""Two clocks of 3 and 4 tokens: their reciprocals have period 12, more than they have entries."""


@pytest.mark.parametrize(
    "read",
    [
        "y = u / ((1 + a1) * (1 + b1))",
        "state x\n x = u / ((1 + a1[i-1]) * (1 + b1[i-1]))\n y = x",
    ],
)
def test_reciprocals_of_states_have_no_recurrence_of_their_order(read: str) -> None:
    modes = compiled(
        "dims n\n param λ, w : n complex\n state r : n complex\n"
        " r = λ * r[i-1] + first * w\n y = u * Re(sum[n](r))"
    )
    assert not isinstance(no_case(claim(compiled(CLOCK + read), modes)), Certificate)
