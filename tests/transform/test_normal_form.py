"""The normal form keeps the value, is idempotent, and forgets how a mixer was written."""

from __future__ import annotations

from collections.abc import Callable

import hand_built
import pytest
import torch
from draws import MIXERS, draw, outputs

from dsfc.derive.derive import derive
from dsfc.mixer import resolve
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.transform.normal_form import normal_form


def same(system: System, made: System, sizes: dict[str, int]) -> None:
    values, _ = draw(system, 4, sizes, torch.Generator().manual_seed(0))
    want, got = (outputs(s, 4, sizes, values)["y"] for s in (system, made))
    assert (got - want).abs().max() <= 1e-10 * max(1.0, want.abs().max())


@pytest.mark.parametrize("name", hand_built.ALL)
def test_value_is_kept(name):
    system = hand_built.ALL[name]
    made, _ = normal_form(system)
    same(system, made, hand_built.SIZES)
    assert normal_form(made)[0] == made


@pytest.mark.share(5)
@pytest.mark.parametrize("name", MIXERS)
def test_value_of_every_mixer_is_kept(name, derived: Callable[[str], System]):
    system = derived(name)
    made, _ = normal_form(system)
    same(system, made, {d.axis.name: 2 for d in system.axes})


def lowered(text: str) -> System:
    return derive(resolve(parse(Source("<text>", text)), None, None))


HEAD = """mixer m { dims d, heads h = 2, n = d / h, p = d / h; input u : d
  param W_Q, W_K : d -> h × n;  W_V : d -> h × p;  γ : h unit
"""


def test_names_and_grouping_are_forgotten():
    plain = HEAD + "  q = W_Q u; k = W_K u; v = W_V u; state S : h × n × p\n"
    other = HEAD + "  a = W_Q u; b = W_K u; c = W_V u; e = γ * 1; state T : h × n × p\n"
    first = lowered(plain + "  S = γ * S[i-1] + k ⊗ v; y = q · S }")
    second = lowered(other + "  T = e * T[i-1] + c ⊗ b; y = a · T }")
    assert normal_form(first)[0] == normal_form(second)[0]


def test_a_sum_over_the_past_is_its_state():
    start = HEAD + "  q = W_Q u; k = W_K u; v = W_V u\n"
    written = lowered(start + "  y = sum[j ≤ i](γ^(i-j) * q · k[j] * v[j]) }")
    state = lowered(start + "  state S : h × n × p\n  S = γ * S[i-1] + k ⊗ v; y = q · S }")
    a, b = (normal_form(s)[0] for s in (written, state))
    stages = [
        [(s.direction, [(x.axes, x.field, x.chain) for x in s.blocks]) for s in system.stages]
        for system in (a, b)
    ]
    assert stages[0] == stages[1]
    assert a.outputs == b.outputs


def test_the_constant_of_a_guard_is_kept_and_its_name_forgotten():
    start = HEAD + "  q = W_Q u; k = W_K u; v = W_V u; param b : h\n"
    ratio = "sum[j ≤ i]((q · k[j]) * v[j]) / max(abs(sum[j ≤ i](q · k[j])), {})"
    named = lowered(start + "  c = exp(b); y = " + ratio.format("c") + " }")
    plain = lowered(start + "  y = " + ratio.format("exp(b)") + " }")
    made, _ = normal_form(named)
    same(named, made, {d.axis.name: 2 for d in named.axes})
    assert made.outputs == normal_form(plain)[0].outputs


def test_equal_states_are_merged():
    start = HEAD + "  q = W_Q u; k = W_K u; v = W_V u; state S, T : h × n × p\n"
    system = lowered(
        start + "  S = γ * S[i-1] + k ⊗ v; T = γ * T[i-1] + v ⊗ k\n  y = q · S + k · T }"
    )
    made, record = normal_form(system)
    assert len(made.blocks) == 1
    assert [s.rule for s in record.steps] == ["merge"]
    same(system, made, {d.axis.name: 2 for d in system.axes})
