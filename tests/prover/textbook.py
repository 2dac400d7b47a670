"""Decides the inclusions of the textbooks, and prints what came out: `python textbook.py [MIXER…]`.

Times are of the prover and the kernel together, in seconds of the processor, without imports and
derivation.
"""

from __future__ import annotations

import signal
import sys
import time
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

import dsfc
from dsfc.api.pipeline import read
from dsfc.prover.equivalent import equivalent
from dsfc.prover.subsumes import subsumes
from dsfc.prover.verdict import Equal, Instance, NotAnInstance, Refuted, Verdict
from dsfc.system.ir import System

HERE = Path(__file__).parent
SPEC = read(HERE / "pairs" / "textbook.dsf")
FIXTURES = set(SPEC.mixers)


class Edge(NamedTuple):
    """What holds of two mixers, decided by hand."""

    a: str
    b: str
    label: str
    values: str
    why: str


EDGES = [
    Edge(*row)
    for row in tomllib.loads((HERE / "textbook.toml").read_text(encoding="utf-8"))["edges"]
]


@cache
def system(name: str) -> System:
    """The system of a mixer of pairs/textbook.dsf, or of a shipped spec."""
    return SPEC.compilation(name).system if name in FIXTURES else dsfc.load(name).system


def decide(edge: Edge) -> object:
    """What the prover says of the statement that an edge is about."""
    a, b = system(edge.a), system(edge.b)
    if edge.label in ("equal", "different"):
        return equivalent(a, b)
    if edge.label == "case":
        verdict: Verdict = equivalent(a, b)
        if isinstance(verdict, Equal):
            return Instance(verdict.certificate)
    return subsumes(a, b, (), conditions=True)


EXPECTED = {"equal": Equal, "different": Refuted, "case": Instance, "no_case": NotAnInstance}
"""Label → the verdict that shows it."""

OPPOSITE = {"equal": Refuted, "different": Equal, "case": NotAnInstance, "no_case": Instance}
"""Label → the verdict that would be wrong."""


LIMIT = 10
"""Seconds after which an edge is open."""


class Late(Exception):
    """An edge took longer than the limit."""


def _stop(_signal: int, _frame: object) -> None:
    raise Late


def limited(edge: Edge) -> object:
    """What the prover says within the limit."""
    signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT)
    try:
        return decide(edge)
    except Late as e:
        return e
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


PAGE = HERE.parents[1] / "docs" / "theory" / "textbook.md"

HEAD = """# Inclusions of the textbooks

Which mixers are [cases](cases.md) of which others, as mathematics has it. The labels and values
were worked out by hand; tests hold the prover to them: no edge may be contradicted, and those that
it decides are checked by the kernel. An edge that it leaves open is *unknown* all the same.
Mixers are shipped specs, or small forms of them in `tests/prover/pairs/textbook.dsf`;
`python tests/prover/textbook.py` decides all edges and prints how long each took.

A case is shown by values of the second's parameters, or by functions of tokens for inputs that it
alone has; a name stands for the second's own on the left and for the first's on the right.

| first | second | | values of the second | why |
|---|---|---|---|---|
"""

WORDS = {"case": "is a case of", "no_case": "is no case of", "equal": "equals",
         "different": "differs from"}  # fmt: skip


def page() -> str:
    """The table as a page of the docs."""
    rows = (f"| `{e.a}` | `{e.b}` | {WORDS[e.label]} | {e.values} | {e.why} |\n" for e in EDGES)
    return HEAD + "".join(rows)


def main(names: list[str]) -> None:
    """Prints a line for each edge that is slow or open, then the sums."""
    if names == ["--page"]:
        PAGE.write_text(page(), encoding="utf-8")
        return
    found: Counter[str] = Counter()
    seconds = []
    for edge in EDGES:
        if names and not {edge.a, edge.b} & set(names) and f"{edge.a}:{edge.b}" not in names:
            continue
        system(edge.a), system(edge.b)
        start = time.process_time()
        verdict = limited(edge)
        took = time.process_time() - start
        seconds.append(took)
        state = "decided" if isinstance(verdict, EXPECTED[edge.label]) else "open"
        state = "WRONG" if isinstance(verdict, OPPOSITE[edge.label]) else state
        found[state] += 1
        if state != "decided" or took > 1:
            why = getattr(verdict, "tried", "") if state == "open" else ""
            print(f"{took:7.2f} s  {state:8} {edge.a} {edge.b} {edge.label} {why}", flush=True)
    seconds.sort()
    late = seconds[len(seconds) * 95 // 100]
    print(f"{dict(found)}, median {seconds[len(seconds) // 2]:.2f} s, 95 % within {late:.2f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
