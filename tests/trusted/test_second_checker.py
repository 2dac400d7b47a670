"""Every certificate of equality is checked twice: by the kernel, and by a checker of its own.

The second checker parses the text itself and computes in lowest terms, with tokens by number. What
the kernel accepts it does not refuse. Of what the kernel refuses it may accept what it says nothing
of: the format, redundant parts of systems, all sizes. An identity that fails fails in both.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from second_checker import Refused, Silent, second_check

from dsfc.trusted.check import check, write
from dsfc.trusted.claim import Certificate
from dsfc.trusted.rejected import Rejected

HERE = Path(__file__).parent


def _campaign() -> ModuleType:
    spec = importlib.util.spec_from_file_location("campaign", HERE / "test_campaign.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


campaign = _campaign()

EQUAL = [(f, a, b) for f, table in campaign.LABELS.items() for a, b, _ in table.get("equal", ())]
SILENT = {
    ("dense", "full3_dense", "full3_modes"), ("dense", "full4_dense", "full4_modes"),
    ("modes", "four_parts", "four_pairs"), ("modes", "three_parts", "three_pairs"),
    ("modes", "product_real", "kronecker_twice"),
}  # fmt: skip
"""Pairs whose values are too large for the second checker, which factors what it computes."""

LONG = SILENT | {("modes", "ema_state", "ema_kernel"), ("dense", "dense_series", "dense_reversed")}
SHARE = [p for k, p in enumerate(EQUAL) if k % 19 == 0 and p not in LONG]
SPOILED = [
    *EQUAL[:2], ("gates", "softplus_gate", "sigmoid_gate"),
    ("linear", "taps_three", "taps_three_states"), ("laws", "root_plain", "root_exp"),
]  # fmt: skip
EACH = 88
"""Corruptions of one certificate: 10,000 in all."""

IDENTITIES = frozenset({
    "the outputs differ at one of the first tokens", "a row does not vanish at the start",
    "a row is not kept by the update", "the outputs differ where the rows vanish",
    "a Markov parameter is not 0", "a pivot is in two rows", "a row does not have its pivot",
})  # fmt: skip
"""Reasons of the kernel that are an identity that does not hold, or rows that are none."""


def kernel(text: str) -> str | None:
    """Why the kernel refuses, if it does."""
    try:
        check(text)
    except Rejected as e:
        return str(e)
    return None


def second(text: str) -> str:
    try:
        second_check(text)
    except Refused as e:
        return f"refused: {e}"
    except Silent:
        return "silent"
    return "accepted"


def test_it_shares_nothing_with_the_kernel() -> None:
    for file in (HERE / "second_checker").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom | ast.Import):
                module = getattr(node, "module", None) or node.names[0].name
                assert not module.startswith("dsfc")


@pytest.mark.parametrize(
    "pair",
    [SPOILED[0], *(pytest.param(p, marks=pytest.mark.ci) for p in SPOILED[1:])],
    ids="-".join,
)
def test_accepts_and_refuses_one_sign(certificate: Callable, pair) -> None:
    text = write(certificate(*pair))
    assert second(text) == "accepted"
    document = json.loads(text)
    row = document["value"]["proof"]["rows"][0]
    assert len(row["terms"]) > 1
    row["terms"][0][1][0][1] *= -1
    bad = json.dumps(document)
    assert kernel(bad) is not None and second(bad).startswith("refused")


@pytest.mark.parametrize(
    "pair",
    [pytest.param(p, marks=pytest.mark.ci if p in SHARE else pytest.mark.full) for p in EQUAL],
    ids="-".join,
)
def test_both_accept(certificate: Callable, pair) -> None:
    text = write(certificate(*pair))
    assert kernel(text) is None
    assert second(text) == ("silent" if pair in SILENT else "accepted")


@pytest.mark.parametrize(
    "pair",
    [pytest.param(p, marks=pytest.mark.ci if p in SHARE[:1] else pytest.mark.full)
     for p in EQUAL if p not in LONG],
    ids="-".join,
)  # fmt: skip
def test_both_refuse_what_is_corrupted(certificate: Callable, pair, tier: str) -> None:
    document = json.loads(write(certificate(*pair)))
    rng = random.Random("second-" + "-".join(pair))
    count = EACH if tier == "full" else 12
    stored = "rows" in document["value"]["proof"]
    rows = list(campaign.corrupted_rows(document, count // 2, rng)) if stored else []
    claims = list(campaign.corrupted_claims(document, count - len(rows), rng))
    counts: Counter[str] = Counter()
    for bad, name in (*((r, "row") for r in rows), *((c, "claim") for c in claims)):
        text = json.dumps(bad)
        why, said = kernel(text), second(text)
        if why is None:
            assert not said.startswith("refused"), said
        if name == "row" or why in IDENTITIES:
            assert why is not None and said != "accepted"
        answer = said.partition(":")[0]
        counts[f"{name}: kernel {'accepts' if why is None else 'refuses'}, second {answer}"] += 1
    print("-".join(pair), dict(counts))
    assert counts.total() == count


@pytest.mark.parametrize(
    "pair",
    [pytest.param(p, marks=pytest.mark.ci if k == 0 else pytest.mark.full)
     for k, p in enumerate(campaign.DIFFERENT)],
    ids="-".join,
)  # fmt: skip
def test_refuses_what_is_false(certificate: Callable, pair) -> None:
    """A false claim with the rows that the search has when it finds that there is no proof."""
    claim = replace(certificate(*pair).claim, equal=True)
    text = write(Certificate(claim, campaign.own_rows(claim)))
    assert kernel(text) is not None
    assert second(text).startswith("refused")


def test_says_nothing_of_other_claims(certificate: Callable, conditional: Callable) -> None:
    refuted = certificate("attention", "post", "double")
    under = conditional("parameters", "mode", "mode_shifted")
    assert second(write(refuted)) == "silent"
    assert second(write(under)) == "silent"
