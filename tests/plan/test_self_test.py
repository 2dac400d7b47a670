"""A plan is tried against its System at every compile: another coefficient is another value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from material import draw
from shipped_specs import PLANNED

from dsfc.expr.build import mul, num
from dsfc.plan.evaluate import evaluate as plan_values
from dsfc.plan.flow import PlanError
from dsfc.plan.self_test import LENGTH, TOLERANCE, Point, compare, compare_gauges
from dsfc.system.evaluate import evaluate
from dsfc.system.ir import Drive, Factor, System, Term
from dsfc.system.traverse import map_blocks


def other_systems(system: System) -> Iterator[System]:
    """The System with one coefficient of one chain doubled, for each of them."""
    for block in system.blocks:
        for at, factor in enumerate(block.chain):
            for other in _doubled(factor):
                chain = (*block.chain[:at], other, *block.chain[at + 1 :])
                changed = replace(block, chain=chain)
                yield map_blocks(system, lambda b, old=block, new=changed: new if b is old else b)


def _doubled(factor: Factor) -> Iterator[Factor]:
    def all_but(items: tuple, at: int, new: Term | Drive) -> tuple:
        return (*items[:at], new, *items[at + 1 :])

    for at, t in enumerate(factor.terms):
        yield replace(factor, terms=all_but(factor.terms, at, replace(t, left=twice(t.left))))
    for at, d in enumerate(factor.drives):
        yield replace(factor, drives=all_but(factor.drives, at, replace(d, key=twice(d.key))))


def twice(value):
    return mul(num(2), value)


@pytest.mark.share(5)
@pytest.mark.parametrize("name", PLANNED)
def test_every_coefficient_of_every_chain_counts(name: str, shipped) -> None:
    spec = shipped(name)
    point = draw(spec, LENGTH)
    compare(spec.plan, spec.computed, [point])
    for system in other_systems(spec.computed):
        with pytest.raises(PlanError, match="the plan differs from the system"):
            compare(spec.plan, system, [point])


RUNNING = "dims d\n input u : d\n state s : d\n s = 1/2 * s[i-1] + u; y = {}"


def test_points_are_taken_until_a_value_is_finite(load) -> None:
    spec = load("roots", RUNNING.format("s + sqrt(u - 100)"))
    other = load("other_roots", RUNNING.format("s + 2 * sqrt(u - 100)"))
    near, far = draw(spec, LENGTH), draw(spec, LENGTH)
    far = replace(far, inputs={n: v + 200 for n, v in far.inputs.items()})
    compare(spec.plan, spec.computed, [near, far])
    with pytest.raises(PlanError, match="y by"):
        compare(spec.plan, other.system, [near, far])


def test_what_rounding_does_to_a_difference_is_not_held_against_a_plan(load) -> None:
    spec = load(
        "difference_of_equals",
        """dims d
        input u : d
        state s, t : d
        s = sigmoid(u) * s[i-1] + u
        t = (1 + tanh(u / 2)) / 2 * t[i-1] + u
        y = 10^9 * (s - t)""",
    )
    point = draw(spec, LENGTH)
    alike = dict.fromkeys(point.initial, point.initial["s"])
    point = replace(point, initial=alike)
    compare(spec.plan, spec.computed, [point])
    got = plan_values(spec.plan, point.inputs, point.tensors, point.sizes, alike).arrays["y"]
    want = evaluate(spec.computed, point.inputs, point.tensors, point.sizes, alike).outputs["y"]
    assert abs(got - want).max() > 10 * TOLERANCE


def differs(system: System, computed: System, point: Point) -> bool:
    try:
        compare_gauges(system, computed, [point])
    except PlanError as problem:
        return "the gauge differs from the system" in str(problem)
    return False


STABILISED = ("mlstm", "rwkv4", "lln", "lnssm", "performer")


@pytest.mark.parametrize("name", STABILISED)
def test_every_coefficient_over_a_running_maximum_counts(name: str, shipped) -> None:
    spec = shipped(name)
    points = [draw(spec, LENGTH, seed) for seed in range(4)]  # a guard hides what it is larger than
    for point in points:
        compare_gauges(spec.system, spec.computed, [point])
    others = list(other_systems(spec.computed))
    assert others
    for system in others:
        assert any(differs(spec.system, system, point) for point in points)


def test_a_gauge_without_values_is_seen_where_the_system_has_one(load) -> None:
    spec = load("plain", RUNNING.format("s"))
    none = load("none", RUNNING.format("s + sqrt(-1 - u * u)"))
    with pytest.raises(PlanError, match="the gauge differs from the system: y by inf"):
        compare_gauges(spec.system, none.system, [draw(spec, LENGTH)])
