"""Counts of kernels: what kernels.md's designs come to, and what the interpreter moves."""

from __future__ import annotations

import pytest
from dsfc.backends.triton.cost.counts import KernelCost
from dsfc.backends.triton.cost.devices import DEVICES, H200, fastest, seconds, value
from dsfc.backends.triton.cost.render import render
from dsfc.backends.triton.cost.scans import kernel_costs, plan_costs
from dsfc.backends.triton.nodes import computes

from dsfc.fused.fuse import fuse
from dsfc.plan.ir import Plan
from dsfc.plan.scan_ir import Form, Scan

LENGTHS = (2048, 16_384)


def costs_of(plan: Plan) -> tuple[KernelCost, ...]:
    return plan_costs(fuse(plan, computes))


def at(length: int, size: int = 128, **more: float) -> dict[str, float]:
    return {"batch": 8, "length": length, "h": 16, "n": size, "p": size, "width": 2,
            "chunk": 64, "tile": 64, "segment": 1024} | more  # fmt: skip


def moved(cost: KernelCost, sizes: dict[str, float]) -> tuple[float, float]:
    """Bytes over those that nothing can spare: forward, and both ways."""
    passes = [value(p.bytes, sizes) for p in cost.passes]
    floor = [value(f, sizes) for f in cost.compulsory_bytes]
    return passes[0] / floor[0], sum(passes) / sum(floor)


@pytest.mark.parametrize("name", ["retnet", "mlstm", "linear_attn", "normalized_attn"])
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize(("size", "both"), [(128, 1.45), (64, 1.6)])
def test_products_move_little_more_than_they_must(plan_of, length, size, both, name) -> None:
    fused, split = costs_of(plan_of(name))
    assert (fused.way, split.way) == ("fused", "split")
    sizes = at(length, size)
    assert moved(fused, sizes)[0] <= 1.1
    assert 1.3 < moved(fused, sizes)[1] <= both
    assert 1.5 < moved(split, sizes)[0] <= 1.75
    # Neighbours' reads that the cache does not have are half as much again, forwards.
    (forward, _), tiles = fused.passes, size // 64
    share = value(forward.redundant_reads, sizes) / value(forward.bytes, sizes)
    assert share == pytest.approx(0.5 * (tiles - 1), abs=0.01)


def test_features_cost_exponentials_and_one_number_a_token(plan_of) -> None:
    sizes = at(2048, h=1)
    plain, _ = costs_of(plan_of("generalized_attn"))
    assert costs_of(plan_of("normalized_attn"))[0].passes[0].bytes == plain.passes[0].bytes
    # q, k, v, y and the leaf of η; backwards its gradient in two halves, that are added.
    assert value(plain.passes[0].bytes, sizes) == 4 * 256 + 4
    assert value(plain.passes[1].bytes, sizes) == 11 * 256 + 2 * 4 + 5 * 4
    assert value(plain.compulsory_bytes[1], sizes) == 7 * 256 + 2 * 4
    elus, _ = costs_of(plan_of("linear_attn"))
    # exp of 128 queries and keys, in each of two programs; backwards in four, and both gradients.
    # The quotient is a reciprocal in each of the two, and of the six backwards.
    assert value(elus.passes[0].exponentials, sizes) == 2 * 2 * 128 + 2
    assert value(elus.passes[1].exponentials, sizes) == 4 * 2 * 128 + 2 * 128 + 6


def test_products_of_one_head_by_hand(plan_of) -> None:
    fused, split = costs_of(plan_of("retnet"))
    sizes = at(2048, h=1)
    forward, backward = fused.passes
    # q, k, v, y, the decay; twice 64 pairs with both sides, four with the state, and pairs again.
    assert value(forward.bytes, sizes) == 4 * 256 + 4
    assert value(forward.operations, sizes) == 2 * 64 * 256 + 4 * 128 * 128 + 2 * 64 * 128
    # For the decay pairs again.
    more = 2 * 64 * 128
    assert value(backward.operations, sizes) == 3 * value(forward.operations, sizes) + more
    assert (forward.launches, backward.launches) == (1, 3)
    assert value(forward.programs, sizes) == 16 and value(forward.steps, sizes) == 32
    # Keys and values again, and a decay and a state of a segment out and in, in float32.
    extra = value(split.passes[0].bytes, sizes) - value(forward.bytes, sizes)
    assert extra == 2 * 256 + 4 + 2 * 4 * (128 * 128 + 1) / 1024
    assert value(split.passes[0].steps, sizes) == 16
    # Backwards that, outputs' gradients and queries likewise, and both kernels start from parts.
    extra = value(split.passes[1].bytes, sizes) - value(backward.bytes, sizes)
    assert extra == pytest.approx(2 * (2 * 256 + 4) + 4 * (4 * 128 * 128 + 3) / 1024)
    assert (split.passes[1].launches, value(split.passes[1].steps, sizes)) == (5, 16)
    # Parts of keys and of channels, two of each, of eight rows in two segments.
    assert value(split.passes[1].programs, sizes) == 8 * 4 * 2
    more = value(split.passes[1].operations, sizes) - value(backward.operations, sizes)
    assert more == 2 * 2 * 128 * 128


def test_a_selective_scan_by_hand(plan_of) -> None:
    fused, split = costs_of(plan_of("s6"))
    forward, backward = fused.passes
    sizes = {"batch": 8, "length": 2048, "d": 2048, "n": 16, "width": 2}
    unit = 2 * 2048
    vectors = 2 * 2 * 16
    assert value(forward.bytes, sizes) == 3 * unit + 8 * unit + vectors
    assert value(backward.bytes, sizes) == (3 + 8 + 4 + 2) * unit + 2 * vectors
    # One of each state, a softplus (exponential, logarithm, reciprocal), twice backwards, and its
    # derivative (exponential, reciprocal).
    assert value(forward.exponentials, sizes) == (16 + 3) * 2048
    assert value(backward.exponentials, sizes) == (16 + 3 + 3 + 2) * 2048
    # Inputs and keys again, and a decay and a state of each segment, written and read in float32;
    # backwards the output's gradient and queries too, and of constants (a rate of each state, two
    # of each channel) parts of gradients from each segment, which are added up.
    sizes["segment"] = 256
    parts, slices = 16 * 16 * 2048 / 256, 8 * (16 + 2) * 2048 / 256
    for one, other, more in zip(
        fused.passes, split.passes, (2 * unit + parts, 3 * unit + parts + slices), strict=True
    ):
        assert value(other.bytes, sizes) - value(one.bytes, sizes) == more + vectors / 2
        assert other.launches == one.launches + 1
        assert value(other.programs, sizes) == 8 * value(one.programs, sizes)
    # One instruction of four units in every clock: a quarter of what one of them would take.
    elements = 8 * 2048 * 2048 * 16
    time = seconds(forward, H200, sizes) - H200.launch
    assert time >= 13.9 * elements / H200.instructions == pytest.approx(223e-6 / 1, rel=0.05)


@pytest.mark.parametrize(("name", "leaves"), [("qlstm", 3), ("rg_lru", 3)])
def test_elementwise_scans_move_each_leaf_once(plan_of, name, leaves) -> None:
    plan = plan_of(name)
    (gates,) = fuse(plan, lambda _: True).prologues
    assert len(gates.tokens) == leaves
    fused, split = plan_costs(fuse(plan, computes))
    sizes = {"batch": 8, "length": 2048, "d": 2048, "width": 2, "tile": 64, "segment": 256}
    unit = 2 * 2048
    assert [value(p.bytes, sizes) for p in fused.passes] == [4 * unit, 8 * unit]
    assert moved(fused, sizes) == (1, 1)
    assert value(split.passes[0].bytes, sizes) == 7 * unit + 16 * 2048 / 256
    assert [p.launches for p in (*fused.passes, *split.passes)] == [1, 1, 2, 2]


def test_a_constant_decay_is_not_read_at_every_token(plan_of) -> None:
    fused, split = costs_of(plan_of("lru"))
    sizes = {"batch": 8, "length": 2048, "n": 2048, "width": 2, "tile": 64, "segment": 256}
    plane = 2 * 2048
    # Two planes of the drive in, two of the state out; backwards those, their gradients in and out.
    assert [value(p.bytes, sizes) for p in fused.passes] == [4 * plane, 8 * plane]
    assert moved(fused, sizes) == (1, 1)
    # What a segment makes of a state: of the drive once more, of the gradient without it.
    ends = 2 * 16 * 2048 / 256
    # Of five constants a segment writes a part of the gradient, which is read to be added up.
    slices = 5 * 8 * 2048 / 256
    assert [value(p.bytes, sizes) for p in split.passes] == [
        6 * plane + ends,
        10 * plane + ends + slices,
    ]
    # λ is computed once a channel; of RWKV-4 the key's weight and, since that is below its running
    # maximum, λ are computed at every token.
    assert value(fused.passes[0].exponentials, sizes) == 0
    first, *_ = costs_of(plan_of("rwkv4"))
    assert value(first.passes[0].exponentials, sizes | {"d": 2048}) == 2 * 2048


def test_few_heads_are_split_and_many_are_not(plan_of) -> None:
    costs = costs_of(plan_of("retnet"))
    chosen = {
        (batch * heads, length): fastest(
            costs, H200, at(length, batch=batch, h=heads, segment=max(length / 16, 128))
        ).way
        for batch, heads in ((1, 1), (1, 16), (8, 16), (32, 16))
        for length in (512, *LENGTHS)
    }
    assert {way for (rows, _), way in chosen.items() if rows >= 128} == {"fused"}
    assert chosen[1, 16_384] == chosen[16, 16_384] == "split"


def test_the_way_is_that_of_least_time_whatever_the_machine(plan_of) -> None:
    costs = costs_of(plan_of("retnet"))
    sizes = at(16_384, batch=1, h=1)
    for passes in (slice(None), slice(1)):
        times = {c.way: sum(seconds(p, H200, sizes) for p in c.passes[passes]) for c in costs}
        chosen = fastest(costs, H200, sizes, lambda c, passes=passes: c.passes[passes])
        assert chosen.way == min(times, key=times.__getitem__)
        assert times["fused"] > 2 * times["split"]
    far = at(2048)
    forward = costs[0].passes[0]
    assert seconds(forward, H200, far, shared=False) > seconds(forward, H200, far)


def test_a_complex_scan_is_a_real_one_of_both_planes(plan_of) -> None:
    (complex_one, split), (real, _) = (costs_of(plan_of(n)) for n in ("gateloop", "retnet"))
    one, two = at(2048, 128, h=1), at(2048, 128, h=1, p=256)
    forward, backward = complex_one.passes
    # The kernels of twice the channels, and backwards those again, for phases.
    for p, q, times in zip(complex_one.passes, real.passes, (1, 2), strict=True):
        assert value(p.operations, one) == times * value(q.operations, two)
        assert p.launches == times * q.launches
        assert value(p.programs, one) == value(q.programs, two)
    assert split.passes[0].launches == 2
    # Around them, of 128 channels of 2 bytes: a value read twice for two planes, as the cotangent
    # is; of two planes in float32 one is made, by a product in between; both planes turned by a
    # right angle. Kernels write what is rotated yet in float32: two planes, and backwards twice.
    out, wider = 4 * 512 + 256, 2 * 256
    turns = 4 + 8 + 16 + 8 + 16 + 16 + 8
    around = value(forward.bytes, one) - value(real.passes[0].bytes, two)
    assert around == 4 * 256 + out + wider + turns
    around = value(backward.bytes, one) - 2 * value(real.passes[1].bytes, two)
    assert around == 2 * 4 * 256 + 6 * 256 + out + 2 * wider + turns
    # Nothing can spare q, k, v and y of one plane, log |λ| and the phase; gradients likewise.
    assert value(complex_one.compulsory_bytes[0], one) == 4 * 256 + 8
    assert value(complex_one.compulsory_bytes[1], one) == value(real.compulsory_bytes[1], one) + 8


def test_forms_without_kernels_have_no_cost(plan_of, load) -> None:
    complex_keys = """
      dims heads h, n, p
      input q, k : h × n; v : h × p; f : h
      state S : h × n × p complex
      S = sigmoid(f) * cis(f) * S[i-1] + cplx(k, q) ⊗ v
      y = Re(q · S)
    """
    assert plan_costs(fuse(load("complex_keys", complex_keys).plan, computes)) == ()
    for name in ("gla", "s4d"):
        assert costs_of(plan_of(name)) == ()
    assert {Form.MATRIX, Form.SELECTIVE} == {
        s.form
        for name in ("retnet", "s6")
        for s in plan_of(name).kernels
        if isinstance(s, Scan) and kernel_costs(s)
    }


def test_the_text_names_every_way_pass_and_what_it_assumes(plan_of) -> None:
    said = render(costs_of(plan_of("retnet")))
    chosen = "takes the way, and as many segments, as are predicted to take least time"
    ways = ("fused, forward: 1 launches", "split, forward: 2 launches")
    for line in (*ways, "read by neighbours", chosen):
        assert line in said
    for (platform, version), device in DEVICES.items():
        assert f"{device.name} ({platform} {version})" in said
    sources = " ".join(said.split())
    assert all(d.source in sources and "assumed" in d.source for d in DEVICES.values())
