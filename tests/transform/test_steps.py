"""Steps in time form a monoid, and a chain is the product of its factors."""

from __future__ import annotations

from dataclasses import replace

import hand_built
import pytest
import torch
from draws import close, draw, outputs
from hypothesis import given
from hypothesis import strategies as st

from dsfc.expr.build import ONE, mul, neg, prim
from dsfc.system.ir import Drive, Factor, Read, Term
from dsfc.transform.compose import CompositionError
from dsfc.transform.steps import compose_factors, compose_terms, identity_step, multiplied_out
from dsfc.transform.terms import result_axes

H, N, P, FREE = hand_built.H, hand_built.N, hand_built.P, frozenset()
AXES = (H, N, P)
Q, K, V = hand_built.Q, hand_built.K, hand_built.V
DECAYS = [prim("sigmoid", x) for x in (Q, K, mul(K, Q))]


def term(kind, a, b):
    match kind:
        case "diagonal":
            return Term("S", 0, prim("sigmoid", a), FREE, ONE)
        case "key":
            return Term("S", 0, neg(a), frozenset({N}), b)
    return Term("S", 0, prim("tanh", V), frozenset({P}), V)


VECTORS = st.sampled_from([Q, K])
TERMS = st.builds(term, st.sampled_from(["diagonal", "key", "value"]), VECTORS, VECTORS)
FACTORS = st.builds(
    Factor,
    st.lists(TERMS, min_size=1, max_size=2, unique_by=lambda t: bool(t.over)).map(tuple),
    st.just((Drive(K, V),)) | st.just(()) | st.just((Drive(Q, V), Drive(K, V))),
)


def chained(*factors):
    """The hand-built attention with another chain."""
    system = hand_built.ALL["attention"]
    first = replace(factors[0], terms=tuple(replace(t, lag=1) for t in factors[0].terms))
    (stage,) = system.stages
    block = replace(stage.blocks[0], chain=(first, *factors[1:]))
    value = Read((Term("S", 0, ONE, frozenset({N}), Q),))
    return replace(
        system,
        stages=(replace(stage, blocks=(block,)),),
        outputs=(replace(system.outputs[0], value=value),),
    )


def same(*chains):
    systems = [chained(*c) for c in chains]
    generator = torch.Generator().manual_seed(0)
    values, initial = draw(systems[0], 4, hand_built.SIZES, generator)
    values = {n: v * 0.5 for n, v in values.items()}
    first, *rest = (outputs(s, 4, hand_built.SIZES, values, initial)["y"] for s in systems)
    return all(close(x, first) for x in rest)


@given(FACTORS, FACTORS)
def test_a_product_of_steps_is_one_step(first, second):
    try:
        both = compose_factors(second, first, frozenset(AXES))
    except CompositionError:
        return
    assert same((first, second), (both,))


@given(FACTORS)
def test_the_identity_is_neutral(factor):
    one = identity_step("S", 0)
    axes = frozenset(AXES)
    assert same(
        (factor,), (compose_factors(factor, one, axes),), (compose_factors(one, factor, axes),)
    )


@given(FACTORS, FACTORS, FACTORS)
def test_composition_is_associative(a, b, c):
    axes = frozenset(AXES)
    try:
        left = compose_factors(c, compose_factors(b, a, axes), axes)
        right = compose_factors(compose_factors(c, b, axes), a, axes)
    except CompositionError:
        return
    assert same((left,), (right,))


def test_a_chain_is_its_additive_form():
    system = hand_built.ALL["delta"]
    (stage,) = system.stages
    block = replace(stage.blocks[0], chain=(multiplied_out(stage.blocks[0]),))
    single = replace(system, stages=(replace(stage, blocks=(block,)),))
    values, initial = draw(system, 5, hand_built.SIZES, torch.Generator().manual_seed(0))
    a, b = (outputs(s, 5, hand_built.SIZES, values, initial)["y"] for s in (system, single))
    assert close(a, b)


def test_axes_of_a_composition():
    first = Term("S", 0, ONE, frozenset({N}), K)
    second = Term("S", 0, Q, FREE, ONE)
    made = compose_terms(second, first, frozenset(AXES))
    assert result_axes(made, frozenset(AXES)) == frozenset(AXES)


def test_a_mixing_factor_is_refused():
    # the middle factor reads two copies of one axis at once
    first = Term("S", 0, mul(K, prim("tanh", V)), frozenset({P}), V)
    mixed = Term("S", 0, ONE, frozenset({N, P}), prim("sigmoid", mul(K, V)))
    with pytest.raises(CompositionError):
        compose_terms(mixed, first, frozenset(AXES))
