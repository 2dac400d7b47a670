"""`dsfc show`."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

import dsfc
from dsfc.source import Source
from dsfc.syntax.parse import parse


def test_the_system_in_index_form_by_default(run: Callable) -> None:
    result = run("show", "normalized_attn", "--form", "index")
    assert result.exit_code == 0
    assert "    S = S[i-1] + k ⊗ v\n" in result.output
    assert "  y : h × p = q · S / eta\n" in result.output
    assert "structure of normalized_attn\n  class       scalar (ID)\n" in result.output


def test_papers_stand_below_the_title(run: Callable) -> None:
    lines = run("show", "gla").output.splitlines()
    assert lines[0] == "gla: Gated linear attention (GLA)"
    assert lines[3].startswith("  Yang, Wang, Shen, Panda, Kim 2023: Gated Linear Attention ")
    assert lines[4].endswith(", arXiv:2501.00658, eq. 6")
    assert "  papers\n    Schlag, Irie, " in run("show", "deltanet", "--stage", "mixer").output


def test_the_letters_of_papers_are_among_all_that_is_shown(run: Callable) -> None:
    output = run("show", "gla", "--all").output
    _, told, rest = output.partition("letters of Wang et al. 2025, eq. 6, i the token\n")
    rows = dict(line.split() for line in rest.partition("\n\n")[0].splitlines())
    assert told and rows["i"] == "t" and rows["S"] == r"\mathbf{h}" and rows["n"] == "N"
    assert "letters of" not in run("show", "gla").output
    assert "letters of" not in run("show", "mamba2_pseudo_lti", "--all").output
    mixer = json.loads(run("show", "gla", "--stage", "mixer", "--form", "json").output)["value"]
    assert mixer["papers"][1]["letters"][0] == {"type": "Letter", "name": "i", "latex": "t"}


@pytest.mark.share(3)
@pytest.mark.parametrize("form", ["index", "kronecker", "phi", "latex"])
@pytest.mark.parametrize("gauge", ["lowered", "paper"])
@pytest.mark.parametrize("spec_name", ["normalized_attn", "linear_attn", "s6"])
def test_every_form_says_which_gauge_it_shows(
    run: Callable, spec_name: str, form: str, gauge: str
) -> None:
    result = run("show", spec_name, "--form", form, "--gauge", gauge)
    assert result.exit_code == 0
    assert gauge in result.output.splitlines()[0]


def test_a_truncated_series_is_shown_with_what_it_leaves_out(run: Callable) -> None:
    output = run("show", "taylor_softmax", "--form", "index").output
    assert "  e^s to order 2, s = n^(-1/2) * q · k[j]\n" in output
    assert "off by at most |s|^3 / 6 · e^max(s, 0)\n" in output
    assert "truncated series" not in run("show", "normalized_attn", "--form", "index").output


def test_the_two_gauges_of_normalised_attention(run: Callable) -> None:
    lowered = run("show", "normalized_attn", "--form", "kronecker").output
    paper = run("show", "normalized_attn", "--form", "kronecker", "--gauge", "paper").output
    assert "Λ_i = I_{p n}" in lowered and "C_i = (1 / eta_i) (I_p ⊗ q_iᵀ)" in lowered
    assert "Λ_i = (eta_{i-1} / eta_i) I_{p n}" in paper
    assert "B_i = (1 / eta_i) (I_p ⊗ k_i) W_V" in paper and "C_i = I_p ⊗ q_iᵀ" in paper


def test_the_index_form_in_the_paper_s_gauge(run: Callable) -> None:
    shown = run("show", "normalized_attn", "--gauge", "paper", "--form", "index").output
    assert "S = (eta[i-1] + first) / eta * S[i-1] + k / eta ⊗ v" in shown
    assert "(TV-H)" in shown
    assert "the same as lowered" in run("show", "s6", "--gauge", "paper", "--form", "index").output


@pytest.mark.parametrize("stage", ["ast", "mixer", "system", "structure", "plan", "fused"])
def test_every_stage_is_text_and_json(run: Callable, stage: str) -> None:
    plain = run("show", "s6", "--stage", stage)
    document = run("show", "s6", "--stage", stage, "--form", "json")
    assert plain.exit_code == document.exit_code == 0
    assert plain.output.strip() and not plain.output.endswith("\n\n")
    json.loads(document.output)


def test_the_plan_says_what_operators_of_torch_cost(run: Callable) -> None:
    plain = run("show", "rg_lru", "--stage", "plan").output
    shown = run("show", "rg_lru", "--stage", "plan", "--backend", "torch").output
    assert shown.startswith(plain) and "calls" not in plain
    assert "  recurrent: 8 + 2 * length calls, 0 operations, 10 * d words\n" in shown


def test_the_plan_says_what_kernels_cost(run: Callable) -> None:
    plain = run("show", "rg_lru", "--stage", "plan").output
    shown = run("show", "rg_lru", "--stage", "plan", "--backend", "triton").output
    assert shown.startswith(plain) and "h, fused, forward: 1 launches" in shown
    assert "bytes: 4 * width * d" in shown
    lti = run("show", "s4d", "--stage", "plan", "--backend", "triton").output
    assert lti.endswith("no form of its scans has kernels\n")


def test_the_fused_plan_says_what_kernels_compute(run: Callable) -> None:
    shown = run("show", "rg_lru", "--stage", "fused").output
    assert shown == run("show", "rg_lru", "--stage", "fused", "--backend", "triton").output
    assert "  of tokens     W_r_u, W_g_u, u\n" in shown
    assert "  log λ = -8 * softplus_zeta * sigmoid(W_r_u + b_r)\n" in shown
    plain = run("show", "rg_lru", "--stage", "fused", "--backend", "torch").output
    assert plain.endswith("no kernel computes more than its recurrence\n")
    assert run("show", "rg_lru", "--stage", "fused", "--backend", "none").exit_code == 1


def test_the_tree_is_shown_as_canonical_text(run: Callable) -> None:
    shown = run("show", "s6", "--stage", "ast").output
    assert parse(Source("shown", shown)) == dsfc.load("s6").spec


def test_the_adjoint_is_a_system(run: Callable) -> None:
    result = run("show", "normalized_attn", "--stage", "adjoint")
    assert result.exit_code == 0
    assert "backward" in result.output


def test_the_module_is_what_compile_writes(run: Callable) -> None:
    shown = run("show", "s6", "--stage", "module")
    assert shown.exit_code == 0
    assert shown.output == run("compile", "s6", "-o", "-").output


def test_kernels_are_shown_for_each_target_that_has_some(run: Callable) -> None:
    shown = run("show", "gla", "--stage", "kernels").output
    assert shown.count("kernel forward\n") == shown.count("kernel backward\n") == 1
    assert shown == run("show", "gla", "--stage", "kernels", "--backend", "c").output
    of_triton = run("show", "gla", "--stage", "kernels", "--backend", "triton").output
    assert [line[7:] for line in of_triton.split("\n") if line.startswith("kernel ")] == [
        *("pairs", "states", "outputs"),  # the first one is of both directions
        *("states", "futures", "gradients"),
    ]
    none = run("show", "softmax", "--stage", "kernels")
    assert (none.exit_code, none.output.count("has no kernel")) == (0, 1)


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["s6", "retnet"],
        ["s6", "--stage", "kernel"],
        ["s6", "--stage", "kernels", "--form", "json"],
        ["s6", "--form", "svg"],
        ["s6", "--gauge", "mine"],
        ["s6", "--stage", "plan", "--form", "latex"],
        ["s6", "--stage", "plan", "--gauge", "paper"],
        ["s6", "--stage", "module", "--form", "json"],
    ],
)
def test_wrong_usage(run: Callable, args: list[str]) -> None:
    assert run("show", *args).exit_code == 2


def test_mistakes_go_to_standard_error(run: Callable) -> None:
    result = run("show", "lstm")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "error[E-NONLINEAR-STATE]" in result.stderr


@pytest.mark.parametrize(
    ("name", "modes"),
    [
        ("rwkv7", "recurrent, chunked, scan, step"),
        ("dlr_bidirectional", "recurrent, chunked, scan, parallel, fft"),
        ("softmax", "recurrent, parallel, fused, step"),
        ("separable", None),
    ],
)
def test_the_modes_are_those_of_the_module(run: Callable, name: str, modes: str | None) -> None:
    lines = run("show", name, "--form", "index").output.splitlines()
    said = [line.partition(": ")[2] for line in lines if line.startswith("modes of its module")]
    assert said == ([] if modes is None else [modes])


def test_softmax_is_shown_as_its_attention_matrix(run: Callable) -> None:
    for args in (("show", "softmax"), ("show", "softmax", "--form", "phi")):
        text = run(*args).output
        assert "Φ_ij = exp(s_ij) / Σ_{l ≤ i} exp(s_il)   on v_j   for j ≤ i" in text
        assert "s_ij = n^(-1/2) * q_i · k_j" in text
        assert "there is no Φ" not in text and "there are no Λ" not in text


def test_what_is_around_an_attention_is_shown(run: Callable, spec: Callable) -> None:
    spec(
        "mixer m extends softmax { param w_g : d -> h\n g = sigmoid(w_g u)\n"
        " y = g * sum[j ≤ i](exp(q · k[j]) * v[j]) / sum[j ≤ i](exp(q · k[j])) }"
    )
    text = run("show", "mine.dsf").output
    assert "Φ_ij = exp(s_ij) / Σ_{l ≤ i} exp(s_il)   on v_j" in text
    assert "\ny = g * (sum[j ≤ i](exp(q · k[j]) * v[j]) /" in text


def test_the_overview_says_what_its_signs_mean(run: Callable) -> None:
    text = run("show", "gla").output
    assert "h_i = Λ_i h_{i-1} + B_i u_i, y_i = C_i h_i + D_i u_i, for each h\n" in text
    assert "gauge" not in text and "Kronecker form" not in text
    assert "⊗ is the Kronecker product; diag(x) is the diagonal matrix of x" in text
    assert "diag(" not in run("show", "normalized_attn").output
    assert (
        "divided by their normaliser" in run("show", "normalized_attn", "--gauge", "paper").output
    )


def test_an_output_that_is_not_linear_in_a_state_is_shown_as_a_formula(
    run: Callable, spec: Callable
) -> None:
    spec(
        "mixer m { dims d; input u : d; param a : d unit\n state h : d\n h = a * h[i-1] + u\n"
        " y = sigmoid(u) * tanh(h) }"
    )
    text = run("show", "mine.dsf").output
    assert "\ninner\n  state h: h_i over d\n" in text and "  inner_i = C_i h_i\n" in text
    assert "\ny = sigmoid(u) * tanh(h)\n" in text
    assert "\ny = " not in run("show", "gla").output


def test_a_sum_over_pairs_is_shown_as_a_formula(run: Callable, spec: Callable) -> None:
    spec(
        "mixer m { dims d; input u : d; param a : d\n"
        " y = sum[j ≤ i](max(min(4 - (i - j), 1), 0) * a * u[j]) }"
    )
    text = run("show", "mine.dsf").output
    assert "there are no Λ, B, C, D" in text and "\ny = sum[j ≤ i](" in text
    assert "h_i = Λ_i h_{i-1}" not in text


def test_a_filter_has_no_matrices(run: Callable, spec: Callable) -> None:
    spec("mixer m { dims d, t = 4; input u : d\n y = fir[t](ones[t] / t, u) }")
    text = run("show", "mine.dsf").output
    assert "D_i = 0" not in text and "  y_i = fir[t](ones[t] / t, u_i)\n" in text


def test_a_backward_state_says_how_it_runs(run: Callable, spec: Callable) -> None:
    spec(
        "mixer m { dims d; input u : d; param a : d unit\n state s : d; t : d backward\n"
        " s = a * s[i-1] + u; t = a * t[i+1] + u; y = s + t }"
    )
    text = run("show", "mine.dsf").output
    assert "  state t: h_i over d, backward: h_i = Λ_i h_{i+1} + B_i u_i\n" in text
    assert "  state s: h_i over d\n" in text
