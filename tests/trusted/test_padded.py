"""Slots at the first tokens: what reads from before the sequence reads 0, and no more than that."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.expr.declarations import Constraint
from dsfc.prover.condition_polynomials import condition
from dsfc.prover.subsumes import subsumes
from dsfc.prover.verdict import Instance
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import Certificate, Claim, Conditional, Invariant, Needed, Point
from dsfc.trusted.padded import padded
from dsfc.trusted.polynomial import ONE, Quotient, generator
from dsfc.trusted.rejected import Rejected


def mixer(body: str) -> System:
    text = Source("m.dsf", f"mixer m {{\n {body}\n}}\n")
    return SpecText(Place(Path("m.dsf")), parse(text)).compilation("m").system


def rejected(certificate: Certificate) -> str:
    with pytest.raises(Rejected) as caught:
        check(write(certificate))
    return str(caught.value)


def filled(a: str, b: str, value: Quotient) -> Certificate:
    """That z has a value, at the first tokens too."""
    given = condition((Quotient(generator("z[]@0")) - value).num, "z[]@0")
    conditions = (dataclasses.replace(given, padded=True),)
    claim = Claim(mixer(a), mixer(b), (), (), case=True, conditions=conditions)
    return Certificate(claim, Conditional(Invariant((), False), None, ()))


def leaf(name: str) -> Quotient:
    return Quotient(generator(name))


LATE, SLOT = "input u\n y = u + u[i-1]", "input u, z\n y = z"
SUM = leaf("u[]@0") + leaf("u[]@1")


def test_a_slot_reads_0_from_before_the_sequence() -> None:
    made = filled(LATE, SLOT, SUM)
    check(write(made))
    check(write(filled("input u\n y = 2 * u[i-1] + u", "input u, z\n y = z + u[i-1]", SUM)))
    bare = tuple(dataclasses.replace(c, padded=False) for c in made.claim.conditions)
    claim = dataclasses.replace(made.claim, conditions=bare)
    assert "first tokens" in rejected(dataclasses.replace(made, claim=claim))
    # Where the first mixer has 1 there, a 0 is not equal.
    assert rejected(filled("input u\n y = u + u[i-1] + first", SLOT, SUM))


def test_an_exponential_of_0_is_not_0() -> None:
    late = leaf("exp(u[]@1)")
    assert "function" in rejected(filled("input u\n y = exp(u[i-1])", SLOT, late))


def test_nothing_is_divided_by_what_is_0() -> None:
    with pytest.raises(Rejected, match="divided"):
        padded(leaf("u[]@0") / leaf("u[]@1"), 0, 0)
    both = ONE / (leaf("u[]@0") + leaf("u[]@1"))
    with pytest.raises(Rejected, match="divided"):
        padded(both, 0, 0)
    assert padded(both, 0, 1).text == both.text
    assert padded(SUM, 1, 1).text == leaf("u[]@1").text


@pytest.mark.parametrize("kind", [c for c in Constraint if c is not Constraint.NONE])
def test_a_slot_with_a_range_may_not_hold_0(kind: Constraint) -> None:
    made = filled(LATE, SLOT, SUM)
    inputs = tuple(
        dataclasses.replace(t, constraint=kind) if t.name == "z" else t for t in made.claim.b.inputs
    )
    claim = dataclasses.replace(made.claim, b=dataclasses.replace(made.claim.b, inputs=inputs))
    assert "no slot" in rejected(dataclasses.replace(made, claim=claim))


def test_no_parameter_and_no_input_of_both_is_given_at_the_first_tokens() -> None:
    made = filled(LATE, SLOT, SUM)
    claim = dataclasses.replace(made.claim, b=mixer("input u\n param z\n y = z * u"))
    assert "no slot" in rejected(dataclasses.replace(made, claim=claim))
    claim = dataclasses.replace(made.claim, case=False)
    assert "no slot" in rejected(dataclasses.replace(made, claim=claim))


def test_points_say_nothing_of_it() -> None:
    made = filled(LATE, SLOT, SUM)
    point = Point(1, (), 0, ())
    for proof in (
        dataclasses.replace(made.proof, holds=point),
        dataclasses.replace(made.proof, needed=(Needed((0,), point),)),
    ):
        assert "points" in rejected(dataclasses.replace(made, proof=proof))


@pytest.mark.ci
def test_a_filter_of_four_taps(system: Callable) -> None:
    """Values of one slot, with a state that is not read."""
    found = subsumes(system("dense", "four_taps"), system("dense", "any_mode"), conditions=True)
    assert isinstance(found, Instance)
    made = found.certificate
    for k, c in enumerate(made.claim.conditions):
        if c.padded:
            for m, (monomial, number) in enumerate(c.polynomial):
                other = (*c.polynomial[:m], (monomial, 3 * number), *c.polynomial[m + 1 :])
                changed = dataclasses.replace(c, polynomial=other)
                conditions = (*made.claim.conditions[:k], changed, *made.claim.conditions[k + 1 :])
                claim = dataclasses.replace(made.claim, conditions=conditions)
                if monomial != (("u[]@0", 1), ("w[]", 1)) or number > 0:
                    assert rejected(dataclasses.replace(made, claim=claim))
