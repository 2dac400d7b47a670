"""Every predicate on mixers that have it and on mutations that do not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dsfc.claims.verdict import Proved, Refuted, Unknown, Verdict
from dsfc.diagnostics.catalogue import examples
from dsfc.diagnostics.report import DiagnosticError
from dsfc.trusted.check import check, write

Decide = Callable[[str, str], Verdict]

GATED = """
mixer gated extends qkv {
  param w : d -> h ~ normal(0, 1)
  state S : h × n × p
  g = %s
  S = g * S[i-1] + k ⊗ v
  y = q · S
}
"""

KINDS = {"proved": Proved, "refuted": Refuted, "unknown": Unknown}

GATES = [
    ("sigmoid(w u)", "0 < decay(S) < 1", "proved", "lies in (0, 1)"),
    ("sigmoid(w u)", "decay(S) <= 1/2", "refuted", "decay(S) is"),
    ("exp(-softplus(w u))", "0 < decay(S) < 1", "proved", "lies in (0, 1)"),
    ("exp(softplus(w u))", "0 < decay(S) < 1", "refuted", "decay(S) is"),
    ("exp(-w u)", "decay(S) < 1", "refuted", "decay(S) is"),
    ("exp(-w u)", "decay(S) > 0", "proved", "(0, ∞)"),
    ("tanh(w u)", "abs(decay(S)) < 1", "proved", "[0, 1)"),
    ("tanh(w u)", "0 < decay(S)", "refuted", "decay(S) is"),
    ("tanh(w u)", "stable", "proved", "|λ| lies in [0, 1)"),
    ("1 - 2^(-5 - iota[h])", "0 < decay(S) < 1", "proved", "[0.96875, 1)"),
    ("1 - 2^(-5 - iota[h])", "decay(S) < 31/32", "refuted", "31/32"),
    ("1 + 2^(-5 - iota[h])", "stable", "refuted", "squared length"),
    ("2 * sigmoid(w u)", "stable", "refuted", "squared length"),
    ("sigmoid(w u)", "decay(S) == 1 - sigmoid(-w u)", "proved", "one normal form"),
    ("sigmoid(w u)", "decay(S) == sigmoid(-w u)", "refuted", "decay(S) is"),
    ("sigmoid(w u)", "decay(S) != 1", "proved", "(0, 1)"),
    ("sigmoid(w u)", "decay(S) != 1/2", "refuted", "1/2"),
    ("softplus(w u) / (1 + softplus(w u))", "decay(S) < 1", "unknown", "by its range"),
    ("sigmoid(w u)", "causal", "proved", "no state runs backwards"),
    ("sigmoid(w u)", "finite", "proved", "finite state"),
    ("sigmoid(w u)", "class scalar", "proved", "scalar"),
    ("sigmoid(w u)", "class per_key", "refuted", "the class is scalar"),
    ("sigmoid(w u)", "time_invariant", "refuted", "different vectors"),
    ("1/2", "time_invariant", "refuted", "of B u for S"),
]


@pytest.mark.share(6)
@pytest.mark.parametrize(("gate", "claim", "kind", "reason"), GATES)
def test_gates(verdict: Decide, gate: str, claim: str, kind: str, reason: str) -> None:
    found = verdict(GATED % gate, claim)
    assert isinstance(found, KINDS[kind]), found
    assert reason in said(found)


def said(found: Verdict) -> str:
    match found:
        case Proved(by):
            return by
        case Refuted(shown):
            return shown
    return found.obstacle


# --- stable ---------------------------------------------------------------------------------------

DELTA = """
mixer delta extends qkv {
  param w : d -> h ~ normal(0, 1)
  state S : h × n × p
  k = %s
  β = %s
  S = %s - β * k ⊗ (k · %s) + β * k ⊗ v
  y = q · S
}
"""

RULES = [
    ("l2norm[n](W_K u)", "sigmoid(w u)", "S[i-1]", "proved"),
    ("l2norm[n](W_K u)", "2 * sigmoid(w u)", "S[i-1]", "proved"),
    ("l2norm[n](W_K u)", "3 * sigmoid(w u)", "S[i-1]", "refuted"),
    ("l2norm[n](W_K u)", "-sigmoid(w u)", "S[i-1]", "refuted"),
    ("W_K u", "sigmoid(w u)", "S[i-1]", "refuted"),
    pytest.param("softmax[n](W_K u)", "sigmoid(w u)", "S[i-1]", "unknown", marks=pytest.mark.full),
]


@pytest.mark.parametrize(("key", "step", "state", "kind"), RULES)
def test_delta_rule(verdict: Decide, key: str, step: str, state: str, kind: str) -> None:
    found = verdict(DELTA % (key, step, state, state), "stable")
    assert isinstance(found, KINDS[kind]), found
    if kind == "proved":
        assert "self-adjoint" in said(found)


STAGES = """
mixer stages { dims n
  input u : n
  param w : n
  state s, t : n
  t = %s
  s = %s
  y = s + t
}
"""

DRIVEN = [
    ("t[i-1] + u", "s[i-1] + t[i-1] + u", "refuted"),  # a Jordan block
    ("t[i-1] / 2 + u", "s[i-1] / 2 + t[i-1] + u", "refuted"),
    ("t[i-1] / 2 + u", "s[i-1] / 2 + 2 * t + u", "unknown"),  # no sequence tried leads there
    ("u", "s[i-1] + t[i-1]", "refuted"),
    ("sigmoid(w * u) * t[i-1] + u", "s[i-1] + t[i-1]", "refuted"),
    ("t[i-1] / 2 + u", "s[i-1] / 2 + t[i-1] / 4 + u", "unknown"),  # it is one, with norm 0.64
    ("t[i-1] / 2 + u", "s[i-1] / 2 + tanh(t)", "unknown"),
    ("t[i-1] / 2 + u", "s[i-1] / 2 + w * t * u", "refuted"),
    ("t[i-1] / 2 + u", "s[i-1] / 2 + u", "proved"),
    ("t[i-1] + u", "-s[i-1] + u", "proved"),
]


@pytest.mark.share(2)
@pytest.mark.parametrize(("first", "second", "kind"), DRIVEN)
def test_stages_that_drive_each_other_are_one_state(
    verdict: Decide, first: str, second: str, kind: str
) -> None:
    found = verdict(STAGES % (first, second), "stable")
    assert isinstance(found, KINDS[kind]), found
    if kind == "refuted":
        assert "difference of two states" in said(found)


SCALARS = """
mixer scalars { dims n
  input u
  param a
  state s, t
  t = %s
  s = %s
  y = s + t
}
"""


def test_states_without_axes_are_stages_too(verdict: Decide) -> None:
    jordan = verdict(SCALARS % ("t[i-1] + u", "s[i-1] + t[i-1] + u"), "stable")
    assert isinstance(jordan, Refuted) and "difference of two states" in said(jordan)
    product = verdict(SCALARS % ("t[i-1] / 2 + u", "s[i-1] / 2 + t * t"), "stable")
    assert isinstance(product, Unknown), product


@pytest.mark.parametrize("decay", ["a / a", "tanh(log(a))", "exp(log(a) - log(a))", "a^(1/2) * 0"])
def test_a_transition_without_a_value_is_not_stable(verdict: Decide, decay: str) -> None:
    found = verdict(SCALARS % (f"{decay} * t[i-1] + u", "s[i-1] / 2 + u"), "stable")
    folded = decay.endswith("* 0")  # is 0, whatever the other factor is
    assert isinstance(found, Proved if folded else Unknown), found
    assert folded or "not known to have a value" in said(found)


def test_a_stage_that_runs_the_other_way_is_a_state_of_its_own(verdict: Decide) -> None:
    backward = STAGES.replace("state s, t : n", "state t : n; state s : n backward")
    found = verdict(backward % ("t[i-1] + u", "s[i+1] + t"), "stable")
    assert isinstance(found, Proved), found


def test_what_only_the_derived_form_reads_cannot_be_executed(verdict: Decide) -> None:
    found = verdict(STAGES % ("t[i-1] / 2 + u", "sigmoid(t) * s[i-1] + u"), "stable")
    assert isinstance(found, Unknown) and "cannot be executed" in said(found)


FLOW = """
mixer flow {
  dims d, n
  input u : d
  param a : n; P, Q : n complex; C : d × n complex; t : %s
  state x : d × n complex
  x' = cplx(%s, 1) * x %s P ⊗ sum[n](%s * x) + u ⊗ ones[n]   by bilinear(%s)
  y = Re(sum[n](C * x))
}
"""

FLOWS = [
    ("d", "-exp(a)", "-", "conj(P)", "exp(t)", "proved"),
    ("d", "-a^2", "-", "conj(P)", "exp(t)", "proved"),
    ("d", "exp(a)", "-", "conj(P)", "exp(t)", "refuted"),
    ("d", "-exp(a)", "+", "conj(P)", "exp(t)", "refuted"),
    ("d", "-exp(a)", "-", "conj(Q)", "exp(t)", "refuted"),
    ("d", "-exp(a)", "-", "conj(P)", "-exp(t)", "refuted"),
]


@pytest.mark.share(2)
@pytest.mark.parametrize(("axes", "real", "sign", "right", "step", "kind"), FLOWS)
def test_bilinear_flows(
    verdict: Decide, axes: str, real: str, sign: str, right: str, step: str, kind: str
) -> None:
    found = verdict(FLOW % (axes, real, sign, right, step), "stable")
    assert isinstance(found, KINDS[kind]), found


# --- row_stochastic -------------------------------------------------------------------------------

WEIGHTS = [
    ("exp(q · k[j])", "proved"),
    ("exp(q) · exp(k[j])", "proved"),
    ("taylor[2](q · k[j])", "proved"),
    ("taylor[4](q · k[j])", "proved"),
    ("taylor[1](q · k[j])", "refuted"),
    ("taylor[3](q · k[j])", "refuted"),
    ("(q · k[j])^2", "proved"),
    ("q · k[j]", "refuted"),
]


@pytest.mark.share(2)
@pytest.mark.parametrize(("weight", "kind"), WEIGHTS)
def test_quotients_of_sums(verdict: Decide, weight: str, kind: str) -> None:
    mixer = f"mixer m extends qkv {{ y = sum[j ≤ i]({weight} * v[j]) / sum[j ≤ i]({weight}) }}"
    found = verdict(mixer, "row_stochastic")
    assert isinstance(found, KINDS[kind]), found


MUTATED = [
    "sum[j ≤ i](exp(q · k[j]) * v[j]) / sum[j < i](exp(q · k[j]))",
    "sum[j < i](exp(q · k[j]) * v[j]) / sum[j ≤ i](exp(q · k[j]))",
    "2 * sum[j ≤ i](exp(q · k[j]) * v[j]) / sum[j ≤ i](exp(q · k[j]))",
    "sum[j ≤ i](exp(q · k[j]) * v[j-1]) / sum[j ≤ i](exp(q · k[j]))",
    "sum[j ≤ i](exp(q · k[j]) * v[j]) / sum[j ≤ i](exp(-(q · k[j])))",
    "sum[j ≤ i](exp(q · k[j]) * v[j]^2) / sum[j ≤ i](exp(q · k[j]))",
    "sum[j ≤ i](exp(q · k[j]) * v[j]) / sum[j ≤ i](exp(q · k[j])) + v",
]


@pytest.mark.parametrize("y", MUTATED)
def test_mutated_quotients_are_refuted(verdict: Decide, y: str) -> None:
    found = verdict(f"mixer m extends qkv {{ y = {y} }}", "row_stochastic")
    assert isinstance(found, Refuted), found


RATIO = """
mixer ratio extends qkv {
  param w : d -> h ~ normal(0, 1)
  state S : h × n × p; z : h × n
  g = sigmoid(w u)
  S = g * S[i-1] + exp(k) ⊗ v
  z = %s * z[i-1] + exp(k)
  y = (exp(q) · S) / (exp(q) · z)
}
"""


@pytest.mark.ci
def test_a_ratio_of_states_has_a_certificate(verdict: Decide) -> None:
    found = verdict(RATIO % "g", "row_stochastic")
    assert isinstance(found, Proved), found
    assert found.certificate is not None
    assert check(write(found.certificate)).claim == found.certificate.claim


def test_a_ratio_with_another_decay_is_refuted(verdict: Decide) -> None:
    assert isinstance(verdict(RATIO % "g^2", "row_stochastic"), Refuted)


SUM_OF_PRODUCTS = """
mixer leaky { dims n
  input u : n
  param w : n
  v = sum[n](w * u)
  k = exp(u) + 1 / 3
  s = sum[n](k)
  e = s^3 - 3 * s * sum[n](k^2) + 2 * sum[n](k^3)
  state S, z
  S = S[i-1] + exp(s) * v
  z = z[i-1] + exp(s) * exp(e)
  y = S / z
}
"""


def test_weights_that_sum_to_1_at_one_size_only_are_no_proof(verdict: Decide) -> None:
    """e sums products of three different entries: of two there are none, of three e is above 0."""
    found = verdict(SUM_OF_PRODUCTS, "row_stochastic")
    assert isinstance(found, Unknown) and "y = 1 for values 1 is not proved" in said(found), found


def test_values_are_named(verdict: Decide) -> None:
    mixer = """mixer m extends qkv {
      x = tanh(v)
      y = sum[j ≤ i](exp(q · k[j]) * x[j]) / sum[j ≤ i](exp(q · k[j]))
    }"""
    assert isinstance(verdict(mixer, "row_stochastic(x)"), Proved)
    assert isinstance(verdict(mixer, "row_stochastic"), Refuted)
    assert isinstance(verdict(mixer, "row_stochastic(none)"), Unknown)


# --- causal, time-invariant -----------------------------------------------------------------------


def test_what_reads_later_tokens_is_not_causal(verdict: Decide) -> None:
    later = "mixer m { dims d\n input u : d\n y = sum[j > i](u[j]) }"
    assert isinstance(verdict(later, "causal"), Refuted)
    # a later token is read, and has no say: neither is shown
    zero = "mixer m { dims d\n input u : d\n y = u + sum[j > i](u[j]) - sum[j > i](u[j]) }"
    assert isinstance(verdict(zero, "causal"), Unknown | Proved)


FILTERS = [
    ("1/2 * s[i-1] + u", "s", "proved"),
    ("sigmoid(a) * s[i-1] + a * u", "exp(a) * s + u", "proved"),
    ("1/2 * s[i-1] + u", "tanh(s)", "proved"),
    ("1/2 * s[i-1] + u^2", "s", "refuted"),
    ("1/2 * s[i-1] + abs(u)", "s", "refuted"),
    ("sigmoid(u) * s[i-1] + u", "s", "refuted"),
    ("1/2 * s[i-1] + u", "u * s", "refuted"),
    ("1/2 * s[i-1] + u", "s + exp(u)", "refuted"),
    ("1/2 * s[i-1] + first * u", "s", "unknown"),
]


@pytest.mark.parametrize(("update", "y", "kind"), FILTERS)
def test_time_invariance(verdict: Decide, update: str, y: str, kind: str) -> None:
    mixer = f"""mixer m {{
      dims d
      input u : d
      param a : d
      state s : d
      s = {update}
      y = {y} + 0 * a
    }}"""
    found = verdict(mixer, "time_invariant")
    assert isinstance(found, KINDS[kind]), found


VALUES = [
    ("sqrt(a) * sqrt(a) == a", "", "refuted"),
    ("sqrt(a) * sqrt(a) == a", "positive", "proved"),
    ("a / a == 1", "", "refuted"),
    ("a / a == 1", "nonneg", "refuted"),
    ("a / a == 1", "nonzero", "proved"),
    ("a / a == 1 when a > 0", "", "proved"),
    ("exp(log(a)) == a", "", "refuted"),
    ("exp(log(a)) == a", "positive", "proved"),
    ("log(exp(a)) == a", "", "unknown"),
    ("a^(-1) * a == 1", "", "refuted"),
    ("u / u == 1", "", "refuted"),
    ("(1 + u^2) / (1 + u^2) == 1", "", "unknown"),
    ("log(-1 - a^2) == log(-1 - a^2)", "", "refuted"),
    ("sqrt(-1 - a^2) <= sqrt(-1 - a^2)", "", "refuted"),
    ("a^0.3 >= 0", "nonneg", "unknown"),
    ("Re(sqrt(cplx(a, u - u))) >= 0", "", "unknown"),
    ("abs(log(cplx(a, u - u))) >= 0", "nonzero", "unknown"),
]


@pytest.mark.share(2)
@pytest.mark.parametrize(("claim", "declared", "kind"), VALUES)
def test_what_has_no_value_is_equal_to_nothing(
    verdict: Decide, claim: str, declared: str, kind: str
) -> None:
    mixer = f"mixer m {{ dims d\n input u : d\n param a : d {declared}\n y = a * u\n}}"
    found = verdict(mixer, claim)
    assert isinstance(found, KINDS[kind]), found
    assert kind != "refuted" or "has no value" in said(found)


OUTSIDE = [
    ("u > 0", "positive", "proved"),
    ("u[i-1] > 0", "positive", "refuted"),
    ("u[i-1] >= 0", "positive", "proved"),
    ("u[i-1] < 1", "unit", "proved"),
    ("u[i-1] != 0", "nonzero", "refuted"),
    ("u[i-1] / u[i-1] == 1", "nonzero", "refuted"),
]


@pytest.mark.parametrize(("claim", "declared", "kind"), OUTSIDE)
def test_inputs_are_0_before_the_first_token_whatever_their_range(
    verdict: Decide, claim: str, declared: str, kind: str
) -> None:
    mixer = f"mixer m {{ dims d\n input u : d {declared}\n y = u + u[i-1]\n}}"
    assert isinstance(verdict(mixer, claim), KINDS[kind])


BEHIND = [
    ("x[i-1] == x[i-1]", "x = 1 / u", "x", "refuted"),
    ("x[i-1] - x[i-1] == 0", "x = log(1 + u)", "x", "refuted"),
    ("x[i-1]^2 >= 0", "x = log(1 + u)", "x", "refuted"),
    ("s[i-1] == s[i-1]", "x = 1 / u", "x", "refuted"),
    ("s == s", "x = exp(u)", "x", "proved"),
    ("s == s", "x = u[i-1]; g = log(1 + x)", "g * u", "refuted"),
]


@pytest.mark.parametrize(("claim", "defined", "drive", "kind"), BEHIND)
def test_names_of_other_tokens_and_states_need_values_too(
    verdict: Decide, claim: str, defined: str, drive: str, kind: str
) -> None:
    update = f"{defined}\n s = s[i-1] / 2 + {drive}"
    mixer = f"mixer m {{ dims d\n input u : d\n state s : d\n {update}\n y = s + x[i-1]\n}}"
    assert isinstance(verdict(mixer, claim), KINDS[kind])


def test_tanh_of_complex_numbers_has_poles(verdict: Decide) -> None:
    mixer = "mixer m { dims d\n input u : d\n param z : d complex\n y = Re(tanh(z)) * u\n}"
    assert isinstance(verdict(mixer, "tanh(z) == tanh(z)"), Unknown)


def test_one_that_has_no_value_is_not_the_same(verdict: Decide) -> None:
    text = "mixer {} {{ dims d\n input u : d\n param a : d\n y = {}\n}}\n"
    found = verdict(text.format("one", "u") + text.format("it", "a / a * u"), "equivalent one")
    assert isinstance(found, Unknown) and "the first has none" in said(found)


# --- equivalent, when -----------------------------------------------------------------------------

PAIR = """
mixer plain extends qkv { y = sum[j ≤ i](q · k[j] * v[j]) }
mixer divided extends qkv {
  input η : h nonzero
  param c : h
  y = c * sum[j ≤ i](q · k[j] * v[j]) / η
}
"""

SAME = [
    ("equivalent divided", "proved"),
    ("equivalent plain", "refuted"),
    ("equivalent plain when η == 1", "refuted"),
    ("equivalent plain when η == 1 and c == 1", "proved"),
    ("equivalent plain when c == 1 and 1 == η", "proved"),
    ("equivalent plain when η == 1 and c == 2", "refuted"),
    ("equivalent plain when η == c", "proved"),
    ("equivalent plain when η > 1000", "unknown"),
    ("equivalent plain when abs(η) < 0", "unknown"),
    ("c > 3 when c^2 < 0", "unknown"),
    ("η > 0 when η > 1", "proved"),
    ("η > 2 when η > 1", "refuted"),
    ("abs(η) > 0", "proved"),
    ("c == 2 when c == 2", "proved"),
]


@pytest.mark.share(6)
@pytest.mark.parametrize(("claim", "kind"), SAME)
def test_conditions(verdict: Decide, claim: str, kind: str) -> None:
    found = verdict(PAIR, claim)
    assert isinstance(found, KINDS[kind]), found


SHARED = """
mixer free extends qkv {
  input η : h positive
  y = sum[j ≤ i](q · k[j] * v[j]) / η
}
mixer gated extends qkv {
  param w : d -> h
  g = sigmoid(w u)
  y = g * sum[j ≤ i](q · k[j] * v[j])
}
mixer squared extends gated { y = g^2 * sum[j ≤ i](q · k[j] * v[j]) }
mixer token extends qkv {
  param w : d -> h
  η = exp(w u)
  y = sum[j ≤ i](q · k[j] * v[j]) / η
}
"""


@pytest.mark.share(4)
@pytest.mark.parametrize(
    ("mixer", "claim", "kind"),
    [
        ("token", "equivalent free when η == exp(w u)", "proved"),
        ("token", "equivalent free when η == exp(-w u)", "proved"),
        ("squared", "equivalent gated when g == 1/2", "unknown"),
        ("squared", "equivalent gated when g == 1", "unknown"),
        ("gated", "equivalent squared when g == 1/2 and g == 1", "unknown"),
    ],
)
def test_conditions_on_definitions(verdict: Decide, mixer: str, claim: str, kind: str) -> None:
    found = verdict(f"{SHARED}\nmixer own extends {mixer} {{ }}", claim)
    assert isinstance(found, KINDS[kind]), found


UNLIKE = """
mixer first extends qkv {
  param w : d -> h
  f = w u
  g = 2 * f
  y = g * sum[j ≤ i](q · k[j] * v[j])
}
mixer second extends qkv {
  param w : d -> h
  f = 1 + w u
  g = 2 * f
  y = g * sum[j ≤ i](q · k[j] * v[j])
}
mixer given extends qkv {
  input g : h
  param w : d -> h
  f = 1 + w u
  y = (g + 0 * f) * sum[j ≤ i](q · k[j] * v[j])
}
"""


@pytest.mark.share(4)
@pytest.mark.parametrize(
    ("claim", "kind"),
    [
        ("equivalent second when g == 1", "unknown"),  # its g is another one
        ("equivalent second", "refuted"),
        ("equivalent given when g == 2 * f", "proved"),  # f of the first, put in
        ("equivalent given when g == f", "proved"),  # of both: where w u = 0
    ],
)
def test_definitions_of_one_name_need_not_be_the_same(
    verdict: Decide, claim: str, kind: str
) -> None:
    found = verdict(f"{UNLIKE}\nmixer own extends first {{ }}", claim)
    assert isinstance(found, KINDS[kind]), found


OTHER = """
mixer doubled { dims d
  input u : d
  param a, c : d
  y = 2 * c * a * u
}
"""


def test_a_condition_keeps_declared_ranges(verdict: Decide) -> None:
    pair = """
mixer plain { dims d
  input u : d
  param a : d
  y = a * u
}
mixer scaled { dims d
  input u : d
  param a : d; c : d positive
  y = c * a * u
}
"""
    assert isinstance(verdict(pair, "equivalent plain when c == 2"), Refuted)
    # a value of a is chosen freely, and -1 is none of c
    assert isinstance(verdict(pair, "equivalent plain when c == a"), Unknown)
    assert isinstance(verdict(pair, "equivalent plain when c == -1"), Unknown)
    # nor is it one of c in the other
    assert isinstance(verdict(pair + OTHER, "equivalent scaled when c == -1"), Unknown)
    assert isinstance(verdict(pair + OTHER, "equivalent scaled when c == a"), Unknown)
    assert isinstance(verdict(pair + OTHER, "equivalent scaled when c == 1"), Refuted)


def test_a_condition_that_never_holds_proves_nothing(verdict: Decide) -> None:
    found = verdict(f"{SHARED}\nmixer own extends squared {{ }}", "equivalent gated when g == 1")
    assert isinstance(found, Unknown) and "holds nowhere" in found.obstacle


def test_a_proof_of_equality_is_a_certificate(verdict: Decide) -> None:
    found = verdict(PAIR, "equivalent plain when η == 1 and c == 1")
    assert isinstance(found, Proved) and found.certificate is not None
    assert check(write(found.certificate)).gap is None


def test_pages_about_claims(claims: Callable) -> None:
    (refuted,) = claims(examples("E-CLAIM")[0])
    assert isinstance(refuted.verdict, Refuted)
    (undecided,) = claims(examples("N-CLAIM")[0])
    assert isinstance(undecided.verdict, Unknown)
    for code in ("E-CLAIM", "N-CLAIM", "E-CLAIM-FORM"):
        (proved,) = claims(examples(code)[1])
        assert isinstance(proved.verdict, Proved)
    with pytest.raises(DiagnosticError, match="did you mean `stable`"):
        claims(examples("E-CLAIM-FORM")[0])


TWO = """
mixer recurrent { dims d
  input u, v : d
  param a : d
  state s : d
  s = a * s[i-1] + u
  y = s + 0.5 * v
}
mixer fixed extends recurrent {
  buffer c : d = 1
  s = a * s[i-1] + c * u
}
mixer product { dims d
  input u, v, w : d
  param a, b, c : d
  state s : d
  s = a * b * s[i-1] + u + (b - c) * w
  y = s + 0.5 * v
}
"""


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("claim", "kind"),
    [
        ("recurrent when b == 1 and c == b", "proved"),
        ("recurrent when c == b and b == 1", "proved"),
        ("recurrent when b == 1 and c == 1 and a == b", "proved"),
        ("recurrent when v == w and w == v", "unknown"),
        ("recurrent when v == w[i-1] and w == v[i-1]", "unknown"),
        ("recurrent when a == b and b == a", "refuted"),
        ("fixed when b == 1 and a == c", "unknown"),  # c is another one there
    ],
)
def test_conditions_about_one_another(verdict: Decide, claim: str, kind: str) -> None:
    found = verdict(TWO, f"equivalent {claim}")
    assert isinstance(found, KINDS[kind]), found


# --- what is no claim -----------------------------------------------------------------------------

WRONG = [
    ("stabel", "E-CLAIM-FORM", "stable"),
    ("equivalent", "E-CLAIM-FORM", "followed by a mixer"),
    ("equivalent nowhere", "E-CLAIM-FORM", "no mixer `nowhere`"),
    ("decay(T) < 1", "E-CLAIM-FORM", "`T` is no state"),
    ("0 < decay(S) when stable", "E-CLAIM-FORM", "compares nothing"),
    ("cplx(1, 2) < 3", "E-CLAIM-FORM", "no order"),
    ("i > 0", "E-CLAIM-FORM", "every token"),
    ("q < v", "E-CLAIM-FORM", "axes"),
    ("gamma < 1", "E-UNKNOWN-NAME", "gamma"),
]


@pytest.mark.parametrize(("claim", "code", "text"), WRONG)
def test_what_is_no_claim_is_said(verdict: Decide, claim: str, code: str, text: str) -> None:
    with pytest.raises(DiagnosticError) as error:
        verdict(GATED % "sigmoid(w u)", claim)
    (found,) = error.value.diagnostics
    assert found.code == code
    assert text in found.message


def test_a_claim_of_a_name_the_output_does_not_reach(verdict: Decide) -> None:
    mixer = "mixer m { dims d\n input u : d\n param a : d\n g = exp(a)\n y = u }"
    with pytest.raises(DiagnosticError, match="does not reach"):
        verdict(mixer, "g > 0")


def test_claims_of_bases_are_decided_again(claims: Callable) -> None:
    update = "g = 1/2\n s = g * s[i-1] + u\n y = s\n claim stable"
    base = f"mixer base {{ dims d\n input u : d\n state s : d\n {update} }}"
    (kept,) = claims(f"{base}\nmixer m extends base {{ g = 1/3 }}\n")
    assert isinstance(kept.verdict, Proved)
    (broken,) = claims(f"{base}\nmixer m extends base {{ g = 3 }}\n")
    assert isinstance(broken.verdict, Refuted)


def test_a_root_that_may_be_0_is_not_proved_positive(claims: Callable) -> None:
    update = "a = relu(u)^(1/2) / (1 + relu(u)^(1/2))\n s = a * s[i-1] + u\n y = s\n claim 0 < a"
    (found,) = claims(f"mixer m {{ dims d\n input u : d\n state s : d\n {update} }}\n")
    assert not isinstance(found.verdict, Proved)


@pytest.mark.parametrize("claim", ["stable", "decay(S) < 1"])
def test_what_no_double_holds_is_refuted(verdict: Decide, claim: str) -> None:
    mixer = "mixer m { input u; state S; S = exp(exp(7 + u^2)) * S[i-1] + u; y = S }"
    assert "e+" in said(verdict(mixer, claim))
