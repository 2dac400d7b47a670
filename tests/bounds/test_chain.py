"""The check of a chain accepts what follows and nothing else; so does that of its text."""

from __future__ import annotations

import dataclasses
import json
import random
from fractions import Fraction

import pytest

from dsfc.bounds.certificate import check_text, is_bound, write
from dsfc.bounds.chain import Chain, Step, check, covers
from dsfc.bounds.form import CONSTANT, Form, Key, Lagged, constant
from dsfc.bounds.pair import Gap
from dsfc.bounds.search import search
from dsfc.expr.interval import Interval
from dsfc.expr.tree import Ones
from dsfc.trusted.rejected import Rejected

QKV = "abs(q) <= 1, abs(k) <= 1, abs(v) <= 1"


@pytest.fixture
def chain(ask) -> Chain:
    found = search(ask("decay_state", "decay_near", QKV, n=2))
    assert isinstance(found, Chain)
    return found


def smaller(bound: Interval | Form) -> Interval | Form:
    """A bound that says more."""
    if isinstance(bound, Form):
        return Form(tuple((key, c * Fraction(99, 100)) for key, c in bound.terms))
    middle = (bound.low + bound.high) / 2
    return Interval((bound.low + middle) / 2, (bound.high + middle) / 2)


def test_a_chain_is_accepted(chain: Chain) -> None:
    check(chain)
    assert check_text(write(chain)) == chain


def test_no_step_may_say_more_than_follows(chain: Chain) -> None:
    for k, step in enumerate(chain.steps):
        new = smaller(step.bound)
        if new == step.bound or (isinstance(new, Interval) and new.low == new.high):
            continue
        steps = (*chain.steps[:k], dataclasses.replace(step, bound=new), *chain.steps[k + 1 :])
        with pytest.raises(Rejected):
            check(dataclasses.replace(chain, steps=steps))


def test_every_step_is_needed(chain: Chain) -> None:
    for k, step in enumerate(chain.steps):
        steps = (*chain.steps[:k], *chain.steps[k + 1 :])
        loose = isinstance(step.subject, Gap)
        if loose:
            with pytest.raises(Rejected):
                check(dataclasses.replace(chain, steps=steps))


def test_no_step_rests_on_a_later_one(chain: Chain) -> None:
    with pytest.raises(Rejected):
        check(dataclasses.replace(chain, steps=chain.steps[::-1]))


def test_the_bound_is_that_of_the_last_step(chain: Chain) -> None:
    with pytest.raises(Rejected, match="how far"):
        check(dataclasses.replace(chain, bound=chain.bound * Fraction(99, 100)))
    with pytest.raises(Rejected, match="how far"):
        check(dataclasses.replace(chain, steps=()))


def test_a_rule_has_to_fit(chain: Chain) -> None:
    for rule in ("leaf", "no such rule", "series", "mean"):
        last = dataclasses.replace(chain.steps[-1], rule=rule)
        with pytest.raises(Rejected):
            check(dataclasses.replace(chain, steps=(*chain.steps[:-1], last)))


def test_a_chain_is_about_its_domain_and_sizes(ask, chain: Chain) -> None:
    for other in (
        ask("decay_state", "decay_near", "abs(q) <= 1, abs(k) <= 1", n=2),
        ask("decay_state", "decay_near", QKV.replace("abs(v) <= 1", "abs(v) <= 2"), n=2),
        ask("decay_state", "decay_near", QKV, n=3),
        ask("decay_state", "windowed", QKV, n=2),
    ):
        with pytest.raises(Rejected):
            check(dataclasses.replace(chain, question=other))


def test_a_chain_at_sizes_that_no_mixer_has_is_rejected(chain: Chain) -> None:
    """A size that is no expression of sizes is that of no mixer: it would be about nothing."""
    asked = chain.question
    at = next(k for k, d in enumerate(asked.a.axes) if d.axis.name == "p")
    none = dataclasses.replace(asked.a.axes[at], size=Ones(frozenset()), default=False)
    axes = (*asked.a.axes[:at], none, *asked.a.axes[at + 1 :])
    question = dataclasses.replace(
        asked,
        a=dataclasses.replace(asked.a, axes=axes),
        sizes=tuple(sorted((dict(asked.sizes) | {"p": 2}).items())),
    )
    with pytest.raises(Rejected, match="no sizes keep"):
        check_text(write(dataclasses.replace(chain, question=question)))


def test_no_term_takes_away_from_a_bound() -> None:
    one = constant(1)
    assert covers(one, constant(Fraction(1, 2)))
    assert not covers(Form((*one.terms, (Key((), (), True), Fraction(-1)))), one)
    falling = Key((), (Lagged("j", 0, Fraction(-1, 2)),))
    assert not covers(Form((*one.terms, (falling, Fraction(1)))), one)
    assert not covers(Form(((CONSTANT, Fraction(1, 2)), (CONSTANT, Fraction(1, 2)))), one)


def test_a_document_that_is_changed_is_rejected(chain: Chain) -> None:
    text = write(chain)
    assert is_bound(text)
    document = json.loads(text)
    for change in ({"format": "dsfc-bound/0"}, {"more": 1}, {"value": None}, {"nodes": []}):
        with pytest.raises(Rejected):
            check_text(json.dumps(document | change))
    with pytest.raises(Rejected):
        check_text(text[:-20])
    with pytest.raises(Rejected):
        check_text("[]")


@pytest.mark.ci
def test_a_chain_with_one_number_made_smaller_is_rejected(chain: Chain) -> None:
    rng = random.Random(3)
    for _ in range(200):
        k = rng.randrange(len(chain.steps))
        step: Step = chain.steps[k]
        if not isinstance(step.bound, Form) or not step.bound.terms:
            continue
        at = rng.randrange(len(step.bound.terms))
        terms = list(step.bound.terms)
        key, c = terms[at]
        terms[at] = (key, c * Fraction(rng.randrange(100), 100))
        bound = Form(tuple(t for t in terms if t[1]))
        steps = (*chain.steps[:k], dataclasses.replace(step, bound=bound), *chain.steps[k + 1 :])
        with pytest.raises(Rejected):
            check(dataclasses.replace(chain, steps=steps))
