"""Flows: what is kept of a drift, and which drifts no rule discretises."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest

from dsfc.derive.affine import Affine
from dsfc.derive.flow import FlowProblem, kept_flow
from dsfc.expr.build import ONE, ZERO, add, num
from dsfc.expr.declarations import FlowRule
from dsfc.expr.tree import Axis, Expr, Field, LinearMap, Param
from dsfc.system.ir import Term

N, P = Axis(0, "n"), Axis(1, "p")
HALF = num(Fraction(1, 2))


def param(name: str, *axes: Axis) -> Expr:
    return Param(name, frozenset(axes), Field.REAL)


def term(left: Expr, *over: Axis, state: str = "x", lag: int = 0, matrix: bool = False) -> Term:
    right = param("r", *over) if over else ONE
    held = LinearMap("W", (N,), (N,), ()) if matrix else None
    return Term(state, lag, left, frozenset(over), right, held)


REFUSED = {
    "another state": (FlowRule.BILINEAR, [term(ONE, state="z")], "reads the state `z` of the same"),
    "its own past": (FlowRule.EULER, [term(ONE, lag=1)], "reads the state `x` of the same stage"),
    "a map": (FlowRule.BILINEAR, [term(ONE, matrix=True)], "has a dense linear map"),
    "low rank and zoh": (FlowRule.ZOH, [term(param("l", N), N)], "zoh needs a diagonal flow; `x`"),
    "low rank and euler": (FlowRule.EULER, [term(param("l", N), N)], "euler needs a diagonal flow"),
    "two axes": (
        FlowRule.BILINEAR,
        [term(param("l", N), N), term(param("l", P), P)],
        "its low-rank parts contract different axes",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_rule_that_does_not_fit_its_drift_says_why(name: str) -> None:
    rule, terms, why = REFUSED[name]
    with pytest.raises(FlowProblem, match=re.escape(why)):
        kept_flow("x", Affine(tuple(terms), ONE), rule, HALF)


def test_the_parts_of_a_drift_are_added_up_by_kind() -> None:
    pair = term(param("l", N), N)
    drift = Affine((term(HALF), pair, term(param("a")), pair), None)
    flow = kept_flow("x", drift, FlowRule.BILINEAR, HALF)
    assert flow.low_rank == ((pair.left, pair.over, pair.right),) * 2
    assert (flow.rule, flow.step, flow.drive) == (FlowRule.BILINEAR, HALF, ZERO)
    assert flow.diagonal is add(HALF, param("a"))
    assert kept_flow("x", Affine((), ONE), FlowRule.ZOH, HALF).diagonal is ZERO
    assert kept_flow("x", Affine((), ONE), FlowRule.ZOH, HALF).drive is ONE
