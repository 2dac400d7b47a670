"""Which kernels a scan takes in: all it needs alone, nothing that others read, and no more."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dsfc.api.pipeline import Compilation
from dsfc.expr.build import prim, walk
from dsfc.expr.text import text
from dsfc.expr.tree import Prim, Ref, Time
from dsfc.fused.ir import DECAY_BAR, SUFFIXES, VALUE_BAR, FusedPlan
from dsfc.fused.prologue import fuse_prologue
from dsfc.fused.prologue_epilogue import fuse_prologue_epilogue
from dsfc.plan.ir import Plan, Pointwise, Role
from dsfc.plan.scan_ir import Scan

SPECS = ("qlstm", "qlstm_s6gate", "qlstm_tanh", "rg_lru", "rwkv4")


def everything(_: Prim) -> bool:
    return True


def prologues(plan: Plan, computes: Callable[[Prim], bool] = everything) -> FusedPlan:
    return fuse_prologue(FusedPlan(plan, plan), computes)


def names(fused: FusedPlan) -> list[str]:
    return [k.output for k in fused.plan.kernels if isinstance(k, Pointwise)]


def test_all_prologue_of_rg_lru_are_whole_in(plan_of: Callable[[str], Plan]) -> None:
    fused = prologues(plan_of("rg_lru"))
    (prologue,) = fused.prologues
    assert names(fused) == ["softplus_zeta", "W_r_u", "W_g_u", "y"]
    assert prologue.tokens == ("W_r_u", "W_g_u", "u")
    assert prologue.constants == ("softplus_zeta", "b_r", "b_g")
    assert [n for n, _ in prologue.named] == ["r", "h_log_decay", "a", "g", "h_value"]
    assert text(prologue.log_decay) == "-8 * softplus_zeta * sigmoid(W_r_u + b_r)"


def test_a_constant_decay_is_computed_of_constants(plan_of: Callable[[str], Plan]) -> None:
    fused = prologues(plan_of("lru"), lambda p: p.name not in ("re", "im"))
    (prologue,) = fused.prologues
    assert prologue.tokens == ("re_x_part", "im_x_part")
    size, turned = "exp(x_log_decay_re)", "x_log_decay_im"
    assert text(prologue.decay) == f"cplx({size} * cos_{turned}, {size} * sin_{turned})"
    # Gradients are those of log λ; what is made of it besides has none.
    bars = dict(
        zip((*prologue.tokens, *prologue.constants), map(text, prologue.gradients), strict=True)
    )
    assert [bars[f"x_log_decay{s}"] for s in SUFFIXES] == [f"{DECAY_BAR}{s}" for s in SUFFIXES]
    assert bars[f"cos_{turned}"] == bars[f"sin_{turned}"] == "0"
    # One number a channel costs nothing: all are as precise as a decay.
    (scan,) = (k for k in fused.plan.kernels if isinstance(k, Scan))
    assert scan.decay is not None
    assert set(prologue.constants) == set(scan.decay.leaves)


def test_the_sigmoid_of_a_logarithm_is_whole_at_once(plan_of: Callable[[str], Plan]) -> None:
    (prologue,) = prologues(plan_of("qlstm")).prologues
    assert text(prologue.decay) == "sigmoid(W_f_u)"
    assert text(prologue.log_decay) == "-softplus(-W_f_u)"


def test_a_selective_scan_takes_in_step_value_and_skip(plan_of: Callable[[str], Plan]) -> None:
    fused = prologues(plan_of("s6"))
    (prologue,) = fused.prologues
    assert names(fused) == ["S_rate", "b", "c", "W_Delta_W_u_u"]
    assert prologue.tokens == ("W_Delta_W_u_u", "u")
    assert prologue.constants == ("b_Delta", "D")
    assert text(prologue.log_decay) == "-Delta * S_rate"
    assert [(n, text(e)) for n, e in prologue.rates] == [
        ("Delta", "softplus(W_Delta_W_u_u + b_Delta)")
    ]
    assert text(prologue.added) == "D * u"
    (scan,) = (k for k in fused.plan.kernels if isinstance(k, Scan))
    assert scan.columns[0].output == "y"


SELECTIVE = """
    dims d, n
    input u : d
    param W_b, W_c : d -> n; W_x : d -> d; a : d × n
    state S : d × n
    t = softplus(W_x u)
    S = exp(-t * exp(a)) * S[i-1] + u ⊗ W_b u
"""


@pytest.mark.parametrize(
    "read",
    [
        "y = W_c u · S[i-1] + u",  # what is read before the update is shifted behind the scan
        "x = W_c u · S; y = x + x[i-1]",  # an earlier token of it
        "x = W_c u · S; y = x * sigmoid(x) + u",  # more than the sum has it
        "y = W_x (W_c u · S + u)",  # a map has the sum
        "y = 2 * (W_c u · S) + u",
    ],
)
def test_what_is_no_sum_with_a_read_is_not_whole_in(
    read: str, load: Callable[[str, str], Compilation]
) -> None:
    fused = prologues(load("read", f"{SELECTIVE}\n{read}").plan)
    (prologue,) = fused.prologues
    assert text(prologue.added) == "0"
    assert [n for n, _ in prologue.rates] == ["t"]


def test_a_sum_that_needs_a_later_scan_is_whole_in_there(
    load: Callable[[str, str], Compilation],
) -> None:
    more = "state R : d × n; R = exp(-exp(a) * t) * R[i-1] + t ⊗ W_c u; y = W_c u · S + W_b u · R"
    first, second = prologues(load("two", f"{SELECTIVE}\n{more}").plan).prologues
    assert (text(first.added), second.tokens) == ("0", ("t", f"{first.scan}_read"))
    assert text(second.added) == f"{first.scan}_read"


def test_a_decay_that_no_kernel_computes_keeps_its_scan(
    load: Callable[[str, str], Compilation],
) -> None:
    entries = """
        dims d, n
        input u : d; g : d × n; b, c : n
        state S : d × n
        S = sigmoid(g) * S[i-1] + u ⊗ b
        y = c · S
        """
    plan = load("entries", entries).plan
    assert prologues(plan, lambda _: False) == FusedPlan(plan, plan)
    assert len(prologues(plan).prologues) == 1


@pytest.mark.parametrize("name", SPECS)
def test_leaves_are_there_and_nothing_is_read_that_is_not(
    name: str, plan_of: Callable[[str], Plan]
) -> None:
    plan = plan_of(name)
    fused = prologues(plan)
    arrays = {b.name for b in fused.plan.arrays}
    made = {t.name for t in (*plan.inputs, *plan.params, *plan.buffers)} | set(names(fused))
    made |= {r.buffer for r in plan.maxima}
    outputs = {c.output for k in plan.kernels if isinstance(k, Scan) for c in k.columns}
    for prologue in fused.prologues:
        leaves = {*prologue.tokens, *prologue.constants}
        assert leaves <= arrays and leaves <= made
        for e in (prologue.value, prologue.log_decay, prologue.decay):
            assert {r.name for r in walk(e) if isinstance(r, Ref)} <= leaves
        for e in prologue.gradients:
            read = {r.name for r in walk(e) if isinstance(r, Ref)}
            assert read <= leaves | {VALUE_BAR, DECAY_BAR}
        assert len(prologue.gradients) == len(leaves)
    for kernel in fused.plan.kernels:
        if isinstance(kernel, Pointwise):
            read = {r.name for r in walk(kernel.value) if isinstance(r, Ref)}
            assert read <= made | outputs


def test_what_others_read_stays(load: Callable[[str, str], Compilation]) -> None:
    plan = load(
        "shared",
        """
        dims d
        input u : d
        param W, V : d -> d
        state h : d
        k = tanh(W u)
        p = k * u[i-1]
        q = p * p
        h = exp(-softplus(V q)) * h[i-1] + p * exp(u)
        y = h * k
        """,
    ).plan
    fused = prologues(plan)
    (prologue,) = fused.prologues
    # k is read by y; p by q, which a map reads; u[i-1] is no value of this token.
    assert {"k", "p", "q"} <= set(names(fused))
    assert set(prologue.tokens) == {"p", "u", "V_q"}


def test_what_a_kernel_does_not_know_stays_in_front(plan_of: Callable[[str], Plan]) -> None:
    fused = prologues(plan_of("rg_lru"), lambda p: p.name != "sqrt")
    (prologue,) = fused.prologues
    assert "sqrt(" not in text(prologue.value)
    assert any("sqrt(" in text(k.value) for k in fused.plan.kernels if isinstance(k, Pointwise))


def test_other_forms_are_left_alone(plan_of: Callable[[str], Plan]) -> None:
    for name in ("normalized_attn", "gla", "s4d"):
        plan = plan_of(name)
        assert prologues(plan) == FusedPlan(plan, plan)


def test_constants_are_leaves_whole(plan_of: Callable[[str], Plan]) -> None:
    for name in SPECS:
        for prologue in prologues(plan_of(name)).prologues:
            for e in (prologue.value, prologue.log_decay):
                assert not any(
                    isinstance(n, Prim) and n.time is Time.CONST and n is not prim("pi")
                    for n in walk(e)
                )


def test_what_one_scan_reads_stays_when_others_are_whole(
    load: Callable[[str, str], Compilation],
) -> None:
    body = """
      dims heads h = 2, n = 2, p = 3
      input q, k : h × n; v, w : h × p; f, g : h
      param a, c : h × p; b : h
      state T, Z : h × p complex; U : h × p; S, R : h × n × p
      T = sigmoid(v) * cis(a) * T[i-1] + cplx(w[i-1], log(1 + v^2) * c)
      Z = sigmoid(w) * cis(c) * Z[i-1] + cplx(v, v) * log(1 + c^2)
      U = sigmoid(c * v) * U[i-1] + exp(c) * v[i-1]
      S = sigmoid(f) * S[i-1] + (exp(g + b) * k) ⊗ v
      R = sigmoid(g) * R[i-1] + (exp(2 * b + f) * k) ⊗ v
      y = (q · S) / (1 + exp(g)) + q · R + Re(T) + Im(Z) + U
    """
    fused = prologues(load("many", body).plan)
    read = {n for g in fused.prologues for n in g.leaves}
    whole = fuse_prologue_epilogue(fused, everything)
    read |= {n for f in whole.matrices for n in f.numbers}
    assert len(fused.prologues) == 3 and len(whole.matrices) == 2
    plan = whole.plan
    there = {b.name for b in plan.arrays} | {t.name for t in plan.params}
    made = {k.output for k in plan.kernels if isinstance(k, Pointwise)}
    given = {b.name for b in plan.arrays if b.role is Role.INPUT} | {t.name for t in plan.params}
    assert read <= there and read <= made | given
