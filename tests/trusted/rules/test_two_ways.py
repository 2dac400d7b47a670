"""Rule "two-ways": what it shows of states that run backwards, and what it must not accept."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.expr.arithmetic import num, power
from dsfc.expr.build import prim
from dsfc.expr.declarations import Tensor
from dsfc.expr.tree import Axis, Field, Now, Param, Ref, Size, Time
from dsfc.prover.equivalent import equivalent
from dsfc.prover.verdict import AtSizes, Proved, Refuted, Unknown
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import Read, ReadOut, System
from dsfc.system.traverse import map_trees
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import Certificate, Claim, Invariant, ProportionalStates, TwoWays
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.rules.two_ways import reversed_claim, without_backward

HEAD = """dims p
  input k, v, q : p
  param a unit
  param c : p positive
  param e
"""
PAST, LATER = "q * sum[j < i](k[j] * v[j])", "sum[j > i](exp(k[j]))"
BOTH = f"{PAST} + q * sum[j > i](k[j] * v[j])"


def system(body: str, head: str = HEAD) -> System:
    """The system of a mixer of some equations; an expression alone is that of y."""
    lines = body if "y = " in body else f"y = {body}"
    text = f"mixer m {{ {head}  {lines}\n}}\n"
    return SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", text))).compilation("m").system


def backward(update: str, output: str, more: str = "") -> str:
    """A mixer of one state T that runs backwards."""
    return f"{more}state T : p backward\n  T = {update}\n  y = {output}"


TWO, DECAYED = "state T, R : p backward", "a * T[i+1] + k"
EQUAL = {
    "a sum as a state": (BOTH, backward("T[i+1] + k * v", f"q * T[i+1] + {PAST}")),
    "in another order": (BOTH, "q * sum[j > i](v[j] * k[j]) + q * sum[j < i](k[j] * v[j])"),
    "the token itself": (
        BOTH,
        "q * sum[j ≥ i](k[j] * v[j]) + q * sum[j ≤ i](k[j] * v[j]) - 2 * q * k * v",
    ),
    "read at the token": (backward(DECAYED, "T"), backward(DECAYED, DECAYED)),
    "a number moved": (backward(DECAYED, "2 * T"), backward("a * T[i+1] + 2 * k", "T")),
    "a parameter moved": (backward(DECAYED, "c * T"), backward("a * T[i+1] + c * k", "T")),
    "a parameter that may be 0": (
        backward("a * T[i+1] + e * k", "T"),
        backward(DECAYED, "e * T"),
    ),
    "a parameter that may be 0, the other way": (
        backward(DECAYED, "e * T"),
        backward("a * T[i+1] + e * k", "T"),
    ),
    "a size moved": (
        backward("T[i+1] + k", "T / sqrt(p)"),
        backward("T[i+1] + k / sqrt(p)", "T"),
    ),
    "a decay that follows": (
        backward(DECAYED, "a * T[i+1]"),
        backward("a * T[i+1] + a * k", "T[i+1]"),
    ),
    "a product of both ways": (
        "sum[j ≤ i](k[j]) * sum[j > i](v[j])",
        backward("T[i+1] + v", "S * T[i+1]", "state S : p\n  S = S[i-1] + k\n  "),
    ),
    "a ratio": (
        f"({PAST} + q * sum[j > i](k[j] * v[j])) / (1 + sum[j ≤ i](exp(k[j])) + {LATER})",
        f"(q * sum[j > i](k[j] * v[j]) + {PAST}) / ({LATER} + 1 + sum[j ≤ i](exp(k[j])))",
    ),
    "a power of the distance": (
        backward(DECAYED, "T[i+1]"),
        "sum[j > i](a^(j - i - 1) * k[j])",
    ),
    "two states of one stage": (
        f"{TWO}\n  T = T[i+1] + R[i+1] + k\n  R = a * R[i+1] + T[i+1]\n  y = T - R",
        f"{TWO}\n  R = T[i+1] + R[i+1] * a\n  T = R[i+1] + T[i+1] + k\n  y = T - 1 * R",
    ),
}  # fmt: skip
"""Two texts of one function."""

APART = {
    "the token left out": (BOTH, f"q * sum[j ≥ i](k[j] * v[j]) + {PAST}"),
    "another factor": (backward(DECAYED, "2 * T"), backward("a * T[i+1] + 3 * k", "T")),
    "no constant factor": (backward("T[i+1] + k", "v * T"), backward("T[i+1] + v * k", "T")),
    "past and future": (backward("T[i+1] + k", "T"), "sum[j ≤ i](k[j])"),
    "a decay left out": (backward(DECAYED, "T[i+1]"), backward(DECAYED, "a * T[i+1]")),
    "a factor squared": (backward("T[i+1] + e * k", "T"), backward("T[i+1] + k", "e * e * T")),
}
"""Two functions."""


@pytest.mark.parametrize("name", EQUAL)
def test_two_texts_of_one_function_are_proved_equal(name: str) -> None:
    found = equivalent(*map(system, EQUAL[name]))
    assert type(found) is Proved, found
    assert set(check(write(found.certificate)).claim.every) == {"p"}


@pytest.mark.parametrize("name", APART)
def test_two_functions_are_told_apart(name: str) -> None:
    assert isinstance(equivalent(*map(system, APART[name])), Refuted)


# --- by numbers -----------------------------------------------------------------------------------


def test_what_is_proved_equal_is_what_loops_give() -> None:
    """The two ways to write a decayed sum over later tokens, by loops over pairs of tokens."""
    draw = np.random.default_rng(3)
    k, a = draw.normal(size=(6, 3)), 0.7
    by_pairs = [sum((a ** (j - i) * k[j] for j in range(i + 1, 6)), np.zeros(3)) for i in range(6)]
    state, by_state = np.zeros(3), []
    for i in reversed(range(6)):
        by_state.append(a * state)
        state = a * state + k[i]
    assert np.allclose(by_pairs, by_state[::-1])
    texts = "sum[j > i](a^(j - i) * k[j])", backward("a * T[i+1] + k", "a * T[i+1]")
    assert isinstance(equivalent(*map(system, texts)), Proved)


@given(st.fractions(Fraction(1, 9), 9), st.integers(-2, 2), st.integers(0, 3))
@settings(max_examples=6, deadline=None)
def test_a_factor_may_stand_before_or_behind_the_sum(
    count: Fraction, exponent: int, other: int
) -> None:
    factor = f"{count.numerator} / {count.denominator} * c^({exponent}) * e^{other}"
    moved = system(backward(f"a * T[i+1] + {factor} * k", "q * T"))
    kept = system(backward("a * T[i+1] + k", f"q * {factor} * T"))
    found = equivalent(kept, moved)
    assert isinstance(found, Proved)


# --- what is not accepted -------------------------------------------------------------------------


def proved(a: str, b: str) -> tuple[Certificate, TwoWays]:
    found = equivalent(system(a), system(b))
    assert isinstance(found, Proved | AtSizes)
    proof = found.certificate.proof
    assert isinstance(proof, TwoWays)
    return found.certificate, proof


def rejected(certificate: Certificate, **changed: object) -> str:
    with pytest.raises(Rejected) as raised:
        # Fields by name have no types of their own here; `write` encodes what they hold.
        check(write(replace(certificate, **changed)))  # type: ignore[arg-type]
    return str(raised.value)


def test_a_pair_of_other_states_is_rejected() -> None:
    one = f"{TWO}\n  T = T[i+1] + k\n  R = R[i+1] + v\n  y = T - R"
    certificate, proof = proved(one, one.replace("T - R", "T + R - 2 * R"))
    first, second = proof.pairs
    swapped = (replace(first, b=second.b), replace(second, b=first.b))
    rejected(certificate, proof=replace(proof, pairs=swapped))
    moved = replace(first, b=second.b, rows=second.rows)
    rejected(certificate, proof=replace(proof, pairs=(moved, replace(second, b=first.b))))
    twice = (first, replace(second, b=first.b))
    assert rejected(certificate, proof=replace(proof, pairs=twice))
    assert "two pairs" in rejected(certificate, proof=replace(proof, pairs=(first, first)))


@pytest.mark.parametrize("name", ["S", "m", "k", "later_T"])
def test_a_state_that_does_not_run_backwards_is_rejected(name: str) -> None:
    text = backward("T[i+1] + k", "S * T", "state S : p\n  S = S[i-1] + v\n  ")
    certificate, proof = proved(text, text.replace("S * T", "T * S + 0 * k"))
    pairs = (replace(proof.pairs[0], a=name),)
    assert "no state that runs backwards" in rejected(
        certificate, proof=replace(proof, pairs=pairs)
    )


def test_rows_of_either_step_are_needed() -> None:
    certificate, proof = proved(*EQUAL["a sum as a state"])
    none = Invariant((), entries=False)
    (pair,) = proof.pairs
    assert rejected(certificate, proof=replace(proof, rows=none))
    assert rejected(certificate, proof=replace(proof, pairs=(replace(pair, rows=none),)))
    assert rejected(certificate, proof=replace(proof, pairs=()))


P = Axis(0, "p")
FACTORS = {
    "another number": num(2),
    "what may be 0 below": power(Param("e", frozenset(), Field.REAL), num(-1)),
    "a root of what may be negative": power(
        Param("e", frozenset(), Field.REAL), num(Fraction(1, 2))
    ),
    "of no parameter": Param("b", frozenset(), Field.REAL),
    "an input": Ref("k", frozenset({P}), Field.REAL, Time.TOKEN, Now(0)),
    "a function": prim("exp", Param("e", frozenset(), Field.REAL)),
    "another parameter": Param("a", frozenset(), Field.REAL),
    "complex": Param("e", frozenset(), Field.COMPLEX),
    "a power without end": power(Param("c", frozenset({P}), Field.REAL), num(10**30)),
    "a root without end": power(Param("c", frozenset({P}), Field.REAL), num(Fraction(1, 10**30))),
}


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("name", FACTORS)
def test_another_factor_is_rejected(name: str, first: bool) -> None:
    certificate, proof = proved(*EQUAL["a sum as a state"])
    pairs = (replace(proof.pairs[0], factor=FACTORS[name], of_first=first),)
    rejected(certificate, proof=replace(proof, pairs=pairs))


def test_a_factor_has_a_value_wherever_the_states_have() -> None:
    """Rows show that Σ k is 1 / e times Σ e k, which says nothing where e is 0."""
    certificate, proof = proved(*EQUAL["a parameter that may be 0"])
    (pair,) = proof.pairs
    assert pair.of_first and pair.factor == Param("e", frozenset(), Field.REAL)
    below = replace(pair, factor=power(pair.factor, num(-1)), of_first=False)
    message = rejected(certificate, proof=replace(proof, pairs=(below,)))
    assert "no product of numbers, sizes and parameters" in message


def test_a_factor_has_short_exponents() -> None:
    """A power is multiplied out, so a long one would take for ever."""
    certificate, proof = proved(*EQUAL["a sum as a state"])
    for exponent in (64, -64, 10**30, Fraction(64, 65)):
        factor = power(Size(P), num(exponent))
        pairs = (replace(proof.pairs[0], factor=factor),)
        assert "exponent" in rejected(certificate, proof=replace(proof, pairs=pairs))


def test_a_factor_has_no_axis_that_the_state_has_not() -> None:
    head = HEAD + "  param w : r\n"
    head = head.replace("dims p", "dims p, r")
    texts = [backward(DECAYED, f"T * sum[r](w) * {z}") for z in ("q * k", "k * q")]
    found = equivalent(*(system(text, head) for text in texts))
    assert isinstance(found, Proved | AtSizes)
    proof = found.certificate.proof
    assert isinstance(proof, TwoWays)
    (w,) = (t for t in found.certificate.claim.a.params if t.name == "w")
    assert isinstance(w, Tensor)
    factor = Param("w", frozenset(w.axes), Field.REAL)
    pairs = (replace(proof.pairs[0], factor=factor),)
    message = rejected(found.certificate, proof=replace(proof, pairs=pairs))
    assert "an axis that its state has not" in message


def test_a_backward_state_is_read_at_its_token_or_one_later() -> None:
    certificate, proof = proved(*EQUAL["a sum as a state"])

    def further(tree: ReadOut) -> ReadOut:
        if not isinstance(tree, Read):
            return tree
        return replace(tree, terms=tuple(replace(t, lag=2 * t.lag) for t in tree.terms))

    far = replace(certificate.claim, a=map_trees(certificate.claim.a, further))
    with pytest.raises(Obstacle, match="lag of -2"):
        without_backward(far, proof.pairs)


def test_a_factor_is_the_same_array_in_both() -> None:
    """One `c` is a buffer of 1 and the other a buffer of 2: no factor `c` is that of both."""
    heads = [HEAD + f"  buffer g = {k}\n" for k in (1, 2)]
    a = system(backward("T[i+1] + k", "T"), heads[0])
    b = system(backward("T[i+1] + g * k", "T / 2"), heads[1])
    c = system(backward("T[i+1] + g * k", "T"), heads[0])
    assert isinstance(equivalent(a, c), Proved)
    found = equivalent(a, b)
    assert isinstance(found, Proved)  # by the number: g is 2 there
    proof = found.certificate.proof
    assert isinstance(proof, TwoWays)
    pairs = (replace(proof.pairs[0], factor=Param("g", frozenset(), Field.REAL)),)
    rejected(found.certificate, proof=replace(proof, pairs=pairs))


@pytest.mark.parametrize(
    "update",
    ["k * first", "k[i-1]", "fir[r](w, k)", "S", "S[i-1]"],
)
def test_what_runs_the_other_way_is_not_reversed(update: str) -> None:
    head = "dims r = 2\n  param w : r\n" + HEAD.replace("dims", "dims", 1)
    state = "state S : p\n  S = S[i-1] + v\n  "
    text = backward(f"T[i+1] + {update}", "T * q", state)
    other = text.replace("T * q", "T + (q - 1) * T")
    a, b = system(text, head), system(other, head)
    found = equivalent(a, b)
    assert isinstance(found, Unknown)
    assert "`T`" in found.obstacle and "read" in found.obstacle


def test_a_filter_of_what_backward_states_give_is_proved_at_its_taps() -> None:
    head = HEAD.replace("dims p", "dims p, r = 3") + "  param w : r\n"
    filtered = "z = {}\n  y = fir[r](w, z)"
    a = system(filtered.format("sum[j > i](k[j]) + v"), head)
    b = system(filtered.format("v + sum[j > i](k[j])"), head)
    found = equivalent(a, b)
    assert isinstance(found, AtSizes) and dict(found.fixed) == {"r": 3}


def test_a_backward_state_that_reads_a_sum_over_the_past_is_not_reversed() -> None:
    a = system(backward("T[i+1] + sum[j ≤ i](exp(k * q[j]))", "T"))
    pair = ProportionalStates("T", "T", num(1), False, Invariant((), entries=False))
    with pytest.raises(Obstacle, match="over the past"):
        reversed_claim(Claim(a, a, (), (("p", 1),)), pair)


def test_claims_of_another_kind_are_rejected() -> None:
    certificate, _ = proved(*EQUAL["a sum as a state"])
    claim = certificate.claim
    assert rejected(certificate, claim=replace(claim, equal=False))
    assert rejected(certificate, claim=replace(claim, free=True, every=()))
    assert rejected(certificate, claim=replace(claim, case=True))
    small = tuple((name, 1) for name, _ in claim.sizes)
    assert rejected(certificate, claim=replace(claim, sizes=small))


def test_inputs_that_the_rule_makes_have_names_of_their_own() -> None:
    head = HEAD + "  param later_T, held_T\n"
    a = system(backward("T[i+1] + k", "later_T * T * held_T"), head)
    b = system(backward("T[i+1] + k", "held_T * T * later_T"), head)
    apart = system(backward("T[i+1] + k", "held_T * T * held_T"), head)
    assert isinstance(equivalent(a, b), Proved)
    assert isinstance(equivalent(a, apart), Refuted)
