"""Which shipped mixers can be planned, and why the others cannot."""

from __future__ import annotations

PLANNED = {
    "deltanet": "low_rank",
    "dlr": "lti",
    "dlr_bidirectional": "lti",
    "dlr_kronecker": "lti",
    "dlr_prod": "lti",
    "dlr_real": "lti",
    "dss_exp": "lti",
    "gated_deltanet": "low_rank",
    "gateloop": "scalar",
    "generalized_attn": "scalar",
    "gla": "per_key",
    "gla_block": "per_key",
    "gsa": "per_value",
    "h3": "per_key",
    "hgrn": "elementwise",
    "hgrn2": "per_key",
    "kda": "low_rank",
    "linear_rnn": "dense",
    "linear_attn": "ratio over scalar",
    "lln": "ratio over scalar",
    "lnssm": "ratio over per_key",
    "lnssm_block": "ratio over per_key",
    "lru": "lti",
    "mamba2_pseudo_lti": "scalar",
    "mamba3": "per_key",
    "mega_ema": "lti",
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
    "retnet_rope": "per_key",
    "rg_lru": "elementwise",
    "rwkv4": "ratio over elementwise",
    "rwkv5": "per_key",
    "rwkv6": "per_key",
    "rwkv7": "low_rank",
    "s4": "dense",
    "s4d": "lti",
    "s6": "selective",
    "short_convolution": "fir",
    "softmax": "softmax",
    "ssd": "scalar",
    "taylor_softmax": "ratio over scalar",
}
"""Name → class."""

REFUSED = {
    "separable": "`phi`: it is an abstract map",
}
"""Name → what the diagnostic says."""

NO_SYSTEM = {
    "lstm": "E-NONLINEAR-STATE",
    "qkv": "E-NO-OUTPUT",
    "slstm": "E-NONLINEAR-STATE",
}
"""Mixers that are no System: outside the framework, or a base."""
