"""Mixers nobody wrote, beside a literal loop that shares nothing with the compiler."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from random import SystemRandom

import pytest
import torch
from beside import SPECS, DisagreementError, Judge, beside, library
from known import known
from literal import Literal, program, sizes_of
from literal_text import units
from modules import FOUND, campaign, covers, figures, keep
from shrink import candidates, shrunk
from spec_writer import random_mixer

import dsfc
from dsfc.mixer import evaluate, sample, sizes

torch.set_num_threads(1)

FAST, HUNDREDS, ALL = 20, 500, 20_000
START = 20_000
OPEN = {
    20_197: "in bfloat16 a gradient of a recurrence is off by more than rounding explains",
    20_238: "a size that no tensor of a recurrence has cannot be printed",
}
"""Mixers of the ci tier that fail and are not mended yet."""
ONCE = (31, 131)
"""Mixers that failed: the norm of one number jumps; a gradient's part took another value's name."""
REFUSED = ("gate", "out_norm", "qk_norm", "qkv", "separable", "short_conv", "token_shift")
COMPILED = sorted(p.stem for p in SPECS.glob("*.dsf") if p.stem not in REFUSED)


@pytest.mark.parametrize("seed", [*range(FAST), *ONCE])
def test_the_module_of_a_random_mixer_is_the_literal_loop(seed: int, tmp_path: Path) -> None:
    out = beside(random_mixer(seed), seed, f"random_{seed}", tmp_path)
    assert out.kind != "ill-typed", out
    assert not out.failed or known(out), out


def _run(count: int, seed: int, jobs: int) -> None:
    started = time.monotonic()
    done = list(campaign(range(seed, seed + count), jobs))
    failed = [r for r in done if r.outcome.failed and r.seed not in OPEN]
    new = [r for r in failed if known(r.outcome) is None]
    kept = {r.outcome.reason: r for r in reversed(new)}
    paths = [keep(r.seed, r.outcome, FOUND) for r in kept.values()]
    said = json.dumps(figures(done, started, seed), indent=1, ensure_ascii=False)
    assert not new, f"{len(new)} of {count} from seed {seed}; see {list(map(str, paths))}\n{said}"


@pytest.mark.ci
def test_hundreds_of_random_mixers_agree_with_the_literal_loop() -> None:
    """The same mixers in every run; fresh ones in the full tier."""
    _run(HUNDREDS, START, 0)


@pytest.mark.full
def test_twenty_thousand_random_mixers_agree_with_the_literal_loop(record_property) -> None:
    seed = SystemRandom().randrange(10**9)
    record_property("random mixers from seed", seed)
    _run(ALL, seed, 2)


@pytest.mark.parametrize("path", sorted(FOUND.glob("*.dsf")), ids=lambda p: p.stem)
def test_what_failed_once_agrees_now(path: Path, tmp_path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    name = [n for n, u in units(text).items() if u.kind == "mixer"][-1]
    for seed in range(2):
        out = beside(text, seed, name, tmp_path)
        if out.failed and known(out):
            pytest.xfail(str(known(out)))
        assert out.kind in ("agrees", "refused"), out


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


@pytest.mark.ci
def test_random_mixers_are_well_typed() -> None:
    for seed in range(400):
        spec = dsfc.pipeline.parse(dsfc.source.Source("<r>", random_mixer(seed)))
        dsfc.mixer.resolve(spec, f"random_{seed}", dsfc.mixer.Library())


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


def test_a_failing_text_shrinks_to_what_makes_it_fail() -> None:
    text = random_mixer(0)
    small = shrunk(text, lambda t: "S7[i" in t and "y =" in t)
    assert small.count("\n") <= 6 and "S7[i" in small
    assert all(len(units(t)) for t in candidates(small))


def test_random_mixers_cover_the_grammar(tmp_path: Path) -> None:
    reached: set[str] = set()
    for seed in range(40):
        for what, counts in covers(random_mixer(seed), f"random_{seed}", tmp_path).items():
            reached |= {f"{what} {n}" for n in counts if counts[n]}
    wanted = ("Past", "Run", "Fir", "Flow", "Rename", "Series", "Reduce", "Map", "Pow")
    assert {f"mixer kinds {k}" for k in wanted} <= reached
