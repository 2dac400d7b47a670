"""The structure of every mixer of the study, as a table; and of forms the study has no mixer for.

Columns: class, axes (head / key / channel of each block), whether log λ is closed, coupling, bound
on |Λ|, read, the class that decides the kernel. Three entries say more than the study's prototype
could: the product of two kernels has a closed logarithm (conjugates are resolved), S4's coupling is
known from its flow, and several bounds are strict.
"""

from __future__ import annotations

import pytest

from dsfc.expr.json import decode, encode
from dsfc.structure.classify import classify
from dsfc.structure.ir import BoundKind, Cell, ClassName, ReadKind, Structure
from dsfc.structure.render import render
from dsfc.system.ir import CouplingKind, GuardKind

FREE, EULER, ZOH, BILINEAR, ONE_MINUS, ROOT, LOW = (
    CouplingKind.FREE,
    CouplingKind.EULER,
    CouplingKind.ZOH,
    CouplingKind.BILINEAR,
    CouplingKind.ONE_MINUS,
    CouplingKind.SQRT_ONE_MINUS_SQ,
    CouplingKind.LOW_RANK,
)
ONE, STRICT, WEAK, NORM = (
    BoundKind.EQUAL_ONE,
    BoundKind.LESS_THAN_ONE,
    BoundKind.AT_MOST_ONE,
    BoundKind.NORM_NEEDED,
)
POST, PRE = ReadKind.POST, ReadKind.PRE
HNP, HN, ND = "h / n / p", "h / n / ·", "· / n / d"
TAYLOR = f"h / · / p, {HNP}, h / n n_2 / p, · / · / ·, {HN}, h / n n_2 / ·"
BOTH = "LTI-C ⊕ LTI-C reversed"

TABLE = {
    "softmax": ("NONE", "", True, FREE, None, None, "softmax"),
    "separable": ("ID", "h / r / p", True, FREE, ONE, POST, "scalar"),
    "linear_attn": ("ID", f"{HNP}, {HN}", True, FREE, ONE, POST, "ratio over scalar"),
    "generalized_attn": ("ID", HNP, True, FREE, ONE, POST, "scalar"),
    "normalized_attn": ("ID", HNP, True, FREE, ONE, POST, "scalar"),
    "normalized_attn_sigmoid": ("ID", HNP, True, FREE, ONE, POST, "scalar"),
    "normalized_attn_softplus": ("ID", HNP, True, FREE, ONE, POST, "scalar"),
    "normalized_attn_multihead": ("ID", HNP, True, FREE, ONE, POST, "scalar"),
    "taylor_softmax": ("ID", TAYLOR, True, FREE, ONE, POST, "ratio over scalar"),
    "performer": ("ID", "h / r / p, h / r / ·", True, FREE, ONE, POST, "ratio over scalar"),
    "lln": ("ID", f"{HNP}, {HN}", True, FREE, ONE, POST, "ratio over scalar"),
    "s4": ("LTI-X", ND, False, BILINEAR, NORM, POST, "dense"),
    "s4d": ("LTI-C", ND, True, ZOH, STRICT, POST, "lti"),
    "dss_exp": ("LTI-C", ND, True, FREE, STRICT, POST, "lti"),
    "lru": ("LTI-C", "· / · / n", True, FREE, STRICT, POST, "lti"),
    "s6": ("TV-CK", ND, True, EULER, STRICT, POST, "selective"),
    "ssd": ("TV-H", HNP, True, EULER, STRICT, POST, "scalar"),
    "mamba2_pseudo_lti": ("LTI-S", HNP, True, FREE, STRICT, POST, "scalar"),
    "qlstm": ("TV-1", "· / · / d", True, FREE, STRICT, POST, "elementwise"),
    "qlstm_tanh": ("TV-1", "· / · / d", True, FREE, STRICT, POST, "elementwise"),
    "qlstm_s6gate": ("TV-1", "· / · / d", True, FREE, WEAK, POST, "elementwise"),
    "rg_lru": ("TV-1", "· / · / d", True, ROOT, STRICT, POST, "elementwise"),
    "dlr": ("LTI-C", ND, True, FREE, WEAK, POST, "lti"),
    "dlr_prod": ("LTI-C", "· / n n_2 / d, · / n n_2 / d", True, FREE, WEAK, POST, "lti"),
    "dlr_real": ("LTI-R", ND, True, FREE, WEAK, POST, "lti"),
    "dlr_bidirectional": (BOTH, f"{ND}, · / m / d", True, FREE, WEAK, None, "lti"),
    "dlr_kronecker": ("LTI-C", "· / n m / d", True, FREE, WEAK, POST, "lti"),
    "linear_rnn": ("LTI-X", "· / · / n", True, FREE, NORM, POST, "dense"),
    "lnssm": ("LTI-R", f"{HNP}, {HN}", True, FREE, STRICT, POST, "ratio over per_key"),
    "lnssm_block": ("LTI-R", f"{HNP}, {HN}", True, FREE, STRICT, POST, "ratio over per_key"),
    "rwkv4": ("LTI-R", "· / · / d, · / · / d", True, FREE, STRICT, PRE, "ratio over elementwise"),
    "rwkv6": ("TV-K", HNP, True, FREE, STRICT, PRE, "per_key"),
    "rwkv5": ("LTI-R", HNP, True, FREE, STRICT, PRE, "per_key"),
    "gla": ("TV-K", HNP, True, FREE, STRICT, POST, "per_key"),
    "retnet": ("LTI-S", HNP, False, FREE, STRICT, POST, "scalar"),
    "retnet_rope": ("LTI-C", "h / m / p", False, FREE, STRICT, POST, "per_key"),
    "hgrn2": ("TV-K", HNP, False, ONE_MINUS, STRICT, POST, "per_key"),
    "hgrn": ("TV-1 complex", "· / · / d", False, FREE, STRICT, POST, "elementwise"),
    "mamba3": ("TV-K complex", "h / m / p", True, FREE, STRICT, POST, "per_key"),
    "gsa": (
        "TV-V ⊕ TV-K",
        "h / n / m, h / m / p",
        True,
        {FREE, ONE_MINUS},
        STRICT,
        POST,
        "per_value",
    ),
    "h3": ("LTI-C", ND, True, FREE, STRICT, POST, "per_key"),
    "mlstm": ("TV-H", f"{HNP}, {HN}", True, FREE, STRICT, POST, "ratio over scalar"),
    "deltanet": ("TV-DPLR", HNP, True, LOW, NORM, POST, "low_rank"),
    "rwkv7": ("TV-DPLR", HNP, True, FREE, NORM, POST, "low_rank"),
    "kda": ("TV-DPLR", HNP, True, LOW, NORM, POST, "low_rank"),
    "gated_deltanet": ("TV-DPLR", HNP, True, LOW, NORM, POST, "low_rank"),
    "gateloop": ("TV-H complex", HNP, True, FREE, STRICT, POST, "scalar"),
    "mega_ema": ("LTI-R", ND, False, ZOH, STRICT, POST, "lti"),
    "short_convolution": ("NIL", "", True, FREE, None, None, "fir"),
    "gla_block": ("TV-K", HNP, True, FREE, STRICT, POST, "per_key"),
}


@pytest.mark.share(5)
@pytest.mark.parametrize("name", TABLE)
def test_table_of_mixers(name, derived):
    cells, axes, closed, coupling, bound, read, title = TABLE[name]
    s = classify(derived(name))
    assert s.label == cells
    assert ", ".join(b.axes_text for b in s.blocks) == axes
    assert s.exact == closed
    assert {b.coupling.kind for b in s.blocks} <= (
        coupling if type(coupling) is set else {coupling}
    )
    assert {b.bound.kind for b in s.blocks} <= {bound}
    assert read is None or {b.read for b in s.blocks} == {read}
    assert s.title == title
    assert s.causal == (name != "dlr_bidirectional")


@pytest.mark.share(5)
@pytest.mark.parametrize("name", TABLE)
def test_structures_are_written_and_read(name, derived):
    s = classify(derived(name))
    assert decode(encode(s), Structure) == s
    assert render(s) == render(classify(derived(name)))


def test_a_delta_rule_is_bounded_on_its_diagonal_only(derived):
    for name, diagonal in (("deltanet", ONE), ("gated_deltanet", STRICT)):
        (block,) = classify(derived(name)).blocks
        assert block.bound.diagonal is diagonal


@pytest.mark.parametrize(
    ("name", "pairs"),
    [
        ("linear_attn", 1),
        ("taylor_softmax", 3),
        ("performer", 1),
        ("lln", 1),
        ("lnssm", 1),
        ("rwkv4", 1),
        ("mlstm", 1),
    ],
)
def test_numerators_find_their_denominators(name, pairs, derived):
    s = classify(derived(name))
    (ratio,) = s.ratios
    assert len(ratio.pairs) == pairs
    assert {a for a, _ in ratio.pairs} == set(ratio.numerators)
    assert {b for _, b in ratio.pairs} == set(ratio.denominators)
    for a, b in ratio.pairs:
        assert s.block(a).pair == b
        assert s.block(b).pair == a
        assert b in s.block(a).numerator_of


def test_guards_are_kept(derived):
    (ratio,) = classify(derived("mlstm")).ratios
    assert ratio.guard.kind is GuardKind.MAX_ABS


@pytest.mark.parametrize(
    ("name", "fixed"),
    [
        ("s4d", (True, True, True)),
        ("lru", (True, True, True)),
        ("mega_ema", (True, True, True)),
        ("retnet", (True, False, False)),
        ("mamba2_pseudo_lti", (True, False, False)),
        ("rwkv5", (True, False, False)),
        ("h3", (True, False, True)),
        ("qlstm", (False, False, True)),
        ("ssd", (False, False, False)),
    ],
)
def test_what_does_not_depend_on_the_token(name, fixed, derived):
    (b,) = classify(derived(name)).blocks
    assert (b.transition_fixed, b.drive_fixed, b.read_fixed) == fixed


def mixer(body: str) -> str:
    head = "mixer m {\n  dims d, heads h = 2, n = d / h, p = d / h\n  input u : d\n"
    return head + "  param W_Q, W_K : d -> h × n;  W_V : d -> h × p\n" + body + "\n}"


QKV = "  q = W_Q u; k = W_K u; v = W_V u\n  state S : h × n × p\n"


@pytest.mark.parametrize(
    ("body", "cell", "name"),
    [
        # a gate on the value side: the transpose of a gate on the keys
        ("S = sigmoid(v) * S[i-1] + k ⊗ v; y = q · S", Cell.TV_V, ClassName.PER_VALUE),
        (
            "S = (sigmoid(k) ⊗ sigmoid(v)) * S[i-1] + k ⊗ v; y = q · S",
            Cell.TV_CK,
            ClassName.SELECTIVE,
        ),
        ("S = sigmoid(sum[n](k)) * S[i-1] + k ⊗ v; y = q · S", Cell.TV_H, ClassName.SCALAR),
        ("S = 0.5 * S[i-1] + k ⊗ v; y = q · S", Cell.LTI_S, ClassName.SCALAR),
        # nothing is contracted: n and p are channels alike
        ("S = sigmoid(v) * S[i-1] + k ⊗ v; y = q * S", Cell.TV_1, ClassName.ELEMENTWISE),
        # ones have no say
        (
            "S = (sigmoid(sum[n](k)) ⊗ ones[n]) * S[i-1] + k ⊗ v; y = q · S",
            Cell.TV_H,
            ClassName.SCALAR,
        ),
        # a register: nothing of the past survives two steps
        ("S = k ⊗ v; y = q · S[i-1]", Cell.NIL, ClassName.FIR),
        (
            "S = S[i-1] - k ⊗ (k · S[i-1]) + k ⊗ v; y = q · S",
            Cell.TV_DPLR,
            ClassName.LOW_RANK,
        ),
        # the other axis of the state
        (
            "S = S[i-1] - v ⊗ (v · S[i-1]) + k ⊗ v; y = q · S",
            Cell.TV_DPLR,
            ClassName.LOW_RANK,
        ),
    ],
)
def test_forms_beyond_the_table(body, cell, name, lowered):
    (block,) = classify(lowered(mixer(QKV + "  " + body))).blocks
    assert block.cell is cell
    assert block.name is name


def test_dense_transitions(lowered):
    fixed = (
        "mixer m { dims n; input u : n; param A : n -> n; state x : n\n x = A x[i-1] + u; y = x }"
    )
    gated = fixed.replace("A x[i-1]", "sigmoid(u) * A x[i-1]")
    assert classify(lowered(fixed)).blocks[0].cell is Cell.LTI_X
    assert classify(lowered(gated)).blocks[0].cell is Cell.TV_X


def test_roles_are_those_of_the_stage(lowered):
    text = """mixer m { dims d, n; input u : d; param W : d -> n; state a : d × n; b : n
      a = 0.5 * a[i-1] + u ⊗ b[i-1]
      b = 0.5 * b[i-1] + sum[d](a[i-1]) + W u
      y = sum[n](a) }"""
    keys = {b.state: [a.name for a in b.keys] for b in classify(lowered(text)).blocks}
    assert keys == {"a": ["d", "n"], "b": ["n"]}


def test_pairs_need_equal_decay(lowered):
    updates = "  state z : h × n\n  S = 0.5 * S[i-1] + k ⊗ v; z = {} * z[i-1] + k\n"
    for decay, pairs in (("0.5", 1), ("1/2", 1), ("0.4", 0)):
        text = mixer(QKV + updates.format(decay) + "  y = (q · S) / (q · z)")
        (ratio,) = classify(lowered(text)).ratios
        assert len(ratio.pairs) == pairs


def test_backward_states_are_not_causal(lowered):
    text = "mixer m { dims d; input u : d; state x : d backward\n x = 0.5 * x[i+1] + u; y = x }"
    s = classify(lowered(text))
    assert not s.causal
    assert s.label == "LTI-S reversed"


def test_an_unbounded_decay_is_not_called_bounded(lowered):
    text = "mixer m { dims d; input u : d; param a : d; state x : d\n x = a * x[i-1] + u; y = x }"
    (block,) = classify(lowered(text)).blocks
    assert block.bound.kind is BoundKind.UNKNOWN
    assert not block.positive


def test_a_flow_is_bounded_by_its_real_part(lowered):
    text = """mixer m { dims d, n; input u : d; param a, ω : d × n; B : d × n complex; log_Δ : d
      state x : d × n complex
      x' = cplx(-exp(a), ω) * x + B * u by bilinear(exp(log_Δ))
      y = Re(sum[n](x)) }"""
    (block,) = classify(lowered(text)).blocks
    assert block.bound.kind is BoundKind.LESS_THAN_ONE
    assert block.coupling.kind is CouplingKind.BILINEAR
