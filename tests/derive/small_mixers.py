"""Small mixers, one for each thing that derivation does.

Queries and keys are h × n, values h × p. In `READ_OUTS` and what follows, S : h × n × p, z : h × n
and C : h × n × p complex are states where they have an update.
"""

from __future__ import annotations

import re
from pathlib import Path

FOUND = Path(__file__).parents[1] / "campaigns" / "found"
FAILED = (
    "constant_decay_of_a_pair",
    "constant_of_a_new_axis_of_a_sum",
    "decay_of_a_map_of_ones",
    "decay_that_is_a_quotient_of_leaves",
    "denominator_with_the_axes_of_a_gate",
    "further_axis_beside_a_new_one",
    "low_rank_beside_a_constant",
    "low_rank_beside_constant_drive",
    "map_in_a_sum_of_what_decays",
    "mean_of_a_head_axis_without_keys",
    "name_before_of_a_state_and_a_number",
    "number_beside_a_growing_cache",
    "ones_of_an_axis_without_a_tensor",
    "product_of_two_filters_of_a_state",
    "query_group_times_its_key",
    "read_over_an_axis_that_no_state_has",
    "scan_that_feeds_its_group_through_another",
    "sum_over_a_query_group",
    "terms_that_cancel",
    "turned_read_in_a_complex_number",
)
"""Mixers that the compiler has failed on, of those that are kept."""

QKV = """dims d, heads h = 2, n = 3, p = 4
  input u : d
  param W_Q, W_K : d -> h × n;  W_V : d -> h × p
  q = W_Q u;  k = W_K u;  v = W_V u
"""


def mixer(body: str, states: str = "") -> str:
    return f"mixer m {{ {QKV}{states}\n{body} }}"


FORMS = {
    "queries in groups": (
        "param W_G : d -> h × d\n y = sum[j ≤ i](W_G u · W_G u * q · k[j] * v[j])"
    ),
    "running mean": "y = sum[j ≤ i](v[j]) / sum[j ≤ i](1)",
    "square by power": "y = sum[j ≤ i]((1 + q · k[j])^2 * v[j])",
    "square of a square": "y = sum[j ≤ i]((q · k[j])^2^2 * v[j])",
    "sum in a sum": "y = sum[j ≤ i](q · k[j] * sum[l ≤ j]((1/2)^(j-l) * k[j] · k[l] * v[l]))",
    "a sum over a sum": ("o = sum[j ≤ i](q · k[j] * v[j])\n y = sum[j < i](q · k[j] * o[j])"),
    "a cache in a sum": "y = sum[j ≤ i](q · k[j] * sum[l < j](exp(k[j] · k[l]) * v[l]))",
    "lag in the past": "y = sum[j ≤ i-2]((1/2)^(i-j) * q · k[j] * v[j])",
    "even lags": "param c : h unit\n y = sum[j ≤ i](c^(2*(i-j)+1) * q · k[j] * v[j])",
    "both directions": (
        "y = sum[j ≤ i](q · k[j] * v[j]) + sum[j > i]((1/2)^(j-i) * q · k[j] * v[j])"
    ),
    "gate in the exponent": (
        "param w : d -> h\n c = w u\n y = sum[j ≤ i](exp(c - c[j] - 1/3 * (i-j)) * q · k[j] * v[j])"
    ),
    "a norm of the output": ("o = sum[j ≤ i](q · k[j] * v[j])\n y = o / sqrt(1 + sum[p](o * o))"),
    "quotient of sides": (
        "y = sum[j ≤ i](q · k[j] * v[j] / (1 + sum[n](q^2)) / (1 + sum[p](v[j]^2)))"
    ),
    "running product": (
        "param w : d -> h\n a = sigmoid(w u)\n"
        "y = sum[j < i](prod[j < l < i](a[l]) * q · k[j] * v[j])"
    ),
    "product to the present": (
        "param w : d -> h\n a = sigmoid(w u)\n"
        "y = sum[j < i](prod[j < l ≤ i](a[l]) * q · k[j] * v[j])"
    ),
    "product from before the start": (
        "param w : d -> h\n a = sigmoid(w u)\n"
        "y = sum[j ≤ i](prod[j-2 < l ≤ i](1 - a[l] / 2) * q · k[j] * v[j])"
    ),
    "product over a window": (
        "param w : d -> h\n a = sigmoid(w u)\n"
        "o = sum[j ≤ i](prod[j-2 < l ≤ j](a[l]) * prod[i-2 ≤ l < i](a[l]) * q · k[j] * v[j])\n"
        "y = prod[i-3 < l ≤ i](1 + o[l])"
    ),
    "product over a window of a state": (
        "state s : h × p\n s = prod[i-2 < l ≤ i](sigmoid(v[l])) * s[i-1] + v\n"
        "y = prod[i-2 < l ≤ i](s[l])"
    ),
    "product of the future": (
        "param w : d -> h\n a = sigmoid(w u)\n"
        "y = sum[j ≥ i](prod[i < l ≤ j](a[l]) * q · k[j] * v[j])"
    ),
    "a map inside the sum": ("param W : h × p -> d\n y = sum[j ≤ i](W (q · k[j] * v[j]))"),
    "turning": (
        "param θ : h\n y = sum[j ≤ i](Re(cis(θ * (i-j))) * Im(cis(1/3 * (i-j))) * q · k[j] * v[j])"
    ),
}
"""Sums over time: name → body. Each must be its literal meaning."""

STATES = {
    "a chain of three": (
        "state S : h × n × p",
        "param w : d -> h;  K : d -> h × n\n β = sigmoid(w u);  l = K u\n F = β * S[i-1]\n"
        "G = F + k ⊗ (v - k · F)\n S = β * (G - l ⊗ (l · G))\n y = q · S",
    ),
    "low rank on both axes": (
        "state S : h × n × p",
        "param P : d -> h × p\n r = P u\n"
        "S = S[i-1] + k ⊗ v - r ⊗ sum[p](r * S[i-1])"
        " + n^(-1/2) * k ⊗ (k · sum[p](r * S[i-1])) ⊗ r\n y = q · S",
    ),
    "its own output, delayed": (
        "state S : h × n × p",
        "o = q · S\n S = S[i-1] + k ⊗ (v - 1/10 * o[i-1])\n y = o * silu(o) + max(o, 1/2)",
    ),
    "two states that feed back": (
        "state S, Z : h × n × p",
        "S = 1/2 * S[i-1] + 1/4 * Z[i-1] + k ⊗ v\n Z = 1/3 * Z[i-1] + 1/5 * S\n y = q · S + q · Z",
    ),
    "two states in series": (
        "state S, Z : h × n × p",
        "S = 1/2 * S[i-1] + k ⊗ v\n o = tanh(q · S)\n Z = Z[i-1] + k ⊗ o\n y = q · Z",
    ),
    "coefficients from an earlier stage": (
        "state S : h × n × p;  z : h × n",
        "z = 1/2 * z[i-1] + k\n S = sigmoid(z) * S[i-1] + k ⊗ v\n y = tanh(z) · S",
    ),
    "a state that runs backwards": (
        "state S : h × n × p backward",
        "S = 1/2 * S[i+1] + k ⊗ v\n y = q · S + q · S[i+1]",
    ),
    "functions of the read-out": (
        "state S : h × n × p",
        "S = 1/2 * S[i-1] + k ⊗ v\n y = sum[n](tanh(S) * S) + mean[n](tanh(S)) + max(q · S, v)",
    ),
    "delayed reads": (
        "state S : h × n × p",
        "S = 1/2 * S[i-1] + k ⊗ v\n o = q · S\n y = o[i-1] + o[i-2] + q · S[i-2] + q · S[i-1]",
    ),
    "a filter of a read-out": (
        "state S : h × n × p",
        "dims t = 3\n param w : h × p × t\n S = 1/2 * S[i-1] + k ⊗ v\n o = q · S\ny = fir[t](w, o)",
    ),
    "a map of a read-out": (
        "state S : h × n × p",
        "param W : h × p -> d\n S = 1/2 * S[i-1] + k ⊗ v\n y = W (q · S + v) + u",
    ),
    "a number in an update": ("state c : h", "c = 1/2 * c[i-1] + 1\n y = q · k * v / c"),
    "a state of another shape": (
        "state S : h × n × p;  z : h × n",
        "z = 1/2 * z[i-1] + k - 1/9 * sum[p](S[i-1])\n"
        "S = 1/3 * S[i-1] + k ⊗ v + 1/7 * z[i-1] ⊗ v\n"
        "y = q · S",
    ),
    "a factor that stands twice in one part": (
        "state x : d",
        "x = 1/2 * x[i-1] + u\n y = u * u * x + 3 * u",
    ),
    "a dense map after a gate": (
        "state x : d",
        "param A : d -> d\n F = sigmoid(u) * x[i-1]\n x = 1/3 * A F + u\n y = x",
    ),
    "the output is a state": ("state y : h × p", "y = 1/2 * y[i-1] + v"),
    "the output is a running maximum": ("state y : h × p", "y = max(y[i-1] - 1/2, v)"),
    "one numerator over two denominators": (
        "state S : h × n × p;  z, w : h × n",
        "S = 1/2 * S[i-1] + k ⊗ v\n z = 1/2 * z[i-1] + k\n w = 1/2 * w[i-1] + k\n"
        "y = q · S / (q · z) + q · S / (k · w)",
    ),
    "two numerators over two denominators": (
        "state S, T : h × n × p;  z, w : h × n",
        "S = 1/2 * S[i-1] + k ⊗ v\n T = 1/2 * T[i-1] + k ⊗ (v * v)\n"
        "z = 1/2 * z[i-1] + k\n w = 1/2 * w[i-1] + k\n"
        "y = (q · S + q · T) / (q · z + k · w)",
    ),
    "a denominator of two drives": (
        "state S, Z : h × p",
        "S = 1/2 * S[i-1] + 1/3 * v\n Z = 1/2 * Z[i-1] + 1/3 + v\n y = S / (1 + Z) + Z",
    ),
    "a denominator that reads another state": (
        "state S : h × n × p;  z, w : h × n",
        "w = 1/3 * w[i-1] + q\n S = 1/2 * S[i-1] + k ⊗ v\n"
        "z = 1/2 * z[i-1] + 1/8 * w[i-1] + k + 1/9 * sum[p](S[i-1])\n"
        "y = q · S / (1 + exp(q · z)) + q · w * v",
    ),
    "a circle of four": (
        "state a, b, c, e, f : d",
        "a = 1/2 * a[i-1] + 1/8 * b[i-1] + u\n b = 1/2 * b[i-1] + 1/8 * c[i-1] + 1/9 * e[i-1]\n"
        "c = 1/3 * c[i-1] + 1/8 * a[i-1]\n e = 1/4 * e[i-1] + 1/7 * b[i-1] + f\n"
        "f = 1/5 * f[i-1] + u\n y = a * c + e",
    ),
    "states that stand before others for a read of both": (
        "state S : h × n × p;  z : h × n",
        "S = 1/2 * S[i-1] + k ⊗ v\n z = 1/3 * z[i-1] + k\n o = q · S\n y = o * tanh(o) + z · S",
    ),
    "names that derivation would give": (
        "state S_now, z : h × p",
        "param decay : h;  W_D : d -> h × p\n buffer S : h × p = 1/2\n read = W_D u\n"
        "S_now = 1/2 * S_now[i-1] + read * S\n z = 1/3 * z[i-1] + tanh(S_now[i-1])\n"
        "delayed = sum[j ≤ i](q · k[j] * v[j]) / sum[j ≤ i](exp(decay * (j-i)))\n"
        "S_before = tanh(delayed) + z * tanh(z)\n"
        "y = S_before[i-1] + sum[j < i](prod[j < l < i](sigmoid(read[l])) * S_now[j])",
    ),
    "a flow that reads a name of another state before": (
        "state S : h × n × p;  z : h × n",
        "z = 1/2 * z[i-1] + k\n g = sigmoid(q · z)\n o = g * v\n"
        "S' = -S + k ⊗ o[i-1] by euler(1/8)\n y = q · S",
    ),
    "a denominator whose state has an axis that the numerator's lacks": (
        "state S : h × p;  z : h × n",
        "S = 1/2 * S[i-1] + v\nz = 1/2 * z[i-1] + k\ny = S / (q · z)",
    ),
    "states that a filter of the first's definition puts in a row": (
        "state S, T, R : h × n × p",
        "S = 1/2 * S[i-1] + k ⊗ v\nT = sigmoid(q · S[i-1]) * T[i-1] + k ⊗ v\n"
        "R = sigmoid(q · T[i-1]) * R[i-1] + k ⊗ v\ny = q · R",
    ),
    "a state of complex and real factors": (
        "state C : h × n × p complex;  S : h × n × p",
        "param θ, ω : h\n S = 1/2 * S[i-1] + Re(C[i-1]) + k ⊗ v\n C = cis(θ) * C[i-1] + k ⊗ v\n"
        "y = Re(cis(ω) * (q · C)) + Im(q · conj(C)) + abs(k · C) + q · S",
    ),
    "a state along an axis of maps for each head": (
        "state x : h × n",
        "param A : each h : n -> n;  B : each h : n -> p\n"
        "F = sigmoid(q) * x[i-1]\n x = 1/3 * A F + k\n y = B x + B (tanh(x)) + v",
    ),
    "what an update reads twice through one name": (
        "state S : h × n × p",
        "F = 1/2 * S[i-1] + 1/4 * k ⊗ (q · S[i-1])\n o = k · F\n"
        "S = F - k ⊗ (1/8 * o) + 1/9 * q ⊗ (k · F + o) + k ⊗ v\n y = q · S",
    ),
    "a name before, of a state and a number": (
        "state S : h × n × p",
        "o = 1/3 * S + 1\n S = 1/2 * S[i-1] + 1/5 * o[i-1] + k ⊗ v\n y = q · S",
    ),
    "a name before, of a state times an earlier one": (
        "state S : h × n × p;  z : h × n",
        "z = 1/2 * z[i-1] + k\n o = z * S + z[i-1] ⊗ v + z ⊗ ones[p]\n"
        "S = 1/2 * S[i-1] + 1/5 * o[i-1] + k ⊗ v\n y = q · S",
    ),
    "a name before, of a state that runs backwards": (
        "state S : h × p;  R : h × p backward",
        "R = 1/3 * R[i+1] + v\n o = R[i+1] * S + R\n S = 1/2 * S[i-1] + 1/4 * o[i-1] + v\ny = S",
    ),
    "a name after, of a state and a stream": (
        "state R : h × p backward",
        "o = v * R + v\n R = 1/2 * R[i+1] + 1/5 * o[i+1] + v\n y = R",
    ),
    "a name before that is a sum of states": (
        "state S, Z : h × n × p",
        "o = 1/3 * S + q ⊗ v * (1/7)\n S = 1/2 * S[i-1] + 1/5 * o[i-1] + k ⊗ v\n"
        "Z = 1/2 * Z[i-1] + o[i-1] - 1/4 * o\n y = q · S + q · Z",
    ),
}
"""State updates: name → (declaration, body)."""

READ_OUTS = {
    "a gate of one of two terms": ("S = 1/2 * S[i-1] + k ⊗ v\ny = silu(v) * (q · S) + k · S"),
    "a gate of all terms": ("S = 1/2 * S[i-1] + k ⊗ v\ny = silu(v) * (q · S + k · S[i-1] + v * v)"),
    "a gate that stands twice in one term": (
        "S = 1/2 * S[i-1] + k ⊗ v\ny = v * (v * (q · S) + v * v * (k · S))"
    ),
    "a gate with an axis that the term lacks": ("z = 1/2 * z[i-1] + k\ny = v * sum[n](q * z)"),
    "a constant factor is no gate": (
        "param c : h × p\nS = 1/2 * S[i-1] + k ⊗ v\ny = c * v * (q · S)"
    ),
    "two functions of states multiplied": (
        "S = 1/2 * S[i-1] + k ⊗ v\ny = v * tanh(q · S) * tanh(k · S)"
    ),
    "a gate of a gated read": (
        "param W : h × p -> h × p\nS = 1/2 * S[i-1] + k ⊗ v\ny = v * W (v * (q · S))"
    ),
    "a quotient by a token's value": ("S = 1/2 * S[i-1] + k ⊗ v\ny = tanh(q · S) / (1 + v * v)"),
    "a gated read over a token's value": (
        "param W : h × p -> h × p\nS = 1/2 * S[i-1] + k ⊗ v\ny = (v * W (q · S)) / (1 + v * v)"
    ),
    "gates on both sides of a ratio": (
        "S = 1/2 * S[i-1] + k ⊗ v\n"
        "z = 1/2 * z[i-1] + k\n"
        "y = exp(sum[p](v)) * silu(v) * (q · S) / (exp(sum[p](v)) * (q · z))"
    ),
    "a gate that may be 0 stays on both sides": (
        "S = 1/2 * S[i-1] + k ⊗ v\n"
        "z = 1/2 * z[i-1] + k\n"
        "y = sum[p](v) * (q · S) / (sum[p](v) * (q · z))"
    ),
    "a guard of a gated denominator": (
        "S = 1/2 * S[i-1] + k ⊗ v\n"
        "z = 1/2 * z[i-1] + k\n"
        "y = exp(sum[p](v)) * (q · S) / max(1/2, abs(exp(sum[p](v)) * (q · z)))"
    ),
    "a guard with the constant first": (
        "S = 1/2 * S[i-1] + k ⊗ v\n"
        "z = 1/2 * z[i-1] + k\n"
        "y = q · S / max(sum[p](exp(v)), abs(q · z))"
    ),
    "no guard by what the state gives": (
        "S = 1/2 * S[i-1] + k ⊗ v\n"
        "z = 1/2 * z[i-1] + k\n"
        "y = q · S / max(abs(q · z), 1 + k · z * (k · z))"
    ),
    "a guard that is added": (
        "param c : h unit\n"
        "S = 1/2 * S[i-1] + k ⊗ v\n"
        "z = 1/2 * z[i-1] + k\n"
        "y = q · S / (c + 1/8 + q · z)"
    ),
    "a denominator through names": (
        "S = 1/2 * S[i-1] + k ⊗ v\n"
        "z = 1/2 * z[i-1] + k\n"
        "η = max(abs(q · z), 1)\n"
        "ζ = η\n"
        "y = q · S / ζ"
    ),
    "a quotient by a complex state": (
        "param θ : h\n C = 1/2 * cis(θ) * C[i-1] + k ⊗ v\n y = Re(v / (q · C))"
    ),
    "a guard of a complex state": (
        "param θ : h\n C = 1/2 * cis(θ) * C[i-1] + k ⊗ v\n y = Re(q · C) / max(abs(q · C), 1)"
    ),
    "one over a state": ("S = 1/2 * S[i-1] + k ⊗ v\ny = 1 / (q · S)"),
    "a mean over an axis of a state": (
        "S = 1/2 * S[i-1] + k ⊗ v\ny = mean[n](tanh(S)) + mean[n](q * S)"
    ),
    "a contraction of a sum": ("S = 1/2 * S[i-1] + k ⊗ v\ny = sum[n](tanh(S) + q * S + q ⊗ v)"),
    "a contraction of two states": ("z = 1/2 * z[i-1] + k\nS = 1/3 * S[i-1] + k ⊗ v\ny = z · S"),
    "a contraction of two states that feed each other": (
        "z = 1/2 * z[i-1] + k + sum[p](S[i-1])\nS = 1/3 * S[i-1] + k ⊗ v + z[i-1] ⊗ v\ny = z · S"
    ),
    "a contraction of a function and a state": (
        "S = 1/3 * S[i-1] + k ⊗ v\ny = sum[n](tanh(sum[p](S)) * q * S)"
    ),
    "a contraction of a state with itself": ("S = 1/3 * S[i-1] + k ⊗ v\ny = sum[n](S * S)"),
    "a contraction through a name": ("S = 1/3 * S[i-1] + k ⊗ v\no = q * tanh(S)\ny = sum[n](o)"),
    "a sum of maps and reads": (
        "param W : h × p -> h × p\n"
        "S = 1/2 * S[i-1] + k ⊗ v\n"
        "y = W (q · S) + k · S + v + tanh(q · S)"
    ),
    "a map through a name": (
        "param W : h × p -> h × p\n"
        "S = 1/2 * S[i-1] + k ⊗ v\n"
        "o = W (q · S)\n"
        "y = 2 * o / (1 + v * v) + v"
    ),
    "a sum of functions alone": ("S = 1/2 * S[i-1] + k ⊗ v\ny = tanh(q · S) + tanh(k · S) + v + 1"),
    "a name used twice is a stream": ("S = 1/2 * S[i-1] + k ⊗ v\no = q · S\ny = o * tanh(o)"),
    "a name used once stands in place": ("S = 1/2 * S[i-1] + k ⊗ v\no = q · S\ny = v * tanh(o)"),
    "a maximum over an axis": ("S = 1/2 * S[i-1] + k ⊗ v\ny = max[n](S) + q · S"),
    "a softmax over an axis": ("S = 1/2 * S[i-1] + k ⊗ v\ny = sum[n](q * softmax[n](S))"),
    "the state before the last": ("S = 1/2 * S[i-1] + k ⊗ v\ny = q · S + q · S[i-3]"),
    "a read-out of a token before": ("S = 1/2 * S[i-1] + k ⊗ v\no = q · S\ny = tanh(o[i-2]) + o"),
    "states that nothing reads, in a sum of two": (
        "S = 1/2 * S[i-1] + k ⊗ v\nz = z[i-1] + k\ny = q · S"
    ),
    "the value cancels": ("S = 1/2 * S[i-1] + k ⊗ v\ny = q · S - q · S + v"),
    "a cast of a complex read": (
        "param θ : h\nC = cis(θ) * C[i-1] + k ⊗ v\ny = Re(q · C) + Im(k · C)"
    ),
    "attention over a state": (
        "S = 1/2 * S[i-1] + k ⊗ v\no = q · S\ny = sum[j ≤ i](exp(q · k[j]) * o[j])"
    ),
    "attention beside a state": (
        "S = 1/2 * S[i-1] + k ⊗ v\n"
        "y = sum[j ≤ i](exp(q · k[j]) * v[j]) / sum[j ≤ i](exp(q · k[j])) + q · S"
    ),
    "attention that reads the state now": (
        "S = 1/2 * S[i-1] + k ⊗ v\ny = sum[j ≤ i](exp(q · k[j]) * (k[j] · S) * v[j])"
    ),
    "a state over another's functions": (
        "z = 1/2 * z[i-1] + k\nS = 1/2 * S[i-1] + k ⊗ v\ny = q · S / (1 + exp(q · z))"
    ),
    "sums of different decays make no pair": (
        "S = 1/2 * S[i-1] + k ⊗ v\nz = 1/3 * z[i-1] + k\ny = q · S / (q · z)"
    ),
    "sums of different keys make no pair": (
        "S = 1/2 * S[i-1] + k ⊗ v\nz = 1/2 * z[i-1] + q\ny = q · S / (k · z)"
    ),
    "a sum of two drives makes no pair": (
        "S = 1/2 * S[i-1] + k ⊗ v + q ⊗ v\nz = 1/2 * z[i-1] + k\ny = q · S / (q · z)"
    ),
    "a denominator that is a sum of values makes no pair": (
        "S = 1/2 * S[i-1] + k ⊗ v\nz = 1/2 * z[i-1] + sum[p](v) * k\ny = q · S / (q · z)"
    ),
    "two numerators over one denominator": (
        "S = 1/2 * S[i-1] + k ⊗ v\nz = 1/2 * z[i-1] + k\ny = q · S / (q · z) + k · S / (k · z)"
    ),
    "an exponential in front of the numerator alone": (
        "S = 1/2 * S[i-1] + k ⊗ v\nz = 1/2 * z[i-1] + k\n"
        "y = exp(sum[p](v)) * (q · S) / (exp(sum[n](q)) * (q · z))"
    ),
    "a function on both sides that may be 0": (
        "S = 1/2 * S[i-1] + k ⊗ v\nz = 1/2 * z[i-1] + k\n"
        "y = sin(sum[p](v)) * (q · S) / (sin(sum[p](v)) * (q · z))"
    ),
    "an exponential on both sides of a guarded ratio": (
        "S = 1/2 * S[i-1] + k ⊗ v\nz = 1/2 * z[i-1] + k\n"
        "y = exp(sum[p](v)) * (q · S) / (1/8 + exp(sum[p](v)) * (q · z))"
    ),
    "an exponential twice above and once below": (
        "S = 1/2 * S[i-1] + k ⊗ v\nz = 1/2 * z[i-1] + k\n"
        "y = exp(sum[p](v))^2 * exp(sum[p](v)) * (q · S) / (exp(sum[p](v)) * (q · z))"
    ),
    "a contraction of a sum of different axes": (
        "S = 1/2 * S[i-1] + k ⊗ v\ny = sum[n](tanh(S) + q ⊗ ones[p] + k * q ⊗ v)"
    ),
    "a contraction of an axis that is not there": (
        "z = 1/2 * z[i-1] + k\ny = v * sum[n](tanh(q · z) ⊗ ones[n]) + v * mean[n](tanh(z))"
    ),
    "a contraction of three states": (
        "S = 1/3 * S[i-1] + k ⊗ v\nz = 1/2 * z[i-1] + k\ny = sum[n](q * tanh(z) * z * S)"
    ),
    "a contraction of a square through a name": (
        "S = 1/3 * S[i-1] + k ⊗ v\no = q * S\ny = sum[n](o * o) + sum[n](o)"
    ),
    "a rename of a factor of a read": (
        "dims m = 3\nparam M : h × m\nS = 1/2 * S[i-1] + k ⊗ v\n"
        "y = sum[m](M * rename[n, m](k ⊗ (q · S)))"
    ),
    "a rename of a read": (
        "dims m = 4\nparam M : h × m × p\nS = 1/2 * S[i-1] + k ⊗ v\n"
        "y = sum[m](M * rename[p, m](q · S)) + v"
    ),
    "a rename of a function of a read": (
        "dims m = 4\nparam M : h × m × p\nS = 1/2 * S[i-1] + k ⊗ v\n"
        "y = sum[m](M * rename[p, m](tanh(q · S))) + v"
    ),
    "a map of an earlier read-out": (
        "param W : h × p -> h × p\nS = 1/2 * S[i-1] + k ⊗ v\no = W (q · S)\ny = o[i-1] + k · S"
    ),
    "a map under a contraction": (
        "param W : h × p -> h × p\nS = 1/2 * S[i-1] + k ⊗ v\n"
        "y = v * sum[p](W (q · S) * v) + sum[p](W (tanh(q · S))) * v"
    ),
    "a map of what two maps give": (
        "param W : h × p -> h × p;  V : h × p -> d;  U : d -> h × p\n"
        "S = 1/2 * S[i-1] + k ⊗ v\ny = U V (W (q · S) * v) + W (k · S)"
    ),
    "a map of factors without its axes": (
        "param W : p -> p\nS = 1/2 * S[i-1] + k ⊗ v\ny = sum[n](W (k ⊗ v * (q · S)) * q)"
    ),
    "a constant per head under a contraction": (
        "param c : h;  e : h × n\nS = 1/2 * S[i-1] + k ⊗ v\ny = c * (q · S) + e · S * (k · q)"
    ),
    "a constant and a gate beside a new axis": (
        "param c : h;  e : n\nz = 1/2 * z[i-1] + k\ny = v * sum[n]((c * (q · z)) ⊗ e * k)"
    ),
    "reads at two lags": (
        "S = 1/2 * S[i-1] + k ⊗ v\ny = silu(v) * (q · S - 1/3 * (q · S[i-1])) - k · S[i-1]"
    ),
    "a quotient of quotients": (
        "S = 1/2 * S[i-1] + k ⊗ v\nz = 1/2 * z[i-1] + k\n"
        "y = (q · S / (1 + v * v)) / (q · z / (1 + k · k))"
    ),
    "a token's value over a state": (
        "z = 1/2 * z[i-1] + k\ny = v / (1 + (q · z)^2) + 1 / (1 + exp(q · z)) * v"
    ),
    "a power of a state": ("S = 1/2 * S[i-1] + k ⊗ v\ny = (q · S)^2 + (1 + (k · S)^2)^(1/2)"),
    "a filter of a sum that stays": (
        "dims t = 2\nparam w : h × p × t\no = sum[j ≤ i](exp(q · k[j]) * v[j])\ny = fir[t](w, o)"
    ),
    "attention over values before": (
        "S = 1/2 * S[i-1] + k ⊗ v\no = q · S\n"
        "y = sum[j < i](exp(q · k[j]) * o[j-1] * (1 + sum[p](o)))"
    ),
    "attention over a state and the one before": (
        "z = 1/2 * z[i-1] + k\ny = sum[j ≤ i](exp(q · z[j]) * (k · z[j-1]) * v[j])"
    ),
    "attention to the future": ("y = sum[j > i](exp(q · k[j]) * v[j]) / (1 + v * v)"),
    "attention in attention": (
        "y = sum[j ≤ i](exp(q · k[j]) * sum[l ≤ j](exp(k[j] · k[l]) * v[l] * q · k[j]))"
    ),
    "a running maximum in a read-out": (
        "state m : h\nparam w : d -> h\nc = w u\nm = max(m[i-1] + log(sigmoid(c)), k · q)\n"
        "S = exp(log(sigmoid(c)) + m[i-1] - m) * S[i-1] + exp(k · q - m) * k ⊗ v\n"
        "y = q · S * exp(m) / (1 + abs(m[i-1])) + m[i-1] * v"
    ),
    "a maximum that is no guard": (
        "S = 1/2 * S[i-1] + k ⊗ v\nz = 1/2 * z[i-1] + k\n"
        "y = q · S / max(exp(q · z), 1) + k · S / max(tanh(q · z), 1)"
    ),
    "a denominator of numbers and a stream": (
        "S = 1/2 * S[i-1] + k ⊗ v\nz = 1/2 * z[i-1] + k\n"
        "y = q · S / (exp(q · z) + exp(k · k) + 1) + k · S / (exp(k · z) + tanh(k · z) + 2)"
    ),
    "a denominator before": (
        "S = 1/2 * S[i-1] + k ⊗ v\nz = 1/2 * z[i-1] + k\nη = max(abs(q · z), 1)\n"
        "ζ = 1 + η * η\ny = q · S / (1 + ζ[i-1] * ζ[i-1])"
    ),
    "a maximum over an axis of a ratio": (
        "S = 1/2 * S[i-1] + k ⊗ v\ny = max[n](S / (1 + k * k ⊗ ones[p])) - min(q · S, v)"
    ),
}
"""Read-outs: name → body."""

_HEIGHT = {
    "a function": "exp({})",
    "a map": "W ({})",
    "a part": "Re({} * cis(k · q))",
    "a gate": "v * ({})",
    "a sum over an axis": "sum[n](q * exp(S))",
    "a product": "({}) * (k · S)",
    "a sum": "exp({}) + k · S",
    "a sum over time": "sum[j ≤ i](exp(q · k[j]) * v[j]) + 0 * ({})",
    "a ratio": "({}) / (3 + tanh(k · S))",
    "a read": "{}",
    "a softmax": "softmax[p]({})",
    "a map for each head": "V ({})",
}
"""Nodes of a read-out of q · S, by what stands on top."""

for _name, _value in _HEIGHT.items():
    _states = "param W : h × p -> h × p;  V : each h : p -> p\n" * ("W" in _value or "V" in _value)
    _states += "S = 1/2 * S[i-1] + k ⊗ v\nz = 1/2 * z[i-1] + k\n"
    _value = _value.format("q · S")
    READ_OUTS[f"a ratio over {_name}, which has an axis more"] = (
        f"{_states}y = (tanh(q · z) ⊗ ones[p]) / ({_value})"
    )
    READ_OUTS[f"{_name} over a function"] = f"{_states}y = ({_value}) / (2 + tanh(q · z))"

FLOWS = {
    "zoh": ("param a : h\nS' = -exp(a) * S + k ⊗ v by zoh(softplus(k · q))\ny = q · S"),
    "zoh without a rate": ("S' = k ⊗ v by zoh(softplus(k · q))\ny = q · S"),
    "euler": ("param a : h\nS' = -exp(a) * S + k ⊗ v by euler(1/8)\ny = q · S"),
    "bilinear": ("param a : h\nS' = -exp(a) * S + k ⊗ v by bilinear(1/8)\ny = q · S"),
    "bilinear of low rank": (
        "param a : h\nS' = -exp(a) * S - k ⊗ (k · S) + k ⊗ v by bilinear(1/8)\ny = q · S"
    ),
    "bilinear of rank two": (
        "param a : h\n"
        "S' = -exp(a) * S - k ⊗ (k · S) - q ⊗ (k · S) + k ⊗ v by bilinear(1/8)\n"
        "y = q · S"
    ),
    "a number drives": ("z' = -1/2 * z + 1 by euler(softplus(k · q))\ny = v * sum[n](q * z)"),
    "nothing drives": (
        "S = 1/2 * S[i-1] + k ⊗ v\nz' = -1/2 * z by euler(1/4)\ny = (q · S) + v * (q · z)"
    ),
    "bilinear of rank two, with a rate of each entry": (
        "param a : h × n × p\n"
        "S' = -exp(a) * S - k ⊗ (k · S) - q ⊗ (q · S) + k ⊗ v by bilinear(1/8)\n"
        "y = q · S"
    ),
    "euler without a rate, of a number": (
        "z' = ones[h, n] by euler(1/8)\nS' = k ⊗ v by euler(softplus(k · q))\n"
        "y = q · S + v * (q · z)"
    ),
    "bilinear, of an axis that is contracted and one that is not": (
        "param a : h × n\nS' = -(exp(a) ⊗ ones[p]) * S - v ⊗ sum[p](v * S) + k ⊗ v"
        " by bilinear(softplus(k · q))\ny = q · S"
    ),
    "bilinear of a scaled rank": (
        "param a : h;  b : h × p\n"
        "S' = -exp(a) * S - k ⊗ exp(b) * (k · S) + q ⊗ v by bilinear(1/8)\ny = q · S"
    ),
    "a flow of what a state has read": (
        "z = 1/2 * z[i-1] + k\nS' = -(1 + (q · z)^2) * S + z ⊗ v by zoh(1 / (1 + exp(q · z)))\n"
        "y = q · S"
    ),
    "a complex flow": (
        "param a, θ : h\nC' = cplx(-exp(a), θ) * C + k ⊗ v by zoh(softplus(k · q))\ny = Re(q · C)"
    ),
    "a flow backwards": (
        "state R : h × p backward\nparam a : h\nR' = -exp(a) * R + v by zoh(softplus(k · q))\n"
        "y = R + R[i+1]"
    ),
    "a flow beside its own value": (
        "z' = -z + k by euler(1/4)\nS' = -S + k ⊗ v + z ⊗ v by euler(1/8)\n"
        "y = q · S + v * (q · z[i-1])"
    ),
}
"""Flows of the same states."""

UPDATES = {
    "a delayed definition": (
        "o = q · S\nS = 1/2 * S[i-1] + k ⊗ (v - 1/8 * (k ⊗ o[i-1]) · k)\ny = q · S"
    ),
    "a state that reads another's present": (
        "z = 1/2 * z[i-1] + k\nS = 1/3 * S[i-1] + z ⊗ v + k ⊗ v\ny = q · S + v * sum[n](q * z)"
    ),
    "two states in a circle": (
        "z = 1/2 * z[i-1] + k + 1/8 * sum[p](S[i-1])\nS = 1/3 * S[i-1] + z ⊗ v\ny = q · S"
    ),
    "a decay that is a sum": ("S = (1/2 + 1/4) * S[i-1] + 1/8 * S[i-1] + k ⊗ v\ny = q · S"),
    "a decay of a quotient": ("S = S[i-1] / (1 + exp(k · q)) + k ⊗ v\ny = q · S"),
    "a mean in an update": ("S = 1/2 * S[i-1] + k ⊗ (v - mean[n](S[i-1]))\ny = q · S"),
    "a head decay under the sum": (
        "param w : d -> h\na = sigmoid(w u)\nF = a * S[i-1]\nS = F + k ⊗ (v - k · F)\ny = q · S"
    ),
    "a channel decay before the sum": (
        "a = sigmoid(v)\nF = a * S[i-1]\nS = F + k ⊗ (v - k · F)\ny = q · S"
    ),
    "an identity factor": (
        "F = S[i-1]\nG = F - k ⊗ (k · F)\nS = G - q ⊗ (q · G) + k ⊗ v\ny = q · S"
    ),
    "factors with drives between": (
        "F = S[i-1] - k ⊗ (k · F0)\nF0 = S[i-1]\nS = 1/2 * F + k ⊗ v\ny = q · S"
    ),
    "a rename in an update": (
        "dims m = 3\n"
        "state x : m\n"
        "param A : d -> m;  B : d -> m\n"
        "x = 1/2 * x[i-1] + A u\n"
        "y = v * sum[m](x * B u)"
    ),
    "a full map": ("state x : d\nparam A : d -> d\nx = A x[i-1] + u\ny = x"),
    "a full map and a low rank": (
        "state x : d\nparam A : d -> d\nx = A x[i-1] - u * sum[d](u * x[i-1]) + u\ny = x"
    ),
    "ones as a drive": ("z = sigmoid(k) * z[i-1] + 1\ny = v * sum[n](q * z)"),
    "a drive of two terms": ("S = 1/2 * S[i-1] + k ⊗ v + q ⊗ v\ny = q · S"),
    "a constant drive": ("param b : h × n × p\nS = 1/2 * S[i-1] + b + k ⊗ v\ny = q · S"),
    "no drive": ("S = 1/2 * S[i-1]\nz = 1/2 * z[i-1] + k\ny = q · S + v * (q · z)"),
    "a decay that is a root": "S = sqrt(sigmoid(k · q)) * S[i-1] + k ⊗ v\n y = q · S",
    "a decay that is a power": "S = sigmoid(k · q)^(1/8) * S[i-1] + k ⊗ v\n y = q · S",
    "a decay that is a modulus": (
        "param θ : h\n S = abs(cis(θ) * sigmoid(k · q)) * S[i-1] + k ⊗ v\n y = q · S"
    ),
    "a decay over a size": "S = exp(-(k · q)^2) / n * S[i-1] + k ⊗ v\n y = q · S",
    "a decay that is one minus a gate": "S = (1 - sigmoid(k · q)) * S[i-1] + k ⊗ v\n y = q · S",
    "a decay of unknown sign": "S = tanh(k · q) * tanh(q · q) * S[i-1] + k ⊗ v\n y = q · S",
    "a decay of a number and a gate": "S = 3/4 * sigmoid(k · q) * S[i-1] + k ⊗ v\n y = q · S",
    "a turning decay": (
        "param θ : h\n C = exp(cplx(-(k · q)^2, θ)) * C[i-1] + k ⊗ v\n y = Re(q · C)"
    ),
    "a turning decay over another": (
        "param θ : h\n C = conj(cis(θ)) / cis(θ * 2) * C[i-1] + k ⊗ v\n y = Re(q · C)"
    ),
    "a complement of the decay drives": (
        "a = sigmoid(k)\n S = a * S[i-1] + (1 - a) ⊗ v\n y = q · S"
    ),
    "a root of the decay's complement drives": (
        "a = sigmoid(v)\n S = a * S[i-1] + k ⊗ (sqrt(1 - a^2) * v)\n y = q · S"
    ),
    "a step drives": (
        "param w : d -> h;  a : h\n Δ = softplus(w u)\n"
        "S = exp(-exp(a) * Δ) * S[i-1] + (Δ * k) ⊗ v\n y = q · S"
    ),
    "zero-order hold of half a step": (
        "param w : d -> h;  a : h\n Δ = softplus(w u)\n"
        "S = exp(1/2 * a * Δ) * S[i-1] + ((exp(1/2 * a * Δ) - 1) / a * k) ⊗ v\n y = q · S"
    ),
    "zero-order hold of a falling rate": (
        "param w : d -> h;  a : h\n Δ = softplus(w u)\n"
        "S = exp(-a * Δ) * S[i-1] + ((1 - exp(-a * Δ)) / a * k) ⊗ v\n y = q · S"
    ),
    "a map of what scales a contraction": (
        "state x : n\n param A : d -> n\n"
        "x = 1/2 * x[i-1] + A (1/8 * u * sum[n](x[i-1])) + A u\n y = x"
    ),
    "two keys of one stream": "S = 1/2 * S[i-1] + k ⊗ v + ones[n] ⊗ v\ny = q · S",
    "a rename of what contracts the state": (
        "dims m = 3\nparam M : h × m\n"
        "S = 1/2 * S[i-1] + k ⊗ sum[m](M * rename[n, m](1/8 * q ⊗ (k · S[i-1]))) + k ⊗ v\n"
        "y = q · S"
    ),
    "a map of what a name scales": (
        "param A : d -> d\nstate x : d\nF = 1/2 * x[i-1] + u\nx = A F - 1/3 * F\ny = x"
    ),
    "streams of every degree": (
        "param W, V : d -> h × p;  c : h × p;  N : h × p -> h × p\n"
        "dims t = 2\nparam f : h × p × t\n"
        "S = 1/2 * S[i-1] + k ⊗ (tanh(v) * (W u)) + k ⊗ (tanh(v) * sigmoid(v * v))"
        " + q ⊗ (c * tanh(v) * exp(v * v)) + k ⊗ (tanh(v * v) * sin(v)) + k ⊗ fir[t](f, v)"
        " + q ⊗ (N (v / 3) + c * v) + q ⊗ (v / (1 + v * v)) + k ⊗ mean[n](k ⊗ v)\n"
        "y = q · S"
    ),
    "streams of complex values": (
        "param θ : h × p;  W : d -> h × p complex\n"
        "C = 1/2 * C[i-1] + k ⊗ cplx(v, 2 * v) + k ⊗ conj(W u) * sigmoid(v)"
        " + q ⊗ (cis(θ) * v) + q ⊗ (Re(W u) * tanh(v)) + k ⊗ cis(v)\ny = Re(q · C)"
    ),
    "a stream that is a name of a function": (
        "a = tanh(v)\nb = a\nc = v * v\n"
        "S = 1/2 * S[i-1] + k ⊗ (b * c) + q ⊗ (b * sigmoid(c))\ny = q · S"
    ),
    "a stream read from another state": (
        "z = 1/2 * z[i-1] + k\nS = 1/2 * S[i-1] + k ⊗ (v * (q · z)) + z ⊗ tanh(v)\ny = q · S"
    ),
    "a part of the decay's complement drives": (
        "a = sigmoid(k)\nb = sigmoid(q)\n"
        "S = a * b * S[i-1] + (1 - a) * (1 - b) ⊗ v + (1 - a * b) ⊗ tanh(v)\ny = q · S"
    ),
    "a bilinear step by hand": (
        "param w : d -> h;  a : h\nΔ = softplus(w u)\nr = 1 / (1 + Δ * exp(a) / 2)\n"
        "S = (2 * r - 1) * S[i-1] + (r * Δ * k) ⊗ v\ny = q · S"
    ),
    "a bilinear step by hand, without names": (
        "param w : d -> h;  a : h\n"
        "S = (1 - softplus(w u) * exp(a) / 2) / (1 + softplus(w u) * exp(a) / 2) * S[i-1]"
        " + (softplus(w u) / (1 + softplus(w u) * exp(a) / 2) * k) ⊗ v\ny = q · S"
    ),
    "a drive over its decay": (
        "a = sigmoid(k)\nS = a * S[i-1] + (log(a) * k) ⊗ v + (1 / a) ⊗ v * (k · q)\ny = q · S"
    ),
    "a low-rank term with the drive's key": (
        "β = sigmoid(k · q)\nS = S[i-1] - (β * k) ⊗ (k · S[i-1]) + (2 * β * k) ⊗ v + q ⊗ v\n"
        "y = q · S"
    ),
    "a rank of each side": (
        "S = S[i-1] - 1/8 * k ⊗ (q · S[i-1]) - 1/9 * sum[p](v * S[i-1]) ⊗ v + k ⊗ v\ny = q · S"
    ),
    "a decay that vanishes": "S = 0 * S[i-1] + k ⊗ v\ny = q · S",
    "a decay of every axis": (
        "param w : h × n × p\nS = sigmoid(w) * sigmoid(k) * sigmoid(v) * S[i-1] + k ⊗ v\ny = q · S"
    ),
    "a decay at the first token": ("S = (1 - first) * sigmoid(k) * S[i-1] + k ⊗ v\ny = q · S"),
    "a decay of a token before": "a = sigmoid(k)\nS = a[i-1] * S[i-1] + a[i-2] ⊗ v\ny = q · S",
    "a product of three decays in names": (
        "a = sigmoid(k · q)\nb = a * exp(-a)\nc = b\nF = a * S[i-1]\nG = b * F + k ⊗ v\n"
        "S = c * G + q ⊗ v\ny = q · S"
    ),
    "a contraction of two axes at once": (
        "S = S[i-1] + k ⊗ v * sum[n](q * sum[p](v * (k ⊗ v) * S[i-1])) + k ⊗ v\ny = q · S"
    ),
}
"""Updates of the same states."""

SUMS = {
    "an exponential of a quotient": (
        "param w : d -> h\nc = w u\ny = sum[j ≤ i](exp((c[j] - c) / 2) * q · k[j] * v[j])"
    ),
    "an exponential of a product of sums": (
        "param w : d -> h\nc = w u\ny = sum[j ≤ i](exp(1/3 * (c[j] - c) - 1/4 * (i-j)) * v[j])"
    ),
    "a complex exponent": (
        "param θ : h\ny = sum[j ≤ i](Re(exp(cplx(-1/2 * (i-j), θ * (i-j)))) * q · k[j] * v[j])"
    ),
    "a lag times two": ("param c : h unit\ny = sum[j ≤ i](c^(2*(i-j)) * q · k[j] * v[j])"),
    "a lag and one": ("param c : h unit\ny = sum[j ≤ i](c^(i-j+1) * q · k[j] * v[j])"),
    "a lag times two, to the future": (
        "param c : h unit\ny = sum[j ≥ i](c^(2*(j-i)+1) * q · k[j] * v[j])"
    ),
    "strictly to the future": ("param c : h unit\ny = sum[j > i](c^(j-i) * q · k[j] * v[j])"),
    "a series": ("y = sum[j ≤ i](taylor[3](q · k[j]) * v[j])"),
    "a power below 0": ("y = sum[j ≤ i]((1 + sum[p](v[j]^2))^(-2) * q · k[j] * v[j])"),
    "a power of a power": ("y = sum[j ≤ i]((q · k[j])^3 * v[j])"),
    "power 0": ("y = sum[j ≤ i]((q · k[j])^0 * v[j])"),
    "a mean inside": ("y = sum[j ≤ i](mean[n](q * k[j]) * v[j])"),
    "a maximum inside": ("y = sum[j ≤ i](max[n](q * k[j]) * v[j])"),
    "a map of a product": ("param W : h × p -> h × p\ny = sum[j ≤ i](W (v * v[j]))"),
    "a map of the summed side": (
        "param W : h × p -> h × p\ny = sum[j ≤ i](q · k[j] * W (v[j] * v[j]))"
    ),
    "a rename inside": (
        "dims m = 3\ny = sum[j ≤ i](sum[m](rename[n, m](q * k[j]) * rename[n, m](k)) * v[j])"
    ),
    "a rename to an axis that is summed": (
        "dims m = 3\n"
        "param W_M : d -> h × m\n"
        "l = W_M u\n"
        "y = sum[j ≤ i](sum[n](rename[m, n](l * l[j] * sum[n](q * k[j]))) * v[j])"
    ),
    "a running product that ends outside": (
        "param w : d -> h\n"
        "a = sigmoid(w u)\n"
        "y = sum[j < i](prod[j < l ≤ i+1](a[l]) * q · k[j] * v[j])"
    ),
    "a running product that begins after": (
        "param w : d -> h\n"
        "a = sigmoid(w u)\n"
        "y = sum[j ≤ i](prod[j+1 < l ≤ i](a[l]) * q · k[j] * v[j])"
    ),
    "a running product of a token's gate": (
        "param w : d -> h\n"
        "a = sigmoid(w u)\n"
        "y = sum[j ≤ i](prod[j < l ≤ i](a[l] * q[i] · k[l]) * v[j])"
    ),
    "a running product to the future, strictly": (
        "param w : d -> h\n"
        "a = sigmoid(w u)\n"
        "y = sum[j > i](prod[i < l < j](1/2 + a[l] / 2) * q · k[j] * v[j])"
    ),
    "two sums of one state": ("y = sum[j ≤ i](q · k[j] * v[j]) + sum[j < i](k · k[j] * v[j])"),
    "an exponent without a sum": ("y = sum[j ≤ i](exp(q · k[j] + 1) * v[j])"),
    "a conjugate": ("param θ : h\ny = sum[j ≤ i](Re(conj(cis(θ * (i-j)) * q) · k[j]) * v[j])"),
    "Re of a real": ("y = sum[j ≤ i](Im(q · k[j]) * v[j]) + v"),
    "the distance as a factor": ("y = sum[j ≤ i]((i-j) * q · k[j] * v[j])"),
    "a quotient by both": ("y = sum[j ≤ i](v[j] / (1 + q · k[j]))"),
    "a quotient by one product": ("y = sum[j ≤ i](v[j] / (exp(q · q) * exp(k[j] · k[j])))"),
    "a lag times a number, in an exponent": (
        "param θ : h\n y = sum[j ≤ i](Re(cis(θ * (2*(i-j) + 3))) * q · k[j] * v[j])"
    ),
    "a power of a lag and a number": (
        "param c : h unit\n y = sum[j ≤ i](c^(3*(i-j) - 1) * q · k[j] * v[j])"
    ),
    "a power below 0 of a product": ("y = sum[j ≤ i]((exp(q · q) * exp(k[j] · k[j]))^(-1) * v[j])"),
    "a complex number of two sides": (
        "param θ : h\n y = sum[j ≤ i](Re(cplx(q · k[j], k · k[j]) * cis(θ * (i-j))) * v[j])"
    ),
    "a constant in a function of the past": (
        "param w : h\n c = sigmoid(w)\n y = sum[j ≤ i](q · tanh(c * k[j]) * v[j])"
    ),
    "a lag power of a function": (
        "param w : h\ny = sum[j ≤ i](sigmoid(w)^(2*(i-j)) * tanh(w)^(i-j+2) * q · k[j] * v[j])"
    ),
    "a lag power of an exponential": (
        "param w : h\ny = sum[j ≤ i](exp(-w)^(3*(i-j)+2) * Re(cis(w)^(i-j)) * q · k[j] * v[j])"
    ),
    "an exponential of a squared lag": (
        "y = sum[j ≤ i](exp(-1/8 * (i-j) * (i-j)) * q · k[j] * v[j])"
    ),
    "a map of a sum of unlike axes": (
        "param W : h × p -> h × p\ny = sum[j ≤ i](W (v * v[j] + 1 + q · k[j] * v))"
    ),
    "a rename of a sum": (
        "dims m = 4\nparam M : h × m × p\ny = sum[j ≤ i](sum[m](rename[p, m](v * v[j] + 1) * M))"
    ),
    "a future that begins before": (
        "param w : d -> h\na = sigmoid(w u)\n"
        "y = sum[j ≥ i](prod[i-1 < l ≤ j](a[l]) * q · k[j] * v[j])"
    ),
    "a future that begins after": (
        "param w : d -> h\na = sigmoid(w u)\n"
        "y = sum[j ≥ i](prod[i+1 < l ≤ j](a[l]) * q · k[j] * v[j])"
    ),
    "a strict future that begins after": (
        "param w : d -> h\na = sigmoid(w u)\n"
        "y = sum[j > i](prod[i+1 < l ≤ j](1 - a[l] / 2) * q · k[j] * v[j])"
    ),
    "a future that ends after": (
        "param w : d -> h\na = sigmoid(w u)\n"
        "y = sum[j ≥ i](prod[i < l ≤ j+1](a[l]) * q · k[j] * v[j])"
    ),
    "a future that ends before": (
        "param w : d -> h\na = sigmoid(w u)\n"
        "y = sum[j > i](prod[i < l ≤ j-1](1 - a[l] / 2) * q · k[j] * v[j])"
    ),
    "a future from the token to before": (
        "param w : d -> h\na = sigmoid(w u)\n"
        "y = sum[j ≥ i](prod[i ≤ l < j](a[l]) * q · k[j] * v[j])"
    ),
    "a strict future from the token to before": (
        "param w : d -> h\na = sigmoid(w u)\n"
        "y = sum[j > i](prod[i ≤ l < j](1 - a[l] / 2) * q · k[j] * v[j])"
    ),
    "a strict future from two before to before": (
        "param w : d -> h\na = sigmoid(w u)\n"
        "y = sum[j > i](prod[i-2 < l < j](a[l]) * q · k[j] * v[j])"
    ),
    "a future from after to before": (
        "param w : d -> h\na = sigmoid(w u)\n"
        "y = sum[j ≥ i](prod[i < l < j](a[l]) * q · k[j] * v[j])"
    ),
    "a future of a constant to before": (
        "param c : h unit\ny = sum[j ≥ i](prod[i ≤ l < j](c) * q · k[j] * v[j])"
    ),
    "a future of a function": (
        "param w : d -> h\na = w u\n"
        "y = sum[j ≥ i](prod[i < l ≤ j](sigmoid(a[l])) * q · k[j] * v[j])"
    ),
    "a future of a constant": (
        "param c : h unit\ny = sum[j ≥ i](prod[i < l ≤ j](c) * q · k[j] * v[j])"
    ),
    "a past of a constant": (
        "param c : h unit\ny = sum[j ≤ i](prod[j < l ≤ i](c * 1/2) * q · k[j] * v[j])"
    ),
    "a turning product under a part": (
        "param w : d -> h\nb = w u\n"
        "y = sum[j ≤ i](Re(prod[j < l ≤ i](cis(b[l]))) * Im(cis(k · k[j])) * v[j])"
    ),
    "a turning product of a real part and a complex number": (
        "param w : d -> h;  θ : h\nb = w u\n"
        "y = sum[j ≤ i](Re(cplx(k · k[j], 1) * Re(cis(θ * (i-j))) "
        " * prod[j < l ≤ i](cis(b[l]))) * v[j])"
    ),
    "every pair of parts": (
        "param θ, ω : h\ny = sum[j ≤ i]((Re(cis(θ * (i-j)) * (q · k[j])) * Re(cis(ω * (i-j)))"
        " + Re(cis(θ * (i-j))) * Im(cis(ω * (i-j)) * (k · k[j]))"
        " + Im(cis(θ * (i-j)) * (k · q[j])) * Re(cis(ω * (i-j)))"
        " + Im(cis(θ * (i-j))) * Im(cis(ω * (i-j)) * (q · q[j]))) * v[j])"
    ),
    "a product in a sum that stays inside": (
        "param w : d -> h\na = sigmoid(w u)\n"
        "y = sum[j ≤ i](q · k[j] * sum[l ≤ j](prod[l < m ≤ j](a[m]) * exp(k[j] · k[l]) * v[l]))"
    ),
    "a sum in a sum in a sum": (
        "y = sum[j ≤ i](q · k[j] * sum[l < j](k[j] · k[l] * sum[m ≤ l](1/2^(l-m) * v[m])))"
    ),
    "a sum inside that reads the outer token": (
        "y = sum[j ≤ i](q · k[j] * sum[l ≤ j](q · k[l] * v[l]))"
    ),
    "a sum inside of both tokens before": (
        "y = sum[j ≤ i](k · k[j] * sum[l ≤ j](exp(q · k[l]) * v[l]))"
    ),
    "a lag of an inner sum": (
        "param c : h unit\n"
        "y = sum[j ≤ i](c^(i-j) * q · k[j] * sum[l ≤ j-1](c^(j-l) * k[j] · k[l] * v[l]))"
    ),
    "a lag over two sums": (
        "param c : h unit\ny = sum[j ≤ i](q · k[j] * sum[l ≤ j](c^(i-l) * k[j] · k[l] * v[l]))"
    ),
    "a series of a sum": "y = sum[j ≤ i](taylor[2](q · k[j] + 1/2) * v[j])",
    "a series of order 1": "y = sum[j ≤ i](taylor[1](mean[n](q * k[j])) * v[j])",
    "a power over two axes": "y = sum[j ≤ i]((q · k[j] * sum[p](v * v[j]))^2 * v[j])",
    "powers of two contractions": (
        "y = sum[j ≤ i]((q · k[j])^2 * (k · q[j])^2 * v[j]) + sum[j ≤ i]((k · k[j])^3) * v"
    ),
    "a contraction of what is contracted": (
        "y = sum[j ≤ i](sum[n](q * k[j] * (k · q[j])) * sum[n](q * k[j]) * v[j])"
    ),
    "a quotient by a power": (
        "y = sum[j ≤ i](q · k[j] * v[j] / (2 + sum[p](v[j]^2))^2 / (1 + k · k)^3)"
    ),
    "a numerator and a denominator of one sum": (
        "y = sum[j ≤ i](q · k[j] * v[j]) / (1 + sum[j ≤ i](q · k[j]) / 7)"
    ),
    "a sum that nothing of the token scales": "y = sum[j ≤ i](v[j] * 3) - sum[j ≤ i](1/2) * v",
    "a sum of what the summed token does not scale": "y = sum[j ≤ i](v * q · k)",
    "a lag times a value of the summed token": (
        "y = sum[j ≤ i](exp(-(i-j) * sum[n](k[j] * k[j])) * v[j])"
    ),
    "a power of a lag in the base": "y = sum[j ≤ i]((1 + (i-j))^(-1) * v[j])",
    "a conjugate of a part": (
        "param θ : h\ny = sum[j ≤ i](Re(cis(θ) * conj(Re(cis(θ * (i-j))) * q · k[j])) * v[j])"
    ),
    "the position as a factor of the past": "y = sum[j ≤ i](q · k[j] * v[j] * (i-j)^2)",
    "a sum of the state before a name": (
        "S = 1/2 * S[i-1] + k ⊗ v\no = q · S\ny = sum[j ≤ i-1]((1/2)^(i-j) * q · k[j] * o[j-1])"
    ),
    "a lag in pieces": (
        "param c : h unit\ny = sum[j ≤ i](c^((i-j) + 2*((i-j) + 1) - 3) * q · k[j] * v[j])"
    ),
    "a lag in pieces, in an exponent": (
        "param θ : h\ny = sum[j ≤ i](exp(-1/2 * ((i-j) + 2*(i-j+1)) * θ * θ) * q · k[j] * v[j])"
    ),
    "a rate of a sum of lags": (
        "param θ : h\ny = sum[j ≤ i](Re(cis(θ * (i-j) * 3 - (i-j) / 7)) * q · k[j] * v[j])"
    ),
    "a map of a contraction": (
        "param W : n -> n\ny = sum[j ≤ i](sum[n](W (q * (q · k[j])) * k[j]) * v[j])"
    ),
    "a map of values of both tokens": (
        "param W : h × n -> h × n\ny = sum[j ≤ i](W (q * k[j]) · k * v[j])"
    ),
    "a map of a token's value": (
        "param W : h × p -> h × p\ny = sum[j ≤ i](q · k[j] * W (v * (k · k[j])))"
    ),
    "a map of the lag's axis": (
        "param W : h × p -> h × p;  c : h × p unit\ny = sum[j ≤ i](W (c^(i-j) * v[j]) * (q · k[j]))"
    ),
    "a map of what a product along its axis scales": (
        "param W : h × p -> h × p\na = sigmoid(v)\n"
        "y = sum[j ≤ i](q · k[j] * W (prod[j < l ≤ i](a[l]) * v[j]))"
    ),
    "a map of what decays along its axis, and nothing else": (
        "param W : h × p -> h × p;  c : h × p unit\ny = sum[j ≤ i](W (c^(i-j) * v[j]))"
    ),
    "a map of what decays along another axis": (
        "param W : p -> p;  c : h unit\ny = sum[j ≤ i](q · k[j] * W (c^(i-j) * v[j]))"
    ),
    "a map for each head of a contraction": (
        "param W : each h : n -> p\ny = sum[j ≤ i](W ((q · k[j]) * k[j]) * v)"
    ),
    "a map to the axis that is contracted": (
        "param W : h × p -> h × n\ny = sum[j ≤ i](W ((q · k[j]) * v[j]) · k * v)"
    ),
    "a sum under another's step": (
        "o = sum[j ≤ i](q · k[j])\nS' = -S + k ⊗ v * o by euler(1 / (1 + exp(o)))\ny = q · S"
    ),
    "a sum in an update": ("S = 1/2 * S[i-1] + k ⊗ sum[j ≤ i]((1/3)^(i-j) * v[j])\ny = q · S"),
}
"""Sums over time, those that stay sums too."""

REFUSED = {
    "a function of its past": ("S = tanh(S[i-1]) + k ⊗ v\ny = q · S"),
    "a function of a name": ("F = 1/2 * S[i-1]\nS = silu(F) + k ⊗ v\ny = q · S"),
    "functions of maps": (
        "param A, B : h × p -> h × p\n"
        "o = sigmoid(A (q · S[i-1]))\n"
        "S = S[i-1] + k ⊗ tanh(B (o * q · S[i-1]))\n"
        "y = q · S"
    ),
    "a product of two": ("S = S[i-1] * S[i-1] + k ⊗ v\ny = q · S"),
    "a product through names": ("a = q · S[i-1]\ng = tanh(a)\nS = g * S[i-1] + k ⊗ v\ny = q · S"),
    "a quotient of two": ("S = S[i-1] / (1 + S[i-1]) + k ⊗ v\ny = q · S"),
    "the maximum of an axis": ("z = max[p](S[i-1]) + k\nS = S[i-1] + z ⊗ v\ny = q · S"),
    "a rename of a state's axis": (
        "dims m = 3\n"
        "param M : h × m × p\n"
        "S = S[i-1] + k ⊗ v + k ⊗ sum[m](M * rename[n, m](S[i-1]))\n"
        "y = q · S"
    ),
    "a step that reads the state": (
        "z' = -z + k by euler(softplus(sum[n](q * z)))\ny = v * (q · z)"
    ),
    "a drift with another state": (
        "z' = -z + k + sum[p](S[i-1]) by euler(1/2)\nS = 1/2 * S[i-1] + k ⊗ v + z ⊗ v\ny = q · S"
    ),
    "a drift with a map": ("state x : d\nparam A : d -> d\nx' = A x + u by bilinear(1/2)\ny = x"),
    "zoh of low rank": ("S' = -S - k ⊗ sum[n](k * S) + k ⊗ v by zoh(1/2)\ny = q · S"),
    "a drift of two contractions": (
        "S' = -S - k ⊗ (k · S) - sum[p](v * S) ⊗ v + k ⊗ v by bilinear(1/2)\ny = q · S"
    ),
    "a drift that is not linear": ("S' = tanh(S) + k ⊗ v by euler(1/2)\ny = q · S"),
    "a map of a scaled state": (
        "state x : d\nparam A : d -> d\ng = sigmoid(u)\nx = A (g * x[i-1]) + A x[i-1] + u\ny = x"
    ),
    "a map to other axes of a scaled state": (
        "state x : d\n"
        "param A : d -> h × n;  B : h × n -> d\n"
        "g = sigmoid(u)\n"
        "x = B A (g * x[i-1]) + u\n"
        "y = x"
    ),
    "a flow that reads a name of itself before": (
        "o = 1/3 * q · S\nS' = -S + k ⊗ o[i-1] by euler(1/8)\ny = q · S"
    ),
    "a flow that reads a name of a state that reads it": (
        "z = 1/2 * z[i-1] + k ⊗ sum[h](sum[p](q · S[i-1]))\no = q · z * v\n"
        "S' = -S + k ⊗ o[i-1] by euler(1/8)\ny = q · S"
    ),
    "a name of a state after the end": (
        "state R : h × p backward\no = 1/3 * R\nR = 1/2 * R[i+1] + 1/5 * o[i+1] + v\ny = R"
    ),
    "two refusals": ("z = tanh(z[i-1]) + k\nS = sin(S[i-1]) + z ⊗ v\ny = q · S"),
    "a product of two names": ("F = tanh(S[i-1])\nG = 1/2 * S[i-1]\nS = F * G + k ⊗ v\ny = q · S"),
    "a square of the state": ("S = S[i-1]^2 + k ⊗ v\ny = q · S"),
    "a map of what does not depend on the state": ("S = tanh(S[i-1]) + k ⊗ (W_V u)\ny = q · S"),
    "two states with functions of each other": (
        "z = sigmoid(k · z[i-1]) * z[i-1] + k\nS = tanh(z ⊗ v) * S[i-1] + sin(S[i-1])\ny = q · S"
    ),
    "a quotient of the state by itself": (
        "F = S[i-1]\nS = F / (1 + F * F) + 1 / (2 + F) + k ⊗ v\ny = q · S"
    ),
    "a softmax of the state": "S = softmax[n](S[i-1]) + k ⊗ v\ny = q · S",
}
"""Updates that are not linear in the state."""


_DECLARED = {"S": "h × n × p", "z": "h × n", "C": "h × n × p complex"}


def small(body: str) -> str:
    """Returns the mixer of a body, with those states declared that have an update."""
    updated = [n for n in _DECLARED if re.search(rf"^ *{n}'? =", body, re.MULTILINE)]
    return mixer("".join(f" state {n} : {_DECLARED[n]}\n" for n in updated) + body)


def with_states(title: str) -> str:
    """Returns the mixer of an entry of `STATES`."""
    states, body = STATES[title]
    axis = "dims t = 3\n"
    return mixer(body.replace(axis, ""), (axis if axis in body else "") + states)


DERIVED: dict[str, dict[str, str]] = {
    "forms": {title: mixer(body) for title, body in FORMS.items()},
    "states": {title: with_states(title) for title in STATES},
    "sums": {title: small(body) for title, body in SUMS.items()},
    "updates": {title: small(body) for title, body in UPDATES.items()},
    "read_outs": {title: small(body) for title, body in READ_OUTS.items()},
    "flows": {title: small(body) for title, body in FLOWS.items()},
    "failed": {n: (FOUND / f"{n}.dsf").read_text(encoding="utf-8") for n in FAILED},
}
"""Table → title → text of the mixer, of all that are derived."""
