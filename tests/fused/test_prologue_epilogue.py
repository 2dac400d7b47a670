"""What a matrix scan computes where it loads and stores, and what stays in front of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dsfc.api.pipeline import Compilation
from dsfc.expr.build import walk
from dsfc.expr.text import text
from dsfc.expr.tree import Prim, Ref
from dsfc.fused.ir import FEATURE_BAR, FusedPlan, PrologueEpilogue
from dsfc.fused.prologue_epilogue import fuse_prologue_epilogue
from dsfc.fused.verify import verify
from dsfc.plan.ir import Plan, Pointwise
from dsfc.plan.scan_ir import Scan


def everything(_: object) -> bool:
    return True


def matrices(plan: Plan, computes: Callable[[Prim], bool] = everything) -> FusedPlan:
    return fuse_prologue_epilogue(FusedPlan(plan, plan), computes)


def made(fused: FusedPlan) -> dict[str, str]:
    return {k.output: text(k.value) for k in fused.plan.kernels if isinstance(k, Pointwise)}


def said(features: PrologueEpilogue) -> tuple[str | None, ...]:
    parts = features.read, features.key, features.weight, features.normaliser
    return (*(f and text(f.value) for f in parts), text(features.factor))


@pytest.mark.parametrize(
    ("name", "want"),
    [
        (
            "linear_attn",
            ("relu(q) + exp(min(q, 0))", "relu(k) + exp(min(k, 0))", None, "z_read", "1"),
        ),
        ("normalized_attn", ("q", "k", None, "exp(eta_part)", "1")),
        ("normalized_attn_multihead", ("q", "k", None, "exp(eta_part)", "1")),
        ("generalized_attn", ("q", "k", None, "eta", "1")),
        ("retnet", ("q", "k", None, None, "n^(-1/2)")),
        ("mlstm", ("q", "k", "exp(C_log_weight)", None, "n^(-1/2)")),
        ("ssd", ("c", "b", "softplus(Delta_part)", None, "1")),
    ],
)
def test_shipped_scans(
    name: str, want: tuple[str | None, ...], plan_of: Callable[[str], Plan]
) -> None:
    fused = matrices(plan_of(name))
    verify(fused)
    (features,) = fused.matrices
    assert said(features) == want
    outputs = {b.name for b in fused.plan.arrays}
    for f in (features.read, features.key, features.weight, features.normaliser):
        if f is not None:
            assert set(f.leaves) <= outputs and len(f.gradients) == len(f.leaves)
            for e in f.gradients:
                read = {r.name for r in walk(e) if isinstance(r, Ref)}
                assert read <= {*f.leaves, FEATURE_BAR}


def test_what_holds_a_feature_is_gone_and_its_leaf_is_there(
    plan_of: Callable[[str], Plan],
) -> None:
    plan = plan_of("normalized_attn")
    fused = matrices(plan)
    assert made(fused)["eta_part"] == "w_eta u + b_eta"
    assert not {"eta", "y"} & set(made(fused))
    (scan,) = (k for k in fused.plan.kernels if isinstance(k, Scan))
    assert [c.output for c in scan.columns] == [plan.output]


def test_what_no_kernel_computes_stays_in_front(plan_of: Callable[[str], Plan]) -> None:
    fused = matrices(plan_of("normalized_attn"), lambda p: p.name != "exp")
    (features,) = fused.matrices
    assert said(features) == ("q", "k", None, "eta", "1")
    fused = matrices(plan_of("retnet"), lambda _: False)
    (features,) = fused.matrices
    assert features.read.plain and features.key.plain
    assert text(features.factor) == "n^(-1/2)" and not features.plain


DENOMINATOR = "state z : h × n\nS = S[i-1] + k ⊗ v\nz = z[i-1] + {value}\n"


@pytest.mark.parametrize(
    ("rest", "want"),
    [
        (DENOMINATOR.format(value="k") + "y = (q · S) / (1 + (q · z)^2)", "z_read^2 + 1"),
        # Driven by something of its own; what is divided is inside of something else.
        (DENOMINATOR.format(value="e * k") + "y = tanh((q · S) / (q · z)) * v", "z_read"),
        # It is needed besides, or divides a multiple; something else divides as well.
        (DENOMINATOR.format(value="k") + "y = (q · S) / (q · z) + (q · z) * v", None),
        (DENOMINATOR.format(value="k") + "y = 2 * (q · S) / (q · z)", None),
        (DENOMINATOR.format(value="k") + "y = (q · S) / (e + q · z)", None),
    ],
)
def test_a_normaliser_may_be_what_is_read_of_a_column(
    rest: str, want: str | None, load: Callable[[str, str], Compilation]
) -> None:
    plan = load("ratio", BODY + rest).plan
    fused = matrices(plan)
    verify(fused)
    (features,) = fused.matrices
    assert said(features)[3] == want and features.running == (want is not None)
    assert not features.numbers


BODY = """
dims heads h = 2, n, p
input q, k : h × n; v : h × p; e : h
state S : h × n × p
"""


@pytest.mark.parametrize(
    ("rest", "want"),
    [
        # elu(x) + 1 has a form that keeps its digits; elu(x) + 2 is another function.
        (
            "S = S[i-1] + (elu(k) + 2) ⊗ v\ny = (elu(q) + 1) · S",
            ("relu(q) + exp(min(q, 0))", "elu(k) + 2", None, None, "1"),
        ),
        # Two buffers of the size of a key: loading both would move more.
        ("S = S[i-1] + (k * sigmoid(q)) ⊗ v\ny = q · S", ("q", "S_key", None, None, "1")),
        # Another token's query is read.
        ("S = S[i-1] + k ⊗ v\ny = exp(q) · S[i-1]", ("S_query", "k", None, None, "1")),
        # The output is read twice, once undivided.
        (
            "S = S[i-1] + exp(k) ⊗ v\no = q · S\ny = o / exp(e) + o",
            ("q", "exp(k)", None, None, "1"),
        ),
        # A number is a factor of the output; what has entries of its own is not.
        ("S = S[i-1] + k ⊗ v\ny = 2 * (q · S) * sigmoid(v)", ("q", "k", None, None, "2")),
        # What is made of a key is needed besides, for the next token.
        (
            "w = exp(k)\ng = w · q\nS = S[i-1] + w ⊗ v\ny = q · S + g[i-1] * v",
            ("q", "w", None, None, "1"),
        ),
        # A factor of all values, and a divisor that has a leaf of its own.
        (
            "input f : h\nS = S[i-1] + k ⊗ (exp(e) * v)\ny = (q · S) / (1 + exp(f))",
            ("q", "k", "exp(e)", "1 + exp(f)", "1"),
        ),
        # A factor of all values, and a divisor that has the same leaf.
        (
            "S = S[i-1] + k ⊗ (exp(e) * v)\ny = (q · S) / (1 + exp(e))",
            ("q", "k", "exp(e)", None, "1"),
        ),
    ],
)
def test_what_would_save_nothing_or_is_something_else_stays(
    rest: str, want: tuple[str | None, ...], load: Callable[[str, str], Compilation]
) -> None:
    fused = matrices(load("other", BODY + rest).plan)
    verify(fused)
    (features,) = fused.matrices
    assert said(features) == want


def test_a_normaliser_that_a_later_scan_gives_stays_behind_both(
    load: Callable[[str, str], Compilation],
) -> None:
    body = """
      state z : h × n
      S = S[i-1] + k ⊗ v
      z = sigmoid(e) * z[i-1] + k
      y = (q · S) / (1 + abs(q · z))
    """
    fused = matrices(load("later", BODY + body).plan)
    verify(fused)
    assert [m.normaliser for m in fused.matrices] == [None, None]
