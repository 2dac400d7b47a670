"""Which mixers are planned, and that the form they are written in does not matter."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from shipped_specs import NO_SYSTEM, PLANNED, REFUSED
from unusual_specs import COMPILED, thirds

from dsfc.api.locate import shipped_names
from dsfc.diagnostics.report import DiagnosticError
from dsfc.expr.json import encode
from dsfc.expr.text import text
from dsfc.expr.tree import Ref
from dsfc.limits import DEFAULT_LIMITS
from dsfc.plan.ir import Plan, Pointwise
from dsfc.plan.recurrence_ir import Recurrence
from dsfc.plan.scan_ir import Form, Scan
from dsfc.plan.verify import verify


def test_every_shipped_spec_is_listed(shipped) -> None:
    modifiers = {"gate", "out_norm", "qk_norm", "short_conv", "token_shift"}
    assert {*PLANNED, *REFUSED, *NO_SYSTEM} == {*shipped_names()} - modifiers


@pytest.mark.share(3)
@pytest.mark.parametrize("name", PLANNED)
def test_what_is_planned(name: str, shipped) -> None:
    spec = shipped(name)
    verify(spec.plan)
    assert spec.structure.title == PLANNED[name]


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_planned_is_one_located_diagnostic(name: str, shipped) -> None:
    with pytest.raises(DiagnosticError) as raised:
        _ = shipped(name).plan
    (problem,) = raised.value.diagnostics
    assert problem.code == "E-UNSUPPORTED"
    assert str(problem) == f"E-UNSUPPORTED: not supported yet: {REFUSED[name]}"
    # The place is in a spec: of this mixer, or of one that it extends.
    assert problem.span.source.name.endswith(".dsf") and problem.span.end > problem.span.start


@pytest.mark.share(5, ci=20)
@pytest.mark.parametrize("name", thirds((), pytest.mark.ci))
def test_unusual_mixers_are_planned(name: str, load) -> None:
    verify(load(name, COMPILED[name]).plan)


# --- one mixer, two forms -------------------------------------------------------------------------

HEADS = """dims d, heads h = 4, n = d / h, p = d / h
  input u : d
  param W_Q, W_K : d -> h × n; W_V : d -> h × p
  q = W_Q u;  k = W_K u;  v = W_V u
"""
RETNET = HEADS + "buffer γ : h unit = 1 - 2^(-5 - iota[h])\n"
SSD = """dims d, heads h = 4, n, p = d / h
  input u : d
  param W_x : d -> h × p; W_B, W_C : d -> n; w_D : d -> h; b_D, D : h; a : h positive
  x = W_x u;  b = W_B u;  c = W_C u;  t = softplus(w_D u + b_D)
"""
NORMALIZED = HEADS + "param w_η : d -> h; b_η : h\n η = exp(w_η u + b_η)\n"
STATE = "state {0} : h × n × p\n"
FORMS = {
    "retnet": (
        RETNET + "y = n^(-1/2) * sum[j ≤ i](γ^(i-j) * q · k[j] * v[j])",
        RETNET + STATE.format("H") + "H = γ * H[i-1] + k ⊗ v\n y = n^(-1/2) * (q · H)",
    ),
    "ssd": (
        SSD + "y = sum[j ≤ i](prod[j < l ≤ i](exp(-t[l] * a)) * c · b[j] * (t[j] * x[j])) + D * x",
        SSD + STATE.format("H") + "H = exp(-t * a) * H[i-1] + b ⊗ (t * x)\n y = c · H + D * x",
    ),
    "normalized_attn": (
        NORMALIZED + "y = sum[j ≤ i]((q · k[j]) * v[j]) / η",
        NORMALIZED + STATE.format("H") + "H = H[i-1] + k ⊗ v\n y = q · H / η",
    ),
}


def canonical(plan: Plan) -> str:
    """A plan without its words, states and what is named after them called by their number."""
    bare = replace(
        plan, name="", doc=None, reference=(), system="", structure="", provenance=(), gauge=""
    )
    text = json.dumps(encode(bare), sort_keys=True)
    for number, state in enumerate(plan.states):
        for name in (state.name, *(b.name for b in plan.arrays)):
            rest = name.removeprefix(state.name)
            if name == state.name or rest.startswith("_"):
                text = text.replace(f'"{name}"', f'"state{number}{rest}"')
    return text


@pytest.mark.parametrize("name", FORMS)
def test_a_sum_over_the_past_and_a_state_update_give_one_structure_and_one_plan(
    name: str, load
) -> None:
    summed, stated = (load(f"{name}_{k}", body) for k, body in enumerate(FORMS[name]))
    assert summed.plan.states[0].name != stated.plan.states[0].name
    assert canonical(summed.plan) == canonical(stated.plan)
    one, other = summed.structure.blocks[0], stated.structure.blocks[0]
    assert replace(one, state="", decay=None) == replace(other, state="", decay=None)
    assert summed.structure.title == stated.structure.title
    assert one.decay.value == other.decay.value


# --- what becomes one pass ------------------------------------------------------------------------


def scans(plan: Plan) -> list[Scan]:
    return [k for k in plan.kernels if isinstance(k, Scan)]


def test_numerator_and_denominator_are_two_columns_of_one_scan(plan_of) -> None:
    (scan,) = scans(plan_of("linear_attn"))
    assert scan.form is Form.MATRIX
    assert [c.value is None for c in scan.columns] == [False, True]
    assert [c.channels == () for c in scan.columns] == [False, True]


def test_a_column_of_one_channel_stands_behind_the_others(load) -> None:
    body = """
      dims n, p
      input q, k : n; v : p
      state z : n; S : n × p
      z = z[i-1] + k
      S = S[i-1] + k ⊗ v
      y = (q · S) / (1 + (q · z)^2)
    """
    (scan,) = scans(load("reversed", body).plan)
    assert [c.state for c in scan.columns] == ["S", "z"]


def test_scans_that_feed_each_other_through_a_third_share_no_pass(load) -> None:
    """All three states have one decay, key and query: A feeds T, and T feeds C."""
    body = """
      dims n, p
      input q, k : n; v : p
      state A, C : p × n; T : p
      A = 1/2 * A[i-1] + k ⊗ v
      T = 1/3 * T[i-1] + q · A
      C = 1/2 * C[i-1] + k ⊗ T
      y = q · C
    """
    plan = load("fed", body).plan
    assert [[c.state for c in s.columns] for s in scans(plan)] == [["A"], ["T"], ["C"]]


def test_a_read_before_and_one_after_the_update_are_two_scans_of_one_state(load) -> None:
    plan = load("before_and_after", COMPILED["before_and_after"]).plan
    assert sorted(s.before for s in scans(plan)) == [False, True]
    assert [s.name for s in plan.states] == ["S"]


def test_a_state_that_another_depends_on_runs_first(load) -> None:
    plan = load("cascade_of_attention", COMPILED["cascade_of_attention"]).plan
    assert [s.columns[0].state for s in scans(plan)] == ["S", "T"]


def test_what_nothing_reads_is_not_planned(load) -> None:
    plan = load("unreached", COMPILED["unreached"]).plan
    assert "z" not in {b.name for b in plan.arrays}


def test_kernels_that_no_state_needs_are_token_wise(load) -> None:
    plan = load("no_state", COMPILED["no_state"]).plan
    assert all(isinstance(k, Pointwise) for k in plan.kernels)
    assert plan.states == () and plan.adjoints == ()


def test_registers_keep_as_many_tokens_as_the_deepest_read(load) -> None:
    plan = load("filter_and_lag", COMPILED["filter_and_lag"]).plan
    (register,) = plan.registers
    assert register.buffer == "v" and len(register.lengths) == 2


def test_a_size_that_no_tensor_has_is_an_argument(load) -> None:
    spec = load("sized", "dims d, n = 3\n input u : d\n y = u * (1/n)")
    text = spec.module("torch").text
    assert "    *,\n    n: int,\n" in text and "n=self.n" in text


# --- diagonal plus rank one -----------------------------------------------------------------------

REWRITE = """dims heads h = 2, n = 3, p = 2
  input q, k, a, b : h × n; v : h × p; g : h
  state S : h × n × p
"""


@pytest.mark.parametrize(
    ("update", "left", "right"),
    [
        ("S = exp(g) * S[i-1] + a ⊗ (b · S[i-1]) + k ⊗ v", "a", "b"),
        ("R = exp(g) * S[i-1]; S = R + a ⊗ (b · R) + k ⊗ v", "a", "exp(g) * b"),
        ("R = S[i-1] + a ⊗ (b · S[i-1]); S = exp(g) * R + k ⊗ v", "exp(g) * a", "b"),
    ],
)
def test_diagonals_of_a_chain_come_to_the_sides_they_act_on(
    update: str, left: str, right: str, load
) -> None:
    plan = load("rewritten", f"{REWRITE}{update}; y = q · S").plan
    (scan,) = scans(plan)
    assert scan.form is Form.LOW_RANK and scan.low_rank is not None and scan.key == "k"
    values = {k.output: text(k.value) for k in plan.kernels if isinstance(k, Pointwise)}
    sides = (scan.low_rank.left, scan.low_rank.right)
    assert [values.get(side, side) for side in sides] == [left, right]


@pytest.mark.parametrize(
    ("update", "why"),
    [
        (
            "S = S[i-1] + a ⊗ (b · S[i-1]) + k ⊗ (q · S[i-1]) + k ⊗ v",
            "more than one low-rank part",
        ),
        (
            "R = S[i-1] + a ⊗ (b · S[i-1]); S = R + b ⊗ (a · R) + k ⊗ v",
            "more than one low-rank part",
        ),
        ("R = S[i-1] + k ⊗ v; S = R + a ⊗ (b · R)", "a low-rank part stands behind its drive"),
        ("S = exp(v) * S[i-1] + a ⊗ (b · S[i-1]) + k ⊗ v", "its decay varies along channels"),
        ("S = S[i-1] + (a ⊗ v) * (b · S[i-1]) + k ⊗ v", "does not act on its keys alone"),
        ("S = cis(1) * S[i-1] + a ⊗ (b · S[i-1]) + k ⊗ v", "a complex transition"),
    ],
)
def test_other_low_rank_parts_run_token_by_token(update: str, why: str, load) -> None:
    state = "S : h × n × p complex" if "cis" in update else "S : h × n × p"
    spec = f"{REWRITE.replace('S : h × n × p', state)}{update}; y = Re(q · S)"
    plan = load("stepped", spec).plan
    (kernel,) = (k for k in plan.kernels if isinstance(k, Recurrence))
    assert why in kernel.why
    assert [m.name for m in plan.modes if m.legal] == ["recurrent"]


# --- long chains ----------------------------------------------------------------------------------


@pytest.mark.share(2)
@pytest.mark.parametrize("link", ["tanh({0}) + u", "1/2 * {0}[i-1] + u"])
def test_definitions_stand_in_chains_of_any_length(link: str, load) -> None:
    lines = [f"x{k} = {link.format(f'x{k - 1}')}" for k in range(1, 301)]
    body = "\n".join(["dims d", "input u : d", "x0 = u", *lines, "y = x300"])
    spec = load("chain", body)
    written = [k.output for k in spec.plan.kernels]
    assert written[:300] == [f"x{k}" for k in range(300)]
    assert "x299" in spec.module().text


@pytest.mark.ci
def test_states_stand_in_cascades_of_a_length_that_is_said(load) -> None:
    def cascade(length: int) -> str:
        names = ", ".join(f"s{k}" for k in range(length))
        lines = [
            f"s{k} = sigmoid(u) * s{k}[i-1] + x{k}; x{k + 1} = tanh(s{k})" for k in range(length)
        ]
        declared = ["dims d", "input u : d", f"state {names} : d", "x0 = u"]
        return "\n".join([*declared, *lines, f"y = x{length}"])

    most = DEFAULT_LIMITS.cascade
    assert len(load("longest", cascade(most)).plan.states) == most
    with pytest.raises(DiagnosticError) as raised:
        _ = load("too_long", cascade(most + 1)).plan
    (problem,) = raised.value.diagnostics
    assert str(problem).endswith(
        f"number of stages behind one another: {most + 1}, at most {most} allowed"
    )
    assert problem.code == "E-LIMIT"


def test_arrays_have_as_many_axes_as_is_said(load) -> None:
    def body(count: int) -> str:
        axes = [f"a{k}" for k in range(count)]
        lines = [f"dims {', '.join(axes)}", f"input u : {' × '.join(axes)}", "y = tanh(u)"]
        return "\n".join(lines)

    most = DEFAULT_LIMITS.axes
    assert load("wide", body(most)).plan.kernels
    with pytest.raises(DiagnosticError) as raised:
        _ = load("too_wide", body(most + 1)).plan
    (problem,) = raised.value.diagnostics
    words = f"number of axes of one array: {most + 1}, at most {most} allowed"
    assert problem.code == "E-LIMIT" and str(problem).endswith(words)


def test_names_of_new_buffers_are_none_of_inputs_and_parameters(load) -> None:
    body = """
      dims d
      input h_value, u : d
      param h_log_decay : d
      state h : d
      h = sigmoid(u + h_log_decay) * h[i-1] + tanh(u) * h_value
      y = h
    """
    plan = load("taken", body).plan
    names = [b.name for b in plan.arrays]
    assert len(set(names)) == len(names)
    assert {"h_value", "h_value_2", "h_log_decay_2"} <= set(names)
    assert "h_log_decay" not in names


def test_a_log_decay_that_may_have_no_value_is_computed_in_front_of_its_scan(load) -> None:
    body = """
      dims d, n = 2
      input u, e : d; q, k : n
      param a : d × n
      state S : d × n
      S = exp(-softplus(u) * exp(a){}) * S[i-1] + u ⊗ k
      y = S · q
    """
    leaves = {}
    for name, below in (("whole", " / e"), ("inside", "")):
        (scan,) = (k for k in load(name, body.format(below)).plan.kernels if isinstance(k, Scan))
        leaves[name] = scan.decay.expr, scan.decay.leaves
    assert isinstance(leaves["whole"][0], Ref) and len(leaves["whole"][1]) == 1
    assert len(leaves["inside"][1]) > 1


def test_parts_of_such_a_log_decay_are_not_planned_by_themselves(load) -> None:
    body = """
      dims d, n = 2
      input u : d; q, k : n
      param a : d × n
      state S : d × n
      S = exp(-exp(a) / (1 + u^2 * exp(a))) * S[i-1] + u ⊗ k
      y = S · q
    """
    plan = load("no_part", body).plan
    assert [k.output for k in plan.kernels if isinstance(k, Pointwise)] == ["S_rate", "y"]
