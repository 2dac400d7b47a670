"""Small mixers, one for each thing that derivation does.

Queries and keys are h × n, values h × p. In `READ_OUTS` and what follows, S : h × n × p, z : h × n
and C : h × n × p complex are states where they have an update.
"""

from __future__ import annotations

import re

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
}
"""Read-outs: name → body."""

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
}
"""Table → title → text of the mixer, of all that are derived."""
