"""Each invariant of a System has a System that breaks it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dsfc.expr.build import ONE, mul
from dsfc.expr.over_time import Lag, Past, Relation, Run
from dsfc.expr.tree import Axis, Bound, Field, Now, Ref, Time
from dsfc.system.ir import (
    Direct,
    Direction,
    Drive,
    Gate,
    Ratio,
    Read,
    Stream,
    Term,
)
from dsfc.system.verify import SystemInvariantError, verify

NONE: frozenset[Axis] = frozenset()


@pytest.mark.parametrize("name", ["normalized", "ratio", "delta", "before", "both_ways"])
def test_hand_written_systems_are_well_formed(name, systems):
    verify(systems[name])


def refused(system, what):
    with pytest.raises(SystemInvariantError, match=what):
        verify(system)


def with_block(system, **changes):
    block = replace(system.blocks[0], **changes)
    stage = replace(system.stages[0], blocks=(block, *system.stages[0].blocks[1:]))
    return replace(system, stages=(stage, *system.stages[1:]))


def with_factor(system, **changes):
    block = system.blocks[0]
    return with_block(system, chain=(replace(block.chain[0], **changes), *block.chain[1:]))


def with_output(system, value):
    return replace(system, outputs=(replace(system.outputs[0], value=value),))


def token(stream, at=None):
    return Ref(
        stream.name, frozenset(stream.axes), stream.field, Time.TOKEN, Now() if at is None else at
    )


@pytest.fixture
def system(systems):
    return systems["normalized"]


def test_sums_lags_and_runs_stand_in_caches_only(system):
    v = system.streams[2]
    past = Past("j", Relation.UP_TO, token(v, Bound("j")))
    refused(with_output(system, Direct(past)), "`y`: I1: Past")
    lag = mul(Lag((("i", 1),), 0), token(v))
    refused(with_output(system, Direct(lag)), "I1: Lag")
    run = Run("l", Now(2), Now(0), token(v, Bound("l")))
    refused(with_output(system, Direct(run)), "I1: Run")


def test_states_are_read_in_terms_only(system):
    block = system.blocks[0]
    state = Ref("S", frozenset(block.axes), Field.REAL, Time.STATE, Now())
    broken = with_factor(system, drives=(Drive(state, ONE),))
    refused(broken, "block `S`, factor 0: I1: the state `S`")


def test_names_must_be_known(system):
    v = system.streams[2]
    ghost = Ref("ghost", frozenset(v.axes), Field.REAL, Time.TOKEN, Now())
    refused(with_output(system, Direct(ghost)), "I2: no input or stream `ghost`")
    wrong = Ref("v", NONE, Field.REAL, Time.TOKEN, Now())
    refused(with_output(system, Direct(mul(wrong, token(v)))), "another type")


def test_streams_stand_behind_what_they_read(system):
    streams = list(system.streams)
    first = Stream("early", token(streams[2]), streams[2].axes, Field.REAL)
    refused(replace(system, streams=(first, *streams)), "stream `early`: I2: reads `v`")


def test_coefficients_come_from_earlier_stages(system):
    read = Stream("o", system.read_out, system.outputs[0].axes, Field.REAL)
    block = system.blocks[0]
    key = block.chain[0].drives[0].key
    broken = with_factor(
        replace(system, streams=(*system.streams, read)), drives=(Drive(key, token(read)),)
    )
    refused(broken, "I2: a drive depends on a stage that is not earlier")


def test_terms_have_the_axes_of_what_they_add_to(system):
    block = system.blocks[0]
    (term,) = block.chain[0].terms
    n = block.axes[1]
    refused(
        with_factor(system, terms=(replace(term, over=frozenset({n})),)), "I3: a term gives axes"
    )
    d = system.axes[0].axis
    refused(with_factor(system, terms=(replace(term, over=frozenset({d})),)), "I3: contracts")


def test_an_expanding_right_side_needs_a_contraction(systems):
    system = systems["normalized"]
    (term,) = system.blocks[0].chain[0].terms
    eta, u = system.streams[3], system.inputs[0]
    wide = Ref("u", frozenset(u.axes), Field.REAL, Time.TOKEN, Now())
    refused(
        with_factor(system, terms=(replace(term, right=mul(token(eta), wide)),)),
        "I3: its right side has axes",
    )


def test_lags_follow_the_direction(systems):
    system = systems["normalized"]
    (term,) = system.blocks[0].chain[0].terms
    refused(with_factor(system, terms=(replace(term, lag=0),)), "I4: a term has lag 0")
    backward = replace(system, stages=(replace(system.stages[0], direction=Direction.BACKWARD),))
    refused(backward, "I4: a term has lag 1 instead of -1")
    read = system.read_out.arg
    late = Read((replace(read.terms[0], lag=-1),))
    refused(with_output(system, Gate(system.read_out.factor, late)), "I4: a read of `S`")


def test_every_block_reaches_the_output(system):
    v = system.streams[2]
    refused(with_output(system, Direct(token(v))), "block `S`: I5")


def test_a_complex_value_needs_a_cast(system):
    refused(with_block(system, field=Field.COMPLEX), "I6: a complex value without a Cast")


def test_terms_read_their_own_stage(systems):
    system = systems["ratio"]
    block = system.blocks[0]
    term = Term("z", 1, token(system.streams[2]), NONE, ONE)
    broken = with_factor(system, terms=(*block.chain[0].terms, term))
    refused(broken, "I7: reads `z` of another stage")


def test_drives_have_the_axes_of_the_state(system):
    key = system.blocks[0].chain[0].drives[0].key
    refused(with_factor(system, drives=(Drive(key, ONE),)), "I8: a drive has axes")


def test_denominators_are_no_wider_than_numerators(systems):
    system = systems["ratio"]
    ratio = system.read_out
    turned = Ratio(ratio.den, ratio.num)
    refused(with_output(system, turned), "I9: a denominator with axes")


def test_diagonal_terms_are_merged(system):
    (term,) = system.blocks[0].chain[0].terms
    refused(with_factor(system, terms=(term, term)), "I10: 2 diagonal terms")


def test_types_of_outputs_and_streams(system):
    output = replace(system.outputs[0], axes=system.outputs[0].axes[:1])
    refused(replace(system, outputs=(output,)), "output `y`: its value has axes")
    q, *rest = system.streams
    refused(replace(system, streams=(replace(q, axes=q.axes[:1]), *rest)), "stream `q`")


def test_names_are_unique(system):
    q, k, *rest = system.streams
    twice = replace(system, streams=(q, k, replace(k, name="q"), *rest))
    refused(twice, "`q` names two things")


def test_empty_chains_are_refused(system):
    refused(with_block(system, chain=()), "has no factor")
