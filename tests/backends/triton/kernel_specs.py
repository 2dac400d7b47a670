"""Which shipped specs have kernels, and mixers made to hurt those: by name, their bodies."""

from __future__ import annotations

SPECS = ("qlstm", "qlstm_s6gate", "qlstm_tanh", "rg_lru", "rwkv4")
TARGETS = ("sm_80", "sm_90", "sm_100", "gfx942")
EVERY = tuple((s, d, t) for s in SPECS for d in ("bf16",) for t in TARGETS)
EVERY += (("rg_lru", "fp32", "sm_90"), ("rg_lru", "fp32", "gfx942"))
"""What the table of resources has: spec, dtype, target."""

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
}
