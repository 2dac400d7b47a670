"""Equality under conditions: labelled pairs, what is found, and what is printed."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

import dsfc
from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.prover.condition_text import ConditionText
from dsfc.prover.equivalent import equivalent
from dsfc.prover.report import as_json, report
from dsfc.prover.verdict import Conditionally, Refuted
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.trusted.check import check, write
from dsfc.trusted.statement import state

LABELS = tomllib.loads((Path(__file__).parent / "labels.toml").read_text(encoding="utf-8"))
LABELLED = [(f, a, b) for f, t in LABELS.items() for a, b, _ in t.get("conditional", ())]
PAIRS = [
    pytest.param(*pair, id="-".join(pair), marks=[pytest.mark.ci] if k % 4 else [])
    for k, pair in enumerate(LABELLED)
]


@pytest.mark.share(9)
@pytest.mark.parametrize("file, a, b", PAIRS)
def test_a_pair_that_is_equal_under_conditions(system: Callable, file: str, a: str, b: str) -> None:
    verdict = equivalent(system(file, a), system(file, b), conditions=True)
    assert isinstance(verdict, Conditionally), verdict
    assert check(write(verdict.certificate)).claim == verdict.certificate.claim
    assert verdict.certificate.claim.conditions


def conditions_of(verdict: Conditionally) -> list[str]:
    document = as_json(verdict)
    return [c["text"] for c in document["conditions"]]


@pytest.mark.ci
@pytest.mark.share(1, ci=0)
@pytest.mark.parametrize("attention", ["generalized_attn", "normalized_attn"])
def test_attention_with_a_normaliser_and_s6(attention: str) -> None:
    """T8c: values that are inputs up to a factor, and a normaliser that is a fixed sequence."""
    verdict = equivalent(*(dsfc.load(n).system for n in (attention, "s6")), conditions=True)
    assert isinstance(verdict, Conditionally) and verdict.certificate.claim.free
    assert conditions_of(verdict)[-3:] == [
        "D[d] = 0",
        "Delta[i; d] = κ[d] / eta[i; h]",
        "exp(Delta[i; d]*exp(a[d,n])) = eta[i; h] / eta[i-1; h]",
    ]
    document = as_json(verdict)
    (degenerate,) = document["degenerate"]
    assert degenerate.startswith("eta[i; h] is the same at all tokens")
    # Each is assumed of how values go together, or follows from equal outputs.
    assert [c["forced"] for c in document["conditions"]] == [False] * 3 + [True] * 3
    assert document["otherwise"]["verdict"] == "refuted"


@pytest.mark.full
def test_s6_and_attention_have_the_same_conditions_as_attention_and_s6() -> None:
    """Values of attention get theirs from S6, whichever mixer is first."""
    verdict = equivalent(*(dsfc.load(n).system for n in ("s6", "normalized_attn")), conditions=True)
    assert isinstance(verdict, Conditionally)
    assert conditions_of(verdict)[-2:] == [
        "Delta[i; d] = κ[d] / eta[i; h]",
        "exp(Delta[i; d]*exp(a[d,n])) = eta[i; h] / eta[i-1; h]",
    ]


@pytest.mark.ci
def test_attention_with_a_free_normaliser_and_ssd() -> None:
    """T8e: as T8c with one decay per head."""
    verdict = equivalent(
        *(dsfc.load(n).system for n in ("generalized_attn", "ssd")), conditions=True
    )
    assert isinstance(verdict, Conditionally)
    text = report(verdict, "attention", "ssd")
    assert "Delta[i; h] = κ[h] / eta[i; h]" in text
    assert "log(eta[i; h] / eta[i-1; h]) = a[h] * κ[h] / eta[i; h]" in text
    assert "which positive values exclude" in text and "\n  otherwise  " in text


@pytest.mark.ci
def test_ssd_is_gated_linear_attention_but_for_its_skip() -> None:
    """T20: with functions of SSD's own values for those inside GLA, at sizes with whole roots."""
    verdict = equivalent(*(dsfc.load(n).system for n in ("ssd", "gla")), conditions=True)
    assert isinstance(verdict, Conditionally)
    assert dict(verdict.certificate.claim.sizes)["n"] == 4
    assert conditions_of(verdict) == [
        "q[i; h,n] = c[i; n]",
        "k[i; h,n] = b[i; n]",
        "D[h] = 0",
        "v[i; h,p] = Delta[i; h] * x[i; h,p] * n^(1/2)",
        "alpha[i; h,n] = 1 / exp(Delta[i; h]*a[h])",
    ]
    text = report(verdict, "ssd", "gla")
    assert "  inside     ssd is gla with alpha, k, q, v as said, where D[h] = 0\n" in text
    assert as_json(verdict)["inside"] == {
        "values": ["alpha", "k", "q", "v"], "where": ["D[h] = 0"]
    }  # fmt: skip


@pytest.mark.full
def test_what_leaves_values_inside_open_is_no_case_inside() -> None:
    """RetNet is GLA; attention and S6 have conditions on values of both."""
    verdict = equivalent(*(dsfc.load(n).system for n in ("retnet", "gla")), conditions=True)
    text = report(verdict, "retnet", "gla")
    assert "  inside     retnet is gla with alpha, k, q, v as said\n" in text
    verdict = equivalent(*(dsfc.load(n).system for n in ("normalized_attn", "s6")), conditions=True)
    assert "  inside" not in report(verdict, "a", "b") and as_json(verdict)["inside"] is None


@pytest.mark.parametrize("gate, where", [
    ("sigmoid(v * x)", ("al is in (0, 1)",)),
    ("softplus(v * x)", ("al is in (0, ∞)",)),
    ("tanh(v * x)", ("al is in (-1, 1)",)),
])  # fmt: skip
def test_a_value_inside_is_said_where_the_second_can_have_it(
    gate: str, where: tuple[str, ...]
) -> None:
    """The first's gate is any number."""

    def gated(value: str) -> System:
        body = f"input x\n param v\n state S\n al = {value}\n S = al * S[i-1] + x\n y = S"
        text = Source("m.dsf", f"mixer m {{\n {body}\n}}\n")
        return SpecText(Place(Path("m.dsf")), parse(text)).compilation("m").system

    a, b = gated("v * x"), gated(gate)
    verdict = equivalent(a, b, conditions=True)
    assert isinstance(verdict, Conditionally)
    claim = verdict.certificate.claim
    assert ConditionText(claim, state(claim, False)).inside() == (("al",), where)


@pytest.mark.share(4)
@pytest.mark.parametrize(
    "file, a, b, found",
    [
        ("normalised", "normalised", "zoh_gate", "eta[i; h] = a[h] + eta[i-1; h]"),
        ("normalised", "normalised", "convex_gate", "eta[i; h] = 1 + eta[i-1; h]"),
        ("normalised", "normalised", "free_gate", "g[i; h] = 1 / eta[i; h]"),
        ("normalised", "normalised", "gate_alone", "eta[i; h] = eta[i-1; h]"),
        ("parameters", "mode", "mode_shifted", "a[p] = 1"),
        ("parameters", "dss_right", "dss_printed", "g[p] = s[p]"),
        ("parameters", "wkv_bonus", "wkv_plain", "exp(bonus[p]) = exp(w[p])"),
        ("parameters", "delta_weighted", "delta_none", "alpha[h] = 0"),
        ("parameters", "pair_weights", "pair_of_modes", "b[p] = a[p]"),
    ],
)
def test_the_condition_of_a_theorem(
    system: Callable, file: str, a: str, b: str, found: str
) -> None:
    verdict = equivalent(system(file, a), system(file, b), conditions=True)
    assert isinstance(verdict, Conditionally)
    assert found in conditions_of(verdict)


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "file, a, b",
    [
        ("normalised", "normalised", "exp_decay_alone"),
        ("normalised", "euler_gate", "zoh_gate"),
        ("parameters", "mode", "mode_strict"),
        ("parameters", "wkv_no_bonus", "wkv_plain"),
    ],
)
def test_what_is_excluded_by_ranges_or_true_of_nothing_is_no_condition(
    system: Callable, file: str, a: str, b: str
) -> None:
    assert isinstance(equivalent(system(file, a), system(file, b), conditions=True), Refuted)


@pytest.mark.ci
def test_conditions_do_not_depend_on_names_of_mixers(system: Callable) -> None:
    a, b = system("normalised", "normalised"), system("normalised", "convex_gate")
    first = equivalent(a, b, conditions=True)
    other = equivalent(
        dataclasses.replace(a, name="x", doc=None),
        dataclasses.replace(b, name="y", doc=None),
        conditions=True,
    )
    assert first.certificate.proof == other.certificate.proof
    assert first.certificate.claim.conditions == other.certificate.claim.conditions


@pytest.mark.ci
def test_no_condition_is_one_on_a_fixed_value(system: Callable) -> None:
    """A buffer that has a value of its own is nothing to solve for."""
    plain, fixed = system("cases", "plain"), system("cases", "fixed_half")
    assert isinstance(equivalent(plain, fixed, conditions=True), Refuted)


def test_the_order_exchanges_the_sides(system: Callable) -> None:
    a, b = system("normalised", "convex_gate"), system("normalised", "normalised")
    verdict = equivalent(a, b, conditions=True)
    assert isinstance(verdict, Conditionally)
    assert "eta[i; h] = 1 + eta[i-1; h]" in conditions_of(verdict)


FILTERED = """
mixer scaled { dims d
  input u : d
  param a : d
  y = a * u
}
mixer kept { dims d
  input u : d
  param g, w : d
  state s : d
  s = g * s[i-1] + w * u
  y = s
}
"""


def test_a_condition_on_some_entries_is_none_on_all() -> None:
    """One entry may be without a filter, and the other without an output."""
    spec = SpecText(Place(Path("filtered.dsf")), parse(Source("filtered.dsf", FILTERED)))
    systems = (spec.compilation(name).system for name in ("scaled", "kept"))
    verdict = equivalent(*systems, conditions=True)
    assert isinstance(verdict, Conditionally)
    assert conditions_of(verdict) == ["w[0] = 0", "w[1] = a[1]", "a[0] = 0", "g[1] = 0"]


LAGGED = """
mixer normed { dims d
  input u : d
  input n : d positive
  param r : d unit
  state s : d
  s = r * n[i-1] / n * s[i-1] + u / n
  y = s
}
mixer convex { dims d
  input u : d
  input g : d unit
  state s : d
  s = g * s[i-1] + (1 - g) * u
  y = s
}
"""


def test_a_condition_of_every_token_is_printed_as_one() -> None:
    """With the law of n put in, that on g would read n[i-1], and say nothing of the first token."""
    spec = SpecText(Place(Path("lagged.dsf")), parse(Source("lagged.dsf", LAGGED)))
    systems = (spec.compilation(name).system for name in ("normed", "convex"))
    verdict = equivalent(*systems, conditions=True)
    assert isinstance(verdict, Conditionally)
    assert conditions_of(verdict) == [
        "g[i; d] = (-1 + n[i; d]) / n[i; d]",
        "n[i; d] = 1 + n[i-1; d] * r[d]",
    ]
