"""Which shipped mixers can be planned, and why the others cannot."""

from __future__ import annotations

PLANNED = {
    "generalized_attn": "scalar",
    "linear_attn": "ratio over scalar",
    "lln": "ratio over scalar",
    "mamba2_pseudo_lti": "scalar",
    "mlstm": "ratio over scalar",
    "normalized_attn": "scalar",
    "normalized_attn_multihead": "scalar",
    "normalized_attn_sigmoid": "scalar",
    "normalized_attn_softplus": "scalar",
    "performer": "ratio over scalar",
    "qlstm": "elementwise",
    "qlstm_s6gate": "elementwise",
    "qlstm_tanh": "elementwise",
    "retnet": "scalar",
    "rg_lru": "elementwise",
    "rwkv4": "ratio over elementwise",
    "s6": "selective",
    "short_convolution": "fir",
    "ssd": "scalar",
}
"""Name → class."""

REFUSED = {
    "deltanet": "state `S`: its structure class is `low_rank`",
    "dlr": "state `S`: its structure class is `lti`",
    "dlr_bidirectional": "state `S`: its structure class is `lti`",
    "dlr_kronecker": "state `S`: its structure class is `lti`",
    "dlr_prod": "state `S`: its structure class is `lti`",
    "dlr_real": "state `S`: its structure class is `lti`",
    "dss_exp": "state `x`: its structure class is `lti`",
    "gated_deltanet": "state `S`: its structure class is `low_rank`",
    "gateloop": "state `S`: it is complex",
    "gla": "state `S`: its structure class is `per_key`",
    "gla_block": "state `S`: its structure class is `per_key`",
    "h3": "state `x`: its structure class is `per_key`",
    "hgrn2": "state `S`: its structure class is `per_key`",
    "linear_rnn": "state `x`: its structure class is `dense`",
    "lnssm": "state `S`: its structure class is `per_key`",
    "lru": "state `x`: its structure class is `lti`",
    "mega_ema": "state `x`: its structure class is `lti`",
    "retnet_rope": "state `S`: its structure class is `per_key`",
    "rwkv5": "state `S`: its structure class is `per_key`",
    "rwkv6": "state `S`: its structure class is `per_key`",
    "s4": "state `x`: its structure class is `dense`",
    "s4d": "state `x`: its structure class is `lti`",
    "separable": "`phi`: it is an abstract map",
    "softmax": "`y`: it has no finite state (`exp(n^(-1/2) * q · k[j])` does not separate)",
    "taylor_softmax": "state `S_3`: it stores products of keys (a tensor power)",
}
"""Name → what the diagnostic says."""

NO_SYSTEM = {"lstm": "E-NONLINEAR-STATE", "qkv": "E-NO-OUTPUT"}
"""Mixers that are no System: outside the framework, or a base."""
