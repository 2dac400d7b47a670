"""Corrupted certificates of more kinds: forced conditions, cases, two ways, chains of a bound.

What is accepted is judged on numbers. That a condition is forced says: where the assumed ones hold
and it does not, some inputs give other outputs, and a random point is one of these. That a is a
case of b says: with the values that conditions give, the outputs are equal. A chain says that no
point of its domain is farther apart than its bound.
"""

from __future__ import annotations

import importlib.util
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from dsfc.api.bound import domain_of
from dsfc.api.pipeline import load, read
from dsfc.bounds.certificate import check_text
from dsfc.bounds.certificate import write as write_bound
from dsfc.bounds.chain import Chain
from dsfc.bounds.decide import question_of
from dsfc.bounds.search import search
from dsfc.bounds.witness import Draws, observe
from dsfc.prover.subsumes import subsumes
from dsfc.prover.verdict import Instance
from dsfc.trusted.alpha_rename import alpha_rename
from dsfc.trusted.check import read as read_certificate
from dsfc.trusted.check import write
from dsfc.trusted.claim import Certificate, Conditional
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.rules.point import Evaluated
from dsfc.trusted.statement import state

TESTS = Path(__file__).parent.parent


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


campaign = _module(TESTS / "trusted" / "test_campaign.py")

VALUE = ("value",)
PROOF = ("value", "proof")
CLAIM = ("value", "claim")


def corrupted(document: Any, bases: tuple[tuple, ...], count: int, rng: random.Random) -> Iterator:
    """As many corruptions of each part as there is something to change."""
    for base in bases:
        if campaign.part(document, base):
            yield from campaign.corrupted_at(document, base, count, rng)


def lists(document: Any, base: tuple, count: int, rng: random.Random) -> Iterator[Any]:
    """An entry of a list left out, put in again, or exchanged with another."""
    entries = campaign.part(document, base)
    for _ in range(count if entries else 0):
        new = list(entries)
        k = rng.randrange(len(new))
        match rng.randrange(3):
            case 0:
                del new[k]
            case 1:
                new.insert(rng.randrange(len(new) + 1), new[k])
            case 2:
                j = rng.randrange(len(new))
                new[j], new[k] = new[k], new[j]
        if new != entries:
            bad = json.loads(json.dumps(document))
            campaign.put(bad, base, new)
            yield bad


# --- conditions that equal outputs force ----------------------------------------------------------

FORCED = [
    ("couplings", "normalised", "quotient_decay"), ("couplings", "plain", "quotient_decay"),
    ("couplings", "normalised", "root_gate"), ("couplings", "attention_input", "selective_input"),
    ("normalised", "normalised", "euler_gate"), ("normalised", "normalised_state", "euler_gate"),
    ("normalised", "normalised", "euler_skip"), ("normalised", "normalised", "convex_gate"),
    ("normalised", "normalised_state", "convex_gate"), ("normalised", "normalised", "free_gate"),
    ("normalised", "normalised", "gate_alone"), ("normalised", "normalised", "plain"),
    ("normalised", "convex_gate", "free_gate"), ("normalised", "decay_alone", "free_gate"),
    ("normalised", "normalised_here", "decay_per_key"),
    ("normalised", "normalised_here", "decay_per_key_convex"),
]  # fmt: skip
"""Labelled pairs of which some conditions are forced."""


def apart_where_it_fails(c: Certificate) -> int:
    """At how many points one forced condition fails alone and the outputs are seen to be apart."""
    assert isinstance(c.proof, Conditional)
    full, seen = state(c.claim, c.proof.invariant.entries), 0
    for left_out in c.proof.forced:
        kept = tuple(x for k, x in enumerate(c.claim.conditions) if k != left_out)
        others = replace(c.claim, conditions=kept)
        statement = state(others, c.proof.invariant.entries)
        for draw in range(4):
            with suppress(Rejected, Obstacle, ZeroDivisionError, ValueError, LookupError):
                point = campaign.drawn(others, statement, draw)
                it = Evaluated(others, statement.symbols, point)
                held = [it.holds(statement.conditions, k) for k in range(len(kept))]
                if not all(held) or it.holds(full.conditions, left_out):
                    continue
                a, b = (campaign.floats(others, it, second) for second in (False, True))
                known = np.isfinite(a) & np.isfinite(b)
                assert not np.allclose(a[known], b[known], rtol=1e-12, atol=1e-12)
                seen += 1
    return seen


@pytest.mark.parametrize(
    "pair", [pytest.param(p, marks=pytest.mark.full) for p in FORCED], ids="-".join
)  # fmt: skip
def test_corrupted_forced_conditions(conditional: Callable, pair, tier: str) -> None:
    made = conditional(*pair)
    assert isinstance(made.proof, Conditional) and made.proof.forced
    assert apart_where_it_fails(made)
    document = json.loads(write(made))
    rng = random.Random("-".join(pair))
    each = 12 if tier == "full" else 3
    bads = [
        *corrupted(document, ((*PROOF, "forced"), (*PROOF, "varied"), (*CLAIM, "conditions")),
                   each, rng),
        *lists(document, (*PROOF, "forced"), each, rng),
        *lists(document, (*PROOF, "varied"), each, rng),
        *lists(document, (*CLAIM, "conditions"), each, rng),
    ]  # fmt: skip
    counts: Counter[str] = Counter()
    for bad in bads:
        if campaign.accepted(bad) is None:
            counts["rejected"] += 1
            continue
        counts["accepted and true"] += 1
        found = read_certificate(json.dumps(bad))
        campaign.borne_out(found, True)
        assert not found.proof.forced or apart_where_it_fails(found)
    print("-".join(pair), dict(counts))
    assert counts["rejected"] >= 0.3 * counts.total() > 0


# --- cases ----------------------------------------------------------------------------------------

CASES = [(f, a, b) for f in ("cases", "dense") for a, b, _ in campaign.LABELS[f]["case"]]


@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=pytest.mark.ci if k == 4 else pytest.mark.full)
             for k, c in enumerate(CASES)], ids="-".join
)  # fmt: skip
def test_corrupted_cases(system: Callable, case, tier: str) -> None:
    file, a, b = case
    found = subsumes(system(file, a), system(file, b), conditions=True)
    assert isinstance(found, Instance)
    document = json.loads(write(found.certificate))
    rng = random.Random("-".join(case))
    each = 48 if tier == "full" else 6
    bases: tuple[tuple, ...] = ((*CLAIM, "conditions"), (*CLAIM, "functions"), (*CLAIM, "apart"))
    bads = [*corrupted(document, bases, each, rng),
            *lists(document, (*CLAIM, "conditions"), each // 4, rng),
            *campaign.corrupted_claims(document, each, rng)]  # fmt: skip
    if isinstance(found.certificate.proof, Conditional):
        bads += campaign.corrupted_rows(document, each, rng, (*PROOF, "invariant", "rows"))
    counts: Counter[str] = Counter()
    for bad in bads:
        if campaign.accepted(bad) is None:
            counts["rejected"] += 1
            continue
        counts["accepted and true"] += 1
        certificate = read_certificate(json.dumps(bad))
        certificate = replace(certificate, claim=alpha_rename(certificate.claim))
        if isinstance(certificate.proof, Conditional):
            campaign.borne_out(certificate, False)
        else:
            assert not certificate.claim.equal or campaign.true(certificate.claim)
    print("-".join(case), dict(counts))
    assert counts["rejected"] >= 0.3 * counts.total() > 0


# --- states that run backwards --------------------------------------------------------------------

ways = _module(TESTS / "trusted" / "rules" / "test_two_ways.py")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.full if k else pytest.mark.ci)
             for k, n in enumerate(ways.EQUAL)]
)  # fmt: skip
def test_corrupted_proofs_of_two_ways(name: str, tier: str) -> None:
    proved, _ = ways.proved(*ways.EQUAL[name])
    document = json.loads(write(proved))
    rng = random.Random(name)
    each = 120 if tier == "full" else 12
    pairs = (*PROOF, "pairs")
    bads = [
        *campaign.corrupted_rows(document, each, rng, (*PROOF, "rows", "rows")),
        *(bad for k in range(len(campaign.part(document, pairs)))
          for bad in campaign.corrupted_rows(document, each, rng, (*pairs, k, "rows", "rows"))),
        *corrupted(document, (pairs,), each, rng),
        *lists(document, pairs, each // 4, rng),
        *campaign.corrupted_claims(document, 2 * each, rng),
    ]  # fmt: skip
    counts: Counter[str] = Counter()
    for bad in bads:
        claim = campaign.accepted(bad)
        counts["rejected" if claim is None else "accepted and true"] += 1
        assert claim is None or not claim.equal or campaign.true(claim)
    print(name, dict(counts))
    assert counts["rejected"] >= 0.3 * counts.total() > 0


# --- chains of a bound ----------------------------------------------------------------------------

bounds = _module(TESTS / "bounds" / "test_random.py")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.full if k else pytest.mark.ci)
             for k, n in enumerate(bounds.NAMED)]
)  # fmt: skip
def test_corrupted_chains(name: str, tier: str) -> None:
    a, b, domain, sizes, tokens, _ = bounds.NAMED[name]
    spec = read(TESTS / "bounds" / "pairs.dsf")
    one, other = ((spec.compilation(m) if m in spec.mixers else load(m)).system for m in (a, b))
    asked = question_of(one, other, Fraction(1, 10**6), domain_of(domain, one, other), (), sizes)
    chain = search(asked)
    assert isinstance(chain, Chain)
    document = json.loads(write_bound(chain))
    rng = random.Random(name)
    each = 120 if tier == "full" else 12
    bads = [*corrupted(document, ((*VALUE, "steps"), (*VALUE, "question")), each, rng),
            *(changed_bound(document, rng) for _ in range(each // 4))]  # fmt: skip
    counts: Counter[str] = Counter()
    for bad in bads:
        try:
            found = check_text(json.dumps(bad))
        except Rejected:
            counts["rejected"] += 1
            continue
        counts["accepted and true"] += 1
        if isinstance(found, Chain):
            # A domain that no point keeps has nothing to be judged by.
            seen = observe(Draws(found.question, 7), min(tokens, 8), 8, 16)
            assert not seen.points or seen.worst <= float(found.bound) * (1 + 1e-9)
    print(name, dict(counts))
    assert counts["rejected"] >= 0.3 * counts.total() > 0


def changed_bound(document: Any, rng: random.Random) -> Any:
    """The bound of the whole, larger or smaller."""
    bad = json.loads(json.dumps(document))
    above, _, below = bad["value"]["bound"].partition("/")
    bad["value"]["bound"] = f"{int(above) + rng.choice((-1, 1, 7))}/{below or 1}"
    return bad
