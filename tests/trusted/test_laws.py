"""Laws of functions of states: that they are true, what they assume, and certificates that lie."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.expr.table import row
from dsfc.prover.closure import Differs, close
from dsfc.prover.relations import laws, relation
from dsfc.prover.sizes import chosen
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.trusted import statement
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import Certificate, Claim, Coefficient, Invariant, Relation, Row
from dsfc.trusted.elementary import IMAGINARY_UNIT
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.laws import (
    MOVES,
    SCALES,
    Law,
    check_divisors,
    check_names,
    check_signs,
    law,
    never_negative,
    positive,
)
from dsfc.trusted.polynomial import ONE, ZERO, Quotient, generator, number
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.statement import state
from dsfc.trusted.symbols import Symbols

ONE_TERM = (((), 1),)
"""1, as certificates store it."""

TRUE = [("guarded", "guarded_stabilised"), ("root_plain", "root_by_past")]


@pytest.mark.parametrize("head", sorted(SCALES))
def test_a_law_is_an_identity_of_functions(head: str) -> None:
    """By numbers, with what the table computes."""
    rng = random.Random(head)
    known = {"exp(1)": np.e, "log(2)": np.log(2)}
    factors = {"exp": (-2, -1, 1, 2), "abs": (-2, 2, Fraction(1, 2))}
    for _ in range(50):
        r = rng.choice(factors.get(head, (2, Fraction(1, 2))))
        found = Law(number(r), number(rng.choice([0, 1]) if head in MOVES else 0))
        x = [rng.uniform(0.1 if head in ("log", "sqrt") else -2, 2) for _ in range(row(head).arity)]
        moved = [at(found.argument(head, Quotient(generator("x[]"))), {"x[]": a}) for a in x]
        value = found.value(Symbols(), head, Quotient(generator("f[]")))
        f = float(row(head).value(*map(np.float64, x)))
        assert np.isclose(row(head).value(*moved), at(value, {"f[]": f} | known))


def at(q: Quotient, values: dict[str, float]) -> float:
    """A polynomial at a point."""
    assert not q.den
    return sum(float(c) * float(np.prod([values[g] ** e for g, e in m]))
               for m, c in q.num.terms.items())  # fmt: skip


@pytest.fixture(scope="module")
def proved(system: Callable) -> Callable[..., Certificate]:
    """A certificate at size 1 from the rows that laws give, the signs of factors unchecked."""

    def make(a: str, b: str, given: tuple[Law, ...] | None = None) -> Certificate:
        systems = system("laws", a), system("laws", b)
        claim = Claim(*systems, (), chosen(*systems, 1))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(statement, "check_signs", lambda *_: None)
            found = laws(claim, False) if given is None else given
            rows = close(state(claim, False, found))
        assert not isinstance(rows, Differs)
        return Certificate(claim, Invariant(rows, False, tuple(map(relation, found))))

    return make


def rejected(certificate: Certificate) -> str:
    with pytest.raises(Rejected) as caught:
        check(write(certificate))
    return str(caught.value)


def with_relations(c: Certificate, *relations: Relation) -> Certificate:
    return dataclasses.replace(c, proof=dataclasses.replace(c.proof, relations=relations))


@pytest.mark.share(2)
@pytest.mark.parametrize("pair", TRUE)
def test_what_laws_show_is_accepted(proved: Callable, pair) -> None:
    assert check(write(proved(*pair))).gap is None
    stored = proved(*pair).proof.relations
    assert stored
    assert all(relation(law(r)) == r for r in stored)


def by(scale: Quotient) -> Law:
    return Law(scale, number(0))


W = Quotient(generator("w[0]@0"))
FORGED = [
    ("relu_plain", "relu_odd", (by(number(-1)),)),
    ("guarded", "guarded_signed", (by(W), by(W))),
    ("root_plain", "root_signed", (by(ONE / W),)),
    ("root_plain", "root_by_signed_past", (by(ONE / (W + Quotient(generator("$B.z[0]")))),)),
]


@pytest.mark.parametrize("a, b, given", FORGED, ids=[b for _, b, _ in FORGED])
def test_a_factor_of_any_sign_is_not_accepted(proved: Callable, a: str, b: str, given) -> None:
    """The rows would do; that the factor is positive is what is missing."""
    assert "positive term by term" in rejected(proved(a, b, given))


def once(name: str) -> Coefficient:
    return ((((name, 1),), 1),)


def number_of(k: int) -> Coefficient:
    return (((), k),)


V, SUM = once("v[0,0]@0"), once("$A.S[0,0,0]")
NONE = ((), ONE_TERM)
REASONS = {
    "`rmsnorm[0]` has no such law": ("bounded_plain", Relation((V, ONE_TERM), NONE)),
    "`relu` has no such law": ("relu_plain", Relation((ONE_TERM, ONE_TERM), (V, ONE_TERM))),
    "a factor in an exponent is not a small integer": (
        "exp_plain", Relation((V, ONE_TERM), NONE)),
    "a factor in an exponent is not a small integer ": (
        "exp_plain", Relation((ONE_TERM, number_of(2)), NONE)),
    "a factor in an exponent is not a small integer  ": (
        "exp_plain", Relation((number_of(9), ONE_TERM), NONE)),
    "a law names `x[0]@0`, which is not there": (
        "max_plain", Relation((once("x[0]@0"), ONE_TERM), NONE)),
    "a law reads another token": (
        "log_scaled_late", Relation((ONE_TERM, ONE_TERM), (once("w[0]@1"), ONE_TERM))),
    "a law adds what is no real value of the token": (
        "max_plain", Relation((ONE_TERM, ONE_TERM), (SUM, ONE_TERM))),
    "there are more laws than calls": ("tanh_by_exp", Relation((ONE_TERM, ONE_TERM), NONE)),
}  # fmt: skip


@pytest.mark.share(5)
@pytest.mark.parametrize("reason", REASONS)
def test_a_refusal_says_why(system: Callable, reason: str) -> None:
    name, relation = REASONS[reason]
    own = system("laws", name)
    claim = Claim(own, own, (), chosen(own, own, 1))
    proof = Invariant((), False, (relation, relation))
    assert reason.strip() in rejected(Certificate(claim, proof))


LOGARITHMS = """
mixer apart { dims n
  input u, w : n
  state o, z : n
  o = o[i-1] + exp(u)
  z = z[i-1] + exp(w)
  y = log(o) + 2 * log(1 + z)
}
mixer together { dims n
  input u, w : n
  state o, z : n
  o = o[i-1] + exp(u)
  z = z[i-1] + exp(w)
  y = log(o * (1 + z)) + log(1 + z)
}
"""


def test_no_logarithm_of_a_state_is_added() -> None:
    """It is a call too: here of the second system, which makes the two calls of the first."""
    text = SpecText(Place(Path("mine.dsf")), parse(Source("mine.dsf", LOGARITHMS)))
    a, b = (text.compilation(name).system for name in ("apart", "together"))
    rows = tuple(Row((f"$A.{s}[0]",), (((f"$A.{s}[0]",), ONE_TERM),
                                       ((f"$B.{s}[0]",), number_of(-1))))
                 for s in "oz")  # fmt: skip
    more = tuple(sorted((*once("$B.z[0]"), *once("exp(w[0]@0)"), *ONE_TERM)))
    proof = Invariant(rows, False, (Relation((more, ONE_TERM), NONE),))
    why = rejected(Certificate(Claim(a, b, (), (("n", 1),)), proof))
    assert "a logarithm of states stands in a law" in why


def spoiled(c: Certificate):
    first, *rest = c.proof.relations
    above, below = first.scale
    unknown = (((("nothing[0]@0", 1),), 1),)
    for scale in (
        (ONE_TERM, ONE_TERM),
        (below, above),
        (tuple((m, 2 * n) for m, n in above), below),
        (tuple((m, -n) for m, n in above), below),
        (unknown, below),
        (above, ()),
        ((), below),
        ((((("v[0,0]@0", 1),), 1),), ONE_TERM),
        ((((("m[0]@1", 1),), 1),), ONE_TERM),
        ((((("$A.C[0,0,0]", 1),), 1),), ONE_TERM),
    ):
        yield with_relations(c, Relation(scale, first.shift), *rest)
    yield with_relations(c, Relation(first.scale, (ONE_TERM, ONE_TERM)), *rest)
    yield with_relations(c, Relation(first.scale, (unknown, ONE_TERM)), *rest)
    yield with_relations(c)
    yield with_relations(c, first, *rest, first, first, first)


@pytest.mark.ci
@pytest.mark.parametrize("pair", TRUE)
def test_spoiled_relations(proved: Callable, pair) -> None:
    every = list(spoiled(proved(*pair)))
    assert len(every) == 14
    for bad in every:
        rejected(bad)


@pytest.mark.ci
@pytest.mark.parametrize("a, b", [("guarded", "guarded_by_one"), ("guarded", "guarded_half"),
                                  ("root_one_more", "root_one_more_exp")])  # fmt: skip
def test_the_laws_of_a_true_pair_do_not_show_its_near_miss(
    proved: Callable, system: Callable, a: str, b: str
) -> None:
    true = "guarded_stabilised" if a == "guarded" else "root_one_more_right"
    made = proved(a, true)
    assert check(write(made))
    rejected(dataclasses.replace(made, claim=dataclasses.replace(made.claim, b=system("laws", b))))


def test_conditions_and_laws_do_not_mix(proved: Callable) -> None:
    made = proved(*TRUE[0])
    rejected(dataclasses.replace(made, claim=dataclasses.replace(made.claim, equal=False)))


# --- signs ----------------------------------------------------------------------------------------


def test_entries_that_start_at_zero_and_only_grow_are_never_negative() -> None:
    symbols = Symbols()
    a, w = symbols.leaf("a[]", True, True), symbols.leaf("w[]@0", True)
    x, y, z = (symbols.leaf(f"$A.{n}[]", True) for n in "xyz")
    e = symbols.exp(w)
    step = {"$A.x[]": a * x + e, "$A.y[]": y + w, "$A.z[]": z * x + y}
    # z is fed by y, which has any sign.
    assert never_negative(symbols, (step,)) == {"$A.x[]"}
    assert never_negative(symbols, (step, {**step, "$A.x[]": x - e})) == frozenset()
    # What one token has no update of is not known there.
    for steps in ((step, {}), ({}, step), ()):
        assert never_negative(symbols, steps) == frozenset()
    kept = frozenset({"$A.x[]"})
    assert positive(symbols, ONE / (e + x), kept) and positive(symbols, e * x + a, kept)
    # Whichever term comes first: one is positive, the others are not negative.
    assert positive(symbols, a + e * x, kept) and positive(symbols, x + e + x * x, kept)
    for bad in (x, e + y, e - x, ONE / x, ONE / (e - a), w * e, x + x * x, e + x * y):
        assert not positive(symbols, bad, kept)


def test_an_update_divides_by_what_is_positive_at_every_token() -> None:
    symbols = Symbols()
    a, w = symbols.leaf("a[]", True, True), symbols.leaf("w[]@0", True)
    x, y = (symbols.leaf(f"$A.{n}[]", True) for n in "xy")
    grows = {"$A.x[]": a * x + symbols.exp(w)}
    for value in (y + w, y / w, y / (a + w), y / (w * w)):
        check_divisors(symbols, ({**grows, "$A.y[]": value},), True)
    check_divisors(symbols, ({**grows, "$A.y[]": y / (y + a)},), False)
    for value in (y / (x + a), y / (x * x + a) / (a * x + a)):
        step = {**grows, "$A.y[]": value}
        check_divisors(symbols, (step,), False)
        check_divisors(symbols, (step, step), False)
        for steps, conditions in (
            ((step,), True),
            (({**step, "$A.x[]": w * x},), False),
            ((step, {**step, "$A.x[]": x - a}), False),
        ):
            with pytest.raises(Obstacle, match="divides by a value of the state"):
                check_divisors(symbols, steps, conditions)
    for value in (y / x, y / (x + w), y / (x + a) / (x - a), y / (y + a) - a, w / x + y):
        with pytest.raises(Obstacle, match="divides by a value of the state"):
            check_divisors(symbols, ({**grows, "$A.y[]": value},), False)


def test_a_factor_is_looked_at_where_a_law_needs_it() -> None:
    symbols = Symbols()
    a, w = symbols.leaf("a[]", True, True), symbols.leaf("w[]@0", True)
    cell = symbols.leaf("$A.S[0]", True)
    kept = frozenset({"$A.S[0]"})
    for scale, heads in (
        (a, "abs relu max log"),
        (-a, "abs exp"),
        (-a - ONE, "abs"),
        (a + cell, "abs relu"),
        (w, "exp"),
        (ONE, "relu log"),
    ):
        for head in heads.split():
            check_signs(symbols, (by(scale),), (head,), kept)
    for scale, heads in (
        (-a, "relu max log"),
        (w, "abs relu"),
        (a - ONE, "abs"),
        (cell, "abs relu"),
        (a + cell, "log"),
    ):
        for head in heads.split():
            with pytest.raises(Rejected):
                check_signs(symbols, (by(scale),), (head,), kept)
            # That of the second call is looked at too, and none without a call.
            with pytest.raises(Rejected):
                check_signs(symbols, (by(ONE), by(scale)), ("exp", head), kept)
            check_signs(symbols, (by(ONE), by(scale)), ("exp",), kept)
    moved = Law(ONE, w)
    check_signs(symbols, (moved,), ("max",), frozenset())
    assert not moved.trivial and not by(a).trivial and by(ONE).trivial


def test_a_softplus_is_positive_and_a_logarithm_is_not() -> None:
    symbols = Symbols()
    a, w = symbols.leaf("a[]", True, True), symbols.leaf("w[]", True)
    assert symbols.positive(symbols.log(ONE + symbols.exp(w)))
    assert symbols.positive(symbols.log(number(2)))
    for argument in (a, symbols.exp(w) + a, (ONE + a) / (ONE + symbols.exp(w))):
        assert not symbols.positive(symbols.log(argument))


def test_a_law_of_an_exponential_has_a_small_integer() -> None:
    """e^{x/2} is no integer power of e^x."""
    s = Symbols()
    value = s.leaf("e[]@0", real=True, positive=True)
    assert Law(number(2), ZERO).value(s, "exp", value).text == value.power(2).text
    for factor in (Fraction(1, 2), Fraction(3, 2), 0, 9, -9):
        with pytest.raises(Rejected, match="small integer"):
            Law(number(factor), ZERO).value(s, "exp", value)


def test_a_law_of_equal_arguments_is_one_of_any_function() -> None:
    q = Quotient(generator("x[]"))
    assert Law(ONE, ZERO).value(Symbols(), "tanh", q) is q
    with pytest.raises(Rejected):
        Law(number(2), ZERO).value(Symbols(), "tanh", q)


def test_a_law_adds_what_is_real() -> None:
    s = Symbols()
    z = s.leaf("z[]@0", real=False)
    for shift in (IMAGINARY_UNIT, z):
        with pytest.raises(Rejected, match="no real value"):
            check_names(s, (Law(ONE, shift),), frozenset())


def test_one_over_what_may_be_zero_has_no_sign() -> None:
    s = Symbols()
    cell = s.leaf("$A.S[0]", real=True)
    kept = frozenset({"$A.S[0]"})
    assert positive(s, cell + ONE, kept) and not positive(s, ONE + ONE / cell, kept)
