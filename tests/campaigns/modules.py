"""Runs random mixers beside the literal loop and says what came of them.

    python tests/campaigns/modules.py --count 500 [--seed N] [--jobs N] [--out FILE] [--keep DIR]
        [--backend c]

Seeds are `seed`, `seed + 1`, … Without `--seed` one is drawn and printed. Mixers that fail are made
small and written to `--keep`. `--out` adds the figures to a JSON file as one more share, with what
was covered, so that a long campaign is run in shares. Exit code 1 where something failed, 2 where
some of the seeds were run before.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import SystemRandom
from typing import Any

os.environ["DSFC_CHECK"] = "1"

from beside import Outcome, beside, quiet
from covered import STAGES, UNREACHABLE, nodes, possible, productions
from shares import Share, joined, share, source_hash
from shrink import shrunk
from spec_writer import random_mixer

import dsfc

HERE = Path(__file__).parent
FOUND = HERE / "found"
FIGURES = HERE / "modules.json"
_AT_A_TIME = 20
_LIFE = 400
"""Mixers that one process runs: the modules it imports stay in memory."""
_TRIES = 250

Figures = dict[str, Any]
"""What a campaign found, as it stands in a JSON file."""


@dataclass
class Ran:
    """One mixer of a campaign: its seed, what came of it and, if asked, what it covers."""

    seed: int
    outcome: Outcome
    covers: dict[str, Counter[str]] = field(default_factory=dict)


def ran(seed: int, covered: bool = False, backend: str = "torch") -> Ran:
    """Returns what came of the mixer of one seed."""
    text = random_mixer(seed)
    with tempfile.TemporaryDirectory() as folder:
        out = Ran(seed, beside(text, seed, f"random_{seed}", Path(folder), backend))
        if covered:
            out.covers = covers(text, f"random_{seed}", Path(folder))
    return out


def covers(text: str, mixer: str, folder: Path) -> dict[str, Counter[str]]:
    """Returns what a text covers: productions, and kinds and pairs of nodes of each stage."""
    found = {"productions": productions(text)}
    path = folder / "covered.dsf"
    path.write_text(text, encoding="utf-8")
    compilation = dsfc.load(path, mixer)
    for stage in STAGES:
        try:
            value = tuple(getattr(compilation, name) for name in STAGES[stage].values)
        except Exception:
            break
        found[f"{stage} kinds"], found[f"{stage} pairs"] = nodes(stage, value)
    return found


def campaign(
    seeds: Iterable[int], jobs: int, covered: bool = False, backend: str = "torch"
) -> Iterator[Ran]:
    """Runs the mixers of seeds, in order, in processes that share one start.

    Args:
        seeds: which mixers.
        jobs: how many processes; 0 runs them here.
        covered: whether to count what each covers.
        backend: whose modules are run.
    """
    quiet()
    if jobs == 0:
        yield from (ran(seed, covered, backend) for seed in seeds)
        return
    context = multiprocessing.get_context("fork")
    with context.Pool(jobs, maxtasksperchild=_LIFE // _AT_A_TIME) as pool:
        yield from pool.imap(partial(ran, covered=covered, backend=backend), seeds, _AT_A_TIME)


def figures(done: Iterable[Ran], started: float, seed: int) -> Figures:
    """Returns what a share of a campaign found, as JSON takes it.

    Args:
        done: its mixers.
        started: when it began, by `time.monotonic`.
        seed: its first seed.
    """
    kinds: Counter[str] = Counter()
    refusals: Counter[str] = Counter()
    failures: dict[str, list[int]] = {}
    checks: Counter[str] = Counter()
    covered: dict[str, Counter[str]] = {}
    for r in done:
        kinds[r.outcome.kind] += 1
        checks["made"] += r.outcome.checks
        checks["left out as ill-conditioned"] += r.outcome.skipped
        if r.outcome.kind == "refused":
            refusals[r.outcome.reason] += 1
        if r.outcome.failed:
            failures.setdefault(f"{r.outcome.kind}, {r.outcome.reason}", []).append(r.seed)
        for what, counts in r.covers.items():
            covered.setdefault(what, Counter()).update(counts)
    run = share(seed, kinds.total(), time.monotonic() - started)
    reached = {what: {n for n in possible(what) if counts[n]} for what, counts in covered.items()}
    return _told([run], kinds, refusals, checks, failures, reached)


def merged(before: Figures, more: Figures) -> Figures:
    """Returns the figures of two runs together.

    Raises:
        ValueError: both have run a seed.
    """
    shares = joined(before["shares"], more["shares"])
    failures = {k: [*seeds] for k, seeds in before["failures by reason"].items()}
    for reason, seeds in more["failures by reason"].items():
        failures[reason] = sorted([*failures.get(reason, []), *seeds])
    reached = {
        what: set(before["reached"].get(what, ())) | set(more["reached"].get(what, ()))
        for what in {**before["reached"], **more["reached"]}
    }
    both = [
        Counter(before[name]) + Counter(more[name])
        for name in ("by outcome", "refusals by reason", "comparisons")
    ]
    return _told(shares, *both, failures, reached)


def _told(
    shares: list[Share],
    kinds: Counter[str],
    refusals: Counter[str],
    checks: Counter[str],
    failures: dict[str, list[int]],
    reached: dict[str, set[str]],
) -> Figures:
    """Lays figures out, with those that follow from others."""
    typed = kinds.total() - kinds["ill-typed"]
    out: Figures = {
        "shares": shares,
        "count": kinds.total(),
        "seconds": sum(one["seconds"] for one in shares),
        "mixers run": kinds["agrees"] + kinds["disagrees"] + kinds["crash"],
        "disagreements": kinds["disagrees"],
        "internal errors": kinds["internal error"] + kinds["crash"],
        "refused": kinds["refused"],
        "refused of well-typed": round(kinds["refused"] / max(typed, 1), 4),
        "by outcome": dict(sorted(kinds.items())),
        "comparisons": dict(sorted(checks.items())),
        "refusals by reason": dict(refusals.most_common()),
        "failures by reason": dict(sorted(failures.items())),
        "coverage": {what: _coverage(what, reached[what]) for what in sorted(reached)},
        "reached": {what: sorted(names) for what, names in sorted(reached.items())},
    }
    return out


def _coverage(what: str, reached: set[str]) -> dict[str, Any]:
    """How many there are and were reached; which were not, where these are few."""
    known = possible(what)
    out: dict[str, Any] = {"of": len(known), "reached": len(reached)}
    if not what.endswith("pairs"):
        out["not reached"] = {n: UNREACHABLE.get(n, "") for n in known if n not in reached}
    return out


def minimal(seed: int, outcome: Outcome) -> str:
    """Returns a small text that fails as the mixer of a seed does."""
    with tempfile.TemporaryDirectory() as folder:

        def fails(text: str) -> bool:
            now = beside(text, seed, f"random_{seed}", Path(folder))
            return now.kind == outcome.kind and _alike(now, outcome)

        return shrunk(random_mixer(seed), fails, _TRIES)


def _alike(a: Outcome, b: Outcome) -> bool:
    if a.kind == "disagrees":
        return True
    return a.what.partition(":")[0] == b.what.partition(":")[0] and a.where[:4] == b.where[:4]


def keep(seed: int, outcome: Outcome, folder: Path) -> Path:
    """Writes the smallest text found that fails as a mixer does, and returns its path."""
    text = minimal(seed, outcome)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"random_{seed}.dsf"
    first = outcome.what.splitlines()[0] if outcome.what else ""
    path.write_text(f"# {outcome.kind}, {outcome.where}: {first}\n{text}", encoding="utf-8")
    return path


def main() -> None:
    asked = argparse.ArgumentParser(usage=__doc__)
    asked.add_argument("--count", type=int, default=500)
    asked.add_argument("--seed", type=int)
    asked.add_argument("--jobs", type=int, default=1)
    asked.add_argument("--out", type=Path)
    asked.add_argument("--keep", type=Path)
    asked.add_argument("--covered", action="store_true", help="count what is covered")
    asked.add_argument("--backend", default="torch", help="whose modules are run")
    given = asked.parse_args()
    seed = SystemRandom().randrange(10**9) if given.seed is None else given.seed
    print(f"seeds {seed} to {seed + given.count - 1}", flush=True)
    source_hash()  # of the source that runs now: it may change meanwhile
    started, done = time.monotonic(), []
    before: Figures | None = None
    if given.out is not None and given.out.exists():
        before = json.loads(given.out.read_text("utf-8"))
        try:
            joined(before["shares"], [share(seed, given.count, 0)])
        except ValueError as e:
            print(f"{given.out}: {e}", file=sys.stderr)
            sys.exit(2)
    covered = given.covered or given.out is not None
    for r in campaign(range(seed, seed + given.count), given.jobs, covered, given.backend):
        done.append(r)
        if r.outcome.failed:
            print(f"{r.seed}: {r.outcome.kind}, {r.outcome.where}: {r.outcome.what}", flush=True)
        if len(done) % 100 == 0:
            print(f"{len(done)} of {given.count}, {time.monotonic() - started:.0f} s", flush=True)
    out = figures(done, started, seed)
    if given.out is not None:
        whole = out if before is None else merged(before, out)
        text = json.dumps(whole, indent=1, ensure_ascii=False)
        given.out.write_text(text + "\n", encoding="utf-8")
    print(
        json.dumps({k: v for k, v in out.items() if k != "reached"}, indent=1, ensure_ascii=False)
    )
    failed = [r for r in done if r.outcome.failed]
    if given.keep is not None:
        seen = set()
        for r in failed:
            if r.outcome.reason not in seen:
                seen.add(r.outcome.reason)
                print(keep(r.seed, r.outcome, given.keep), flush=True)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
