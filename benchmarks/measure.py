"""Measures one row: what agrees, how long it takes, how much memory, how both grow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from statistics import median

from benchmarks import emitted, record
from benchmarks.clock import Effort, Piece, Run, interleave, undisturbed
from benchmarks.contender import OURS, Work
from benchmarks.process import Conditions, MeasurementError, Worker, ask
from benchmarks.record import Peak, RowRecord, Seconds
from benchmarks.table import Growth, Row
from benchmarks.verdict import verdicts

Tell = Callable[[str], None]


class DisagreementError(Exception):
    """Contenders did not do the same work; nothing was timed."""


def measure(row: Row, conditions: Conditions, growth: bool, tell: Tell) -> RowRecord:
    """Compiles a row's spec and measures everything about it.

    Args:
        row: as in the table; shortened if the conditions say so.
        conditions: threads and allocator.
        growth: whether to go through the lengths too.
        tell: is told what is going on.

    Raises:
        DisagreementError: an output or gradient is off by more than the tolerance.
        MeasurementError: a contender that stands in a bar failed.
    """
    before = record.load()
    found: RowRecord = {
        "name": row.name,
        "structure": row.structure,
        "spec": row.spec,
        "formula": row.work.formula,
        "sizes": dict(row.sizes),
    }
    try:
        tell("compiling the spec")
        module = str(emitted.compile_spec(row.spec, row.backend))
    except emitted.UnsupportedError as why:
        return found | {"skipped": str(why), "circumstances": record.circumstances(before)}
    job = {"row": row.name, "module": module}
    tell("checking that all do the same work")
    found |= _check(row, conditions, job)
    found |= _time(row, conditions, job, found["failures"], tell)
    measured = set(found["seconds"]) if row.peaks else set()
    found["memory"] = _memory(row, conditions, job, measured, tell)
    if growth and row.growth is not None:
        found["growth_law"] = row.growth.law.value
        seconds = _growth_seconds(row.growth, conditions, job, found["unquiet"], tell)
        found["growth_seconds"] = seconds
        found["growth_memory"] = _growth_memory(row, row.growth.lengths, conditions, job, tell)
    found["sources"] = {peer.name: peer.source for peer in row.peers}
    found["verdicts"] = verdicts(row, found)
    found["circumstances"] = record.circumstances(before)
    return found


def _check(row: Row, conditions: Conditions, job: dict[str, str]) -> RowRecord:
    answer = ask(conditions, job="check", **job)
    off = {
        f"{name} of {contender}": error
        for contender, errors in answer["errors"].items()
        for name, error in errors.items()
        if not error <= row.tolerance
    }
    if off:
        worst = ", ".join(f"{what} by {error:.1e}" for what, error in off.items())
        raise DisagreementError(f"off by more than {row.tolerance:g}: {worst}")
    return {
        "tolerance": row.tolerance,
        "errors": answer["errors"],
        "failures": answer["failures"],
    }


def _time(
    row: Row, conditions: Conditions, job: dict[str, str], failures: dict[str, str], tell: Tell
) -> RowRecord:
    """Times all contenders, each in a process of its own, turn by turn."""
    failures = dict(failures)
    compiling: dict[str, dict[str, float]] = {}
    with ExitStack() as stack:
        pieces: dict[tuple[str, Work], Piece] = {}
        for name, peer in {OURS: None, **{peer.name: peer for peer in row.peers}}.items():
            if name in failures:
                continue
            tell(f"starting {name}")
            worker = stack.enter_context(Worker(conditions, job="serve", contender=name, **job))
            made = {(name, work): partial(worker.run, work) for work in Work}
            try:
                worker.answer()
                if peer is not None and peer.compiles:
                    compiling[name] = {
                        work.value: piece().seconds for (_, work), piece in made.items()
                    }
            except MeasurementError as error:
                if peer is None or not peer.context:
                    raise
                failures[name] = str(error).splitlines()[-1]
                continue
            pieces |= made
        named = {f"{name}, {work.value}": piece for (name, work), piece in pieces.items()}
        runs = interleave(named, row.effort, tell)
    seconds: Seconds = {}
    for name, work in pieces:
        seconds.setdefault(name, {})[work.value] = _kept(runs[f"{name}, {work.value}"], row.effort)
    return {
        "seconds": seconds,
        "disturbed": _disturbed(runs),
        "unquiet": [name for name, each in runs.items() if not _quiet(each, row.effort)],
        "compiling": compiling,
        "failures": failures,
    }


def _memory(
    row: Row, conditions: Conditions, job: dict[str, str], running: set[str], tell: Tell
) -> dict[str, dict[str, Peak]]:
    """Measures every contender and work, each time in a fresh process."""
    found: dict[str, dict[str, Peak]] = {}
    skipped = {peer.name for peer in row.peers if peer.compiles}
    context = {peer.name for peer in row.peers if peer.context}
    for name in sorted(running - skipped):
        times = 1 if name in context else row.peaks
        for work in Work:
            tell(f"memory of {name}, {work.value}")
            found.setdefault(name, {})[work.value] = _peak(conditions, job, times, name, work)
    return found


def _growth_seconds(
    growth: Growth, conditions: Conditions, job: dict[str, str], unquiet: list[str], tell: Tell
) -> dict[str, dict[str, list[float]]]:
    """Times ours at all lengths turn by turn, each length in a process of its own.

    Lengths that had no quiet moment are added to `unquiet`.
    """
    found: dict[str, dict[str, list[float]]] = {}
    with ExitStack() as stack:
        pieces: dict[str, Piece] = {}
        for length in growth.lengths:
            tell(f"starting L = {length}")
            worker = stack.enter_context(
                Worker(conditions, job="serve", contender=OURS, length=length, **job)
            )
            worker.answer()
            pieces |= {f"{w.value}, {length}": partial(worker.run, w) for w in Work}
        runs = interleave(pieces, growth.effort, tell)
    unquiet += [name for name, each in runs.items() if not _quiet(each, growth.effort)]
    for work in Work:
        found[work.value] = {
            str(n): _kept(runs[f"{work.value}, {n}"], growth.effort) for n in growth.lengths
        }
    return found


def _growth_memory(
    row: Row, lengths: Sequence[int], conditions: Conditions, job: dict[str, str], tell: Tell
) -> dict[str, Peak]:
    found = {}
    for length in lengths:
        tell(f"memory at L = {length}")
        found[str(length)] = _peak(conditions, job, row.peaks, OURS, Work.TRAINING, length)
    return found


def _peak(
    conditions: Conditions,
    job: dict[str, str],
    times: int,
    name: str,
    work: Work,
    length: int | None = None,
) -> Peak:
    more = {"contender": name, "work": work.value, "length": length, **job}
    answers = [ask(conditions, job="memory", **more) for _ in range(times)]
    peaks = [answer["peak"] for answer in answers]
    return {
        "peak": int(median(peaks)),
        "peaks": peaks,
        "unavoidable": answers[0]["unavoidable"],
        "chunk": answers[0]["chunk"],
    }


def _kept(runs: Sequence[Run], effort: Effort) -> list[float]:
    """Seconds of the runs that count, to a hundredth of a microsecond."""
    return [round(seconds, 8) for seconds in undisturbed(runs, effort.least)]


def _quiet(runs: Sequence[Run], effort: Effort) -> bool:
    return sum(not run.disturbed for run in runs) >= effort.least


def _disturbed(runs: Mapping[str, Sequence[Run]]) -> float:
    """The share of runs that others disturbed."""
    everything = [run.disturbed for each in runs.values() for run in each]
    return round(sum(everything) / len(everything), 3)
