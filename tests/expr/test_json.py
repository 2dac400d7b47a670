"""JSON of expressions and declarations: round trips, sharing, refusals."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfc.expr.build import add, mul, num
from dsfc.expr.declarations import (
    Constraint,
    Dimension,
    Init,
    MapTensor,
    Tensor,
)
from dsfc.expr.json import decode, encode
from dsfc.expr.over_time import Lag, Past, Relation, Run
from dsfc.expr.tree import Axis, Bound, Draw, Expr, Field, LinearMap, Now, Num, Ref, Size, Time

N = Axis(0, "n")


def through_text(value, hint):
    return decode(json.loads(json.dumps(encode(value))), hint)


@given(seed=st.integers(0, 10**6))
def test_an_expression_comes_back_as_the_same_object(draw, seed):
    expr = draw(seed, 5)
    assert through_text(expr, Expr) is expr


def test_nodes_of_mixers_come_back():
    v = Ref("v", frozenset({N}), Field.REAL, Time.TOKEN, Bound("j"))
    run = Run("l", Bound("j"), Now(), Ref("a", frozenset(), Field.REAL, Time.TOKEN, Bound("l")))
    lag = Lag((("i", 1), ("j", -1)), -1)
    past = Past("j", Relation.UP_TO, mul(run, lag, v))
    assert through_text(past, Expr) is past


def test_declarations_come_back_equal():
    draw = Init(Draw("normal", (num(0), num(1)), frozenset({N})), drawn=True)
    tensors = (
        Tensor("a", (N,), Field.COMPLEX, Constraint.POSITIVE, draw),
        MapTensor(LinearMap("W", (), (N,), (N,))),
    )
    assert through_text(tensors, tuple[Tensor | MapTensor, ...]) == tensors
    dimension = Dimension(N, mul(num(2), Size(N)), default=False)
    assert through_text(dimension, Dimension) == dimension


def test_a_shared_expression_is_written_once():
    e = Ref("x", frozenset({N}), Field.REAL, Time.TOKEN, Now())
    for _ in range(200):
        e = add(mul(e, e), num(1))
    document = encode(e)
    assert len(document["nodes"]) < 500
    assert through_text(e, Expr) is e


@pytest.mark.parametrize(
    "spoil",
    [
        lambda d: d["nodes"].append(["Unheard"]),
        lambda d: d["nodes"].append(["Num", 3]),
        lambda d: d["nodes"].append(["Num", "1/0"]),
        lambda d: d["nodes"].append(["Size", {"axis": 9}]),
        lambda d: d["nodes"].append(["Add", [{"node": 99}]]),
        lambda d: d["nodes"].append(["Ref", "x", [], "QUATERNION", "TOKEN", None]),
        lambda d: d.update(value={"node": -1}),
        lambda d: d.update(value="n"),
        lambda d: d.pop("axes"),
    ],
)
def test_what_no_value_gives_is_refused(spoil):
    document = encode(mul(num(2), Size(N)))
    spoil(document)
    with pytest.raises(ValueError, match=r".+"):
        decode(document, Expr)


@pytest.mark.parametrize("written", ["1e999999999", "0.5", " 1", "1/0", "1/-2", "٣", "1_000", ""])
def test_a_fraction_is_two_integers(written: str) -> None:
    document = {"axes": [], "nodes": [["Num", written]], "value": {"node": 0}}
    with pytest.raises(ValueError):
        decode(document, Num)
