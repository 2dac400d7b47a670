"""Times pieces of work turn by turn, so that a slow moment of the machine falls on all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a piece of work.

    Attributes:
        seconds: how long it took.
        waited: seconds that its threads stood in the queue for a core, all together. Two threads
            that meet after every operation lose far more than this when one has to wait.
    """

    seconds: float
    waited: float = 0.0

    @property
    def disturbed(self) -> bool:
        """Whether other processes took its cores away for more than a twentieth of the time."""
        return self.waited > self.seconds / 20


Piece = Callable[[], Run]
"""Does its work once."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much time goes into a measurement.

    Attributes:
        rounds: times that every piece of work is run undisturbed.
        seconds: a piece is left out of further rounds once its runs, counted at the time of the
            fastest, would take this long,
        least: but not before it was run this often.
        slow: seconds from which on the two runs that warm up count.
        patience: seconds of running after which a piece is left out too, disturbed or not.
    """

    rounds: int = 30
    seconds: float = 20.0
    least: int = 3
    slow: float = 2.0
    patience: float = 90.0

    def enough(self, runs: Sequence[Run]) -> bool:
        """Whether a piece was run often enough."""
        if len(runs) >= self.least and sum(run.seconds for run in runs) >= self.patience:
            return True
        good = [run.seconds for run in runs if not run.disturbed]
        if len(good) < self.least:
            return False
        return len(good) >= self.rounds or len(good) * min(good) >= self.seconds


def interleave(
    pieces: Mapping[str, Piece], effort: Effort, tell: Callable[[str], None] = lambda line: None
) -> dict[str, list[Run]]:
    """Runs all pieces in rounds, forwards and backwards by turns.

    Args:
        pieces: the work, by name.
        effort: how often.
        tell: is told what is going on.

    Returns:
        All runs but those that warmed up.
    """
    runs: dict[str, list[Run]] = {}
    for name, piece in pieces.items():
        tell(f"warming up {name}")
        warm = [piece(), piece()]
        runs[name] = warm if min(run.seconds for run in warm) >= effort.slow else []
    turn = 0
    while due := [name for name in pieces if not effort.enough(runs[name])]:
        tell(f"round {turn + 1}, {len(due)} of {len(pieces)} to do")
        for name in due if turn % 2 == 0 else due[::-1]:
            runs[name].append(pieces[name]())
        turn += 1
    return runs


def undisturbed(runs: Sequence[Run], least: int) -> list[float]:
    """Returns seconds of the runs that had their cores; of all, where too few had."""
    good = [run.seconds for run in runs if not run.disturbed]
    return good if len(good) >= least else [run.seconds for run in runs]
