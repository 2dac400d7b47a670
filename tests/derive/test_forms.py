"""What each construct of the language is lowered to, and mixers written in several forms."""

from __future__ import annotations

import re

import numpy as np
import pytest
from small_mixers import FORMS, STATES, mixer, with_states

from dsfc.derive.derive import derive
from dsfc.diagnostics.report import DiagnosticError
from dsfc.expr.normal import canonical
from dsfc.expr.text import text
from dsfc.expr.tree import Expr
from dsfc.limits import Limits
from dsfc.mixer import evaluate as evaluate_mixer
from dsfc.mixer import sample
from dsfc.system.evaluate import evaluate
from dsfc.system.ir import (
    Cache,
    Cast,
    CouplingKind,
    Direct,
    Direction,
    Gate,
    GuardKind,
    MapOut,
    Post,
    Product,
    Ratio,
    Read,
    Sum,
    SumOver,
)
from dsfc.system.traverse import parts


@pytest.mark.parametrize("name", [n for n in FORMS if n != "queries in groups"])
def test_sums_over_time(name, mixer_of, error_of):
    m = mixer_of(mixer(FORMS[name]))
    assert error_of(m, derive(m)) < 1e-12


@pytest.mark.share(2)
@pytest.mark.parametrize("name", list(STATES))
def test_state_updates(name, mixer_of, error_of):
    m = mixer_of(with_states(name))
    assert error_of(m, derive(m)) < 1e-12


@pytest.mark.parametrize("product", ["fir[t](a, S) * fir[t](b, S)", "S[i-2] * S[i-3] * (S + u)"])
def test_no_factor_of_a_product_is_lost_where_another_one_names_what_both_read(
    product, mixer_of, error_of
):
    m = mixer_of(
        "mixer m { dims p = 2, t = 2\n input u : p\n param a : p × t; b : p × t\n state S : p\n"
        f"S = 1/2 * S[i-1] + u\n y = {product} }}"
    )
    assert error_of(m, derive(m)) < 1e-12


def test_queries_in_groups_share_a_state(mixer_of, error_of):
    m = mixer_of(
        "mixer m { dims d, heads h = 2, g = 3, n = 4, p = 2\n input u : d\n"
        "param W_Q : d -> h × g × n;  W_K : d -> h × n;  W_V : d -> h × p\n"
        "q = W_Q u;  k = W_K u;  v = W_V u\n y = sum[j ≤ i](q · k[j] ⊗ v[j]) }"
    )
    system = derive(m)
    assert [a.name for a in system.blocks[0].axes] == ["h", "n", "p"]
    assert error_of(m, system) < 1e-12


def test_block_diagonal_gates(mixer_of, error_of):
    m = mixer_of(
        "mixer m { dims b = 2, c = 3\n input u : b × c\n param W_r, W_g : each b : c -> c\n"
        "state h : b × c\n h = sigmoid(W_r u) * h[i-1] + sigmoid(W_g u) * u\n y = h }"
    )
    assert error_of(m, derive(m)) < 1e-12


def test_reset_at_the_first_token(mixer_of, error_of):
    m = mixer_of("mixer m extends rg_lru { a = (1 - first) * exp(-8 * softplus(ζ) * r) }")
    assert error_of(m, derive(m)) < 1e-12


# --- one mixer, several forms ----------------------------------------------------


def shape(system):
    """What two Systems that differ only in names have in common."""
    order = {b.state: f"#{k}" for k, b in enumerate(system.blocks)}

    def plain(e):
        return text(canonical(e))

    def tree(r):
        match r:
            case Read(terms, direct):
                held = [
                    (order[t.source], t.lag, plain(t.left), sorted(t.over), plain(t.right))
                    for t in terms
                ]
                return "Read", held, None if direct is None else plain(direct)
            case Gate(factor, arg):
                return "Gate", plain(factor), tree(arg)
            case Ratio(num, den, guard):
                return "Ratio", tree(num), tree(den), guard.kind
        raise AssertionError(type(r))

    blocks = [
        (
            s.direction, b.axes, b.field, plain(b.decay.value), plain(b.decay.log), b.decay.form,
            [(plain(d.key), plain(d.stream), d.coupling.kind) for f in b.chain for d in f.drives],
        )
        for s in system.stages
        for b in s.blocks
    ]  # fmt: skip
    return blocks, tree(system.read_out), [s.name for s in system.streams]


RETNET = (
    "mixer m extends retnet { state S : h × n × p\n S = γ * S[i-1] + k ⊗ v\n y = n^(-1/2) * q · S }"
)
NORMALISED = (
    "mixer m extends normalized_attn { state S : h × n × p\n S = S[i-1] + k ⊗ v\n y = q · S / η }"
)
SSD = (
    "mixer m extends ssd { y = sum[j ≤ i](prod[j < l ≤ i](exp(-a * Δ[l])) * c · b[j]"
    " * Δ[j] * x[j]) + D * x }"
)


@pytest.mark.parametrize(
    ("name", "other"), [("retnet", RETNET), ("normalized_attn", NORMALISED), ("ssd", SSD)]
)
def test_sum_over_the_past_and_state_update_give_one_system(
    name, other, shipped, mixer_of, error_of
):
    first, second = derive(shipped(name)), derive(mixer_of(other))
    assert shape(first) == shape(second)
    m = mixer_of(other)
    assert error_of(m, second) < 1e-12


def test_s6_as_a_flow_has_the_same_decay_and_drive(shipped, mixer_of, error_of):
    m = mixer_of("mixer m extends s6 { S' = -exp(a) * S + u ⊗ b by euler(Δ) }")
    one, other = (derive(x).blocks[0] for x in (shipped("s6"), m))
    assert canonical(one.decay.log) is canonical(other.decay.log)
    (a,), (b,) = one.chain[0].drives, other.chain[0].drives
    assert canonical(a.key) is canonical(b.key) and a.stream is b.stream
    assert a.coupling.kind is b.coupling.kind is CouplingKind.EULER
    assert error_of(m, derive(m), {"d": 16, "n": 3}) < 1e-12


def test_the_rule_of_a_flow_changes_the_coupling_and_nothing_else(shipped, mixer_of, error_of):
    m = mixer_of("mixer m extends s6 { S' = -exp(a) * S + u ⊗ b by zoh(Δ) }")
    block = derive(m).blocks[0]
    assert block.chain[0].drives[0].coupling.kind is CouplingKind.ZOH
    assert canonical(block.decay.log) is canonical(derive(shipped("s6")).blocks[0].decay.log)
    assert error_of(m, derive(m), {"d": 16, "n": 3}) < 1e-12
    m = mixer_of("mixer m extends s4d { x' = A * x + B * u by bilinear(Δ) }")
    assert derive(m).blocks[0].chain[0].drives[0].coupling.kind is CouplingKind.BILINEAR
    assert error_of(m, derive(m)) < 1e-12


# --- the pieces ----------------------------------------------------


def test_attention_has_no_decay_and_a_gate(shipped):
    system = derive(shipped("normalized_attn"))
    (block,) = system.blocks
    (drive,) = block.chain[0].drives
    assert text(block.decay.value) == "1"
    assert (text(drive.key), text(drive.stream)) == ("k", "v")
    gate = system.read_out
    assert isinstance(gate, Gate) and text(gate.factor) == "1 / eta"
    (term,) = gate.arg.terms
    assert (text(term.left), text(term.right), term.lag) == ("1", "q", 0)


PAIRS = {
    "s6": ("Delta ⊗ b", "u"),
    "ssd": ("b ⊗ Delta", "x"),
    "rg_lru": ("sqrt(1 - a^2) * g", "u"),
    "qlstm": ("sigmoid(W_i u)", "W_u u"),
    "qlstm_tanh": ("sigmoid(W_i u)", "tanh(W_u u)"),
    "deltanet": ("beta * k", "v"),
    "h3": ("ones[n]", "z"),
    "gla_block": ("k", "v"),
}


@pytest.mark.parametrize("name", list(PAIRS))
def test_drives_are_split_into_key_and_stream(name, shipped):
    (block,) = derive(shipped(name)).blocks
    drives = [d for f in block.chain for d in f.drives]
    assert [(text(d.key), text(d.stream)) for d in drives] == [PAIRS[name]]


@pytest.mark.parametrize("name", ["linear_attn", "performer", "lln", "lnssm", "mlstm", "rwkv4"])
def test_numerator_and_denominator_are_paired(name, shipped):
    system = derive(shipped(name))
    above, below = system.blocks
    assert above.gauge.shared_with == (below.state,)
    assert below.gauge.shared_with == (above.state,)
    assert text(below.chain[0].drives[0].stream) == "1"
    node = system.read_out
    while isinstance(node, Gate | MapOut):
        node = node.arg
    assert isinstance(node, Ratio)


def test_the_denominator_of_order_zero_is_a_counter(shipped):
    system = derive(shipped("taylor_softmax"))
    axes = [[a.name for a in b.axes] for b in system.blocks]
    assert axes == [
        ["h", "p"],
        ["h", "n", "p"],
        ["h", "n", "p", "n_2"],
        [],
        ["h", "n"],
        ["h", "n", "n_2"],
    ]
    assert [b.gauge.shared_with for b in system.blocks] == [
        ("z",), ("z_2",), ("z_3",), ("S",), ("S_2",), ("S_3",)
    ]  # fmt: skip


def test_a_product_of_rank_one_updates_is_a_chain(shipped):
    (block,) = derive(shipped("gated_deltanet")).blocks
    first, second = block.chain
    assert [text(t.left) for t in first.terms] == ["alpha"] and not first.drives
    assert [(text(t.left), text(t.right), t.lag) for t in second.terms] == [
        ("1", "1", 0), ("-beta * k", "k", 0)
    ]  # fmt: skip
    assert second.drives[0].coupling.kind is CouplingKind.LOW_RANK


def test_strict_sums_read_before_the_update(shipped):
    system = derive(shipped("rwkv4"))
    ratio = system.read_out.arg.arg
    assert [t.lag for t in ratio.num.terms] == [1] and ratio.num.direct is not None


def test_a_sum_over_the_future_is_a_backward_stage(shipped):
    system = derive(shipped("dlr_bidirectional"))
    assert [s.direction for s in system.stages] == [Direction.FORWARD, Direction.BACKWARD]
    assert isinstance(system.read_out, Sum)
    assert all(isinstance(a, Cast) for a in system.read_out.args)


def test_guards_are_read_off_the_denominator(shipped, mixer_of):
    ratio = derive(shipped("mlstm")).read_out.arg
    assert ratio.guard.kind is GuardKind.MAX_ABS and text(ratio.guard.constant) == "1"
    m = mixer_of("mixer m extends linear_attn { y = sum[j ≤ i](score(q, k[j]) * v[j])"
                 " / (sum[j ≤ i](score(q, k[j])) + 1e-6) }")  # fmt: skip
    assert derive(m).read_out.guard.kind is GuardKind.ADD


def test_a_positive_factor_of_both_sides_cancels(shipped):
    ratio = derive(shipped("performer")).read_out
    assert isinstance(ratio, Ratio)
    assert isinstance(ratio.num, Read) and isinstance(ratio.den, Read)


def test_nodes_of_the_read_out(system_of):
    def node(body, state="state S : h × n × p"):
        return system_of(mixer(f"S = 1/2 * S[i-1] + k ⊗ v\n {body}", state)).read_out

    assert isinstance(node("y = (q · S) * (k · S)"), Product)
    assert isinstance(node("y = tanh(q · S)"), Post)
    assert isinstance(node("y = sum[n](tanh(S))"), SumOver)
    assert isinstance(node("y = v"), Direct)
    assert isinstance(node("y = sum[j ≤ i](exp(q · k[j]) * v[j])"), Cache)
    assert isinstance(node("y = 1 / exp(q · S)"), Ratio)
    assert isinstance(node("y = silu(v) * (q · S)"), Gate)


def test_what_the_output_does_not_reach_is_dropped(system_of):
    system = system_of(mixer("S = 1/2 * S[i-1] + k ⊗ v\n y = q · k * v", "state S : h × n × p"))
    assert not system.stages
    assert [s.name for s in system.streams] == ["q", "k", "v"]


def test_the_base_of_a_lag_power_must_not_vary(system_of):
    cache = system_of(mixer("y = sum[j ≤ i](sigmoid(q · k)^(i-j) * v[j])")).read_out
    assert isinstance(cache, Cache)
    assert cache.why.startswith("the base of a lag power varies in time")


# --- refusals ----------------------------------------------------


def refusal(text_, mixer_of, limits=None):
    with pytest.raises(DiagnosticError) as caught:
        derive(mixer_of(text_), *([limits] if limits else []))
    return [str(d) for d in caught.value.diagnostics]


def test_functions_of_the_past_are_refused(mixer_of):
    (found,) = refusal(
        mixer("S = tanh(S[i-1]) + k ⊗ v\n y = q · S", "state S : h × n × p"), mixer_of
    )
    assert re.fullmatch(
        r"E-NONLINEAR-STATE: `S` is not linear in its past: `tanh` is applied to it in "
        r"`tanh\(S\[i-1\]\)`; move the nonlinearity to the input or to the read-out",
        found,
    )


def test_coefficients_of_their_own_stage_are_refused(mixer_of):
    body = "g = sigmoid(sum[n](z[i-1]))\n z = g * z[i-1] + k\n y = q · z * v"
    (found,) = refusal(mixer(body, "state z : h × n"), mixer_of)
    assert "the factor `g` of `z[i-1]` depends on the state through g → z[i-1]" in found


def test_states_that_run_both_ways_may_not_read_each_other(mixer_of):
    body = "s = 1/2 * s[i-1] + u + t\n t = 1/2 * t[i+1] + s\n y = s"
    (found,) = refusal(mixer(body, "state s : d;  t : d backward"), mixer_of)
    assert found.startswith("E-RECURSION")


def test_a_state_read_two_steps_back_through_a_definition_is_refused(mixer_of):
    body = "o = q · S[i-1]\n S = S[i-1] + k ⊗ o[i-1]\n y = q · S"
    (found,) = refusal(mixer(body, "state S : h × n × p"), mixer_of)
    assert found.startswith("E-LAG")


@pytest.mark.parametrize("update", ["A (g * x[i-1]) + A x[i-1] + u", "g * A B x[i-1] + u"])
def test_maps_of_scaled_states_are_not_supported_inside_an_update(update, mixer_of):
    body = f"param A, B : d -> d\n g = sigmoid(u)\n x = {update}\n y = x"
    with pytest.raises(DiagnosticError) as caught:
        derive(mixer_of(mixer(body, "state x : d")))
    (found,) = caught.value.diagnostics
    assert found.code == "E-UNSUPPORTED"
    assert found.hint == ("name what the map is applied to; the update is then a chain of factors")


@pytest.mark.ci
def test_expansions_end_in_a_diagnostic(mixer_of):
    body = "y = sum[j ≤ i]((1 + q · k[j] + sum[p](v * v[j]))^40 * v[j])"
    (found,) = refusal(mixer(body), mixer_of, Limits(expansion_terms=500))
    assert found.startswith("E-LIMIT")


LEAST = {
    "y = sum[j ≤ i]((1 + q · k[j])^2 * v[j])": 4,
    "y = sum[j ≤ i](taylor[2](q · k[j]) * v[j])": 3,
    "y = sum[j ≤ i]((q · k[j] + k · q[j] + 1) * v[j])": 3,
    "a = sigmoid(k · q)\n b = a * a\n S = b * b * S[i-1] + k ⊗ v\n y = q · S": 4,
    "a = tanh(k · q)\n b = 2 + a + a * a\n S = (b + exp(b)) * S[i-1] + k ⊗ v\n y = q · S": 4,
}
"""Body → how many terms or factors must be allowed."""


@pytest.mark.parametrize("body", LEAST)
def test_as_many_terms_are_allowed_as_the_limits_say(body, mixer_of):
    m = mixer_of(mixer(body, "state S : h × n × p" if "S =" in body else ""))
    least = LEAST[body]
    derive(m, Limits(expansion_terms=least))
    with pytest.raises(DiagnosticError) as caught:
        derive(m, Limits(expansion_terms=least - 1))
    (found,) = caught.value.diagnostics
    assert (found.code, found.bound) == ("E-LIMIT", str(least - 1))
    assert found.size in (str(least), f"more than {least - 1}")


@pytest.mark.ci
def test_long_chains_of_definitions(mixer_of, error_of):
    steps = "".join(f"x{k + 1} = tanh(x{k}) + u\n" for k in range(480))
    m = mixer_of(mixer(f"x0 = u\n{steps} y = x480"))
    assert len(derive(m).streams) == 481
    steps = "".join(f"x{k + 1} = tanh(x{k}) + u\n" for k in range(490))
    (found,) = refusal(mixer(f"s = s[i-1] + u\n x0 = s\n{steps} y = x490", "state s : d"), mixer_of)
    assert found.startswith("E-LIMIT: height of the expression that reads a state")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("step", ["{0} * {0}", "{0} + {0}", "{0} * {0} * {0}"])
def test_definitions_that_double_end_in_a_diagnostic(mixer_of, step):
    steps = "".join(f"x{k + 1} = {step.format(f'x{k}')}\n" for k in range(100))
    (found,) = refusal(mixer(f"x0 = u\n{steps} y = x100"), mixer_of)
    assert found.startswith("E-LIMIT: terms or factors of definitions put in for their names")


@pytest.mark.parametrize(
    "step", ["{0} + tanh({0})", "{0} + u * {0}", "{0} * {0}", "sum[d]({0}) * {0} / (1 + abs({0}))"]
)
def test_a_read_out_that_is_built_up_in_many_layers_is_no_larger_than_its_text(
    step, mixer_of, system_of, error_of
):
    layers = "; ".join(f"x{k + 1} = {step.format(f'x{k}')}" for k in range(40))
    text = f"""mixer m {{ dims d; input u : d; state s : d
      s = 1/2 * s[i-1] + u; x0 = s / 4; {layers}; y = LAST }}"""
    system = system_of(text.replace("LAST", "x40"))
    trees = [v.value for v in (*system.streams, *system.outputs) if not isinstance(v.value, Expr)]
    assert sum(len(list(parts(tree))) for tree in trees) < 400
    small = text.replace("LAST", "x4")
    assert error_of(mixer_of(small), system_of(small)) < 1e-13


@pytest.mark.parametrize("rate", [0.0, 5e-324, 1e-300, 1e-8, -1e-8, 1.0])
@pytest.mark.parametrize("field", ["", "complex"])
def test_a_zoh_flow_may_have_a_rate_of_zero(rate, field, mixer_of, system_of):
    text = f"""mixer m {{ dims d
      input u : d
      param a : d {field}
      state x : d {field}
      x' = a * x + u by zoh(softplus(u))
      y = Re(x) }}"""
    drawn = sample(mixer_of(text), {"d": 3}, seed=0, length=4)
    u, a = drawn.inputs["u"], drawn.params["a"].copy()
    a[:2] = rate * (1j if field else 1)
    got = evaluate(system_of(text), drawn.inputs, {"a": a}, {"d": 3}).outputs["y"]
    want = evaluate_mixer(mixer_of(text), drawn.inputs, {"a": a}, {"d": 3})["y"]
    assert np.allclose(got, want, rtol=1e-14, atol=1e-15)
    if abs(rate) < 1e-200:  # x' = u
        assert np.allclose(got[:, :2], np.cumsum(np.log1p(np.exp(u)) * u, axis=0)[:, :2])
