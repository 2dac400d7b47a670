"""Texts and certificates that nobody would write are taken, or refused as is promised."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path
from random import SystemRandom
from typing import Any

import fuzz
import pytest
from fuzz import Figures, Ran, campaign, merged, ran
from fuzz_inputs import EXTREMES, KINDS, one

from dsfc.limits import Limits

COUNT = {"fast": 80, "ci": 75, "full": 1_000_000}


def broken(found: list[Ran]) -> list[str]:
    return [f"seed {it.seed}, {it.kind}: {it.outcome}: {it.where}" for it in found if it.broken]


@pytest.mark.ci
@pytest.mark.timeout(100_000)
def test_every_input_is_taken_or_refused_as_is_promised(tier: str) -> None:
    """The same inputs in every run of the fast tier, fresh ones in the others."""
    seed = 0 if tier == "fast" else SystemRandom().randrange(10**9)
    print(f"seed {seed}")
    found = list(campaign(range(seed, seed + COUNT[tier])))
    assert len(found) == COUNT[tier] and broken(found) == [], f"seed {seed}"
    assert Counter(it.outcome for it in found)["refused"] > len(found) // 2


@pytest.mark.full
def test_a_seed_gives_one_input_and_seeds_give_all_kinds() -> None:
    drawn = [one(seed) for seed in range(1000)]
    assert {kind for kind, _ in drawn} == set(KINDS) and len({data for _, data in drawn}) > 800
    assert [one(seed) for seed in range(20)] == drawn[:20]
    assert len(EXTREMES) == 11


def test_shares_add_up_and_no_seed_counts_twice() -> None:
    def share(seed: int, *outcomes: str) -> dict[str, Any]:
        figures = Figures(seed)
        for k, outcome in enumerate(outcomes):
            figures.add(Ran(seed + k, "noise", outcome, ("E-CHAR",), "x", float(k), 100 * k))
        return figures.to_json()

    a, b = share(5, "refused", "accepted"), share(7, "refused", "internal error")
    both = merged(a, b)
    assert both["outcomes"]["noise"] == {"accepted": 1, "refused": 2, "internal error": 1}
    assert [(it["seed"], it["count"]) for it in both["shares"]] == [(5, 2), (7, 2)]
    assert (both["broken"], both["codes"], both["seconds"]["noise"]) == (1, {"E-CHAR": 4}, 2.0)
    assert both["slowest"][:2] == [[1.0, 8], [1.0, 6]] and both["where"] == {
        "internal error: x": [8]
    }
    with pytest.raises(ValueError, match="seeds from 6 are in two shares"):
        merged(both, share(6, "refused"))


def outcomes(monkeypatch: pytest.MonkeyPatch, fault: object) -> list[str]:
    """What is said of three inputs where something else takes the text."""
    monkeypatch.setattr(fuzz, "held", fault)
    return [it.outcome for it in campaign(range(3))]


@pytest.mark.ci
def test_faults_that_are_planted_are_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def writes(*_: object) -> None:
        (tmp_path / "left").write_text("behind")

    def dies(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def hoards(*_: object) -> None:
        held = []
        while True:
            held.append(bytearray(1 << 26))

    def fails(*_: object) -> None:
        raise KeyError("x")

    assert outcomes(monkeypatch, fails) == ["internal error"] * 3
    assert outcomes(monkeypatch, writes) == ["internal error"] * 3
    assert list(tmp_path.iterdir()) == []
    assert outcomes(monkeypatch, dies) == ["the process died"] * 3
    assert outcomes(monkeypatch, hoards) == ["too much memory"] * 3


@pytest.mark.ci
def test_what_takes_its_time_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(*_: object) -> None:
        while True:
            pass

    monkeypatch.setattr(fuzz, "held", endless)
    monkeypatch.setattr(fuzz, "bounded", lambda what: fuzz_bounded(what, Limits(seconds=0.05)))
    it = ran(0)
    assert (it.outcome, it.codes) == ("refused", ("E-LIMIT time",))


fuzz_bounded = fuzz.bounded
