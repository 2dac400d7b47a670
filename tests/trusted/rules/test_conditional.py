"""What the kernel accepts under conditions, and everything it must not accept."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.expr.declarations import Constraint
from dsfc.prover.points import with_points
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.trusted.check import check, read, write
from dsfc.trusted.claim import Certificate, Claim, Condition, Conditional, Invariant, Needed
from dsfc.trusted.conditions import Conditions
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.rules import conditional as rule
from dsfc.trusted.rules.conditional import localities
from dsfc.trusted.statement import state

PAIRS = [
    ("normalised", "normalised", "euler_gate"),
    ("normalised", "normalised", "convex_gate"),
    ("parameters", "mode", "mode_shifted"),
    ("parameters", "wkv_bonus", "wkv_plain"),
]


def rejected(certificate: Certificate) -> str:
    with pytest.raises(Rejected) as caught:
        check(write(certificate))
    return str(caught.value)


def with_conditions(c: Certificate, conditions: tuple[Condition, ...]) -> Certificate:
    return dataclasses.replace(c, claim=dataclasses.replace(c.claim, conditions=conditions))


def with_proof(c: Certificate, **changed) -> Certificate:
    return dataclasses.replace(c, proof=dataclasses.replace(c.proof, **changed))


@pytest.mark.share(4)
@pytest.mark.parametrize("pair", PAIRS)
def test_what_the_prover_shows_is_accepted(conditional: Callable, pair) -> None:
    made = conditional(*pair)
    accepted = check(write(made))
    assert accepted.claim == made.claim and accepted.gap is None
    assert read(write(made)) == made


@pytest.mark.share(2)
@pytest.mark.parametrize("pair", PAIRS)
def test_no_condition_can_be_left_out(conditional: Callable, pair) -> None:
    made = conditional(*pair)
    every = made.claim.conditions
    for k in range(len(every)):
        rejected(with_conditions(made, every[:k] + every[k + 1 :]))
    rejected(with_conditions(made, ()))


def spoiled(c: Condition) -> Iterator[Condition]:
    for k, (m, n) in enumerate(c.polynomial):
        for other in (n + 1, -n, 7 * n):
            changed = (*c.polynomial[:k], (m, other), *c.polynomial[k + 1 :])
            if other and len(c.polynomial) > 1:
                yield dataclasses.replace(c, polynomial=changed)


@pytest.mark.share(2)
@pytest.mark.parametrize("pair", PAIRS)
def test_no_spoiled_condition_is_accepted(conditional: Callable, pair) -> None:
    """Another number in a condition is another condition, under which the outputs are apart."""
    made = conditional(*pair)
    every = made.claim.conditions
    tried = 0
    for k, c in enumerate(every):
        for bad in spoiled(c):
            rejected(with_conditions(made, (*every[:k], bad, *every[k + 1 :])))
            tried += 1
    assert tried >= 3 * len(every)


@pytest.mark.parametrize("pair", PAIRS)
def test_no_row_is_superfluous(conditional: Callable, pair) -> None:
    made = conditional(*pair)
    rows = made.proof.invariant.rows
    for k in range(len(rows)):
        less = dataclasses.replace(made.proof.invariant, rows=rows[:k] + rows[k + 1 :])
        rejected(with_proof(made, invariant=less))


@pytest.mark.parametrize("pair", PAIRS)
def test_the_point_must_be_one_where_the_conditions_hold(conditional: Callable, pair) -> None:
    made = conditional(*pair)
    assert made.proof.needed
    for needed in made.proof.needed:
        assert "hold" in rejected(with_proof(made, holds=needed.point))
    holds = made.proof.holds
    zero = tuple((name, tuple((0, 1, 2, 1, 0) for _ in v)) for name, v in holds.values)
    rejected(with_proof(made, holds=dataclasses.replace(holds, values=zero)))
    rejected(with_proof(made, holds=dataclasses.replace(holds, token=holds.length)))


@pytest.mark.parametrize("pair", PAIRS)
def test_what_is_needed_is_shown(conditional: Callable, pair) -> None:
    made = conditional(*pair)
    # Where all conditions hold the outputs are equal, so nothing is shown to be needed.
    family = made.proof.needed[0].without
    rejected(with_proof(made, needed=(Needed(family, made.proof.holds),)))
    rejected(with_proof(made, needed=(Needed((), made.proof.needed[0].point),)))
    rejected(with_proof(made, needed=(Needed((10**6,), made.proof.needed[0].point),)))


def condition(solved: str, *terms: tuple[int, dict[str, int]]) -> Condition:
    polynomial = tuple(sorted((tuple(sorted(m.items())), c) for c, m in terms))
    return Condition(polynomial, solved)


X, Y = "x[0]@0", "y[0]@0"
X1, Y1, Z1 = "x[0]@1", "y[0]@1", "z[0]@1"


@pytest.mark.parametrize(
    "conditions, why",
    [
        ([condition(X, (1, {X: 2}), (1, {Y: 1}))], "linear"),
        ([condition(X, (1, {Y: 1}))], "hold what it gives"),
        ([condition("a[0]", (1, {"a[0]": 1}), (1, {X: 1}))], "same at all tokens"),
        ([condition(X, (1, {X: 1}), (-1, {"a[0]": 1})), condition(X, (1, {X: 1}))], "two"),
        ([condition(X1, (1, {X1: 1}), (1, {Y: 1}))], "earlier"),
        ([condition("κ[0]", (1, {"κ[0]": 1}), (1, {"a[0]": 1}))], "own"),
        ([condition("i", (1, {"i": 1}), (-1, {}))], "the number i"),
        ([condition("$A.S[0]", (1, {"$A.S[0]": 1}))], "state"),
        ([condition(X, (1, {X: 1}), (1, {Y: 1})),
          condition(Y, (1, {X: 1}), (2, {Y: 1}))], "itself"),
        # x is not one to one in what it was, and what it was is in the value of y.
        ([condition(X, (1, {X: 1}), (-1, {Z1: 1})),
          condition(Y, (1, {Y: 1}), (-1, {X1: 1}))], "value of another"),
        ([condition(X, (1, {X: 1}), (-1, {X1: 2}))], "value of another"),
    ],
)  # fmt: skip
def test_conditions_that_give_no_values(conditions: list[Condition], why: str) -> None:
    with pytest.raises(Rejected, match=why):
        Conditions(tuple(conditions)).values(1)


def test_a_pivot_that_conditions_make_zero_later_is_no_pivot(
    conditional: Callable, system: Callable
) -> None:
    """x_i = x_{i-1} and y_i = x_{i-1} make (x - y) at a token 0, though not as it stands there."""
    both = (
        condition(X, (1, {X: 1}), (-1, {X1: 1})),
        condition(Y, (1, {Y: 1}), (-1, {X1: 1})),
    )
    made = Conditions(both)
    assert made.touches(frozenset({X1, Y1}))
    assert not made.touches(frozenset({X1}))
    assert made.touches(frozenset({X, X1}))


@pytest.mark.parametrize(
    "conditions",
    [
        # x_i = (z_i - y_i) x_{i-1}, and z_i = y_i: x is 0 from the second token on.
        (condition(X, (1, {X: 1}), (-1, {X1: 1, "z[0]@0": 1}), (1, {X1: 1, Y: 1})),
         condition("z[0]@0", (1, {"z[0]@0": 1}), (-1, {Y: 1}))),
        # x_i = x_{i-1} + x_{i-1}²: 0 stays 0, and -1 becomes 0.
        (condition(X, (1, {X: 1}), (-1, {X1: 1}), (-1, {X1: 2})),),
    ],
)  # fmt: skip
def test_what_is_not_one_to_one_in_what_it_was_is_not_free(conditions) -> None:
    try:
        made = Conditions(conditions)
    except Rejected as e:
        assert "value of another" in str(e)
    else:
        assert made.touches(frozenset({X}))


def test_a_condition_on_nothing_of_the_claim(conditional: Callable) -> None:
    made = conditional(*PAIRS[2])
    extra = condition("nothing[0]", (1, {"nothing[0]": 1}))
    assert "does not have" in rejected(with_conditions(made, (*made.claim.conditions, extra)))


def test_a_condition_that_cannot_hold_is_refused(conditional: Callable) -> None:
    """Under e^w = -1 everything is true of nothing."""
    made = conditional(*PAIRS[3])
    never = condition("exp(w[0])", (1, {"exp(w[0])": 1}), (1, {}))
    rejected(with_conditions(made, (*made.claim.conditions, never)))


def test_the_other_rules_have_no_conditions(conditional: Callable) -> None:
    made = conditional(*PAIRS[2])
    rejected(dataclasses.replace(made, proof=made.proof.invariant))
    rejected(dataclasses.replace(made, claim=dataclasses.replace(made.claim, equal=False)))


# --- a case of the second ------------------------------------------------------------------------


def as_case(c: Certificate, case: bool = True) -> Certificate:
    return dataclasses.replace(c, claim=dataclasses.replace(c.claim, case=case))


@pytest.mark.ci
def test_a_case_is_one_of_parameters_that_the_second_alone_has(conditional: Callable) -> None:
    made = conditional("parameters", "linear", "retained_other")
    assert made.claim.case
    check(write(as_case(made, False)))
    # Both have them: that they take a value is asked of the first too.
    both = conditional("parameters", "mode", "mode_shifted")
    inside = conditional("normalised", "normalised", "plain")
    assert not both.claim.case and not inside.claim.case
    assert "not b's alone" in rejected(as_case(both))
    assert "hide where it has an output" in rejected(as_case(inside))


def test_a_value_must_exist_and_lie_in_the_range(conditional: Callable) -> None:
    # The bonus would be log of a decay, but its exponential alone is given a value.
    assert "not b's alone" in rejected(as_case(conditional("parameters", "wkv_plain", "wkv_bonus")))
    # g = 1 is a value other than 0.
    assert conditional("parameters", "own_mode", "own_scaled").claim.case


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "other", ["zoh_gate", "convex_gate", "free_gate", "decay_alone", "exp_decay_alone",
              "gate_alone", "read_scaled", "constant_gate", "plain"],
)  # fmt: skip
def test_the_conditions_and_rows_of_one_pair_show_nothing_of_another(
    conditional: Callable, system: Callable, other: str
) -> None:
    """Every mixer here has the state and the names of the one that the rows are about."""
    made = conditional("normalised", "normalised", "euler_gate")
    false = dataclasses.replace(made.claim, b=system("normalised", other))
    rejected(dataclasses.replace(made, claim=false))
    bare = dataclasses.replace(made.proof, needed=())
    rejected(Certificate(false, bare))


@pytest.mark.parametrize("range_", [Constraint.POSITIVE, Constraint.NONNEG, Constraint.NONZERO])
def test_no_case_where_the_second_has_the_smaller_range(conditional: Callable, range_) -> None:
    """Values of the first's parameter that the second's may not have are cases of nothing."""
    made = conditional("parameters", "own_mode", "own_skip")
    check(write(made))

    def within(system, *names):
        params = tuple(
            dataclasses.replace(t, constraint=range_) if t.name in names else t
            for t in system.params
        )
        return dataclasses.replace(system, params=params)

    claim = made.claim
    smaller = dataclasses.replace(claim, b=within(claim.b, "c"))
    assert "range" in rejected(dataclasses.replace(made, claim=smaller))
    both = dataclasses.replace(smaller, a=within(claim.a, "c"))
    check(write(dataclasses.replace(made, claim=both)))
    check(write(dataclasses.replace(made, claim=dataclasses.replace(both, b=claim.b))))


# --- slots ----------------------------------------------------------------------------------------


def test_no_point_is_needed_where_conditions_can_be_met_and_one_is_elsewhere(
    filled: Callable,
) -> None:
    made = filled("dual", "template_by_head")
    check(write(made))
    assert "no point" in rejected(as_case(made, False))


@pytest.mark.ci
def test_a_slot_has_the_value_that_it_must_have(filled: Callable) -> None:
    made = filled("memory", "template_by_head")
    for k, c in enumerate(made.claim.conditions):
        for m, (monomial, number) in enumerate(c.polynomial):
            other = (*c.polynomial[:m], (monomial, 3 * number), *c.polynomial[m + 1 :])
            changed = dataclasses.replace(c, polynomial=other)
            conditions = (*made.claim.conditions[:k], changed, *made.claim.conditions[k + 1 :])
            assert rejected(with_conditions(made, conditions))
        rest = (*made.claim.conditions[:k], *made.claim.conditions[k + 1 :])
        assert rejected(with_conditions(made, rest))


@pytest.mark.ci
def test_what_fills_one_template_fills_no_other(filled: Callable, system: Callable) -> None:
    made = filled("linear", "template_positive")
    below = dataclasses.replace(made.claim, b=system("lattice", "template_below_one"))
    assert "may not be unit" in rejected(dataclasses.replace(made, claim=below))
    made = filled("normalised", "template")
    positive = dataclasses.replace(made.claim, b=system("lattice", "template_positive"))
    assert "may not be positive" in rejected(dataclasses.replace(made, claim=positive))


def test_a_slot_must_have_a_value_everywhere(filled: Callable) -> None:
    """1 / η is one because η is declared other than 0."""
    made = filled("normalised", "template_by_head")
    inputs = tuple(
        dataclasses.replace(t, constraint=Constraint.NONE) if t.name == "eta" else t
        for t in made.claim.a.inputs
    )
    a = dataclasses.replace(made.claim.a, inputs=inputs)
    claim = dataclasses.replace(made.claim, a=a)
    assert "may not exist" in rejected(dataclasses.replace(made, claim=claim))


def test_no_square_of_a_real_slot_is_negative() -> None:
    """z = i x would make - x² a case of z²."""
    a, b = (_mixer(f"input {name}, v\n y = {value}") for name, value in
            (("x", "-1 * x * x * v"), ("z", "z * z * v")))  # fmt: skip
    made = condition("z[]@0", (1, {"z[]@0": 1}), (-1, {"i": 1, "x[]@0": 1}))
    claim = Claim(a, b, (), (), case=True, conditions=(made,))
    proof = Conditional(Invariant((), False), None, ())
    assert rejected(Certificate(claim, proof)) == "the value of z[]@0 may not be real"


def _mixer(body: str) -> System:
    text = Source("m.dsf", f"mixer m {{\n {body}\n}}\n")
    return SpecText(Place(Path("m.dsf")), parse(text)).compilation("m").system


def test_an_input_of_both_is_no_slot(filled: Callable, system: Callable) -> None:
    made = filled("linear", "template_by_head")
    b = made.claim.b
    more = next(t for t in b.inputs if t.name == "kappa")
    a = dataclasses.replace(made.claim.a, inputs=(*made.claim.a.inputs, more))
    claim = dataclasses.replace(made.claim, a=a)
    assert "not b's alone" in rejected(dataclasses.replace(made, claim=claim))


@pytest.mark.ci
def test_how_far_back_slots_read(conditional: Callable, filled: Callable) -> None:
    for a, b, far in (
        ("linear", "template_positive", {"alpha": None, "kappa": 0}),
        ("normalised", "template_by_head", {"alpha": 1, "kappa": 0}),
    ):
        claim = filled(a, b).claim
        assert localities(claim, state(claim, False)) == far
    # Values inside both are no slots.
    claim = conditional(*PAIRS[0]).claim
    assert claim.free and localities(claim, state(claim, False)) == {}


# --- by reason ------------------------------------------------------------------------------------


def with_point(**changed) -> Callable[[Certificate], Certificate]:
    def make(c: Certificate) -> Certificate:
        return with_proof(c, holds=dataclasses.replace(c.proof.holds, **changed(c.proof.holds)))

    changed = changed.pop("by")
    return make


def first_entry(number: tuple[int, ...]) -> Callable[[Certificate], Certificate]:
    """The first number of the first array put in the place of another."""

    def values(point):
        (name, entries), *rest = point.values
        return {"values": ((name, (number, *entries[1:])), *rest)}

    return with_point(by=values)


def with_claim(**changed) -> Callable[[Certificate], Certificate]:
    return lambda c: dataclasses.replace(c, claim=dataclasses.replace(c.claim, **changed))


def many(c: Certificate) -> Certificate:
    return with_proof(c, needed=c.proof.needed[:1] * 65)


def many_conditions(c: Certificate) -> Certificate:
    return with_conditions(c, c.claim.conditions[:1] * 257)


def unordered(c: Certificate) -> Certificate:
    one = c.claim.conditions[0]
    swapped = dataclasses.replace(one, polynomial=one.polynomial[::-1])
    return with_conditions(c, (swapped, *c.claim.conditions[1:]))


ZERO_POINT = {"by": lambda p: {"values": tuple(
    (n, tuple((0, 1, 2, 1, 0) if not n.startswith("κ") and n == "u" else x for x in v))
    for n, v in p.values)}}  # fmt: skip
REASONS = {
    "something else is claimed": with_claim(equal=False),
    "at one size of each axis": with_claim(every=("n",)),
    "there are more than 64 points": many,
    "there are more than 256 conditions": many_conditions,
    "the terms of a coefficient are not in order": unordered,
    "a point has from 1 to 64 tokens": with_point(by=lambda p: {"length": 0}),
    "a point has from 1 to 64 tokens ": with_point(by=lambda p: {"length": 65}),
    "a name has two values": with_point(by=lambda p: {"values": (*p.values, p.values[0])}),
    "`κ[7]` is not one number other than 0": with_point(
        by=lambda p: {"values": (*p.values, ("κ[7]", ((0, 1, 2, 1, 0),)))}
    ),
    "`κ[7]` is not one number other than 0 ": with_point(
        by=lambda p: {"values": (*p.values, ("κ[7]", ((1, 1, 2, 1, 0),) * 2))}
    ),
    "`more` is nothing of the claim": with_point(
        by=lambda p: {"values": (*p.values, ("more", ((1, 1, 2, 1, 0),)))}
    ),
    "entries": with_point(by=lambda p: {"values": p.values[1:]}),
    "entries ": with_point(
        by=lambda p: {"values": tuple((n, v + v[:1]) for n, v in p.values if "κ" not in n)}
    ),
    "the token or index is none of the output": with_point(by=lambda p: {"token": p.length}),
    "the token or index is none of the output ": with_point(by=lambda p: {"index": (*p.index, 0)}),
    "the token or index is none of the output  ": with_point(by=lambda p: {"token": -1}),
    "the index does not fit the output": with_point(by=lambda p: {"index": (9,) * len(p.index)}),
    "the index does not fit the output ": with_point(by=lambda p: {"index": (-1,) * len(p.index)}),
    "has an entry that is no number": first_entry((1, 0, 2, 1, 0)),
    "has an entry that is no number ": first_entry((1, 1, 1, 1, 0)),
    "has an entry that is no number  ": first_entry((1, 1, 2, 1, 5)),
    "has an entry that is no number   ": first_entry((1, 1, 0, 1, 0)),
    "has an entry that is no number    ": first_entry((1, 1, 2, 0, 0)),
    "the output may be 0": with_point(**ZERO_POINT),
    "the conditions left out are none of the claim": lambda c: with_proof(
        c, needed=(Needed((99,), c.proof.needed[0].point),)
    ),
    "the outputs may be equal where": lambda c: with_proof(
        c, needed=(Needed(c.proof.needed[0].without, c.proof.holds),)
    ),
}


@pytest.mark.parametrize("reason", REASONS)
def test_a_refusal_says_why(conditional: Callable, reason: str) -> None:
    assert reason.strip() in rejected(REASONS[reason](conditional(*PAIRS[2])))


def test_the_other_conditions_hold_where_one_is_left_out(conditional: Callable) -> None:
    made = conditional(*PAIRS[0])
    every = with_points(made.claim, made.proof.invariant)  # one for each, whatever is forced
    assert every is not None
    one, other = every.needed[:2]
    assert not set(one.without) & set(other.without)
    swapped = with_proof(made, needed=(Needed(one.without, other.point),))
    assert "another condition does not hold" in rejected(swapped)


def test_as_many_points_as_are_allowed(
    conditional: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = conditional(*PAIRS[2])
    count = len(made.proof.needed)
    monkeypatch.setattr(rule, "NEEDED_LIMIT", count)
    check(write(made))
    monkeypatch.setattr(rule, "NEEDED_LIMIT", count - 1)
    assert f"more than {count - 1} points" in rejected(made)
