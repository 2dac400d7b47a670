"""The costs of mixers are those counted by hand."""

from __future__ import annotations

import pytest

from dsfc.analysis.accounts import Account, account
from dsfc.emit.backend import load_backend


def _account(at, name: str, **sizes: int) -> Account:
    it = at(name, tokens=2, **sizes)
    modes = load_backend("torch").modes(it.it.fused())
    return account(it.system, it.it.plan, modes, it.point.sizes)


def test_gated_linear_attention_by_hand(at) -> None:
    """d = 32, h = 2, n = p = 16, r = 16."""
    found = _account(at, "gla", d=32, h=2)
    assert found.projections == 3 * 32 * 32 + 32 * 16 + 16 * 32
    state = 2 * 16 * 16
    assert found.recurrence == 3 * state  # decay, k ⊗ v, q · S
    assert found.compulsory == 5 * 32  # q, k, v, log α and y, once each
    assert (found.state, found.kept, found.cache) == (state, 0, 64)
    assert found.crossover == state / 64 and found.memory(1000) == state


def test_a_dense_map_of_a_state_counts_its_entries(at) -> None:
    found = _account(at, "linear_rnn", d=8, n=4)
    assert found.projections == 8 * 4 + 4 * 4 + 4 * 8


def test_a_state_without_a_decay_costs_no_product_for_it(at) -> None:
    found = _account(at, "generalized_attn", d=16, h=2)
    assert found.recurrence == 2 * 2 * 8 * 8


def test_softmax_is_the_papers_row_of_attention_with_a_cache(at) -> None:
    """LNSSM, Table 5: 18 d² N + 12 d N (N + 1) / 2 of six layers, d = 512: 1.41, 3.22, 8.06 G."""
    found = _account(at, "softmax", d=512, h=8)
    assert found.state == 0 and found.kept == found.cache == 2 * 512
    totals = [
        6 * sum(found.projections + found.memory(i) for i in range(1, n + 1))
        for n in (256, 512, 1024)
    ]
    assert [round(x / 1e9, 2) for x in totals] == [1.41, 3.22, 8.06]


def test_modes_are_counted_at_each_length(at) -> None:
    found = _account(at, "gla", d=32, h=2)
    pairs = {m.length: m.macs for m in found.modes if m.mode == "parallel"}
    steps = {m.length: m.macs for m in found.modes if m.mode == "recurrent"}
    assert pairs[4096] / pairs[1024] == pytest.approx(4, rel=0.05)
    assert steps[4096] == steps[1024]
