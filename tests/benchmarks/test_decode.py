"""What a token of a GLA model costs beside steps by hand, as measured; and that they are one."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from benchmarks import decode

BAR = 1.5
"""Times the step by hand: what states, names and checks may cost."""


def figures() -> dict[str, Any]:
    return json.loads(decode.FILE.read_text(encoding="utf-8"))


def test_the_results_say_what_was_measured() -> None:
    found = figures()
    assert found["date"] and {"torch", "python", "dsfc"} <= found["versions"].keys()
    assert found["sizes"]["layers"] == decode.LAYERS == 12 and found["threads"] == 1
    assert list(found["widths"]) == [str(width) for width in decode.WIDTHS]
    for width, row in found["widths"].items():
        assert max(row["error"].values()) < decode.CLOSE, width
        assert all(it["low"] <= it["median"] <= it["high"] for it in row["ratio"].values())
        for name, traced in row["traced"].items():
            assert traced == {"graph_breaks": 0, "graphs": 1, "recompilations": 0}, name


def test_the_bar_is_reached_beside_modules_and_at_the_width_of_the_paper_beside_functions() -> None:
    """At 256 channels calls of Python weigh more than arithmetic: see the README."""
    for row in figures()["widths"].values():
        assert row["ratio"][decode.MODULES]["median"] <= BAR
    assert figures()["widths"]["1024"]["ratio"][decode.BY_HAND]["median"] <= BAR


@pytest.mark.full
@torch.no_grad()
def test_the_step_by_hand_is_the_model_and_a_change_of_either_is_seen() -> None:
    model = decode.drawn(16, 2)
    runs = decode.contenders(model)
    tokens = torch.randn(5, 1, 16)
    off = decode.errors(runs, tokens)
    assert off[decode.BY_HAND] == 0 and off[decode.OURS] < decode.CLOSE
    fresh = decode.contenders(decode.drawn(16, 2))[decode.BY_HAND]  # of weights of its own
    spoilt = {**runs, decode.BY_HAND: fresh}
    for p in model.parameters():
        kept = p.clone()
        p.add_(0.5)
        assert decode.errors(spoilt, tokens)[decode.OURS] > decode.CLOSE
        p.copy_(kept)


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@torch.no_grad()
def test_a_traced_token_is_one_graph_that_is_never_traced_again() -> None:
    runs, tokens = decode.contenders(decode.drawn(16, 2)), torch.randn(6, 1, 16)
    for name in (decode.OURS, decode.BY_HAND):
        traced = decode.compilations(*runs[name], tokens)
        assert traced == {"graph_breaks": 0, "graphs": 1, "recompilations": 0}, name


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@torch.no_grad()
def test_a_compiled_token_is_the_step_by_hand() -> None:
    runs = decode.contenders(decode.drawn(16, 2))
    off = decode.errors(runs | decode.compiled(runs), torch.randn(5, 1, 16))
    assert max(off.values()) < decode.CLOSE
