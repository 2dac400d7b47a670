"""Which shipped specs have kernels, and mixers made to hurt those: by name, their bodies."""

from __future__ import annotations

ELEMENTWISE = ("hgrn", "lru", "qlstm", "qlstm_s6gate", "qlstm_tanh", "rg_lru", "rwkv4")
MATRIX = (
    *("gateloop", "generalized_attn", "linear_attn", "mamba2_pseudo_lti", "mlstm"),
    *("normalized_attn", "normalized_attn_multihead", "normalized_attn_sigmoid"),
    *("normalized_attn_softplus", "retnet", "ssd"),
)
SELECTIVE = ("s6",)
PRINTED = ("gla", "deltanet", "gated_deltanet", "kda", "rwkv7")
"""Specs with printed kernels: a decay of keys; a delta rule without a decay, with one of heads,
with one of keys; a low-rank part that is no delta rule, with a decay of keys."""
ROTATING = ("mamba3", "retnet_rope")
"""Complex decays of keys, with the printed kernels of real ones in a rotating frame."""
TOEPLITZ = ("s4d", "mega_ema", "dlr_prod")
"""Convolutions with keys, with printed kernels: a complex state, a real one, complex values."""
SPECS = (*ELEMENTWISE, *SELECTIVE, *MATRIX)
SIZES = {"lru": {"n": 2048}, "s6": {"n": 16}}
SIZES |= {"selectiveturned": {"n": 16}, "selectivepairs": {"n": 8, "p": 64, "h": 32}}
SIZES |= {"s4d": {"n": 32}, "megaema": {"n": 16}, "dlrprod": {"n": 4}}
SIZES |= {"mamba3": {"m": 64, "p": 64, "h": 32}}
"""Sizes that a layer must be given besides its width."""
KINDS = ("normalized_attn", "linear_attn", "retnet", "ssd", "mlstm")
"""Matrix scans without and with a column by itself; the same with decays, with and without keys of
each head. The others have the kernels of one of these."""
TARGETS = ("sm_80", "sm_90", "sm_100", "gfx942")
BEYOND = {
    ("mlstm", "fp32", "sm_100"): 40,
    ("retnet", "fp32", "sm_100"): 8,
    ("ssd", "fp32", "sm_100"): 16,
    ("linear_attn:256", "bf16", "sm_100"): 56,
    ("gla", "bf16", "sm_80"): 184,
    ("kda", "bf16", "sm_80"): 112,
    ("kda", "bf16", "sm_90"): 136,
    ("rwkv7", "bf16", "sm_100"): 16,
    ("gla", "fp32", "sm_90"): 544,
    ("mamba3", "bf16", "sm_90"): 544,
    ("deltanet", "fp32", "sm_90"): 312,
    ("gla", "fp16", "sm_90"): 584,
    ("deltanet", "fp16", "sm_90"): 336,
    ("gated_deltanet", "fp16", "sm_90"): 384,
    ("kda", "fp16", "sm_90"): 1168,
    ("rwkv7", "fp16", "sm_90"): 712,
    ("s4d", "fp16", "sm_90"): 248,
    ("s4d", "bf16", "sm_80"): 40,
    ("s4d", "bf16", "sm_90"): 24,
    ("s4d", "bf16", "sm_100"): 160,
    ("s4d:64", "bf16", "sm_80"): 72,
    ("s4d:64", "bf16", "sm_90"): 80,
    ("s4d:64", "bf16", "sm_100"): 64,
    ("s4d", "fp32", "sm_90"): 256,
    ("dlr_prod", "bf16", "sm_90"): 1656,
}
"""Of the table, what exceeds the limits of a stack, and the bytes that it has."""
SPILLED = {
    ("kda", "bf16", "sm_90"): 2,
    ("gla", "fp32", "sm_90"): 11,
    ("mamba3", "bf16", "sm_90"): 11,
    ("gla", "fp16", "sm_90"): 12,
    ("kda", "fp16", "sm_90"): 42,
    ("rwkv7", "fp16", "sm_90"): 66,
    ("s4d", "fp16", "sm_90"): 14,
    ("s4d", "fp32", "sm_90"): 26,
    ("dlr_prod", "bf16", "sm_90"): 187,
}
"""Of printed kernels, the most stores to the stack inside of loops; no other kernel has any."""
EVERY = tuple(
    (s, "bf16", t) for s in (*SPECS, "selective_turned", "selective_pairs") for t in TARGETS
)
EVERY += tuple(
    (s, d, t) for s in (*KINDS, "rg_lru", "lru", "s6") for d in ("fp16", "fp32") for t in TARGETS
)
EVERY += tuple((s, "fp16", "sm_90") for s in ("gateloop", "qlstm"))
EVERY += tuple(
    (s, d, "sm_90") for s in ("selective_turned", "selective_pairs") for d in ("fp16", "fp32")
)
EVERY += (("qlstm", "fp32", "sm_90"),)
# Other numbers of keys and channels, or of states.
EVERY += tuple(("s6:64", "bf16", t) for t in ("sm_90", "sm_100"))
EVERY += tuple((f"{s}:{n}", "bf16", t) for s in KINDS[:2] for n in (64, 256) for t in TARGETS)
EVERY += tuple((s, "bf16", "sm_90") for s in ("retnet:64", "retnet:256", "mlstm:64"))
EVERY += tuple(("normalized_attn:256", "fp32", t) for t in TARGETS)
EVERY += tuple(("linear_attn:256", "fp32", t) for t in ("sm_80", "sm_90"))
EVERY += tuple(("retnet:256", "fp32", t) for t in ("sm_90", "sm_100"))
EVERY += tuple((s, "bf16", t) for s in PRINTED for t in TARGETS)
EVERY += tuple((s, "fp32", "sm_90") for s in PRINTED[:2])
EVERY += (("mamba3", "bf16", "sm_90"),)
EVERY += tuple((s, "fp16", "sm_90") for s in (*PRINTED, "s4d", "mega_ema"))
EVERY += tuple((s, "bf16", t) for s in ("s4d", "s4d:64", "mega_ema") for t in TARGETS)
EVERY += tuple((s, "fp32", t) for s in ("s4d", "mega_ema") for t in ("sm_90", "gfx942"))
EVERY += (("dlr_prod", "bf16", "sm_90"), ("dlr_prod", "bf16", "gfx942"))
DECODED = "@step"
"""The end of the name of a spec whose kernels of one token and of some are compiled."""
EVERY += tuple(
    (f"{s}{DECODED}", "bf16", t)
    for s in ("retnet", *PRINTED[:1], *PRINTED[2:], "s4d")
    for t in TARGETS
)
EVERY += tuple((f"{s}{DECODED}", "fp32", "sm_90") for s in ("retnet", "rwkv7", "s4d"))
EVERY += ((f"mega_ema{DECODED}", "bf16", "sm_90"), (f"dlr_prod{DECODED}", "bf16", "sm_90"))
"""What the table of resources has: spec, with keys and channels of a head; dtype; target.

All but those beyond are within the limits; what is not named here was not compiled for the table.
"""

UNUSUAL = {
    # Two axes of channels, a gate that lacks one, a constant that lacks the other.
    "two_axes": """
      dims d, e
      input x, g : d × e; w : e
      param c : d = 1/2
      state h : d × e
      h = sigmoid(g) * h[i-1] + c * (sigmoid(w) * x)
      y = h
    """,
    # A buffer that the output reads too, an earlier token, and a map of arithmetic.
    "shared_parts": """
      dims d
      input u : d
      param W_a, W_b : d -> d ~ normal(0, 0.3)
      state h : d
      k = tanh(W_a u)
      p = k * u[i-1]
      h = exp(-softplus(W_b p)) * h[i-1] + p * k
      y = h * k
    """,
    # Every function a kernel has of its own, and those with corners.
    "functions": """
      dims d
      input u, v : d
      state h : d
      f = log1p(exp(-abs(u))) + relu(v) + 1/10
      p = expm1(-relu(u)) * gelu(v) + elu(u) * silu(v) + max(u, v)^2 * erf(u)
      h = exp(-f) * h[i-1] + p
      y = h
    """,
    # Names that the kernels' own text has.
    "words": """
      dims D, T
      input S, o, out, tile : D
      state h, dh : D
      value = sigmoid(S) * o
      h = sigmoid(out) * h[i-1] + value
      dh = sigmoid(tile) * dh[i-1] + value * value
      y = h + dh
    """,
    # Names of Python and of Triton, as inputs of gates.
    "python_words": """
      dims d
      input range, tl, lengths, x, b_x : d
      state mode : d
      mode = sigmoid(range * tl) * mode[i-1] + lengths * x * b_x
      y = mode
    """,
    # Names that the kernels have inside, for what they load and what is used twice.
    "inner_words": """
      dims d
      input h, part, part_1, part_2, u : d
      state s : d
      a = sigmoid(part * part_1)
      s = a * s[i-1] + (1 - a) * tanh(part_2 + h) * (part_2 + h) * u
      y = s
    """,
    "inner_words_of_matrices": """
      dims heads h = 2, n = 2, p = 3
      input s, t : h × n; r : h × p; weight, w, dw, part, b_part, f : h
      state S : h × n × p; z : h × n
      m = sigmoid(weight * part) * exp(w * sigmoid(weight * part)) + b_part * dw
      S = sigmoid(f) * S[i-1] + (m * t) ⊗ r
      z = sigmoid(f) * z[i-1] + m * t
      y = (s · S) / max(abs(s · z), 1)
    """,
    "inner_words_of_rates": """
      dims d, n
      input u, f, dg1 : d; b, c : n
      param rate : d; rate_2, a : d × n
      state S : d × n
      t = softplus(f * rate) * rate
      S = exp(-t * exp(a) - (sigmoid(u) * f) * rate_2^2) * S[i-1] + (t * u * rate) ⊗ b
      y = c · S + u * dg1
    """,
    # Scans of several forms, that share earlier tokens, parameters and what is computed of them.
    "shared_leaves": """
      dims heads h = 2, n = 2, p = 3
      input q, k : h × n; v, w : h × p; f, g, m : h
      param a, c : h × p; b : h
      state T, Z : h × p complex; U : h × p; S, R : h × n × p
      T = sigmoid(v) * cis(a) * T[i-1] + cplx(w[i-1], log(1 + v^2) * c)
      Z = sigmoid(w) * cis(c) * Z[i-1] + cplx(w[i-1], v) * log(1 + c^2)
      U = sigmoid(c * v) * U[i-1] + exp(c) * v[i-1] * w[i-1]
      S = sigmoid(f) * S[i-1] + (exp(g + b) * k) ⊗ v
      R = sigmoid(m) * R[i-1] + (exp(m + 2 * b) * k) ⊗ v
      y = (q · S) / (1 + exp(m)) + (q · R) / (1 + exp(g - b)) + Re(T) + Im(Z) + U
    """,
    # A complex state read before its update, of a real value, turned by an angle of the token.
    "turned": """
      dims d
      input u, f, w : d
      state h : d complex
      h = sigmoid(f) * cis(w) * h[i-1] + u
      y = Re(h[i-1]) * Im(h[i-1]) + u
    """,
    # A constant λ: of a complex state whose real part is read before its update, of two axes in
    # another order than those of the value, and of a real one.
    "steady": """
      dims d, e
      input u : d; w : e
      param a, b : d × e; c : e; f : d
      state h : d × e complex; g : d
      h = exp(cplx(-exp(a), b)) * h[i-1] + (exp(c) * w) ⊗ u
      g = exp(-exp(f)) * g[i-1] + tanh(u)
      y = Re(h[i-1]) + g ⊗ w
    """,
    # The same with values of two planes, and a complex constant.
    "steady_pairs": """
      dims d
      input u, v : d
      param a : d; c : d complex = cplx(1/2, 1/4)
      state h : d complex
      h = exp(cplx(-exp(a), 1)) * h[i-1] + c * cplx(u, sigmoid(v))
      y = Re(h) * Im(h) + u
    """,
    # Values and phases that are read as they are given, a phase by two scans and by a value.
    "plain_parts": """
      dims d
      input u, v, w : d
      param a, b : d
      state h, g : d complex
      h = exp(cplx(-exp(a), b)) * h[i-1] + b * cplx(u, v)
      g = exp(cplx(-exp(w), b)) * g[i-1] + cplx(u, v)
      y = Re(h) * Im(h) + Re(g) * Im(g)
    """,
    # Complex parameters and maps, quotients and powers of complex values; a read of an earlier one.
    "complex_values": """
      dims d
      input u, v : d
      param W : d -> d complex ~ cplx(normal(0, 1), normal(0, 1)); c : d complex = cplx(1/2, 1/4)
      state h : d complex
      x = W u
      z = cplx(u, 1 + v^2)
      w = c * x^2 / z + conj(x)
      h = exp(cplx(-softplus(v), tanh(u))) * h[i-1] + w
      y = Re(h * x) + abs(x)
    """,
    # Two values of all channels and one of none, in states that are read before their updates.
    "columns": """
      dims heads h = 2, n = 3, p = 5
      input q, k : h × n; v, w : h × p; f : h
      state S, R : h × n × p; z : h × n
      a = sigmoid(f)
      S = a * S[i-1] + k ⊗ v
      R = a * R[i-1] + k ⊗ w
      z = a * z[i-1] + k
      y = (q · S[i-1] + q · R[i-1]) / (1 + (q · z[i-1])^2)
    """,
    # A normaliser of a column that is driven by something of its own, inside of a function.
    "running": """
      dims heads h = 2, n = 3, p = 5
      input q, k : h × n; v : h × p; f, w : h
      state S : h × n × p; z : h × n
      a = sigmoid(f)
      S = a * S[i-1] + k ⊗ v
      z = a * z[i-1] + w * k
      y = tanh(n^(-1/2) * (q · S) / (1/2 + (n^(-1/2) * (q · z))^2)) * v
    """,
    # Without a decay, with a weight; a state of one head.
    "running_weight": """
      dims n = 4, p = 3
      input q, k : n; v : p
      input f
      state S : n × p; z : n
      w = exp(f)
      S = S[i-1] + softplus(k) ⊗ (w * v)
      z = z[i-1] + w * softplus(k)
      y = (softplus(q) · S) / (softplus(q) · z)
    """,
    # Complex decays of heads: values of two planes, of one, and none, both parts of what is read.
    "rotated_columns": """
      dims heads h = 2, n = 3, p = 5
      input q, k : h × n; v, w : h × p; f, g : h
      state S, R : h × n × p complex; z : h × n complex
      a = sigmoid(f) * cis(g)
      S = a * S[i-1] + k ⊗ cplx(v, w * v)
      R = a * R[i-1] + k ⊗ w
      z = a * z[i-1] + k
      y = (Re(q · S) + Im(q · R)) / (1 + abs(q · z)^2)
    """,
    # The same decay at all tokens, a state read before its update, by features of queries and keys.
    "rotated_steady": """
      dims heads h = 2, n = 3, p = 5
      input q, k : h × n; v : h × p
      param a, b : h
      state S : h × n × p complex
      S = exp(cplx(-exp(a), b)) * S[i-1] + (elu(k) + 1) ⊗ v
      y = Re(tanh(q) · S[i-1]) + Im(tanh(q) · S[i-1])
    """,
    # Decays that round to 0 at some tokens, to 1 at others; no head, a value of two planes alone.
    "rotated_stops": """
      dims n = 3, p = 5
      input q, k : n; v, w : p
      state S : n × p complex
      S = sigmoid(900 * (q · k)) * cis(9 * (v · w)) * S[i-1] + k ⊗ cplx(v, w)
      y = Re(q · S)
    """,
    # Two scans of which one feeds the other, with decay and without.
    "layers": """
      dims heads h = 2, n = 3, p = 2
      input q, k : h × n; v : h × p; f : h
      state S, R : h × n × p
      S = sigmoid(f) * S[i-1] + k ⊗ v
      x = tanh(q · S)
      R = R[i-1] + k ⊗ x
      y = q · R
    """,
    # Heads behind the channels, more states than channels come to.
    "selective_heads_last": """
      dims d, n = 3, p = 2, heads h = 2
      input u : d
      param W_q, W_k : d -> n × h ~ normal(0, 1); W_v : d -> p × h ~ normal(0, 1); a : p × h × n
      state S : h × n × p
      x = W_v u
      S = exp(-softplus(x) * exp(a)) * S[i-1] + W_k u ⊗ x
      y = W_q u · S + x * x
    """,
    # Two rates, one of them along the keys; read before the update.
    "selective_rates": """
      dims d, n
      input u, f : d; b, c, r : n
      param a : d × n; e : n
      state S : d × n
      S = exp(-softplus(f) * exp(a) - ones[d] ⊗ (softplus(r) * exp(e))) * S[i-1] + u ⊗ b
      y = c · S[i-1] + tanh(u) * f
    """,
    # Constants of channel and state inside a product with the token, a function, and a quotient.
    "selective_factors": """
      dims d, n
      input u, x : d; b, c : n
      param a : d × n; e : n
      state S, R, T : d × n
      S = exp(-softplus(x) * exp(a) - ones[d] ⊗ exp(e)) * S[i-1] + u ⊗ b
      R = sigmoid(x * a + ones[d] ⊗ e) * R[i-1] + (x * u) ⊗ c
      T = exp(-exp(a) / (1 + x^2 * exp(a))) * T[i-1] + u ⊗ c
      y = c · S + b · R + c · T
    """,
    # A decay for every channel, state and token; and one that is the same at all tokens.
    "selective_entries": """
      dims d, n
      input u : d; g : d × n; b, c : n
      param a : d × n
      state S, R : d × n
      S = sigmoid(g) * S[i-1] + u ⊗ b
      R = exp(-exp(a)) * R[i-1] + (sigmoid(u) * u) ⊗ c
      y = c · S + b · R
    """,
    # A complex state of real keys, whose step turns it; three states, no power of two.
    "selective_turned": """
      dims d, n = 3
      input u, x : d
      param W_b, W_c : d -> n ~ normal(0, 1); a, θ : d × n; D : d
      state S : d × n complex
      t = softplus(x); b = W_b u; c = W_c u
      S = exp(t * cplx(-exp(a), θ)) * S[i-1] + (t * u) ⊗ b
      y = Re(c · S) + D * u
    """,
    # Key, read and rate complex; heads behind the channels; a phase of the token besides; more
    # states than a program has backwards.
    "selective_pairs": """
      dims d, n = 6, p = 2, heads h = 2
      input u : d
      param W_q, W_k : d -> n × h ~ normal(0, 1); W_v : d -> p × h ~ normal(0, 1)
            a, r : p × h × n; c : n × h complex = cplx(1/2, 1/4); e : n × h
      state S : h × n × p complex
      x = W_v u; k = W_k u; q = W_q u
      z = cis(softplus(x) * r + ones[p] ⊗ (k * e))
      S = exp(-softplus(x) * exp(a)) * z * S[i-1] + (c * k) ⊗ x
      y = 2 * Re(cplx(q, k) · S)
    """,
    # Names that planes would have, and the torch form's arguments and gradients.
    "selective_names": """
      dims d, n = 3
      input u, x, S_rate_2_im, dg1, k_im : d; b, c : n
      param a, θ : d × n; D, field : d
      state S : d × n complex
      t = softplus(x)
      S = exp(t * cplx(-exp(a), θ)) * S[i-1] + (t * u * S_rate_2_im * field) ⊗ b
      y = Re(c · S) + D * u * dg1 * k_im
    """,
    # Both parts of a leaf of the token, which a linear map gives, and of a constant one.
    "selective_leaves": """
      dims d, n = 3
      input u, z_re : d; b, c : n
      param W : d -> d complex ~ normal(0, 0.3); A : d × n complex = cplx(1/2, 1/4); a : d × n
      state S : d × n complex
      z = W u
      S = exp(z * exp(a) - sigmoid(u) * A) * S[i-1] + (u * z_re) ⊗ b
      y = Re(c · S) + u
    """,
    # More states than a thread holds, and than a tile does; and no power of two.
    "many_states": """
      dims d, n = 35
      input u, x : d; b, c : n
      param a : d × n; D : d
      state S : d × n
      t = softplus(x)
      S = exp(-t * exp(a)) * S[i-1] + (t * u) ⊗ b
      y = c · S + D * u
    """,
}
