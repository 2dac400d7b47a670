"""Small mixers that are legal and that nobody would write first.

Each is one corner of what the language allows; together they are what a compiler meets that was
made with a handful of known mixers in mind.
"""

from __future__ import annotations

from typing import Any

import pytest


def attention(body: str, more: str = "", state: str = "S : h × n × p", sizes: str = "") -> str:
    """Queries, keys, values and a gate per head, and what is done with them.

    Args:
        body: definitions.
        more: declarations.
        state: declared states.
        sizes: further axes.
    """
    return f"""
      dims d, heads h = 2, n = 3, p = 2{sizes}
      input u : d
      param W_q, W_k : d -> h × n ~ normal(0, 0.5)
            W_v : d -> h × p ~ normal(0, 0.5)
            w_f : d -> h ~ normal(0, 0.5)
      {more}
      {f"state {state}" if state else ""}
      q = W_q u;  k = W_k u;  v = W_v u;  f = sigmoid(w_f u)
      {body}
    """


RAW = """
      dims heads h = 2, n = 3, p = 2
      input q, k : h × n; v : h × p; g : h
      a = sigmoid(g)
"""
SELECTIVE = """
      dims d, n
      input u : d
      param W_b, W_c : d -> n ~ normal(0, 1)
            W_D : d -> d ~ normal(0, 1)
            a : d × n
            e : n
      D = softplus(W_D u);  b = W_b u;  c = W_c u
"""
HEADS_LAST = """
      dims n = 3, heads h = 2, d
      input u : d
      param w : h × n; A : n -> n ~ normal(0, 1/2); B : d -> h ~ normal(0, 1)
            b, c : h × n
      state s : h × n
"""
KEPT = "S = f * S[i-1] + k ⊗ v"
GATES = """
      dims d
      input u : d
      param A, B, C, E : d -> d ~ normal(0, 1/2)
      state s, t : d
      a = sigmoid(A u);  b = tanh(B u);  c = sigmoid(C u);  e = tanh(E u)
"""

EARLIER_TOKENS = {
    "short_conv_on_heads": attention(
        "x = silu(fir[t](w, k)); S = f * S[i-1] + x ⊗ v; y = q · S",
        "param w : h × n × t",
        sizes=", t = 3",
    ),
    "token_shift": attention(
        "x = m * u + (1 - m) * u[i-1]; S = f * S[i-1] + W_k x ⊗ v; y = q · S", "param m : d = 1/2"
    ),
    "several_lags": attention(
        "x = v + 1/2 * v[i-1] - 1/3 * v[i-3]; S = f * S[i-1] + (k[i-2] + k) ⊗ x; y = q[i-1] · S"
    ),
    "filter_and_lag": attention(
        "x = fir[t](w, v) + v[i-5]; S = f * S[i-1] + k ⊗ x; y = q · S",
        "param w : t",
        sizes=", t = 4",
    ),
    "filter_of_the_past": attention(
        "x = fir[t](w, v[i-1]); S = f * S[i-1] + k ⊗ x; y = q · S",
        "param w : h × p × t",
        sizes=", t = 4",
    ),
    "filter_of_a_product": attention(
        "x = fir[t](w, silu(v) * v); S = f * S[i-1] + k ⊗ x; y = q · S",
        "param w : h × p × t",
        sizes=", t = 4",
    ),
    "filter_of_a_state": """
      dims d, t = 3
      input u : d
      param w : t
      state s : d
      s = sigmoid(u) * s[i-1] + u; y = fir[t](w, s)""",
    "filters_of_all_shapes": attention(
        """x = fir[t](w, v) + fir[t](w_h, v) + fir[t](w_p, v) + fir[t](softmax[t](w_x), v)
      S = f * S[i-1] + k ⊗ (fir[t](w_x, f) * x); y = q · S""",
        "param w : t; w_h : h × t; w_p : p × t; w_x : h × p × t",
        sizes=", t = 4",
    ),
    "filters_that_see_tokens": attention(
        "x = fir[t](W_h u, v) + fir[t](W_t u, v); S = f * S[i-1] + k ⊗ x; y = q · S",
        "param W_h : d -> h × t ~ normal(0, 1); W_t : d -> t ~ normal(0, 1)",
        sizes=", t = 4",
    ),
    "filter_of_a_filter": attention(
        "x = fir[r](w_r, fir[t](w, v)) + fir[r](w_r, v); S = f * S[i-1] + k ⊗ x; y = q · S",
        "param w : h × p × t; w_r : h × p × r",
        sizes=", t = 4, r = 2",
    ),
    "filter_of_first": attention(
        "x = v * fir[t](w, first) + v * fir[t](w, first[i-2]); S = f * S[i-1] + k ⊗ x; y = q · S",
        "param w : t",
        sizes=", t = 4",
    ),
    "filter_of_a_read": attention(
        f"{KEPT}; x = q · S; y = fir[t](w, x)", "param w : h × p × t", sizes=", t = 3"
    ),
    "filter_alone": "dims t = 3, d\n input u : d\n param w : d × t\n y = fir[t](w, u)",
    "first_in_the_drive": attention(
        "S = f * S[i-1] + k ⊗ v * (1 + first); y = q · S + first[i-1] * v"
    ),
    "first_alone": "dims d\n input u : d\n y = (first + 2 * first[i-1] - first[i-3]) * u",
    "lag_of_a_read": attention(f"{KEPT}; x = q · S; y = x + x[i-1]"),
    "lags_of_inputs": RAW + "state S : h × n × p; S = a * S[i-1] + k[i-1] ⊗ v[i-2]; y = q · S",
}

READS = {
    "before_the_update": attention(f"{KEPT}; y = q · S[i-1]"),
    "before_and_after": attention(f"{KEPT}; y = q · S[i-1] + k · S"),
    "bonus": attention(f"{KEPT}; y = q · (S[i-1] + (b * k) ⊗ v)", "param b : h × n"),
    "strict_sum": RAW + "y = sum[j < i](prod[j < l ≤ i](a[l]) * q · k[j] * v[j])",
    "strict_ratio": RAW
    + """y = (sum[j < i](exp(q) · exp(k[j]) * v[j]) + v) / (sum[j < i](exp(q) · exp(k[j])) + 1)""",
    "selective_before": SELECTIVE
    + "state S : d × n; S = exp(-D * exp(a)) * S[i-1] + (D * u) ⊗ b; y = c · S[i-1] + b · S",
    "elementwise_before": "dims d\n input u : d\n state h : d\n"
    "h = sigmoid(u) * h[i-1] + u; y = h[i-1] * u + h",
    "two_queries": attention(f"{KEPT}; y = (q · S) * (k · S)"),
    "square": attention(f"{KEPT}; x = q · S; y = x * x + x^3"),
    "softmax_of_a_read": attention(f"{KEPT}; y = softmax[p](q · S)"),
    "mean_of_a_state": attention(f"{KEPT}; y = mean[n](S)"),
    "sum_over_heads": attention(f"{KEPT}; y = sum[h](q · S)"),
    "constant_beside_the_key": attention(
        """z = sum[h](k); x = sum[h](v); R = 1/2 * R[i-1] + z ⊗ x
      y = ones[h] ⊗ (z · R) + v""",
        state="R : n × p",
    ),
    "sum_of_a_selective_state": SELECTIVE
    + "state S : d × n; S = exp(-D * exp(a)) * S[i-1] + u ⊗ b; y = sum[n](S)",
    "mean_of_a_selective_state": SELECTIVE
    + "state S : d × n; S = exp(-D * exp(a)) * S[i-1] + u ⊗ b; y = mean[n](S[i-1]) * u",
    "sum_of_a_state_decayed_by_channel": SELECTIVE
    + "state S : d × n; S = sigmoid(W_D u) * S[i-1] + u ⊗ b; y = sum[n](S)",
    "mean_of_a_state_decayed_by_channel": SELECTIVE
    + "state S : d × n; S = sigmoid(W_D u) * S[i-1] + u ⊗ b; y = mean[n](S)",
    "selective_read_of_one_axis_of_two": """
      dims d, n, m = 2
      input u : d
      param W_b : d -> n × m; W_c : d -> n; w : n × m
      state S : d × n × m
      S = exp(-softplus(u) ⊗ exp(w)) * S[i-1] + u ⊗ W_b u
      y = sum[n, m]((W_c u) * S)""",
    "state_itself": attention(f"{KEPT}; y = S"),
    "output_is_a_state": "dims d\n input u : d\n state y : d\n y = sigmoid(u) * y[i-1] + u",
    "linear_output": attention(f"{KEPT}; y = W_o(q · S)", "param W_o : h × p -> d ~ normal(0, 1)"),
    "linear_output_per_head": attention(
        f"{KEPT}; y = W_o(q · S)", "param W_o : each h : p -> p ~ normal(0, 1)"
    ),
    "gates_around": attention(
        """g = silu(W_o u); S = f * S[i-1] + k ⊗ (g * v)
      y = g * rmsnorm[p](g * (q · S))""",
        "param W_o : d -> h × p ~ normal(0, 1)",
    ),
    "renamed": """
      dims d, heads h = 2, n = 3, p = 3
      input u : d
      param W_k : d -> h × n ~ normal(0, 1); W_v : d -> h × p ~ normal(0, 1)
      state S : h × n × p
      S = 1/2 * S[i-1] + W_k u ⊗ W_v u; y = W_k u · S + rename[n, p](W_k u)""",
}

STATES = {
    "two_states": attention(
        f"{KEPT}; T = sigmoid(v) * T[i-1] + v; y = q · S + tanh(T)",
        state="S : h × n × p; T : h × p",
    ),
    "cascade": attention(
        f"{KEPT}; x = tanh(q · S); T = sigmoid(x) * T[i-1] + x; y = T * x",
        state="S : h × n × p; T : h × p",
    ),
    "linear_cascade": attention(
        f"{KEPT}; T = f * T[i-1] + q · S; y = T", state="T : h × p; S : h × n × p"
    ),
    "cascade_of_attention": attention(
        f"{KEPT}; x = tanh(q · S); T = f * T[i-1] + k ⊗ x; y = q · T", state="T, S : h × n × p"
    ),
    "cascade_through_a_map": attention(
        f"{KEPT}; x = q · S; T = sigmoid(R x) * T[i-1] + x; y = T",
        "param R : each h : p -> p",
        state="T : h × p; S : h × n × p",
    ),
    "sums_and_updates_in_turn": attention(
        """m = sum[j ≤ i](q · k[j] * v[j]); S = f * S[i-1] + k ⊗ m; x = tanh(q · S)
      y = sum[j < i](q · k[j] * x[j])"""
    ),
    "one_query_for_all_heads_and_one_each": attention(
        f"{KEPT}; T = f * T[i-1] + ones[h] ⊗ W_b u ⊗ v; y = q · S + W_a u · T",
        "param W_a, W_b : d -> n ~ normal(0, 0.5)",
        state="S, T : h × n × p",
    ),
    "all_forms_of_scan": attention(
        f"""{KEPT}; T = sigmoid(v) * T[i-1] + v; x = sum[h](v); z = sum[h](k)
      R = exp(-softplus(x) * exp(a)) * R[i-1] + z ⊗ x; y = q · S + T + ones[h] ⊗ (z · R)""",
        "param a : n × p",
        state="S : h × n × p; T : h × p; R : n × p",
    ),
    "two_selective": SELECTIVE
    + """state S, T : d × n
      S = exp(-D * exp(a)) * S[i-1] + (D * u) ⊗ b; T = exp(-D * exp(a)) * T[i-1] + u ⊗ b
      y = c · S + c · T""",
    "update_by_a_constant": "dims d\n input u : d\n param a : d\n state s : d\n"
    "s = 1/2 * s[i-1] + a; y = s * u",
    "token_counter": "dims d\n input u : d\n state s\n s = s[i-1] + 1; y = u / s",
    "sum_of_sums": attention(
        """y = sum[j ≤ i](q · k[j] * v[j]) +
        sum[j ≤ i](exp(q) · exp(k[j]) * v[j]) / sum[j ≤ i](exp(q) · exp(k[j]))""",
        state="",
    ),
    "sum_inside_an_update": attention(
        """S = f * S[i-1] + k ⊗ sum[j ≤ i](f * q · k[j] * sum[l < j](v[l]))
      y = q · S"""
    ),
    "sum_that_reads_both_tokens": RAW
    + "y = sum[j ≤ i](q · k[j] * sum[l ≤ j]((2/3)^(j-l) * k[j] · k[l] * v[l]))",
    "sum_that_reads_three_tokens": RAW
    + "y = sum[j < i]((1/3)^(i-j) * v[j] * sum[l ≤ j](a * (2/3)^(j-l) * (q · k[j]) * v[l]))",
    "sum_up_to_an_earlier_token": RAW
    + "y = sum[j ≤ i-2]((1/2)^(i-j) * q · k[j] * v[j]) + sum[j < i-1]((1/2)^(i-j) * v[j])",
    "products_of_decays": RAW
    + """y = sum[j < i](prod[j < l ≤ i-1](a[l]) * q · k[j] * v[j]) +
        sum[j ≤ i](prod[j-1 < l ≤ i](a[l]) * prod[i-2 < l ≤ i](1 + a[l]) * v[j])""",
    "products_that_start_before_the_sequence": RAW
    + """y = sum[j ≤ i](prod[j-2 < l ≤ i](1 - a[l] / 2) * q · k[j] * v[j]) +
        sum[j ≤ i](prod[j-2 < l ≤ i](a[l]) * v[j])""",
    "delayed_sum": RAW + "m = sum[j ≤ i](q · k[j] * v[j]); y = m + m[i-2]",
    "delayed_sum_in_an_update": RAW
    + """state S : h × n × p
      m = sum[j ≤ i](q · k[j] * v[j]); S = a * S[i-1] + k ⊗ m[i-1]; y = q · S""",
    "filtered_read_in_an_update": RAW.replace("p = 2", "p = 2, t = 3")
    + """param w : t
      state S, T : h × n × p
      S = a * S[i-1] + k ⊗ v; x = q · S; T = a * T[i-1] + k ⊗ fir[t](w, x); y = q · T""",
    "one_array_in_two_roles": RAW + "state S : h × n × p; S = a * S[i-1] + q ⊗ v; y = q · S",
    "filter_inside_a_sum": RAW.replace("p = 2", "p = 2, t = 3")
    + "param w : t; y = sum[j ≤ i](fir[t](w, a) * q · k[j] * v[j])",
    "sum_of_a_sum": attention(
        "m = sum[j ≤ i](q · k[j] * v[j]); y = sum[j ≤ i](f^2 * q · k[j] * m[j])", state=""
    ),
}

AXES = {
    "raw_inputs": RAW + "state S : h × n × p; S = a * S[i-1] + k ⊗ v; y = q · S",
    "key_and_value_without_heads": """
      dims d, heads h = 2, n = 3, p = 2
      input u : d
      param W_q, W_k : d -> n ~ normal(0, 1); W_v : d -> p ~ normal(0, 1)
            w_f : d -> h ~ normal(0, 1)
      state S : h × n × p
      S = sigmoid(w_f u) * S[i-1] + ones[h] ⊗ W_k u ⊗ W_v u; y = W_q u · S""",
    "long_axis": """
      dims register_load_state_dict_post_hook, kk = 3
      input u : register_load_state_dict_post_hook
      param w : register_load_state_dict_post_hook -> kk ~ normal(0, 1)
            a : register_load_state_dict_post_hook
      state SS : register_load_state_dict_post_hook × kk
      SS = sigmoid(a · u) * SS[i-1] + u ⊗ w u; y = SS · (w u)""",
    "long_names": """
      dims dimension_of_the_model_a, heads heads_of_the_mixer_abc = 2, keys_of_the_mixer_ab = 3,
           values_of_the_mixer_a = 2
      input the_input_of_the_mixer_abc : dimension_of_the_model_a
      param query_projection_of_the_mixer, key_projection_of_the_mixer_a :
              dimension_of_the_model_a -> heads_of_the_mixer_abc × keys_of_the_mixer_ab
            value_projection_of_the_mixer :
              dimension_of_the_model_a -> heads_of_the_mixer_abc × values_of_the_mixer_a
            forget_gate_of_the_mixer_abcd : dimension_of_the_model_a -> heads_of_the_mixer_abc
      state the_state_of_the_mixer :
              heads_of_the_mixer_abc × keys_of_the_mixer_ab × values_of_the_mixer_a
      the_state_of_the_mixer =
        sigmoid(forget_gate_of_the_mixer_abcd the_input_of_the_mixer_abc) *
        the_state_of_the_mixer[i-1] +
        key_projection_of_the_mixer_a the_input_of_the_mixer_abc ⊗
        value_projection_of_the_mixer the_input_of_the_mixer_abc
      y = query_projection_of_the_mixer the_input_of_the_mixer_abc · the_state_of_the_mixer""",
    "no_heads": """
      dims d, n = 3, p = 2
      input u : d
      param W_q, W_k : d -> n ~ normal(0, 1); W_v : d -> p ~ normal(0, 1); w_f : d ~ normal(0, 1)
      state S : n × p
      S = sigmoid(w_f · u) * S[i-1] + W_k u ⊗ W_v u; y = W_q u · S""",
    "two_keys": """
      dims d, heads h = 2, n = 3, m = 2, p = 2
      input u : d
      param W_q, W_k : d -> h × n ~ normal(0, 1); W_a, W_b : d -> h × m ~ normal(0, 1)
            W_v : d -> h × p ~ normal(0, 1); w_f : d -> h ~ normal(0, 1)
      state S : h × n × m × p
      S = sigmoid(w_f u) * S[i-1] + (W_k u ⊗ W_b u) ⊗ W_v u; y = W_a u · (W_q u · S)""",
    "two_head_axes": """
      dims d, heads a = 2, heads b = 3, n = 3, p = 2
      input u : d
      param W_q, W_k : d -> a × b × n ~ normal(0, 1); W_v : d -> a × b × p ~ normal(0, 1)
            w_f : d -> a ~ normal(0, 1)
      state S : a × b × n × p
      S = sigmoid(w_f u) * S[i-1] + W_k u ⊗ W_v u; y = W_q u · S""",
    "grouped_state": """
      dims d, heads h = 2, heads g = 2, n = 3, p = 2
      input u : d
      param W_q : d -> h × g × n ~ normal(0, 1); W_k : d -> h × n ~ normal(0, 1)
            W_v : d -> h × p ~ normal(0, 1); w_f : d -> h ~ normal(0, 1)
      state S : h × g × n × p
      S = sigmoid(w_f u) * S[i-1] + ones[g] ⊗ (W_k u ⊗ W_v u); y = W_q u · S""",
    "heads_last": """
      dims d, n = 3, p = 2, heads h = 2
      input u : d
      param W_q, W_k : d -> n × h ~ normal(0, 1); W_v : d -> p × h ~ normal(0, 1)
            w_f : d -> h ~ normal(0, 1)
      state S : h × n × p
      S = sigmoid(w_f u) * S[i-1] + W_k u ⊗ W_v u; y = W_q u · S""",
    "values_first": """
      dims d, p = 2, heads h = 4, n = 3
      input u : d
      param W_q, W_k : d -> n × h ~ normal(0, 1); W_v : d -> p × h ~ normal(0, 1)
            w_f : d -> h ~ normal(0, 1)
      state S : h × n × p; z : h × n
      f = sigmoid(w_f u); k = exp(W_k u)
      S = f * S[i-1] + k ⊗ W_v u; z = f * z[i-1] + k
      y = (exp(W_q u) · S) / (exp(W_q u) · z)""",
    "selective_heads_last": """
      dims d, n = 3, heads h = 2, p = 2
      input u : d
      param W_q, W_k : d -> n × h ~ normal(0, 1); W_v : d -> p × h ~ normal(0, 1); a : p × h × n
      state S : h × n × p
      x = W_v u
      S = exp(-softplus(x) * exp(a)) * S[i-1] + W_k u ⊗ x; y = W_q u · S""",
    "value_per_head": attention("z = f * z[i-1] + k * f; y = q · z", state="z : h × n"),
    "value_one": attention("z = f * z[i-1] + k; y = q · z", state="z : h × n"),
    "constant_key": attention("S = f * S[i-1] + ones[n] ⊗ v; y = q · S"),
    "scalar_state": "dims d\n input u : d\n param w : d\n state s\n"
    "s = sigmoid(sum[d](u)) * s[i-1] + w · u; y = s * u",
    "scalar_inputs": "dims n = 3\n input u, g\n param b, c : n\n state s : n\n"
    "s = sigmoid(g) * s[i-1] + b * u; y = c · s",
    "nothing_but_scalars": "dims n = 3\n input u\n state s\n s = sigmoid(u) * s[i-1] + u; y = s",
    "time_invariant": "dims d, n\n input u : d\n param W : d -> n\n state s : n\n"
    "s = exp(-(iota[n] + 1) / n) * s[i-1] + W u; y = s * iota[n]",
    "complex_parameter": attention(f"{KEPT}; y = Re(sum[n](a * q * S))", "param a : n complex"),
    "complex_values": "dims d\n input u : d\n z = cplx(u, u * u)\n y = u + Re(z * z)",
    "complex_in_passing": "dims d\n input u : d\n y = Re(cis(u) * cplx(u, u))",
    "complex_inside_a_map": """
      dims d, e = 2 * d
      input u : d
      param W_x : d -> e ~ normal(0, 1)
            W_o : e -> d ~ normal(0, 1)
            g : e
      state s : e complex
      x = W_x u
      s = sigmoid(x) * cis(x) * s[i-1] + x
      y = W_o (x * Re(cis(x) * cplx(g, 1/2) * s) + abs(s))
    """,
    "decay_of_numbers_with_a_phase": """
      dims d
      input u : d
      param W_a : d -> d ~ normal(0, 1)
      state s : d complex
      s = sigmoid(1/2) * cis(W_a u) * s[i-1] + u
      y = Re(s)
    """,
    "first_in_a_phase": """
      dims d
      input u : d
      state s : d complex
      s = 1/2 * cis(first) * s[i-1] + exp(cplx(-first, first)) * u
      y = Re(s)
    """,
    "filter_of_a_decay": """
      dims d, k = 3
      input u : d
      param W_a, W_o : d -> d ~ normal(0, 1)
            w : d × k ~ normal(0, 1)
      state s : d
      x = W_a u
      s = sigmoid(x) * s[i-1] + u
      y = W_o (s * fir[k](w, x * x))
    """,
    "literal_decay": "dims d\n input u : d\n state s : d\ns = exp(log(0.999)) * s[i-1] + u; y = s",
    "literal_decay_per_head": attention("S = (1 - 2^(-12)) * S[i-1] + k ⊗ v; y = q · S"),
    "map_to_itself": attention(
        "S = f * S[i-1] + R k ⊗ v; y = R q · S", "param R : each h : n -> n ~ normal(0, 1)"
    ),
}

COMPLEX_SELECTIVE = """
      dims d, n
      input u : d
      param W_b, W_c : d -> n ~ normal(0, 1)
            W_D : d -> d ~ normal(0, 1)
            a, th : d × n
      state S : d × n complex
      D = softplus(W_D u);  b = W_b u;  c = W_c u
"""
REAL_PART = "* S[i-1] + (D * u) ⊗ b; y = Re(c · S)"
COMPLEX_SCANS = {
    "selective_complex": COMPLEX_SELECTIVE + f"S = exp(D * cplx(-exp(a), th)) {REAL_PART}",
    "selective_complex_of_a_turn": COMPLEX_SELECTIVE
    + f"S = exp(-D * exp(a)) * cis(D * th) {REAL_PART}",
    "selective_complex_read_of_both_planes": COMPLEX_SELECTIVE
    + """S = exp(D * cplx(-exp(a), th)) * S[i-1] + u ⊗ b
      z = c · S; y = Re(z) * u - 2 * Im(z)""",
    "selective_complex_key_and_read": COMPLEX_SELECTIVE
    + """S = exp(D * cplx(-exp(a), th)) * S[i-1] + u ⊗ cplx(b, 2 * c)
      y = 2 * Re(cplx(c, b) · S)""",
    "selective_complex_value": COMPLEX_SELECTIVE
    + """S = exp(D * cplx(-exp(a), th)) * S[i-1] + cplx(u, D) ⊗ b; y = Re(c · S)""",
    "selective_complex_maps": COMPLEX_SELECTIVE.replace(
        "a, th", "M : d -> n complex ~ normal(0, 1); a, th"
    )
    + """S = exp(D * cplx(-exp(a), th)) * S[i-1] + u ⊗ M u; y = Re(M u · S)""",
    "selective_complex_rate": COMPLEX_SELECTIVE.replace("a, th", "r : d × n complex; a, th")
    + f"S = exp(D * cplx(-exp(Re(r)), Im(r))) {REAL_PART}",
    "selective_complex_token_rate": COMPLEX_SELECTIVE.replace(
        "a, th", "R : d -> d × n complex ~ normal(0, 1); a, th"
    )
    + f"z = R u; S = exp(-softplus(Re(z))) * cis(Im(z)) {REAL_PART}",
    "selective_complex_turn_of_tokens": COMPLEX_SELECTIVE
    + f"S = exp(-D * exp(a)) * cis(ones[d] ⊗ (c * b)) {REAL_PART}",
    "selective_complex_fixed_phase": COMPLEX_SELECTIVE
    + f"S = exp(-D * exp(a)) * cis(th) {REAL_PART}",
    "selective_complex_sum_of_phases": COMPLEX_SELECTIVE
    + f"S = exp(-D * exp(a)) * cis(D * th + ones[d] ⊗ b) {REAL_PART}",
    "selective_complex_unit": COMPLEX_SELECTIVE + f"S = cis(D * th) {REAL_PART}",
    "selective_complex_state_only": COMPLEX_SELECTIVE + f"S = exp(-D * exp(a)) {REAL_PART}",
    "selective_complex_read_before": COMPLEX_SELECTIVE
    + """S = exp(D * cplx(-exp(a), th)) * S[i-1] + u ⊗ b; y = Re(c · S[i-1])""",
    "selective_complex_constant": COMPLEX_SELECTIVE + f"S = exp(cplx(-exp(a), th)) {REAL_PART}",
    "selective_of_a_sign": SELECTIVE.replace("a : d", "W_z : d -> d × n ~ normal(0, 1); a : d")
    + """state S : d × n
      S = exp(-D * exp(a) * sigmoid(sign(W_z u))) * S[i-1] + u ⊗ b; y = c · S""",
    "selective_complex_flow": COMPLEX_SELECTIVE.replace("a, th", "e : n; a, th")
    + """S' = cplx(-exp(a), th) * S + u ⊗ e by euler(D); y = Re(c · S)""",
    "selective_complex_backward": COMPLEX_SELECTIVE
    + """state T : d × n complex backward
      S = exp(D * cplx(-exp(a), th)) * S[i-1] + u ⊗ b
      T = exp(D * cplx(-exp(a), th)) * T[i+1] + u ⊗ c; y = Re(c · S) + Re(b · T)""",
    "selective_complex_heads": """
      dims d, heads h = 2, n, p = 2
      input u : d
      param W_b, W_c : d -> h × n ~ normal(0, 1); W_D : d -> h × p; a, th : h × p × n
      state S : h × p × n complex
      D = softplus(W_D u)
      S = exp(D * cplx(-exp(a), th)) * S[i-1] + D ⊗ W_b u; y = Re(W_c u · S)""",
    "keys_complex_per_key": """
      dims d, n = 3, p = 2
      input u : d
      param W_b, W_c : d -> n ~ normal(0, 1); W_D : d -> n ~ normal(0, 1); W_v : d -> p; a, th : n
      state S : n × p complex
      D = softplus(W_D u)
      S = exp(D * cplx(-exp(a), th)) * S[i-1] + W_b u ⊗ W_v u; y = Re(W_c u · S)""",
    "elementwise_complex_rate": """
      dims d
      input u : d
      param W_D : d -> d ~ normal(0, 1); a, th : d
      state S : d complex
      D = softplus(W_D u)
      S = exp(D * cplx(-exp(a), th)) * S[i-1] + cplx(u, D); y = Re(S) * Im(S)""",
    "fixed_complex_keys": """
      dims d, n
      input u : d
      param b, c, a, th : d × n
      state S : d × n complex
      S = exp(cplx(-exp(a), th)) * S[i-1] + b * u; y = 2 * Re(sum[n](c * S)) + u""",
    "scalar_complex": """
      dims d, n = 3, p = 2
      input u : d
      param W_b, W_c : d -> n ~ normal(0, 1); W_v : d -> p; w, th : d
      state S : n × p complex
      t = softplus(w · u)
      S = exp(t * cplx(-1, sum[d](th))) * S[i-1] + W_b u ⊗ W_v u; y = Re(W_c u · S)""",
}

UNIT = "c = l2norm[n](k); b = sigmoid(f);"
REWRITES = {
    "rewrite_read_before": attention(
        f"{UNIT} S = f * S[i-1] - b * c ⊗ (c · S[i-1]) + k ⊗ v; y = q · S[i-1]"
    ),
    "rewrite_before_the_decay": attention(
        f"{UNIT} R = S[i-1] - b * c ⊗ (c · S[i-1]); S = f * R + c ⊗ v; y = q · S"
    ),
    "rewrite_between_decays": attention(
        f"""{UNIT} R = f * S[i-1]; P = R - b * c ⊗ (c · R) + c ⊗ v; S = b * P; y = q · S"""
    ),
    "rewrite_along_another_key": attention(
        f"{UNIT} S = f * S[i-1] - b * l2norm[n](q) ⊗ (c · S[i-1]) + k ⊗ v; y = q · S"
    ),
    "rewrite_of_a_ratio": attention(
        f"""{UNIT} x = l2norm[n](q)
      S = S[i-1] - b * c ⊗ (c · S[i-1]) + k ⊗ v; z = z[i-1] - b * c * (c · z[i-1]) + k
      y = (x · S) / (1 + (x · z)^2)""",
        state="S : h × n × p; z : h × n",
    ),
    "rewrite_without_heads": """
      dims d, n = 3, p = 2
      input u : d
      param W_q, W_k : d -> n ~ normal(0, 1); W_v : d -> p ~ normal(0, 1)
      state S : n × p
      k = l2norm[n](W_k u); S = S[i-1] - k ⊗ (k · S[i-1]) + k ⊗ W_v u; y = W_q u · S""",
    "rewrite_beside_other_forms": attention(
        f"""{UNIT} S = f * S[i-1] - b * c ⊗ (c · S[i-1]) + k ⊗ v; T = f * T[i-1] + k ⊗ v
      R = sigmoid(k) * R[i-1] + c ⊗ v; P = P[i-1] - c ⊗ (c · P[i-1]) + c ⊗ v
      y = q · S + q · T + q · R + q · P""",
        state="S, T, R, P : h × n × p",
    ),
    "rewrite_of_raw_inputs": RAW
    + "state S : h × n × p; S = a * S[i-1] - k ⊗ (q · S[i-1]) + k ⊗ v; y = q · S",
}

DECAYS = {
    "of_a_product_per_entry": """
      dims d, n
      input u : d
      param C, E : d -> d × n ~ normal(0, 1); B : d -> n ~ normal(0, 1)
      state S : d × n
      S = sigmoid(C u * E u) * S[i-1] + u ⊗ B u; y = B u · S""",
    "number": attention("S = 9/10 * S[i-1] + k ⊗ v; y = q · S"),
    "per_head": attention("S = a * S[i-1] + k ⊗ v; y = q · S", "param a : h unit"),
    "power": RAW.replace("g : h", "g : h\n buffer c : h unit = 1 - 2^(-5 - iota[h])")
    + "y = sum[j ≤ i](c^(i-j) * q · k[j] * v[j])",
    "product": RAW + "y = sum[j ≤ i](prod[j < l ≤ i](a[l]) * q · k[j] * v[j])",
    "sum_without_decay": "dims d\n input u : d\n state s : d\n s = s[i-1] + u; y = s",
    "running_mean": "dims d\n input u : d\n state s, c : d\n"
    "s = s[i-1] + u; c = c[i-1] + ones[d]; y = s / c",
    "mean_as_sums": "dims d\n input u : d\n y = sum[j ≤ i](u[j]) / sum[j ≤ i](1)",
    "elementwise_per_head": """
      dims d, heads h = 2, p = 3
      input u : d
      param W : d -> h × p ~ normal(0, 1); a : h unit
      state s : h × p
      s = a * s[i-1] + W u; y = s""",
    "elementwise_by_a_constant": "dims d\n input u : d\n param a : d\n state s : d\n"
    "z = softmax[d](a); s = z * sigmoid(u) * s[i-1] + ones[d]; y = s * u",
    "elementwise_of_maxima": "dims d\n input u : d\n param W : d -> d\n state s : d\n"
    "s = sigmoid(max(u, 1/2)) * s[i-1] + min(max(W u, -1), 1); y = s",
    "selective_of_two_rates": SELECTIVE
    + """state S : d × n; r = softplus(c)
      S = exp(-D * exp(a) - ones[d] ⊗ (r * exp(e))) * S[i-1] + u ⊗ b; y = c · S""",
    "selective_with_a_fixed_rate_besides": SELECTIVE
    + """state S : d × n
      S = exp(-D * exp(a) - ones[d] ⊗ exp(e)) * S[i-1] + u ⊗ b; y = c · S""",
    "selective_entry_by_entry": """
      dims d, n
      input u : d
      param W_b, W_c : d -> n ~ normal(0, 1); W_D : d -> d × n ~ normal(0, 1)
      state S : d × n
      S = sigmoid(W_D u) * S[i-1] + u ⊗ W_b u; y = W_c u · S""",
    "selective_by_a_constant": """
      dims d, n
      input u : d
      param W_b, W_c : d -> n ~ normal(0, 1); W_x : d -> d; a : d × n
      state S : d × n
      S = exp(-exp(a)) * S[i-1] + (sigmoid(W_x u) * u) ⊗ W_b u; y = W_c u · S""",
    "selective_without_decay": SELECTIVE + "state S : d × n; S = S[i-1] + u ⊗ b; y = c · S",
    "map_of_a_real_part": """
      dims d
      input u : d
      param W_f, W_v, W_o : d -> d ~ normal(0, 0.5); θ : d
      state h : d complex
      h = sigmoid(W_f u) * cis(θ) * h[i-1] + W_v u; y = W_o(Re(h))""",
    "flow_by_euler": SELECTIVE + "state x : d × n; x' = -exp(a) * x + u ⊗ e by euler(D); y = c · x",
    "guard_by_an_epsilon": attention(
        """S = f * S[i-1] + exp(k) ⊗ v; z = f * z[i-1] + exp(k)
      y = (exp(q) · S) / (exp(q) · z + 0.001)""",
        state="S : h × n × p; z : h × n",
    ),
    "guard_by_a_maximum": attention(
        f"{KEPT}; z = f * z[i-1] + k; y = (q · S) / max(abs(q · z), 1)",
        state="S : h × n × p; z : h × n",
    ),
}

NAMES = {
    "words_of_python": """
      dims d, lambda = 3, class = 2
      input self : d
      param F : d -> lambda ~ normal(0, 1); mode : d -> class ~ normal(0, 1)
            torch, dtype : lambda; chunk : lambda unit
      buffer wide : lambda = 2
      state S : lambda × class
      def = F self;  import_ = mode self
      S = (1/2 * sigmoid(sum[d](self))) * S[i-1] + (torch * def) ⊗ import_
      y = dtype · (wide * S) + sum[lambda](chunk) * import_""",
    "words_of_the_kernels": """
      dims d, heads h = 2, B = 3, L = 2
      input x : d
      param q, k : d -> h × B ~ normal(0, 1); v : d -> h × L ~ normal(0, 1)
            g : d -> h ~ normal(0, 1)
      state S : h × B × L
      do = sigmoid(g x);  dq = q x;  dk = k x;  dv = v x
      S = do * S[i-1] + dk ⊗ dv; like = dq · S; y = like""",
    "words_of_this_mixer": attention(
        """first_2 = 1 + first; q_past = q[i-1]; pairs_1 = v * S_read; u_all = k * ones_
      x_1 = S_key * first_2; S_next = S_value * S_query * S_log_decay
      S = f * S[i-1] + (x_1 * u_all) ⊗ (S_next * pairs_1); ones_2 = 1 + 2 * ones_
      y = q_past · S * ones_2""",
        "param ones_, S_read, S_key, S_query, S_value, S_log_decay : h = 1",
    ),
    "words_of_an_elementwise_scan": """
      dims d
      input u : d
      param y_1, h_next, h_out, h_last, u_past, u_all, y_out, next_1, h_first : d = 1
            w_f : d -> d ~ normal(0, 1)
      state h : d
      h_read = u * y_1 + u[i-1] * h_next; h_value = h_read * h_out + u_past * u_all
      h_log_decay = sigmoid(w_f u); h = h_log_decay * h[i-1] + h_value * h_last
      y = h * y_out * next_1 + h[i-1] * h_first""",
    "words_of_the_reference": """
      dims d
      input u, x_i, x_rows : d
      param lag, past, before, pairs_1, rows : d = 1
      state x : d
      x = sigmoid(u) * x[i-1] + x_i * x_rows
      y = x * lag + past * before * sum[j ≤ i](rows^(i-j) * u[j]) + pairs_1""".replace(
        "rows^(i-j)", "(1/2)^(i-j)"
    ).replace("+ pairs_1", "+ pairs_1 * rows * u"),
    "functions_of_two_states": attention(
        """recurrent_x = f * recurrent_x[i-1] + k ⊗ v; x = 1/2 * x[i-1] + q ⊗ v
      y = q · x + k · recurrent_x""",
        state="recurrent_x, x : h × n × p",
    ),
    "twenty_characters_each": """
      dims dimension_of_the_model
      input input_of_this_mixer : dimension_of_the_model
      param projection_of_the_gate : dimension_of_the_model -> dimension_of_the_model ~ normal(0, 1)
      state state_of_this_mixer : dimension_of_the_model
      gate_of_this_mixer = sigmoid(projection_of_the_gate input_of_this_mixer)
      shifted_by_one_token = input_of_this_mixer - input_of_this_mixer[i-1]
      state_of_this_mixer = gate_of_this_mixer * state_of_this_mixer[i-1] + shifted_by_one_token
      y = state_of_this_mixer""",
    "long_provenance": attention(
        f'''x = silu(v) "{"a long story, " * 20}"
      S = f * S[i-1] + k ⊗ x; y = q · S'''
    ),
    "provenance": attention(
        r"""x = silu(v) "eq. 'a' \\ \N{DASH} {x} {{ 7*7 }} {% raw %} é ∑ end"
      S = f * S[i-1] + k ⊗ x "α ≤ β \"
      y = q · S "'''" """,
    ),
}

EXPRESSIONS = {
    # An axis that only a state has: nothing that the definition reads says its size.
    "axis_of_a_state": """
      dims d, r
      input u : d
      state h : r × d
      h = sigmoid(u) * h[i-1] + 1
      y = h
    """,
    # The opposite of a power.
    "opposite_of_a_power": """
      dims d
      input u : d
      state h : d
      h = exp(-softplus(u^2)) * h[i-1] + 1 / (1 + exp(u^2)) * u
      y = h
    """,
    # A product too long for a line, that has a factor twice: its first two get a name, once each.
    "repeated_factors": """
      dims heads h = 2, n = 2, p = 3
      input q, k_of_heads, r_of_heads : h × n; value_of_heads, gate_of_heads : h × p
      state S, R : h × n × p
      S = S[i-1] + k_of_heads ⊗ (value_of_heads * value_of_heads)
      R = R[i-1] + r_of_heads ⊗ (value_of_heads * gate_of_heads * value_of_heads)
      y = q · S + q · R
    """,
    "reductions": attention(
        """x = softmax[n](k) * mean[n](k) + l2norm[n](k) - rmsnorm[n](k)
      S = f * S[i-1] + x ⊗ v; y = q · S + mean[n](k * k) * v"""
    ),
    "long_sum": attention(
        "x = "
        + " + ".join(f"{j}/7 * sigmoid({j} * v) * tanh(v - {j}) * silu(v)" for j in range(1, 14))
        + "; S = f * S[i-1] + k ⊗ x; y = q · S"
    ),
    "long_product": attention(
        "x = "
        + " * ".join(f"sigmoid(v + {j})" for j in range(1, 24))
        + "; S = f * S[i-1] + k ⊗ x; y = q · S"
    ),
    "deep": attention(f"x = {'silu(v + ' * 20}v{')' * 20}; S = f * S[i-1] + k ⊗ x; y = q · S"),
    "constants": """
      dims d, n = 3
      input u : d
      param a : d; w : n
      state s : d
      z = 2;  r = softmax[d](a)
      s = sigmoid(u) * s[i-1] + exp(z) * u * mean[n](w)
      y = s + z * r * u""",
    "scalar_parameters": attention(
        "S = c * S[i-1] + (a * k) ⊗ (e * v); y = b * (q · S) / g",
        "param a\n param b positive\n param c unit\n param e nonneg\n param g nonzero",
    ),
    "buffer_without_a_value": attention(f"{KEPT}; y = q · S + a * v", "buffer a : h"),
    "unreached": attention(f"z = w * v; {KEPT}; y = q · S", "param w : h"),
    "no_state": "dims d\n input u : d\n param W : d -> d ~ normal(0, 1)\n y = silu(W u) * u",
    "no_state_and_a_lag": "dims d\n input u : d\n y = u - u[i-2]",
    "no_parameters": "dims d\n input u : d\n y = softmax[d](u)",
    "identity": "dims d\n input u : d\n y = u",
}

BACKWARD = {
    "runs_backward": "dims d\n input u : d\n state s : d backward\n"
    " s = sigmoid(u) * s[i+1] + u; y = s",
    "decay_of_the_next_token": attention(
        "y = sum[j ≥ i](prod[i < l ≤ j](f[l]) * q · k[j] * v[j])", state=""
    ),
    "signed_decay_of_the_next_token": attention(
        "g = tanh(w_f u); y = sum[j ≥ i](prod[i < l ≤ j](g[l]) * q · k[j] * v[j])", state=""
    ),
    "both_ways_by_key": attention(
        "g = sigmoid(w_g u); S = f * S[i-1] + k ⊗ v; x = q · S; T = g * T[i+1] + k ⊗ x;"
        " y = x + q · T[i+1]",
        "param w_g : d -> h × n ~ normal(0, 0.5)",
        "S : h × n × p\n      state T : h × n × p backward",
    ),
}

KEYED_REWRITES = {
    "decay_per_key_then_rewrite": attention(
        "g = sigmoid(w_g u); F = g * S[i-1]; S = F - f * k ⊗ (k · F) + f * k ⊗ v; y = q · S[i-1]",
        "param w_g : d -> h × n ~ normal(0, 0.5)",
    ),
}

DENSE = {
    "heads_behind_keys": HEADS_LAST + "s = sigmoid(w) * s[i-1] + b * B u; y = sum[n](c * s)",
    "dense_heads_behind_keys": HEADS_LAST + "s = A s[i-1] + b * B u; y = sum[n](c * s)",
    "dense_flow_of_all_axes": """
      dims d, heads h = 2, n = 3, p = 2
      input u : d
      param K : d -> h × n ~ normal(0, 1); V : d -> h × p ~ normal(0, 1)
            a : h × n × p; r : h × n
      state S : h × n × p
      S' = -exp(a) * S - r ⊗ sum[n](r * S) + K u ⊗ V u by bilinear(1/3)
      y = mean[n](S)""",
    "dense_read_before": """
      dims d, n = 3
      input u : d
      param A : n -> n ~ normal(0, 0.3)
            b, c : n ~ normal(0, 1)
      state x : n × d
      x = 1/2 * x[i-1] + A x[i-1] + b ⊗ u; y = c · x[i-1]""",
    "dense_by_head": """
      dims d, heads h = 2, n = 3
      input u : d
      param A : each h : n -> n ~ normal(0, 0.3)
            W_b, W_c : d -> h × n ~ normal(0, 1)
      state x : h × n × d
      x = A x[i-1] + W_b u ⊗ u; y = W_c u · x""",
    "dense_backward_chain": """
      dims d, n = 3
      input u : d
      param a, p, r, b : n ~ normal(0, 0.5)
      state x : n × d backward
      F = a * x[i+1] + p ⊗ (r · x[i+1])
      x = F - b ⊗ (p · F) + b ⊗ u; y = r · x""",
}

ATTENTION = {
    "softmax_of_one_key": attention(
        """x = fir[t](w, v) + v[i-1];  z = sum[h](k)
      y = f * sum[j ≤ i](exp(c * q · z[j-1] - f) * x[j]) / sum[l ≤ i](exp(z[l-1] · q * c - f))""",
        "param w : t; c : h",
        state="",
        sizes=", t = 3",
    ),
    "softmax_of_products": """
      dims d
      input q : d; k : d
      x = sum[j ≤ i](exp(q * k[j]) * k[j]) / sum[j ≤ i](exp(q * k[j]))
      z = sum[j ≤ i](exp(mean[d](k * q[j])) * k[j]) / sum[j ≤ i](exp(mean[d](k * q[j])))
      y = x - 2 * z * q + k[i-2]""",
    "softmax_of_a_softmax_by_groups": """
      dims d, heads h = 2, heads g = 3, n = 3, p = 2
      input u : d
      param W_q : d -> g × h × n ~ normal(0, 0.5); W_k : d -> h × n ~ normal(0, 0.5)
            W_v : d -> p × h ~ normal(0, 0.5); W_r : g × h × p -> h × n ~ normal(0, 0.5)
      q = W_q u;  k = W_k u;  v = W_v u
      x = sum[j ≤ i](exp(q · k[j]) * (ones[g] ⊗ v[j])) / sum[j ≤ i](exp(q · k[j]))
      r = W_r x
      y = sum[j ≤ i](exp(q · r[j]) * (ones[g] ⊗ v[j])) / sum[j ≤ i](exp(q · r[j]))""",
}

STEPPED = {
    "decay_of_a_later_token": RAW + "y = sum[j ≥ i](prod[i < l ≤ j](a[l]) * q · k[j] * v[j])",
    "zero_before_the_start": attention("S = f[i-1] * S[i-1] + k ⊗ v; y = q · S"),
    "reset": attention("S = (1 - first) * f * S[i-1] + k ⊗ v; y = q · S"),
    "may_be_zero": attention("S = a * S[i-1] + k ⊗ v; y = q · S", "param a : h nonneg"),
    "may_be_negative": attention("S = tanh(w_f u) * S[i-1] + k ⊗ v; y = q · S"),
    "grouped_queries": """
      dims d, heads h = 2, heads g = 2, n = 3, p = 2
      input u : d
      param W_q : d -> h × g × n; W_k : d -> h × n; W_v : d -> h × p; w_f : d -> h
      state S : h × n × p
      S = sigmoid(w_f u) * S[i-1] + W_k u ⊗ W_v u; y = W_q u · S""",
    "two_kinds_of_read": attention(f"{KEPT}; y = S + ones[n] ⊗ (q · S)"),
    "memoryless": "dims d\n input u : d\n state s : d\n s = silu(u); y = s + s[i-1]",
    "flow_by_zoh": SELECTIVE + "state x : d × n; x' = -exp(a) * x + u ⊗ e by zoh(D); y = c · x",
    "found_by_derivation": RAW
    + "x = sum[j ≤ i](sigmoid(q) · k[j] * (1 - 2 * 3/4)^(i-j) * v[j]); y = x",
    "dense_over_time": """
      dims d, n = 3
      input u : d
      param A : n -> n; B : d -> n
      state x : n
      x = sigmoid(B u) * A x[i-1] + B u; y = x""",
    "feedback_between_states": """
      dims d
      input u : d
      state x, z : d
      x = 1/2 * x[i-1] - 1/3 * z[i-1] + u
      z = 1/2 * z[i-1] + 1/3 * x[i-1]; y = x""",
    "feedback_of_gates": GATES
    + "s = a * s[i-1] + b * t[i-1] + u; t = c * t[i-1] + e * s[i-1] + u; y = s + t",
    "feedback_of_a_number": GATES
    + "s = a * s[i-1] + b * t[i-1] + u; t = c * t[i-1] + 1/4 * s[i-1] + u; y = s + t",
    "feedback_read_once": GATES
    + "s = a * s[i-1] + b * t[i-1] + u; t = 1/2 * t[i-1] + e * s[i-1] + u; y = t",
    "feedback_of_complex_states": """
      dims d
      input u : d
      param B, E : d complex; A, C : d -> d ~ normal(0, 1/2)
      state s, t : d complex
      s = sigmoid(A u) * s[i-1] + B * u * t[i-1] + u
      t = sigmoid(C u) * t[i-1] + E * u * s[i-1] + u
      y = Re(s + t)""",
    "mixed_heads": """
      dims d, heads h = 2
      input u : d
      param A, B, C : d -> h
      state s : h
      s = sigmoid(A u) * s[i-1] + B u * sum[h](C u * s[i-1]) + B u; y = s""",
    "two_rewrites": attention(
        "A = f * (S[i-1] - k ⊗ (k · S[i-1])); S = A - q ⊗ (q · A) + k ⊗ v; y = q · S"
    ),
    "momentum_of_a_rewrite": attention(
        """M = f * M[i-1] - k ⊗ (k · S[i-1]) + k ⊗ v
      S = a * S[i-1] + M
      y = q · S""",
        "param w_a : d -> h",
        "M, S : h × n × p",
    ).replace("q = W_q u;", "a = sigmoid(w_a u); q = W_q u;"),
    "uneven_chains": attention(
        """A = f * (S[i-1] - k ⊗ (k · S[i-1])) + 1/2 * T[i-1]
      S = A - q ⊗ (q · A) + k ⊗ v
      T = tanh(w_f u) * T[i-1] + 1/3 * S[i-1]
      y = q · S + k · T""",
        state="S, T : h × n × p",
    ),
    "several_drives": attention(
        "S = f * S[i-1] + k ⊗ v + q ⊗ v + k ⊗ sum[p](v) ⊗ ones[p]; y = q · S"
    ),
    "read_of_a_read": attention(
        "S = tanh(w_f u) * S[i-1] + k ⊗ v; r = sum[p](S); y = (sigmoid(r) * q) · S"
    ),
    "feedback_backwards": GATES.replace("s, t : d", "s, t : d backward")
    + "s = a * s[i+1] + b * t[i+1] + u; t = c * t[i+1] + e * s[i+1] + u; y = s * t[i+1]",
    "feedback_beside_a_scan": GATES
    + """state r : d
      s = a * s[i-1] + b * t[i-1] + u; t = c * t[i-1] + e * s[i-1] + u
      r = a * r[i-1] + s; y = r + t""",
    "idle_drive": GATES
    + "s = a * s[i-1] + b * t[i-1] + (u - u); t = c * t[i-1] + e * s[i-1] + u + u; y = s + t",
    "fixed_numbers_only": """
      dims d
      input u : d
      state s, t : d
      s = 1/2 * s[i-1] - 2 * t[i-1] + 1; t = 1/3 * t[i-1] + 1/4 * s[i-1]; y = s + u""",
    "attention_beside_a_state": attention(
        f"{KEPT}; x = sum[j ≤ i](exp(q · k[j]) * v[j]) / sum[j ≤ i](exp(q · k[j])); y = x + q · S"
    ),
    "attention_beside_feedback": attention(
        """S = tanh(w_f u) * S[i-1] + k ⊗ v
      x = sum[j ≤ i](exp(q · k[j]) * v[j]) / sum[j ≤ i](exp(q · k[j])); y = x + q · S"""
    ),
}
"""Name of a mixer that no scan runs, or not all of it → its body."""

SIZED = {
    "filter_of_ones": "dims d, t = 4\n input u : d\n y = fir[t](ones[t], u)",
    "sum_of_ones": "dims d, k = 3, m\n input u : d\n y = u * sum[k](iota[k]) / m",
}
"""Mixers with an axis that no tensor has: its size is an argument."""


def paired(body: str, more: str = "") -> str:
    """The same without a state."""
    return attention(body, more, state="")


PAIRS = {
    "exponential_sum": paired("y = sum[j ≤ i](exp(q · k[j]) * v[j])"),
    "sigmoid_attention": paired("y = n^(-1/2) * sum[j ≤ i](sigmoid(q · k[j]) * v[j])"),
    "sums_before_and_after": paired(
        "y = sum[j < i](tanh(q · k[j]) * v[j]) + sum[j > i](exp(-softplus(q · k[j])) * v[j])"
    ),
    "softmax_of_tokens_to_come": paired(
        "y = sum[j ≥ i](exp(q · k[j]) * v[j]) / sum[j ≥ i](exp(q · k[j]))"
    ),
    "power_of_a_varying_base": paired(
        "g = sigmoid(w_f u); y = sum[j ≤ i](g^(i-j) * (q · k[j]) * v[j])"
    ),
    "power_of_a_base_that_is_0": paired(
        "g = relu(w_f u); y = sum[j ≤ i](g^(i-j) * (q · k[j]) * v[j])"
    ),
    "earlier_tokens_in_pairs": paired(
        "y = sum[j ≤ i](exp(q[i-1] · k[j-1]) * v[j-2]) / max(abs(sum[j ≤ i](exp(q · k[j]))), 1/2)"
    ),
    "parameters_in_pairs": paired(
        "y = sum[j ≤ i](tanh(e * (q · k[j]) + n^(-1/2)) * v[j])", "param e : h"
    ),
    "pairs_of_a_sum": paired(
        "x = sum[j ≤ i](exp(q · k[j]) * v[j]); z = sum[j < i](sigmoid(x · v[j]) * k[j]); y = q * z"
    ),
    "pairs_beside_a_state": attention(
        f"{KEPT}; x = sum[j ≤ i](sigmoid(q · k[j]) * v[j]); y = x + q · S"
    ),
    "pairs_that_drive_a_state": attention(
        "x = sum[j ≤ i](sigmoid(q · k[j]) * v[j]); S = f * S[i-1] + k ⊗ x; y = q · S"
    ),
    "pairs_with_attention": paired(
        """x = sum[j ≤ i](exp(q · k[j]) * v[j]) / sum[j ≤ i](exp(q · k[j]))
      y = x + sum[j ≤ i](sigmoid(q · k[j]) * v[j])"""
    ),
    "pairs_of_distances_alone": "dims d\n input u : d\n y = u * sum[j ≤ i](tanh(i - j))",
    "pairs_of_one_value": "dims d\n input u : d\n y = u * sum[j ≤ i](sigmoid(u[j] * (i - j)))",
    "pairs_of_complex_values": paired(
        "y = Re(sum[j ≤ i](cis(q · k[j]) * exp(tanh(q · k[j])) * v[j]))"
    ),
}
"""Mixers with a sum over time that has no finite state and is no softmax attention."""

UNREAD = {
    "parameter_alone": "dims d, heads h = 2\n input u : d\n param a : h\n y = a",
    "number_alone": "dims d, heads h = 2\n input u : d\n y = 3 + iota[h]",
    "softmax_of_a_parameter": "dims d\n input u : d\n param a : d\n y = softmax[d](a)",
    "state_of_parameters": """dims d, heads h = 2, n = 3, p = 2
      input u : d
      param a : h; k : h × n; v : h × p
      state S : h × n × p
      S = sigmoid(a) * S[i-1] + k ⊗ v; y = k · S""",
    "state_of_numbers": """dims d, heads h = 2
      input u : d
      state S : h
      S = 1/2 * S[i-1] + 1; y = S[i-1]""",
    "state_of_itself": """dims d, heads h = 2
      input u : d
      param a : h
      state S : h
      S = tanh(a) * S[i-1] + 1/4 * S[i-1]; y = S""",
    "feedback_of_parameters": """dims d
      input u : d
      param a : d
      state s, t : d
      s = tanh(a) * s[i-1] + 1/3 * t[i-1] + 1; t = 1/4 * s[i-1] + a; y = s * t""",
    "backwards_without_input": """dims d, heads h = 2
      input u : d
      param a : h
      state S : h backward
      S = sigmoid(a) * S[i+1] + 1; y = S""",
    "ones_beside_a_state_without_that_axis": """dims d, heads h, n = 2, p = 2
      input u : d
      param a : n
      state S : n × p
      S = tanh(a) * S[i-1] + 1; y = sum[n](S[i-1]) ⊗ 0.75 * ones[h]""",
    "positions_alone": "dims d, heads h = 2\n input u : d\n param a : h\n y = a * first",
}
"""Mixers whose output reads no input; the one that is declared says how many tokens there are."""

COMPILED = {
    "decay_per_channel": SELECTIVE
    + "state S : d × n; S = sigmoid(W_D u) * S[i-1] + u ⊗ b; y = c · S",
    **EARLIER_TOKENS,
    **READS,
    **STATES,
    **AXES,
    **REWRITES,
    **{f"decay_{name}": body for name, body in DECAYS.items()},
    **NAMES,
    **EXPRESSIONS,
    **BACKWARD,
    **DENSE,
    **KEYED_REWRITES,
    **ATTENTION,
    **COMPLEX_SCANS,
    **STEPPED,
    **SIZED,
    **PAIRS,
    **UNREAD,
}
"""Name of a mixer → its body; each compiles."""


def thirds(first: Any, others: Any) -> list[Any]:
    """Names of those, a third of them with the marks of one tier, the others with a later one's."""
    return [pytest.param(n, marks=others if k % 3 else first) for k, n in enumerate(COMPILED)]


REFUSED = {
    "no_input": (
        "dims d\n param a : d\n y = softmax[d](a)",
        "`y`: it declares no input, so nothing says how many sequences and tokens there are",
        "y = softmax",
    ),
    "no_finite_state": (
        RAW + "x = sum[j ≤ i](exp(q · k[j]) * sum[l ≤ j](exp(q · k[l]) * v[l])); y = x * x",
        "it has no finite state (`exp(q · k[j])` does not separate), and the sum holds another one",
        "x = sum",
    ),
    "abstract_map": (
        "dims d, r = 2\n input u : d\n abstract φ : d -> r\n y = sum[j ≤ i](φ(u[j]))",
        "`phi`: it is an abstract map",
        "φ",
    ),
}
"""Name of a mixer → its body, words of the diagnostic, and the text it points at."""
