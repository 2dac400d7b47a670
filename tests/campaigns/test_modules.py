"""Mixers nobody wrote, beside a literal loop that shares nothing with the compiler."""

from __future__ import annotations

import json
import math
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import SystemRandom
from typing import Any

import pytest
import torch
from beside import SPECS, DisagreementError, Judge, Outcome, Rounded, beside, library
from covered import UNREACHABLE, possible
from literal import Literal, program, sizes_of
from literal_text import units
from modules import FOUND, Ran, campaign, covers, figures, keep, merged
from shrink import candidates, shrunk
from spec_writer import random_mixer

import dsfc
from dsfc.mixer import evaluate, sample, sizes

torch.set_num_threads(1)

SEEDS = "random mixers from seed"
"""The property of a test that the summary of a run shows."""
FAST = 20
FRESH = {"ci": (1, 15), "full": (20, 1000)}
"""Shares of fresh mixers, and how many are in each: a share ends within the patience of a test."""
SHRUNK = 2
"""Failures of a share that are made small: each takes a few minutes."""
ONCE = (31, 131, 20_153, 20_197, 20_238, 20_369, 692_250_683)
"""Mixers that failed: the norm of one number jumps; a gradient's part took another value's name; a
product had a factor without time; `min` took its other argument in bfloat16; an axis had no tensor;
one stood there twice.
"""
REFUSED = ("gate", "out_norm", "qk_norm", "qkv", "separable", "short_conv", "token_shift")
WHATS = ("productions", "mixer kinds", "system kinds", "plan kinds")
COMPILED = sorted(p.stem for p in SPECS.glob("*.dsf") if p.stem not in REFUSED)


@pytest.mark.share(28)
@pytest.mark.parametrize("seed", [*range(FAST), *ONCE])
def test_the_module_of_a_random_mixer_is_the_literal_loop(seed: int, tmp_path: Path) -> None:
    out = beside(random_mixer(seed), seed, f"random_{seed}", tmp_path)
    assert not out.failed, out


def _fresh(count: int, record_property: Callable[[str, object], None], jobs: int) -> None:
    """Runs mixers that nobody has seen; those that fail are made small and kept."""
    seed = SystemRandom().randrange(10**9)
    record_property(SEEDS, seed)
    started = time.monotonic()
    done = list(campaign(range(seed, seed + count), jobs))
    failed = [r for r in done if r.outcome.failed]
    one_each = {r.outcome.reason: r for r in reversed(failed)}
    paths = [str(keep(r.seed, r.outcome, FOUND)) for r in list(one_each.values())[:SHRUNK]]
    said = json.dumps(figures(done, started, seed), indent=1, ensure_ascii=False)
    assert not failed, f"{len(failed)} of {count} from seed {seed}; see {paths}\n{said}"


@pytest.mark.ci
@pytest.mark.parametrize("share", range(FRESH["ci"][0]))
def test_fresh_random_mixers_agree_with_the_literal_loop(share: int, record_property) -> None:
    """Other mixers in every run; their first seed stands in the summary and the report."""
    _fresh(FRESH["ci"][1], record_property, 0)


@pytest.mark.full
@pytest.mark.parametrize("share", range(FRESH["full"][0]))
def test_many_fresh_random_mixers_agree_with_the_literal_loop(share: int, record_property) -> None:
    _fresh(FRESH["full"][1], record_property, 1)


def test_a_fresh_mixer_that_fails_is_kept_and_its_seed_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(text: str, seed: int, mixer: str, folder: Path, backend: str = "torch") -> Outcome:
        return Outcome("disagrees" if "y =" in text else "agrees", "mode recurrent", "y is off")

    monkeypatch.setattr("modules.beside", wrong)
    monkeypatch.setattr(sys.modules[__name__], "FOUND", tmp_path)
    told: dict[str, object] = {}
    with pytest.raises(AssertionError, match=r"3 of 3 from seed (\d+); see .*random_") as raised:
        _fresh(3, told.__setitem__, 0)
    assert str(told[SEEDS]) in str(raised.value)
    (kept,) = tmp_path.glob("*.dsf")
    assert kept.stem == f"random_{told[SEEDS]}"
    assert kept.read_text("utf-8").count("\n") <= 6


@pytest.mark.share(32)
@pytest.mark.parametrize("path", sorted(FOUND.glob("*.dsf")), ids=lambda p: p.stem)
def test_what_failed_once_agrees_now(path: Path, tmp_path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    name = [n for n, u in units(text).items() if u.kind == "mixer"][-1]
    for seed in range(2):
        out = beside(text, seed, name, tmp_path)
        assert out.kind in ("agrees", "refused"), out


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.ci] * bool(k % 5)) for k, n in enumerate(COMPILED)],
)
def test_the_literal_loop_is_the_meaning_of_every_shipped_spec(name: str) -> None:
    mixer = dsfc.load(name).mixer
    given = {d.axis.name: 16 if name == "s6" else 4 for d in mixer.axes if d.size is None}
    known_sizes = sizes(mixer, given)
    drawn = sample(mixer, known_sizes, 0, 5)
    text = library(name)
    assert text is not None
    read = program(text, name, library)
    values = {n: torch.tensor(x).unsqueeze(0) for n, x in drawn.inputs.items()}
    values |= {n: torch.tensor(x) for n, x in drawn.params.items()}
    initial = {n: torch.tensor(x).unsqueeze(0) for n, x in drawn.initial.items()}
    loop = Literal(read, sizes_of(read, given), values, initial, 5)
    want = evaluate(mixer, drawn.inputs, drawn.params, known_sizes, initial=drawn.initial)
    torch.testing.assert_close(loop.output()[0], torch.tensor(want["y"]), rtol=1e-13, atol=1e-13)


def test_the_judge_imports_nothing_of_the_compiler() -> None:
    for name in ("literal.py", "literal_text.py"):
        text = (Path(__file__).parent / name).read_text(encoding="utf-8")
        found = re.findall(r"^ *(?:from|import) +(\w+)", text, re.MULTILINE)
        assert not {"dsfc", "backends", "lark", "sympy"} & set(found)


@pytest.mark.full
def test_random_mixers_are_well_typed() -> None:
    for seed in range(400):
        spec = dsfc.api.pipeline.parse(dsfc.source.Source("<r>", random_mixer(seed)))
        dsfc.mixer.resolve(spec, f"random_{seed}", dsfc.mixer.Library())


@pytest.mark.ci
def test_a_wrong_module_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop judges: where it means another mixer, they disagree."""
    text = "mixer m {\n dims d = 2\n input u : d\n state s : d\n s = 1/2 * s[i-1] + u\n y = s\n}\n"
    assert beside(text, 0, "m", tmp_path).kind == "agrees"
    other = text.replace("1/2", "1/3")
    monkeypatch.setattr("beside.program", lambda _, name, lib: program(other, name, lib))
    out = beside(text, 0, "m", tmp_path)
    assert (out.kind, out.where) == ("disagrees", "mode recurrent")


def test_a_narrow_result_may_be_off_where_the_rounding_of_arguments_moves_it_alone() -> None:
    """The sign of a number near 0 jumps; the entry beside it does not."""
    want = {"y": torch.tensor([1.0, 1.0])}
    judge = Judge(want, want, {"y": 0.0}, lambda dtype: {"y": torch.tensor([2.0, 0.0])})
    assert judge.agree({"y": torch.tensor([1.0, 1.0])}, want, torch.bfloat16)
    assert not judge.agree({"y": torch.tensor([-1.0, 1.0])}, want, torch.bfloat16)
    for got, dtype in (([1.0, -1.0], torch.bfloat16), ([-1.0, 1.0], torch.float64)):
        with pytest.raises(DisagreementError, match="y is off by 2"):
            judge.agree({"y": torch.tensor(got)}, want, dtype)


def test_a_narrow_entry_may_be_off_by_as_much_as_rounding_moves_it() -> None:
    want = {"y": torch.tensor([1.0, 1.0])}
    judge = Judge(want, want, {"y": 0.0}, lambda dtype: {"y": torch.tensor([0.4, 0.0])})
    tolerance = 16 * torch.finfo(torch.bfloat16).eps
    assert judge.agree({"y": torch.tensor([1.39 + tolerance, 1.0])}, want, torch.bfloat16)
    for got in ([1.41 + tolerance, 1.0], [1.0, 1.01 + tolerance]):
        with pytest.raises(DisagreementError, match="y is off"):
            judge.agree({"y": torch.tensor(got)}, want, torch.bfloat16)


def test_a_wide_entry_may_be_off_by_what_rounding_moves_but_never_by_a_jump() -> None:
    """Terms of 1e4 that cancel leave 1e-12; where the loop itself jumps, nothing is allowed."""
    want = {"y": torch.tensor([1.0, 1.0]).double()}
    got = {"y": want["y"] + torch.tensor([0.0, 1e-11])}
    for moved, agrees in (([0.0, 1e-11], True), ([1e-11, 0.0], False), ([0.0, 1e-3], False)):
        room = {"y": torch.tensor(moved).double()}
        judge = Judge(want, want, {"y": 0.0}, lambda dtype, room=room: room)
        if agrees:
            assert judge.agree(got, want, torch.float64)
        else:
            with pytest.raises(DisagreementError, match="y is off"):
                judge.agree(got, want, torch.float64)


@pytest.mark.ci
def test_a_gradient_that_cancels_unevenly_agrees(tmp_path: Path) -> None:
    """The norm of one number hands back a difference of equal terms, each beyond 1e4."""
    text = random_mixer(267363169)
    assert beside(text, 267363169, "random_267363169", tmp_path).kind == "agrees"


def test_gradients_that_cancel_are_0_to_the_rounding_of_outputs() -> None:
    want = {"y": torch.tensor([4.0]).double(), "gradient of param w": torch.zeros(1).double()}
    judge = Judge(want, want, {}, lambda dtype: {})
    allowed = 4 * 1024 * torch.finfo(torch.float64).eps
    got = want | {"gradient of param w": torch.tensor([0.9 * allowed]).double()}
    assert judge.agree(got, want, torch.float64)
    got = want | {"gradient of param w": torch.tensor([1.1 * allowed]).double()}
    with pytest.raises(DisagreementError, match="gradient of param w is off"):
        judge.agree(got, want, torch.float64)


def test_gradients_of_a_rounding_of_the_outputs_are_what_is_left_of_larger_ones() -> None:
    """The norm of one number is its sign: its gradient is 0 up to the eps of the norm."""
    y, name = torch.tensor([1.0]).double(), "gradient of param w"
    want = {"y": y, name: torch.tensor([1e-17]).double()}
    judge = Judge(want, want, {}, lambda dtype: {})
    assert judge.agree(want | {name: -want[name]}, want, torch.float64)
    want = {"y": y, name: torch.tensor([1e-6]).double()}
    judge = Judge(want, want, {}, lambda dtype: {})
    assert judge.agree(want | {name: want[name] + 2e-16}, want, torch.float64)
    with pytest.raises(DisagreementError, match="gradient of param w is off"):
        judge.agree(want | {name: want[name] + 3e-16}, want, torch.float64)


def test_a_dtype_whose_range_the_loop_leaves_is_not_asked() -> None:
    want = {"y": torch.tensor([1e60]).double()}
    got = {"y": torch.tensor([math.nan])}
    for lost in ({}, {"y": math.nan}):
        assert not Judge(want, want, lost, lambda dtype: {}).agree(got, want, torch.float32)
    with pytest.raises(DisagreementError, match="y is off"):
        Judge(want, want, {}, lambda dtype: {}).agree(got, want, torch.float64)


def test_every_operation_of_the_loop_is_rounded_and_derivatives_pass_through() -> None:
    read = program("mixer m {\n dims d = 1\n input u : d\n y = u + 1/3\n}\n", "m")
    u = torch.full((1, 1, 1), 1e-3, dtype=torch.float64, requires_grad=True)
    with Rounded(torch.bfloat16):
        y = Literal(read, {"d": 1}, {"u": u}, {}, 1).output()
    assert y.item() == torch.tensor(y.item()).bfloat16().item() != 1e-3 + 1 / 3
    assert torch.autograd.grad(y.sum(), u)[0].item() == 1


def test_a_failing_text_shrinks_to_what_makes_it_fail() -> None:
    text = random_mixer(0)
    small = shrunk(text, lambda t: "S7[i" in t and "y =" in t)
    assert small.count("\n") <= 6 and "S7[i" in small
    assert all(len(units(t)) for t in candidates(small))


def _share(seed: int, *outcomes: Outcome) -> dict[str, Any]:
    covered = {"mixer pairs": Counter({"Add > Ref": seed, "Mul > Ref": 0})}
    done = [Ran(seed + k, o, covered) for k, o in enumerate(outcomes)]
    return figures(done, time.monotonic() - 5, seed)


def test_shares_of_a_campaign_add_up() -> None:
    agrees, off = Outcome("agrees", checks=3), Outcome("disagrees", "step", "y is off by 2", 1)
    refused = Outcome("refused", "plan E-UNSUPPORTED", "`a` is none")
    whole = merged(_share(7, agrees, off), merged(_share(0, agrees, refused), _share(3, off)))
    spans = [(one["seed"], one["count"], one["seconds"]) for one in whole["shares"]]
    assert spans == [(0, 2, 5), (3, 1, 5), (7, 2, 5)]
    assert (whole["count"], whole["mixers run"], whole["seconds"]) == (5, 4, 15)
    assert (whole["disagreements"], whole["refused of well-typed"]) == (2, 0.2)
    assert whole["failures by reason"] == {"disagrees, step: y is off by #": [3, 8]}
    assert whole["comparisons"]["made"] == 8
    assert whole["reached"] == {"mixer pairs": ["Add > Ref"]}
    assert whole["coverage"]["mixer pairs"]["reached"] == 1
    assert json.loads(json.dumps(whole)) == whole


def test_seeds_that_were_run_are_not_added() -> None:
    run = _share(4, Outcome("agrees"), Outcome("agrees"))
    for seed, twice in ((3, 4), (5, 5)):
        with pytest.raises(ValueError, match=f"seeds from {twice} are in two shares"):
            merged(run, _share(seed, Outcome("agrees"), Outcome("agrees")))


@pytest.mark.ci
def test_what_is_reached_is_among_what_there_may_be(tmp_path: Path) -> None:
    for seed in range(4):
        for what, counts in covers(random_mixer(seed), f"random_{seed}", tmp_path).items():
            names = {n for n in counts if counts[n] and not n.startswith("__")}
            assert names <= set(possible(what)), what
    assert all(len(set(possible(what))) == len(possible(what)) for what in WHATS)
    assert set(UNREACHABLE) <= {n for what in WHATS for n in possible(what)}


@pytest.mark.ci
def test_random_mixers_cover_the_grammar(tmp_path: Path) -> None:
    reached: set[str] = set()
    for seed in range(15):
        for what, counts in covers(random_mixer(seed), f"random_{seed}", tmp_path).items():
            reached |= {f"{what} {n}" for n in counts if counts[n]}
    wanted = ("Past", "Run", "Fir", "Flow", "Rename", "Series", "Reduce", "Map", "Pow")
    assert {f"mixer kinds {k}" for k in wanted} <= reached
