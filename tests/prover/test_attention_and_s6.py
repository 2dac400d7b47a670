"""When is attention S6? The cases (a) to (g) of one theorem, each a test.

Attention with a normaliser is y_i = (1 / η_i) Σ_{j ≤ i} (q_i · k_j) v_j. A channel of S6 has the
decay exp(-a Δ_i) and the input Δ_i b_i u_i, and is read by c_i. The page
`docs/theory/attention_and_s6.md` shows what the tool prints of the two.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

import dsfc
from dsfc.prover.condition_rules import layers
from dsfc.prover.equivalent import equivalent
from dsfc.prover.report import as_json, report
from dsfc.prover.subsumes import kinds, subsumes
from dsfc.prover.verdict import Conditionally, NotAnInstance, Proved, Refuted, Unknown, Verdict
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import Certificate, Conditional, ConstantSequence, SeparatingSequences
from dsfc.trusted.rejected import Rejected

FILE = "attention_and_s6"


def asked(system: Callable, a: str, b: str) -> Verdict:
    return equivalent(system(FILE, a), system(FILE, b), conditions=True)


def rules(verdict: Verdict) -> dict[str, bool]:
    """The rules of a verdict under conditions, and whether equal outputs force each."""
    assert isinstance(verdict, Conditionally), verdict
    return {c["text"]: c["forced"] for c in as_json(verdict)["conditions"]}


def of_shipped(a: str, b: str) -> Verdict:
    return equivalent(dsfc.load(a).system, dsfc.load(b).system, conditions=True)


def test_a_with_free_reads_and_writes_s6_is_attention_always(system: Callable) -> None:
    """Case (a): b and c may be functions of the past; then no condition is left, at all sizes."""
    verdict = asked(system, "attention", "history")
    assert isinstance(verdict, Proved)
    assert set(verdict.certificate.claim.every) == {"h", "n", "p"}


def test_b_the_same_matrices_ask_for_a_normaliser_that_grows(system: Callable) -> None:
    """Case (b): Λ and B are literally one if and only if a Δ_i = log(η_i / η_{i-1})."""
    verdict = asked(system, "attention_state", "s6_state")
    assert rules(verdict) == {
        "b[i; h,n] = k[i; h,n] / (Delta[i; h] * eta[i; h])": True,
        "exp(Delta[i; h]*a[h]) = eta[i; h] / eta[i-1; h]": True,
    }
    text = report(verdict, "attention", "s6")
    assert "log(eta[i; h] / eta[i-1; h]) = Delta[i; h] * a[h]\n" in text
    assert "eta: it keeps its sign, and its modulus grows at every token" in text


@pytest.mark.full
def test_c_the_layers_of_the_paper_agree_on_a_fixed_sequence_alone() -> None:
    """Case (c): necessary and sufficient, with a change of basis G between queries and keys."""
    verdict = of_shipped("normalized_attn", "s6")
    assert rules(verdict) == {
        "q[i; h,n] = sum[m](G[h; m,n] * c[i; m])": False,
        "v[i; h,p] = u[i; d] * κ[d]": False,
        "k[i; h,n] = sum[m](inverse(G)[h; n,m] * b[i; m])": False,
        "D[d] = 0": True,
        "Delta[i; d] = κ[d] / eta[i; h]": True,
        "exp(Delta[i; d]*exp(a[d,n])) = eta[i; h] / eta[i-1; h]": True,
    }
    document = as_json(verdict)
    assert document["varied"] == ["B:b", "B:c", "u"]
    assert document["over_time"] == [
        "log(eta[i; h] / eta[i-1; h]) = exp(a[d,n]) * κ[d] / eta[i; h]"
    ]
    # Channels are proportional, as a rule.
    assert document["hence"] == [
        "exp(a[d,n]) * κ[d] is the same for all n and for all d of one h"
    ]  # fmt: skip
    first = report(verdict, "normalized_attn", "s6", layers="not as layers").splitlines()[0]
    assert first == (
        "normalized_attn = s6: not as layers; with values inside as inputs of their own, paired as "
        "given below, equal exactly where eta is the fixed sequence log(eta[i; h] / eta[i-1; h]) = "
        "exp(a[d,n]) * κ[d] / eta[i; h] and the other rules below hold"
    )


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "gate, sequence, fixed",
    [
        ("euler", "log(eta[i; h] / eta[i-1; h]) = a[h] / eta[i; h]", True),
        ("convex", "eta[i; h] = 1 + eta[i-1; h]", True),
        ("gate", "g[i; h] = g[i-1; h] * lambda[i; h]", False),
    ],
)
def test_c_how_decay_and_input_are_coupled_decides_the_sequence(
    system: Callable, gate: str, sequence: str, fixed: bool
) -> None:
    """Case (c), the table: Δ b of S6, (1 - λ) b of a mean, and a free gate, which leaves η free."""
    verdict = asked(system, "attention", gate)
    assert all(rules(verdict).values())
    assert as_json(verdict)["over_time"] == [sequence]
    assert ("fixed sequence" in report(verdict, "a", "b").splitlines()[0]) == fixed


@pytest.mark.full
def test_d_not_as_layers() -> None:
    """Case (d): for no parameters of S6, at all sizes, but where attention says nothing."""
    a, b = (dsfc.load(name).system for name in ("normalized_attn", "s6"))
    answers = kinds(a, b)
    assert layers(answers) == "not as layers"
    for case in (answers.forth, answers.back):
        assert isinstance(case, NotAnInstance)
        assert isinstance(case.proof, ConstantSequence) and case.proof.always and case.proof.larger


def test_d_what_is_left_of_the_rule_where_all_is_token_by_token(system: Callable) -> None:
    """Case (d), the degenerate case: η constant and e^{a Δ} = 1, which S6 as written excludes."""
    (line,) = as_json(asked(system, "attention", "euler"))["degenerate"]
    assert line == (
        "eta[i; h] is the same at all tokens and exp(Delta[i; h]*a[h]) = 1, which positive values "
        "exclude"
    )


@pytest.mark.ci
def test_e_ssd_has_no_condition_on_the_values() -> None:
    """Case (e): as (c) with one decay per head; x is a projection already."""
    assert rules(of_shipped("normalized_attn", "ssd")) == {
        "q[i; h,n] = sum[m](G[h; m,n] * c[i; m])": False,
        "v[i; h,p] = x[i; h,p] * κ[h]": False,
        "k[i; h,n] = sum[m](inverse(G)[h; n,m] * b[i; m])": False,
        "D[h] = 0": True,
        "Delta[i; h] = κ[h] / eta[i; h]": True,
        "exp(Delta[i; h]*a[h]) = eta[i; h] / eta[i-1; h]": True,
    }


def test_f_an_ssd_head_is_attention_over_its_history(system: Callable) -> None:
    """Case (f): η_i = e^{a (Δ_0 + … + Δ_i)}, and values times Δ η, at all sizes."""
    verdict = asked(system, "ssd_head", "ssd_as_attention")
    assert isinstance(verdict, Proved)
    assert set(verdict.certificate.claim.every) == {"h", "n", "p"}


def test_g_attention_divided_by_its_own_scores_keeps_ones_and_s6_does_not(
    system: Callable,
) -> None:
    """Case (g): values of 1 give 1 in linear attention; S6 would need as much of Σ_j Φ_ij."""
    assert not isinstance(asked(system, "of_ones", "one"), Refuted | Conditionally)
    assert isinstance(equivalent(system(FILE, "s6_of_ones"), system(FILE, "one")), Refuted)


@pytest.mark.full
@pytest.mark.parametrize(
    "attention", ["softmax", pytest.param("linear_attn", marks=pytest.mark.ci)]
)
def test_g_attention_divided_by_its_own_scores_is_no_s6(attention: str) -> None:
    """A channel of S6 reads its own entry of the token; attention of one token is W_V u."""
    a, s6 = dsfc.load(attention).system, dsfc.load("s6").system
    assert isinstance(equivalent(a, s6), Refuted)
    case = subsumes(a, s6)
    assert isinstance(case, NotAnInstance)
    proof, sizes = case.proof, dict(case.certificate.claim.sizes)
    assert isinstance(proof, SeparatingSequences) and proof.sequences == ((0,),)
    (part,) = proof.parts
    channel = part.index[0] * sizes["p"] + part.index[1]
    assert not dict(proof.letters[0])["u"][channel][0]  # the channel that has no input
    assert sizes["d"] == 16 * sizes["r"]
    check(write(case.certificate))


# --- what the kernel refuses ----------------------------------------------------------------------


def certificate(system: Callable) -> Certificate:
    verdict = asked(system, "attention", "euler")
    assert isinstance(verdict, Conditionally)
    return verdict.certificate


def proof_of(certificate: Certificate) -> Conditional:
    assert isinstance(certificate.proof, Conditional)
    return certificate.proof


def refused(certificate: Certificate, **changed: Any) -> str:
    proof = dataclasses.replace(proof_of(certificate), **changed)
    with pytest.raises(Rejected) as caught:
        check(write(dataclasses.replace(certificate, proof=proof)))
    return str(caught.value)


def test_a_forced_condition_is_one_that_equal_outputs_force(system: Callable) -> None:
    known = certificate(system)
    forced = proof_of(known).forced
    assert forced == (0, 1, 2, 3)
    # The decay follows from the values that Δ has, not from the outputs of one token.
    assert "not forced" in refused(known, forced=forced[2:] + forced[:2])
    assert "twice" in refused(known, forced=(0, 0))
    assert "none of the claim" in refused(known, forced=(9,))


def test_what_is_varied_is_an_input_that_no_gate_is_made_of(system: Callable) -> None:
    known = certificate(system)
    assert "no input" in refused(known, varied=("a",))
    assert "no input" in refused(known, varied=("z",))
    assert "stands in a function" in refused(known, varied=("Delta", "k", "q", "v"))
    assert "stays 0" in refused(known, varied=("q",)).replace("does not stay", "stays")
    other = dataclasses.replace(known.claim.conditions[0], solved="eta[0]@0")
    conditions = (other, *known.claim.conditions[1:])
    claim = dataclasses.replace(known.claim, conditions=conditions)
    with pytest.raises(Rejected):
        check(write(dataclasses.replace(known, claim=claim)))


# --- what is not forced ---------------------------------------------------------------------------


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "a, b",
    [("abs_a", "abs_b"), ("relu_a", "relu_b"), ("log_a", "log_b"), ("tied_a", "tied_b")],
)
def test_equal_outputs_force_nothing_inside_functions(system: Callable, a: str, b: str) -> None:
    """f and -f under a modulus, f + g apart from f and g: only coefficients are forced."""
    verdict = asked(system, a, b)
    assert not isinstance(verdict, Conditionally) or not any(rules(verdict).values())


def test_a_ratio_that_stays_the_same_keeps_neither_of_its_parts(system: Callable) -> None:
    """m and t may both vary where m / t does not: no line says that both stay the same."""
    verdict = asked(system, "gated", "other_gates")
    assert "and t is the same" not in report(verdict, "a", "b")


def test_softmax_attention_is_no_dual_and_the_dual_is_not_proved_to_be_softmax_attention() -> None:
    """A layer of one is apart from one of the other; scores e^{q k} have no finite state."""
    softmax, dual = (dsfc.load(name).system for name in ("softmax", "ssd"))
    assert isinstance(equivalent(softmax, dual), Refuted)
    assert isinstance(subsumes(softmax, dual), NotAnInstance)
    assert isinstance(subsumes(dual, softmax), NotAnInstance | Unknown)
