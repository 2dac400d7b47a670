"""Which shipped specs have kernels, and mixers made to hurt those: by name, their bodies."""

from __future__ import annotations

ELEMENTWISE = ("hgrn", "lru", "qlstm", "qlstm_s6gate", "qlstm_tanh", "rg_lru", "rwkv4")
MATRIX = (
    *("generalized_attn", "linear_attn", "lln", "mamba2_pseudo_lti", "mlstm", "normalized_attn"),
    *("normalized_attn_multihead", "normalized_attn_sigmoid", "normalized_attn_softplus"),
    *("performer", "retnet", "ssd"),
)
SELECTIVE = ("s6",)
SPECS = (*ELEMENTWISE, *SELECTIVE, *MATRIX)
SIZES = {"lru": {"n": 2048}, "s6": {"n": 16}}
"""Sizes that a layer must be given besides its width."""
KINDS = ("normalized_attn", "linear_attn", "retnet", "ssd", "mlstm")
"""Matrix scans without and with a column by itself; the same with decays, with and without keys of
each head. The others have the kernels of one of these."""
TARGETS = ("sm_80", "sm_90", "sm_100", "gfx942")
EVERY = tuple((s, "bf16", t) for s in SPECS for t in TARGETS)
_PLAIN = KINDS[:2]
EVERY += (("s6:64", "bf16", "sm_90"),)
EVERY += tuple((f"{s}:{n}", "bf16", t) for s in _PLAIN for n in (64, 256) for t in TARGETS)
EVERY += tuple((s, "fp16", t) for s in _PLAIN for t in ("sm_80", "sm_90"))
EVERY += tuple((s, "fp32", t) for s in _PLAIN for t in ("sm_80", "sm_90", "sm_100"))
EVERY += tuple((s, "bf16", "sm_90") for s in ("retnet:64", "retnet:256", "mlstm:64"))
EVERY += tuple((s, "fp32", "sm_90") for s in ("retnet", "mlstm", "rg_lru", "lru"))
EVERY += (("rg_lru", "fp32", "gfx942"),)
"""What the table of resources has: spec, with keys and channels of a head; dtype; target.

Not there, for they break a limit: 256 keys in float32 store to the stack, and so does
normalised attention in float16 on sm_100; the forward pass of S6 of 64 states has a stack there.
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
      input u, x : d; b, c : n
      param a, θ : d × n; D : d
      state S : d × n complex
      t = softplus(x)
      S = exp(t * cplx(-exp(a), θ)) * S[i-1] + (t * u) ⊗ b
      y = Re(c · S) + D * u
    """,
    # Key, read and rate complex; heads behind the channels; a phase of the token besides.
    "selective_pairs": """
      dims d, n = 3, p = 2, heads h = 2
      input u : d
      param W_q, W_k : d -> n × h ~ normal(0, 1); W_v : d -> p × h ~ normal(0, 1)
            a, r : p × h × n; c : n × h complex = cplx(1/2, 1/4); e : n × h
      state S : h × n × p complex
      x = W_v u; k = W_k u; q = W_q u
      z = cis(softplus(x) * r + ones[p] ⊗ (k * e))
      S = exp(-softplus(x) * exp(a)) * z * S[i-1] + (c * k) ⊗ x
      y = 2 * Re(cplx(q, k) · S)
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
