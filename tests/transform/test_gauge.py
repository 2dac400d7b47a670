"""A change of gauge changes the state and nothing that is read."""

from __future__ import annotations

import hand_built
import pytest
import torch
from draws import MIXERS, by_definition, close, draw, outputs

from dsfc.expr.build import ONE, add, mul, num, prim
from dsfc.expr.tree import Field, Map, Param, Ref
from dsfc.system.ir import Direction, Gate, Ratio, Read
from dsfc.system.traverse import parts
from dsfc.transform.gauge import (
    GaugeError,
    cancelled,
    change_gauge,
    diagonal_of,
    eta_gauge,
)

SIZES, ALL = hand_built.SIZES, hand_built.ALL


def same(a, b, length=5, sizes=SIZES, started=True):
    generator = torch.Generator().manual_seed(1)
    values, initial = draw(a, length, sizes, generator)
    start = initial if started else {}
    got, want = (outputs(s, length, sizes, values, start) for s in (b, a))
    return all(close(got[n], want[n]) for n in want)


def factor_of(system, state):
    """A positive factor that varies in time, over all axes of the state."""
    (block,) = (b for b in system.blocks if b.state == state)
    own = prim("sigmoid", Param("c", frozenset(block.axes), Field.REAL))
    heads = tuple(a for a in block.axes if a.name in ("h", "d"))
    moved = prim("exp", Map(hand_built.linear("G", (hand_built.D,), heads), hand_built.U))
    return mul(add(own, ONE), moved)


def with_params(system, state):
    from dataclasses import replace

    (block,) = (b for b in system.blocks if b.state == state)
    heads = tuple(a for a in block.axes if a.name in ("h", "d"))
    extra = (
        hand_built.Tensor("c", block.axes),
        hand_built.MapTensor(hand_built.linear("G", (hand_built.D,), heads)),
    )
    return replace(system, params=system.params + extra)


FORWARD = [
    (name, b.state)
    for name, s in ALL.items()
    for stage in s.stages
    if stage.direction is Direction.FORWARD and name != "dense"
    for b in stage.blocks
]


@pytest.mark.parametrize(("name", "state"), FORWARD)
def test_outputs_do_not_change(name, state):
    system = with_params(ALL[name], state)
    changed, record = change_gauge(system, state, factor_of(system, state))
    assert record.rule == "gauge"
    assert same(system, changed)


@pytest.mark.parametrize("name", ["gated", "ratio", "complex_lti", "rotating"])
def test_constant_gauges_move_constants_between_drive_and_read(name):
    system = ALL[name]
    state = system.blocks[0].state
    changed, _ = change_gauge(system, state, num(3))
    assert same(system, changed, started=False)
    assert diagonal_of(changed.blocks[0]) is diagonal_of(system.blocks[0])


def test_a_constant_gauge_takes_one_diagonal_system_to_another(derived):
    # M12 reads (λ − 1)/A where M11 drives with it: a constant gauge apart.
    system = derived("dss_exp")
    (block,) = system.blocks
    factor = prim("cplx", num(2), num(1))
    changed, _ = change_gauge(system, block.state, factor)
    sizes = {d.axis.name: 2 for d in system.axes}
    assert same(system, changed, sizes=sizes, started=False)


def test_paper_gauge_of_attention():
    # Sieber et al. 2024 eq. 15, corrected: Λ_i = η_{i-1} / η_i, 1 / η_i in B_i, no post-scale.
    changed, _ = eta_gauge(ALL["attention"])
    assert same(ALL["attention"], changed)
    assert isinstance(changed.read_out, Read)
    (block,) = changed.blocks
    (drive,) = block.chain[0].drives
    eta = hand_built.ref("eta")
    assert block.gauge.factor is eta
    assert drive.key is hand_built.div(hand_built.K, eta)
    (term,) = block.chain[0].terms
    lag = Ref("eta", eta.over, eta.kind, eta.when, hand_built.Now(1))
    assert term.left is hand_built.div(add(lag, Ref("first", *FIRST)), eta)
    (read,) = changed.read_out.terms
    assert read.left is ONE and read.right is hand_built.Q


FIRST = (frozenset(), Field.REAL, hand_built.Time.TOKEN, hand_built.Now(0))


@pytest.mark.share(5)
@pytest.mark.parametrize("name", MIXERS)
def test_paper_gauge_of_every_mixer(name, derived):
    system = derived(name)
    changed, _ = eta_gauge(system)
    sizes = {d.axis.name: 2 for d in system.axes}
    generator = torch.Generator().manual_seed(2)
    values, _ = draw(system, 4, sizes, generator)
    want, got = (outputs(s, 4, sizes, values)["y"] for s in (system, changed))
    assert (got - want).abs().max() <= 1e-9 * max(1.0, want.abs().max())


@pytest.mark.parametrize("name", ["linear_attn", "mlstm", "normalized_attn", "lnssm"])
def test_ratios_and_post_scales_go_into_the_transition(name, derived):
    changed, record = eta_gauge(derived(name))
    assert record.steps
    tree = list(parts(changed.read_out))
    assert not any(isinstance(p, Ratio) for p in tree)
    assert any(isinstance(p, Read) for p in tree)
    assert not any(isinstance(p, Gate) and "eta" in repr(p.factor) for p in tree)


def test_final_states_are_divided_by_the_factor():
    system = with_params(ALL["gated"], "S")
    changed, _ = change_gauge(system, "S", num(4))
    generator = torch.Generator().manual_seed(3)
    values, _ = draw(system, 5, SIZES, generator)
    _, want = by_definition(system, 5, SIZES, values, {})
    _, got = by_definition(changed, 5, SIZES, values, {})
    assert close(got["S"] * 4, want["S"])


def test_refusals():
    with pytest.raises(GaugeError, match="there is no state"):
        change_gauge(ALL["gated"], "T", num(2))
    with pytest.raises(GaugeError, match="axes that S lacks"):
        change_gauge(ALL["gated"], "S", hand_built.U)
    with pytest.raises(GaugeError, match="does not commute"):
        change_gauge(ALL["dense"], "x", Param("c", frozenset({hand_built.N}), Field.REAL))
    with pytest.raises(GaugeError, match="runs backwards"):
        change_gauge(ALL["cascade"], "z", prim("exp", hand_built.U))


def test_cancelling_is_exact():
    a, b = hand_built.param("a"), hand_built.param("b")
    assert cancelled(mul(a, hand_built.div(b, a))) is b
    assert cancelled(hand_built.div(a, mul(a, b))) is hand_built.div(ONE, b)
