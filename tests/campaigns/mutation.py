"""Changes the compiler's passes a little, one place at a time, and asks which change no test sees.

    python tests/campaigns/mutation.py derive --count 100 --seed 1 [--jobs 2] [--again] [--save]

The part is one of `PARTS`. Its mutants (`changes.py`) are shuffled by the seed and the first of
them are tried, in processes that are forked off after the tests were collected:

- Each file of tests runs once, with every segment of all parts noting which test reaches it and
  every test's processor time. The notes are kept in `build/mutation/` by the texts of the sources
  and of the tests, for all parts.
- A mutant's process runs the tests that reach its segment until one fails, at most for `SECONDS`
  of processor time. Those come first that by experience kill most in the time they take.
- What became of a mutant is written down at once, by seed: the next run goes on from there, so
  that a sample can be made larger, and `--again` asks anew about what was not killed.

A mutant ends `killed` by a test that fails, `survived`, `unreached` (no test reaches its segment)
or `endless` (a test takes far longer than without the change, and none fails). `--save` writes the
part's figures into `mutation.json`, beside the reasons that a person has written there. A survivor
under `equivalent` there computes the same on every input, as reading the code shows, and does not
count: the score is killed / (drawn - equivalent). An equivalent one that a test kills is an error.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import gc
import hashlib
import json
import os
import resource
import signal
import sys
import time
import types
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import pytest
from changes import NOTE, Mutant, change, modules, mutants, source

T = TypeVar("T")
HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FIGURES = HERE / "mutation.json"
KEPT = ROOT / "build" / "mutation"
_RANDOM = "tests/validate/test_random_mixers.py"
PARTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "derive": ("dsfc.derive", ("tests/derive", "tests/plan", _RANDOM)),
    "plan": ("dsfc.plan", ("tests/plan", "tests/derive", _RANDOM)),
    "backends": ("dsfc.backends.torch", ("tests/backends/torch", "tests/campaigns")),
    "trusted": ("dsfc.trusted", ("tests/trusted",)),
    "rules": ("dsfc.trusted.rules", ("tests/trusted",)),
    "kernel_ir": ("dsfc.kernel_ir", ("tests/kernel_ir", "tests/kernels")),
    "kernels": ("dsfc.kernels", ("tests/kernels", "tests/kernel_ir", "tests/fused")),
    "fused": ("dsfc.fused", ("tests/fused", "tests/kernels")),
    "c": ("dsfc.backends.c", ("tests/backends/c", "tests/specs/test_in_c.py")),
}
"""Part → the package, and the tests that are asked about it: its own, and those of values."""
_LEFT_OUT = ("test_removal.py", "test_campaign.py", "test_mutation.py", "test_fuzz.py")
_SOURCES = ("dsfc", "backends", "grammar", "specs")
_READING = ("dsfc.syntax", "dsfc.expr.table")
"""What is kept here, no part makes."""
SECONDS_OF_A_TEST, SLOWER, SECONDS, BYTES = 10, 5, 12, 12 * 2**30
"""No test of those asked takes 10 s. One that takes 2 s and five times what it takes without the
change is left, for others to say what they see. Most mutants that are killed are killed within one
second, and of those that lived for 12 s few would be killed later."""

_CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT)


def drawn(part: str, seed: int, count: int) -> tuple[list[Mutant], int]:
    """Returns the mutants of a part that a seed draws, and how many there are.

    Args:
        part: a key of `PARTS`.
        seed: shuffles them; a larger count has those of a smaller one.
        count: how many.
    """
    every = modules(PARTS[part][0])
    known = [m for name, module in every.items() for m in mutants(name, ast.parse(source(module)))]
    Random(seed).shuffle(known)
    return known[:count], len(known)


# --- what is kept between runs --------------------------------------------------------------------


def _digest(paths: Iterable[Path]) -> str:
    total = hashlib.sha256()
    for path in sorted(paths):
        total.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return total.hexdigest()[:12]


def _texts(folder: str) -> list[Path]:
    return [p for p in (ROOT / folder).rglob("*.*") if p.suffix in (".py", ".dsf", ".lark", ".j2")]


@functools.cache
def _of_sources() -> str:
    """Stands for the packages of all parts, and for what tests read but the tests themselves."""
    shared = [p for p in _texts("tests") if not p.name.startswith("test_")]
    own = {HERE / "mutation.py", HERE / "changes.py"}
    read = _digest({*shared, *(p for folder in _SOURCES for p in _texts(folder))} - own)
    packages = " ".join(package for package, _ in PARTS.values())
    return hashlib.sha256(f"{read} {packages}".encode()).hexdigest()[:12]


@dataclass
class Experience:
    """How often tests ran on a mutant and how often they killed it, by function.

    Attributes:
        path: where the counts are kept.
        counts: function of tests → times it ran, times it killed.
    """

    path: Path
    counts: dict[str, list[int]]

    @classmethod
    def read(cls, part: str) -> Experience:
        """Returns the experience with a part up to now."""
        path = KEPT / f"{part}-experience.json"
        return cls(path, json.loads(path.read_text()) if path.exists() else {})

    def add(self, ran: list[str], killer: str) -> None:
        """Counts a mutant's tests."""
        for name in ran:
            count = self.counts.setdefault(_function(name), [0, 0])
            count[0] += 1
            count[1] += name == killer
        self.path.write_text(json.dumps(self.counts))

    def order(self, tests: dict[str, float], module: str) -> list[str]:
        """Orders tests by the seconds that a kill costs.

        Args:
            tests: names and seconds.
            module: the changed module; tests of the same name are tried early.
        """
        before: dict[str, int] = defaultdict(int)
        costs: dict[str, float] = {}
        for name in sorted(tests, key=lambda n: (tests[n], n)):
            function = _function(name)
            ran, kills = self.counts.get(function, (0, 0))
            chance = (kills + 0.2) / (ran + 2) * 0.97 ** before[function]
            before[function] += 1
            if f"test_{module.rpartition('.')[2]}.py" in name:
                chance *= 3
            costs[name] = (tests[name] + 0.02) / chance
        return sorted(costs, key=lambda n: costs[n])


def _function(test: str) -> str:
    return test.partition("[")[0]


# --- the run --------------------------------------------------------------------------------------


@dataclass(eq=False)
class Run:
    """A run of a part's tests in which its functions are changed; a plugin of pytest.

    Attributes:
        part: the part.
        mutants: what is tried.
        log: where it is written what became of each.
        jobs: how many processes run at once.
        ends: mutant → how it ended, and by which test.
    """

    part: str
    mutants: list[Mutant]
    log: Path
    jobs: int
    ends: dict[str, tuple[str, str]] = field(default_factory=dict)
    failed: bool = False
    late: bool = False
    took: float = 0.0

    def pytest_collection(self) -> None:
        """Says before tests are read that what fails need not be made small."""
        import hypothesis  # not before pytest, which rewrites what a plugin of it imports

        phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
        hypothesis.settings.register_profile("mutation", hypothesis.settings(), phases=phases)
        hypothesis.settings.load_profile("mutation")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed |= report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        every = modules(PARTS[self.part][0])
        items = {item.nodeid: item for item in session.items}
        notes = self._notes(items)
        experience = Experience.read(self.part)
        _forget()
        gc.freeze()

        def trial(mutant: Mutant, names: list[str]) -> Callable[[], Any]:
            tests = [(items[n], notes[n][0]) for n in names]
            return lambda: self._tried(every[mutant.module], mutant, tests)

        def todo() -> Iterator[tuple[Mutant, Callable[[], Any]]]:
            for mutant in self.mutants:
                if mutant.name in self.ends:
                    continue
                place = f"{mutant.module}:{mutant.segment}"
                tests = {n: s for n, (s, places) in notes.items() if place in places}
                names = experience.order(tests, mutant.module)
                yield mutant, trial(mutant, names) if names else lambda: ["unreached", "", []]

        for mutant, told in _forked(todo(), self.jobs):
            if told in _CRASHES:
                told = "killed", "the process of its tests crashed", []
            end, killer, ran = told if isinstance(told, list | tuple) else ("broken", "", [])
            experience.add(ran, killer if end == "killed" else "")
            self._write(mutant, end, killer)
        return True

    def _write(self, mutant: Mutant, end: str, killer: str) -> None:
        self.ends[mutant.name] = end, killer
        with self.log.open("a", encoding="utf-8") as out:
            print(json.dumps([mutant.name, end, killer], ensure_ascii=False), file=out)
        done = f"{len(self.ends)} of {len(self.mutants)}"
        print(f"{done}: {end}: {mutant.name} {killer}", file=sys.stderr, flush=True)

    # --- which tests reach what -------------------------------------------------------------------

    def _notes(self, items: dict[str, pytest.Item]) -> dict[str, tuple[float, set[str]]]:
        """Test → its processor time, and the segments it reaches."""
        files: dict[Path, list[pytest.Item]] = defaultdict(list)
        for item in items.values():
            files[item.path].append(item)
        keys = {f: KEPT / f"notes-{_of_sources()}-{_digest([f])}-{f.stem}.json" for f in files}
        missing = [f for f in files if not keys[f].exists()]

        def noting(file: Path) -> Callable[[], Any]:
            return lambda: self._noted(files[file])

        for file, told in _forked(((f, noting(f)) for f in missing), self.jobs):
            assert isinstance(told, dict), f"the tests of {file} do not pass as they are: {told}"
            keys[file].write_text(json.dumps(told))
            print(f"noted: {file.relative_to(ROOT)}", file=sys.stderr, flush=True)
        return {
            name: (seconds, set(places))
            for key in keys.values()
            for name, (seconds, places) in json.loads(key.read_text()).items()
        }

    def _noted(self, items: list[pytest.Item]) -> Any:
        _quiet(items[0])
        every = {n: m for package, _ in PARTS.values() for n, m in modules(package).items()}
        reached: set[str] = set()
        notes = {}

        def note(name: str) -> Callable[[int], None]:
            return lambda line: reached.add(f"{name}:{line}")

        for name, module in every.items():
            setattr(module, NOTE, note(name))
            change(module, None)
        for item in items:
            _forget()  # else a later test does not reach what an earlier one has kept
            reached.clear()
            start = _used()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            notes[item.nodeid] = (round(_used() - start, 3), sorted(reached))
        return None if self.failed else notes

    # --- one mutant -------------------------------------------------------------------------------

    def _out_of_time(self, *_: object) -> None:
        self.late = True
        raise TimeoutError

    def _tried(
        self, module: types.ModuleType, mutant: Mutant, tests: list[tuple[pytest.Item, float]]
    ) -> Any:
        resource.setrlimit(resource.RLIMIT_CPU, (2 * SECONDS, 2 * SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
        _quiet(tests[0][0])
        if not change(module, mutant):
            return "unchanged", "", []
        end, ran, start = "survived", [], _used()
        signal.signal(signal.SIGVTALRM, self._out_of_time)
        for item, seconds in tests:
            if _used() - start > SECONDS:
                break
            self.late = False
            longest = min(SECONDS_OF_A_TEST, 2 + SLOWER * seconds)
            signal.setitimer(signal.ITIMER_VIRTUAL, longest)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            ran.append(item.nodeid)
            if self.late:
                self.failed, end = False, "endless"
            if self.failed:
                return "killed", item.nodeid, ran
        return end, "", ran


def _used() -> float:
    """Processor time of this process, and of compilers that it has run."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _quiet(item: pytest.Item) -> None:
    """Leaves the terminal to the process that forks."""
    item.config.pluginmanager.unregister(name="terminalreporter")
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)


def _forked(tasks: Iterator[tuple[T, Callable[[], Any]]], jobs: int) -> Iterator[tuple[T, Any]]:
    """Runs functions in forked processes and yields what they return.

    Of one that dies it yields the signal, or None.

    Args:
        tasks: what each is called, and the function; what it returns can be written as JSON.
        jobs: how many run at once.
    """
    running: dict[int, tuple[T, Path]] = {}

    def ended() -> tuple[T, Any]:
        while True:
            child, status = os.wait()
            if child in running:
                name, path = running.pop(child)
                died = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
                told = json.loads(path.read_text()) if path.exists() else died
                path.unlink(missing_ok=True)
                return name, told

    for number, (name, function) in enumerate(tasks):
        path = KEPT / f"told-{os.getpid()}-{number}.json"
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                path.with_suffix(".part").write_text(json.dumps(function()))
                path.with_suffix(".part").rename(path)
            os._exit(0)
        running[child] = name, path
        if len(running) == jobs:
            yield ended()
    while running:
        yield ended()


def _forget() -> None:
    """Empties the caches of passes and tests: what was computed before a change would hide it."""
    for each in _caches(len(sys.modules)):
        each.cache_clear()


@functools.cache
def _caches(count: int) -> list[Any]:
    """The caches of passes and tests, once for each count of modules: to look takes half a second.

    What a fixture keeps goes with it at the end of its test.
    """
    caches = []
    for each in gc.get_objects():
        if type(each) is functools._lru_cache_wrapper and each not in (source, _of_sources):
            home = str(getattr(each, "__module__", ""))
            file = getattr(sys.modules.get(home), "__file__", None) or ""
            if str(ROOT) in file and not home.startswith(_READING) and ".venv" not in file:
                caches.append(each)
    return [c for c in caches if c is not _caches]


# --- figures --------------------------------------------------------------------------------------


def run(part: str, count: int, seed: int, jobs: int, again: bool) -> dict[str, Any]:
    """Returns what became of the mutants of a part that a seed draws.

    Args:
        part: a key of `PARTS`.
        count: how many mutants.
        seed: draws them.
        jobs: how many processes run at once.
        again: whether what was not killed before is tried again.
    """
    os.chdir(ROOT)
    KEPT.mkdir(parents=True, exist_ok=True)
    tried, total = drawn(part, seed, count)
    package = modules(PARTS[part][0]).values()
    of_part = _digest(Path(str(m.__file__)).resolve() for m in package)
    log = KEPT / f"{part}-seed-{seed}-{of_part}.jsonl"
    known = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    names = {m.name for m in tried}
    plugin = Run(part, tried, log, jobs)
    for name, end, killer in known:
        if name in names and (end == "killed" or not again):
            plugin.ends[name] = end, killer
    files = [f"--ignore-glob=*{name}" for name in _LEFT_OUT]
    arguments = ["-q", "-p", "no:xdist", "-p", "no:cacheprovider", "--every-case"]
    code = pytest.main([*arguments, *files, *PARTS[part][1]], [plugin])
    assert len(plugin.ends) == len(tried), f"the run ended early, with {code!r}"
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    ends = [end for end, _ in plugin.ends.values()]
    return {
        "seed": seed,
        "mutants": total,
        "drawn": len(tried),
        "seconds of a mutant": SECONDS,
        "processor seconds": round(used.ru_utime + used.ru_stime + time.process_time()),
        "killed": ends.count("killed"),
        "others": {
            end: sorted(n for n, (e, _) in plugin.ends.items() if e == end)
            for end in sorted({"survived", "unreached", "endless", *ends} - {"killed"})
        },
        "killed, but said to be equivalent": sorted(
            {n for n, (e, _) in plugin.ends.items() if e == "killed"} & set(equivalent())
        ),
    }


def equivalent() -> dict[str, str]:
    """Mutant → why it computes the same on every input."""
    return dict(json.loads(FIGURES.read_text("utf-8"))["equivalent"])


def score(figures: dict[str, Any]) -> tuple[int, int]:
    """Returns how many mutants were killed, and how many of those tried are not equivalent."""
    same = set(equivalent())
    left = [name for names in figures["others"].values() for name in names]
    return figures["killed"], figures["drawn"] - len(same & set(left))


def main() -> None:
    asked = argparse.ArgumentParser(usage=__doc__)
    asked.add_argument("part", choices=list(PARTS))
    asked.add_argument("--count", type=int, default=25)
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--jobs", type=int, default=1)
    asked.add_argument("--again", action="store_true", help="try again what was not killed")
    asked.add_argument("--save", action="store_true", help=f"write to {FIGURES.name}")
    given = asked.parse_args()
    with contextlib.redirect_stdout(sys.stderr):
        figures = run(given.part, given.count, given.seed, given.jobs, given.again)
    wrong = figures.pop("killed, but said to be equivalent")
    if given.save:
        known = json.loads(FIGURES.read_text("utf-8"))
        known["parts"][given.part] = figures
        FIGURES.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(json.dumps(figures, indent=1, ensure_ascii=False))
    killed, counted = score(figures)
    print(f"killed {killed} of {counted} that are not equivalent: {killed / counted:.1%}")
    if wrong:
        sys.exit(f"killed, but said to be equivalent: {wrong}")


if __name__ == "__main__":
    main()
