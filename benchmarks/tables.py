"""Puts the measured figures into the README files: `python -m benchmarks.tables`.

A table stands between `<!-- figures: NAME -->` and `<!-- end of figures -->`. Tests hold that what
stands there is what this module makes of the committed results.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from benchmarks import record
from benchmarks.contender import OURS, Work
from benchmarks.emitted import ROOT
from benchmarks.record import Document, RowRecord
from benchmarks.verdict import milliseconds, summary

RESULTS = ROOT / "benchmarks" / "results" / "amd-epyc-2-threads.json"
FLOORS = RESULTS.with_name("floors.json")
COMMANDS = RESULTS.with_name("commands.json")
FILES = (ROOT / "README.md", ROOT / "benchmarks" / "README.md")
_BLOCK = re.compile(r"(<!-- figures: (?P<name>\w+) -->\n).*?(<!-- end of figures -->)", re.DOTALL)


def times(document: Document) -> Iterator[str]:
    """Yields a table of times: medians and quartiles in milliseconds, one line a contender."""
    yield "| row | measured | | off by | forward, ms | forward and backward, ms | MB, MB |"
    yield "|---|---|---|---|---|---|---|"
    for row in _measured(document):
        for name, seconds in row["seconds"].items():
            first = (
                f"`{row['name']}` | {row['circumstances']['date'][:10]}" if name == OURS else " | "
            )
            spans = [_span(seconds.get(work.value, [])) for work in Work]
            peaks = row["memory"].get(name, {})
            sizes = [f"{peaks[w.value]['peak'] / 1e6:.0f}" for w in Work if w.value in peaks]
            error = f"{max(row['errors'][name].values()):.0e}"
            yield f"| {first} | {name} | {error} | {' | '.join(spans)} | {', '.join(sizes)} |"


def bars(document: Document) -> Iterator[str]:
    """Yields a table of bars: what was wanted, what came of it."""
    yield "| row | bar | measured | |"
    yield "|---|---|---|---|"
    for row in _measured(document):
        for verdict in row.get("verdicts", []):
            word = "reached" if verdict["reached"] else "**not reached**"
            yield f"| `{row['name']}` | {verdict['bar']} | {verdict['says']} | {word} |"


def beside_peers(document: Document) -> Iterator[tuple[RowRecord, str]]:
    """Yields the rows of modules with kernels in C, each with its first peer."""
    for row in _measured(document):
        if row["name"].endswith("_c"):
            yield row, next(name for name in row["seconds"] if name != OURS)


def kernels_in_c(document: Document) -> Iterator[str]:
    """Yields a short table of modules with kernels in C, each beside its first peer."""
    yield "| `--backend c` | beside | forward | forward and backward |"
    yield "|---|---|---|---|"
    for row, peer in beside_peers(document):
        ours, theirs = row["seconds"][OURS], row["seconds"][peer]
        cells = [
            f"{1e3 * median(ours[w.value]):.1f} ms, {_times(ours[w.value], theirs[w.value])}"
            for w in Work
        ]
        yield f"| `{row['spec']}` | {peer} | {' | '.join(cells)} |"


def floors(document: Document) -> Iterator[str]:
    """Yields a table of what `benchmarks.floors` wrote beside the results."""
    text = FLOORS.read_text(encoding="utf-8")
    yield "| row | work | least, ms | at the measured rate of | measured, ms | times the least |"
    yield "|---|---|---|---|---|---|"
    for line in json.loads(text)["floors"]:
        least, took = (f"{1e3 * line[name]:.1f}" for name in ("floor", "seconds"))
        cells = line["work"], least, line["rate"], took, f"{line['times']:.2f}"
        yield f"| `{line['row']}` | {' | '.join(cells)} |"


def commands(document: Document) -> Iterator[str]:
    """Yields a table of how long commands start, as `benchmarks.commands` wrote it."""
    yield "| command | processor seconds | times `import sympy` |"
    yield "|---|---|---|"
    found = json.loads(COMMANDS.read_text(encoding="utf-8"))["commands"]
    for name, seconds in found.items():
        yield f"| `{name}` | {seconds:.2f} | {seconds / found['import sympy']:.1f} |"


def compilers(document: Document) -> Iterator[str]:
    """Yields a table of what the C compiler works for a kernel: mixers with the longest first."""
    yield "| kernels in C of | of one, median s | the longest, s |"
    yield "|---|---|---|"
    found = json.loads(COMMANDS.read_text(encoding="utf-8"))["kernels"]
    by_longest = sorted(found, key=lambda spec: -max(found[spec]["seconds"]))
    names = {f"`{spec}`": found[spec]["seconds"] for spec in by_longest[:_SHOWN]}
    rest = [s for spec in by_longest[_SHOWN:] for s in found[spec]["seconds"]]
    for name, seconds in (names | {f"{len(found) - _SHOWN} others": rest}).items():
        yield f"| {name} | {median(seconds):.2f} | {max(seconds):.2f} |"


_SHOWN = 6
"""Mixers that have a line of their own."""


TABLES: dict[str, Callable[[Document], Iterator[str]]] = {
    "times": times,
    "bars": bars,
    "kernels_in_c": kernels_in_c,
    "floors": floors,
    "commands": commands,
    "compilers": compilers,
}


def filled(text: str, document: Document) -> str:
    """Returns a text with its tables made anew from a document."""

    def table(block: re.Match[str]) -> str:
        lines = "\n".join(TABLES[block["name"]](document))
        return f"{block[1]}{lines}\n{block[3]}"

    return _BLOCK.sub(table, text)


def main() -> None:
    """Writes the tables into all files."""
    document = _document(RESULTS)
    for file in FILES:
        file.write_text(filled(file.read_text(encoding="utf-8"), document), encoding="utf-8")


def _document(file: Path) -> Document:
    document = record.read(file)
    assert document is not None, f"no results in {file}"
    return document


def _measured(document: Document) -> list[RowRecord]:
    return [row for row in document["rows"] if "skipped" not in row]


def _span(seconds: list[float]) -> str:
    if not seconds:
        return ""
    runs = summary(seconds)
    low, middle, high = (milliseconds(s) for s in (runs.low, runs.median, runs.high))
    return f"{middle} ({low} to {high})"


def _times(ours: list[float], theirs: list[float]) -> str:
    return f"{median(theirs) / median(ours):.1f} times as fast"


if __name__ == "__main__":
    main()
