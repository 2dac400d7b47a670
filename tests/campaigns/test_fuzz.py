"""Texts and certificates that nobody would write are taken, or refused as is promised."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path
from random import SystemRandom

import fuzz
import pytest
from fuzz import Ran, campaign, ran
from fuzz_inputs import EXTREMES, KINDS, one

from dsfc.limits import Limits

COUNT = {"fast": 150, "ci": 1500, "full": 1_000_000}


def broken(found: list[Ran]) -> list[str]:
    return [f"seed {it.seed}, {it.kind}: {it.outcome}: {it.where}" for it in found if it.broken]


@pytest.mark.timeout(100_000)
def test_every_input_is_taken_or_refused_as_is_promised(tier: str) -> None:
    """The same inputs in every run, fresh ones in the full tier."""
    seed = SystemRandom().randrange(10**9) if tier == "full" else 0
    found = list(campaign(range(seed, seed + COUNT[tier])))
    assert len(found) == COUNT[tier] and broken(found) == []
    assert Counter(it.outcome for it in found)["refused"] > len(found) // 2


def test_a_seed_gives_one_input_and_seeds_give_all_kinds() -> None:
    drawn = [one(seed) for seed in range(200)]
    assert {kind for kind, _ in drawn} == set(KINDS) and len({data for _, data in drawn}) > 150
    assert [one(seed) for seed in range(20)] == drawn[:20]
    assert len(EXTREMES) == 11


def outcomes(monkeypatch: pytest.MonkeyPatch, fault: object) -> list[str]:
    """What is said of three inputs where something else takes the text."""
    monkeypatch.setattr(fuzz, "_held", fault)
    return [it.outcome for it in campaign(range(3))]


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


def test_what_takes_its_time_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(*_: object) -> None:
        while True:
            pass

    monkeypatch.setattr(fuzz, "_held", endless)
    monkeypatch.setattr(fuzz, "bounded", lambda what: fuzz_bounded(what, Limits(seconds=0.05)))
    it = ran(0)
    assert (it.outcome, it.codes) == ("refused", ("E-LIMIT time",))


fuzz_bounded = fuzz.bounded
