"""Costs are counts, checked by counting."""

from __future__ import annotations

from functools import cache

import pytest
from dsfc.backends.torch.cost import Cost, plan_costs

import dsfc
from dsfc.expr.evaluate import NamedArray, evaluate
from dsfc.expr.tree import Axis, Expr
from dsfc.plan.ir import Plan


@cache
def plan_of(name: str) -> Plan:
    return dsfc.load(name).plan


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
    return {c.mode: c for c in plan_costs(plan)}


def test_every_legal_mode_has_a_cost() -> None:
    plan = plan_of("retnet")
    assert [c.mode for c in plan_costs(plan)] == [m.name for m in plan.modes if m.legal]
    assert all(m.why for m in plan.modes)


SIZES = {"h": 2, "n": 3, "p": 5, "d": 7, "t": 4, "batch": 6, "length": 8, "chunk": 4}


@pytest.mark.parametrize(
    ("name", "mode", "calls", "operations", "words", "state"),
    [
        # One head has 15 numbers in its state, and vectors of 8 together.
        ("normalized_attn", "recurrent", 6 + 11 * 8, 2 * 4 * 15, 2 * (3 * 15 + 8), 30),
        ("normalized_attn", "chunked", 74, 2 * (8 * 8 + 60), 2 * (24 + 32 + 7 * 15 / 4), 30),
        ("normalized_attn", "parallel", 74, 2 * (16 * 8 + 60), 2 * (48 + 32 + 7 * 15 / 8), 30),
        # A decay is two more calls a chunk; the denominator is one more channel.
        ("retnet", "chunked", 90 + 2 * 2, 2 * (8 * 8 + 60), 2 * (48 + 32 + 7 * 15 / 4), 30),
        ("linear_attn", "recurrent", 6 + 11 * 8, 2 * 4 * 18, 2 * (3 * 18 + 9), 36),
        # Blocks of a chunk have log2 4 = 2 levels.
        ("gla", "chunked", 80 + 4 + 34 * 2, 2 * 124, 2 * (24 + 32 + 7 * 15 / 4 + 8 * 3 * 2), 30),
        # Pairs of one key with both reads, and a transition of 3 × 3 a chunk of 4 tokens.
        (
            "deltanet",
            "chunked",
            125 + 2 * 2,
            2 * (4 * 4 * 8 + 2 * 3 * 8 + 60),
            2 * (12 * 4 + 9 * 8 + 7 * 3 * 8 / 4),
            30,
        ),
        (
            "kda",
            "chunked",
            95 + 20 * 2 + 7 * 2,
            2 * (4 * 4 * 8 + 2 * 3 * 8 + 60),
            2 * (12 * 4 + 9 * 8 + 7 * 3 * 8 / 4 + 5 * 4 + 8 * 3 * 2),
            30,
        ),
        # Pairs of both keys with both reads and both values.
        (
            "rwkv7",
            "chunked",
            130 + 28 * 2 + 7 * 2,
            2 * (7 * 4 * 8 + 2 * 3 * 8 + 60),
            2 * (20 * 4 + 12 * 8 + 7 * 3 * 8 / 4 + 10 * 4 + 16 * 3 * 2),
            30,
        ),
        ("s6", "recurrent", 6 + 16 * 8, 0, 11 * 21, 21),
        ("s6", "chunked", 12 + 8 + 24 * 2, 0, 14 * 21, 21),
        ("rg_lru", "recurrent", 8 + 2 * 8, 0, 10 * 7, 7),
        ("rg_lru", "chunked", 24 + 2 * 4 + 2, 0, 17 * 7, 7),
        # Complex: 4 operations for one, 2 words for one. The table of powers is shared by a batch.
        ("s4d", "recurrent", 21 + 8 * 8, 0, 2 * 7 * 6 * 3, 21),
        ("s4d", "fft", 90, 0, 2 * 7 * (1600 * 3 / (6 * 40) + 5 * 4), 21),
        ("short_convolution", "recurrent", 0, 0, 0, 0),
        # Half of 8 tokens for each, with a key of 3 and a value of 5; and 1 that says it is kept.
        ("softmax", "fused", 5, 2 * 2 * 8 * 8, 2 * (8 * 8 / 128 + 2 * 8), 8 * (2 * 8 + 1)),
        ("softmax", "recurrent", 15 * 8, 2 * 2 * 8 * 8, 2 * (8 * 8 + 2 * 8), 8 * (2 * 8 + 1)),
    ],
)
def test_counts(name, mode, calls, operations, words, state) -> None:
    cost = costs(plan_of(name))[mode]
    assert value(cost.calls, **SIZES) == calls
    assert value(cost.operations, **SIZES) == operations
    assert value(cost.words, **SIZES) == pytest.approx(words)
    assert value(cost.state, **SIZES) == state


def test_the_state_is_counted_once_however_often_it_is_read(load) -> None:
    from unusual_specs import COMPILED

    plan = load("before_and_after", COMPILED["before_and_after"]).plan
    assert value(costs(plan)["recurrent"].state, h=2, n=3, p=5) == 30
