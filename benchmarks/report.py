"""What was measured as tables, and which bars are reached."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from benchmarks.contender import Work
from benchmarks.record import Document, RowRecord
from benchmarks.verdict import Summary, summary


def show(record: RowRecord, console: Console) -> None:
    """Prints one line per contender of a row: error, times, memory."""
    sizes = " ".join(f"{name}{size}" for name, size in record["sizes"].items())
    title = f"{record['name']}: {record['spec']}.dsf, {sizes}"
    if "skipped" in record:
        console.print(f"{title}: skipped, {record['skipped']}", markup=False)
        return
    table = Table(title=title, caption="time: median (quartiles); memory: peak of a fresh process")
    table.add_column("", no_wrap=True)
    table.add_column("off by", justify="right")
    for work in Work:
        table.add_column(f"{work.value}, ms", justify="right")
    table.add_column("MB", justify="right")
    table.add_column("MB", justify="right")
    for name, seconds in record["seconds"].items():
        peaks = record["memory"].get(name, {})
        table.add_row(
            name,
            f"{max(record['errors'][name].values()):.0e}",
            *(_time(summary(seconds[work.value])) for work in Work),
            *(f"{peaks[w.value]['peak'] / 1e6:.0f}" if w.value in peaks else "" for w in Work),
        )
    console.print(table)
    if record["disturbed"]:
        share = f"{100 * record['disturbed']:.0f} % of the runs"
        console.print(f"Other processes disturbed {share}.", markup=False)
    for name, compiling in record["compiling"].items():
        seconds_each = ", ".join(f"{work} {s:.1f} s" for work, s in compiling.items())
        console.print(f"compiling {name}: {seconds_each}", markup=False)
    for name, why in record["failures"].items():
        console.print(f"{name} did not run: {why}", markup=False)


def verdicts(document: Document, console: Console) -> None:
    """Prints one line per bar: reached or not, and the figure."""
    if document["conditions"]["quick"]:
        console.print("A quick run: its figures say that everything works, and nothing else.")
    for record in document["rows"]:
        if "skipped" in record:
            console.print(f"skipped      {record['name']}: {record['skipped']}", markup=False)
        for verdict in record.get("verdicts", []):
            word = "reached    " if verdict["reached"] else "NOT REACHED"
            line = f"{word}  {record['name']}: {verdict['bar']}: {verdict['says']}"
            console.print(line, style="green" if verdict["reached"] else "red", markup=False)


def _time(found: Summary) -> str:
    low, middle, high = (f"{1e3 * s:.1f}" for s in (found.low, found.median, found.high))
    return f"{middle} ({low} to {high})"
