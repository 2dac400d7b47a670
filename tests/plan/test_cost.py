"""Costs are counts, checked by counting."""

from __future__ import annotations

import pytest

from dsfc.plan.ir import Cost, Plan
from dsfc.primitives.evaluate import NamedArray, evaluate
from dsfc.primitives.expr import Axis, Expr


class Sizes:
    """Sizes of axes, and the length of a chunk."""

    def __init__(self, **sizes: int) -> None:
        self.sizes = sizes

    def size(self, axis: Axis) -> int:
        return self.sizes[axis.name]

    def param(self, name: str) -> NamedArray:
        import numpy as np

        return NamedArray((), np.asarray(float(self.sizes[name])))


def value(expr: Expr, **sizes: int) -> float:
    return float(evaluate(expr, Sizes(**sizes)).data)  # type: ignore[arg-type]


def costs(plan: Plan) -> dict[str, Cost]:
    return {c.mode: c for c in plan.costs}


def test_every_legal_mode_has_a_cost(plan_of) -> None:
    plan = plan_of("retnet")
    assert [c.mode for c in plan.costs] == [m.name for m in plan.modes if m.legal]
    assert all(m.why for m in plan.modes)


@pytest.mark.parametrize(
    ("name", "mode", "operations", "words", "state"),
    [
        # h = 2, n = 3, p = 5, chunk = 4.
        ("normalized_attn", "recurrent", 2 * 5 * 15, 2 * (2 * 15 + 2 * 8), 30),
        ("normalized_attn", "chunked", 2 * (2 * 4 * 8 + 4 * 15), 2 * (2 * 8 + 2 * 15 / 4), 30),
        # The denominator is one more channel.
        ("linear_attn", "recurrent", 2 * 5 * 18, 2 * (2 * 18 + 2 * 9), 36),
        ("linear_attn", "chunked", 2 * (2 * 4 * 9 + 4 * 18), 2 * (2 * 9 + 2 * 18 / 4), 36),
        # d = 7, n = 3.
        ("s6", "recurrent", 7 * 21, 2 * 21 + 2 * 10, 21),
        ("s6", "chunked", 14 * 21, 2 * 21 + 2 * 10, 21),
        ("rg_lru", "recurrent", 3 * 7, 3 * 7, 7),
        ("rg_lru", "chunked", 6 * 7, 3 * 7, 7),
        ("short_convolution", "recurrent", 0, 0, 0),
    ],
)
def test_counts(plan_of, name, mode, operations, words, state) -> None:
    sizes = {"h": 2, "n": 3, "p": 5, "d": 7, "t": 4, "chunk": 4}
    cost = costs(plan_of(name))[mode]
    assert value(cost.operations, **sizes) == operations
    assert value(cost.words, **sizes) == words
    assert value(cost.state, **sizes) == state


def test_the_state_is_counted_once_however_often_it_is_read(load) -> None:
    from unusual_specs import COMPILED

    plan = load("before_and_after", COMPILED["before_and_after"]).plan
    assert value(costs(plan)["recurrent"].state, h=2, n=3, p=5) == 30
