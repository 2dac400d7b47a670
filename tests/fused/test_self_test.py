"""A fused plan is tried against its plan at every compile: another value or decay is seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from material import draw

from dsfc.api.pipeline import Compilation
from dsfc.expr.build import mul, num
from dsfc.expr.tree import Expr
from dsfc.fused.ir import FusedPlan
from dsfc.fused.self_test import compare
from dsfc.plan.flow import PlanError
from dsfc.plan.self_test import LENGTH, Point


def twice(e: Expr) -> Expr:
    return mul(num(2), e)


def others(fused: FusedPlan) -> Iterator[FusedPlan]:
    """Fused plans in which one thing that a kernel computes is doubled."""
    for p in fused.prologues:
        for what in ("value", "log_decay", "added"):
            changed = replace(p, **{what: twice(getattr(p, what))})
            if changed != p:
                yield replace(fused, prologues=(changed,))
    for m in fused.matrices:
        # What all outputs share cancels in the quotient by one of them.
        parts = ("key",) if m.running else ("read", "key", "weight", "normaliser")
        for what in parts:
            part = getattr(m, what)
            if part is not None:
                doubled = replace(part, value=twice(part.value))
                yield replace(fused, matrices=(replace(m, **{what: doubled}),))
        if not m.running:
            yield replace(fused, matrices=(replace(m, factor=twice(m.factor)),))


@pytest.mark.parametrize("name", ["s6", "rg_lru", "normalized_attn", "linear_attn", "ssd"])
def test_what_kernels_compute_counts(name: str, shipped: Callable[[str], Compilation]) -> None:
    spec = shipped(name)
    fused, point = spec.fused(), draw(spec, LENGTH)
    compare(fused, [point])
    changed = list(others(fused))
    assert changed
    for other in changed:
        with pytest.raises(PlanError, match="the fused plan differs from the plan"):
            compare(other, [point])


def test_points_are_taken_until_the_output_is_finite(
    load: Callable[[str, str], Compilation],
) -> None:
    body = "dims d\n input u : d\n state s : d\n s = 1/2 * s[i-1] + tanh(u)\n y = s + sqrt(u - 100)"
    spec = load("roots", body)
    near = draw(spec, LENGTH)
    far = replace(near, inputs={n: v + 200 for n, v in near.inputs.items()})
    taken: list[Point] = []

    def points() -> Iterator[Point]:
        for point in (near, far, near):
            taken.append(point)
            yield point

    compare(spec.fused(), points())
    assert taken == [near, far]


def test_a_plan_of_which_nothing_is_fused_is_not_run(
    shipped: Callable[[str], Compilation],
) -> None:
    plan = shipped("s6").plan
    compare(FusedPlan(plan, plan), (pytest.fail("no point is needed") for _ in range(1)))
