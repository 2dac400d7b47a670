"""The exact rings: laws, and FLINT against SymPy."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dsfc.prover.field import FlintRing, SympyRing, ring

NAMES = ("x[]", "y[0]", "exp(z)")
TERMS = st.dictionaries(
    st.tuples(*[st.integers(0, 3)] * len(NAMES)), st.integers(-9, 9).filter(bool), max_size=5
)
SMALL = st.dictionaries(
    st.tuples(*[st.integers(0, 1)] * len(NAMES)), st.integers(-3, 3).filter(bool), max_size=3
)
KINDS = pytest.mark.parametrize("kind", [FlintRing, SympyRing])


@pytest.mark.share(2)
@KINDS
@given(TERMS, TERMS, TERMS)
def test_laws(kind, a, b, c) -> None:
    r = kind(NAMES)
    p, q, s = (r.element(t) for t in (a, b, c))
    assert r.terms(p) == a and r.length(p) == len(a)
    assert r.degrees(p) == tuple(max((m[k] for m in a), default=0) for k in range(len(NAMES)))
    assert p * (q + s) == p * q + p * s
    assert (p + q) + s == p + (q + s) and p * q == q * p
    assert not p - p
    assume(p and q and s)
    assert r.quotient(p * q, q) == p
    common = r.gcd(p * s, q * s)
    assert r.quotient(p * s, common) * common == p * s
    assert r.gcd(common, s) in (r.gcd(s, s), r.gcd(s * s, s))


@given(TERMS, TERMS)
def test_two_libraries_agree(a, b) -> None:
    rings = FlintRing(NAMES), SympyRing(NAMES)
    found = []
    for r in rings:
        p, q = r.element(a), r.element(b)
        out = [r.terms(p * q), r.terms(p + q), r.terms(p - q)]
        if p and q:
            out += [r.terms(r.gcd(p, q)), r.terms(r.quotient(p * q, p))]
        found.append(out)
    assert found[0] == found[1]


@settings(max_examples=25, deadline=None)
@given(SMALL, SMALL)
def test_factors_are_those_of_both_libraries_and_of_the_product(a, b) -> None:
    assume(a and b)
    found = []
    for r in (FlintRing(NAMES), SympyRing(NAMES)):
        p, q = r.element(a), r.element(b)
        each = [sorted(r.terms(f).items()) for x in (p, q) for f in r.factors(x)]
        both = [sorted(r.terms(f).items()) for f in r.factors(p * q)]
        assert {str(f) for f in each} == {str(f) for f in both} and len(both) == len(
            set(map(str, both))
        )
        found.append(sorted(both))
    assert found[0] == found[1]


@KINDS
def test_an_inexact_quotient_is_no_polynomial(kind) -> None:
    r = kind(NAMES)
    x, y = r.element({(1, 0, 0): 1}), r.element({(0, 1, 0): 1})
    with pytest.raises(ArithmeticError):
        r.quotient(x, y)


def test_the_ring_is_flint_s_unless_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(ring(NAMES), FlintRing)
    monkeypatch.setattr("dsfc.prover.field.find_spec", lambda name: None)
    assert isinstance(ring(NAMES), SympyRing)
