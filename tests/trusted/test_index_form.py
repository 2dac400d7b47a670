"""What hits the terms of a value: sums and products of forms, beside terms written out."""

from __future__ import annotations

from itertools import chain, combinations

from hypothesis import given
from hypothesis import strategies as st

from dsfc.expr.tree import Axis
from dsfc.trusted.index_form import (
    HITS_LIMIT,
    NO_TERMS,
    NONE,
    PLAIN,
    Form,
    both,
    either,
    plus,
    single,
    times,
)

N, P = Axis(0, "n"), Axis(1, "p")
NAMES = "abcd"
Terms = frozenset[frozenset[str]]
"""The carriers of each term."""
TERMS = st.frozensets(st.frozensets(st.sampled_from(NAMES), max_size=3), max_size=3)


def hits(terms: Terms) -> Terms:
    """The least sets of carriers of which every term has one, by trying all."""
    every = chain.from_iterable(combinations(NAMES, k) for k in range(len(NAMES) + 1))
    able = [frozenset(s) for s in every if all(set(s) & term for term in terms)]
    return frozenset(s for s in able if not any(other < s for other in able))


def test_nothing_hits_a_term_without_carriers_and_no_terms_need_none() -> None:
    assert hits(frozenset({frozenset()})) == NONE
    assert hits(frozenset()) == NO_TERMS and hits(frozenset({frozenset("a")})) == single("a")


@given(TERMS, TERMS)
def test_a_product_is_hit_by_what_hits_a_factor(x: Terms, y: Terms) -> None:
    product = frozenset(a | b for a in x for b in y)
    assert either(hits(x), hits(y)) == hits(product)


@given(TERMS, TERMS)
def test_a_sum_is_hit_by_what_hits_all_summands(x: Terms, y: Terms) -> None:
    assert both(hits(x), hits(y)) == hits(x | y)


def test_of_many_sets_the_smallest_are_kept() -> None:
    many = [single(f"c{k:02}") for k in range(HITS_LIMIT + 3)]
    pair = frozenset({frozenset({"a", "b"})})
    assert either(pair, *many) == either(*many[:HITS_LIMIT])
    assert len(either(*many)) == HITS_LIMIT
    assert either(pair, *many[: HITS_LIMIT - 1]) == pair | either(*many[: HITS_LIMIT - 1])


X = Form(2, 1, {N: single("x")}, divided=True)
Y = Form(1, 0, {N: single("y"), P: single("y")}, stateful=True)


def test_a_product_has_the_indices_of_its_factors() -> None:
    """(p / q) r = p r / q."""
    found = times(X, Y)
    assert (found.summed, found.below, found.divided, found.stateful) == (3, 1, True, True)
    assert found.hits(N) == single("x") | single("y") and found.hits(P) == single("y")
    assert times() == PLAIN and times(PLAIN, PLAIN) == PLAIN


def test_a_sum_has_one_denominator() -> None:
    """p / q + r / s = (p s + r q) / (q s)."""
    found = plus(X, Y)
    assert (found.summed, found.below, found.divided, found.stateful) == (2, 1, True, True)
    assert found.hits(N) == frozenset({frozenset("xy")}) and found.hits(P) == NONE
    assert plus(X, X).summed == 3 and plus(X, X).below == 2
    assert plus() == PLAIN and plus(Y) == Y
    assert not plus(Y, Y).divided and not plus(X, X).stateful
