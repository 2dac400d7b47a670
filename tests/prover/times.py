"""Decides every labelled pair and prints what came out and how long it took: `python times.py`.

Times are of the prover and the kernel together, in seconds of the processor, without imports and
derivation.
"""

from __future__ import annotations

import sys
import time
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from dsfc.api.pipeline import read
from dsfc.prover.equivalent import equivalent
from dsfc.prover.subsumes import subsumes
from dsfc.prover.verdict import (
    AtSizes,
    Conditionally,
    Equal,
    Instance,
    NotAnInstance,
    Proved,
    Refuted,
)
from dsfc.system.ir import System

HERE = Path(__file__).parent
LABELS = {
    table: kinds
    for name in ("labels", "further")
    for table, kinds in tomllib.loads((HERE / f"{name}.toml").read_text(encoding="utf-8")).items()
}

Decide = Callable[[System, System], object]


def under_conditions(a: System, b: System) -> object:
    """Equality, conditions included."""
    return equivalent(a, b, conditions=True)


def as_case(a: System, b: System) -> object:
    """Whether a is a case of b, values of b's parameters included; what is equal is a case."""
    verdict = equivalent(a, b)
    return Instance(verdict.certificate) if isinstance(verdict, Equal) else subsumes(a, b, (), True)


EXPECTED: dict[str, tuple[Decide, type]] = {
    "equal": (equivalent, Equal),
    "all_sizes": (equivalent, Proved),
    "at_sizes": (equivalent, AtSizes),
    "different": (equivalent, Refuted),
    "conditional": (under_conditions, Conditionally),
    "case": (as_case, Instance),
    "slots": (as_case, Instance),
    "no_case": (as_case, NotAnInstance),
    "no_slots": (as_case, NotAnInstance),
    "no_case_here": (as_case, NotAnInstance),
    "no_token_slots": (as_case, NotAnInstance),
}
"""Kind of label → what decides it, and the verdict that it asks for."""


def main(tables: list[str]) -> None:
    """Prints a line for each pair that is slow or not decided as labelled, then the sums."""
    specs = {name: read(HERE / "pairs" / f"{name}.dsf") for name in LABELS}
    found: Counter[tuple[str, str]] = Counter()
    seconds: list[float] = []
    for table, kinds in LABELS.items():
        if tables and table not in tables:
            continue
        for kind, rows in kinds.items():
            decide, expected = EXPECTED[kind]
            for a, b, *_, reason in rows:
                systems = (specs[table].compilation(a).system, specs[table].compilation(b).system)
                start = time.process_time()
                verdict = decide(*systems)
                took = time.process_time() - start
                seconds.append(took)
                found[kind, type(verdict).__name__] += 1
                if not isinstance(verdict, expected) or took > 1:
                    name = type(verdict).__name__
                    print(f"{took:7.2f} s  {table} {kind} {a} {b}: {name}  ({reason})")
    for (kind, verdict), count in sorted(found.items()):
        print(f"{kind:12} {verdict:14} {count}")
    seconds.sort()
    within_one = sum(s <= 1 for s in seconds) / len(seconds)
    print(f"{len(seconds)} pairs, {within_one:.1%} within 1 s, the slowest {seconds[-1]:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
