"""What was measured as tables, and which bars are reached."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from benchmarks.contender import Work
from benchmarks.record import Document, RowRecord, Verdict
from benchmarks.table import Quantity
from benchmarks.verdict import Summary, milliseconds, summary


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
    if record["unquiet"]:
        console.print(f"Too busy to time {'; '.join(record['unquiet'])}.", style="yellow")
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
        unsure = bool(record.get("unquiet"))
        for verdict in record.get("verdicts", []):
            word, colour = _word(verdict, unsure)
            line = f"{word:11}  {record['name']}: {verdict['bar']}: {verdict['says']}"
            console.print(line, style=colour, markup=False)


def _word(verdict: Verdict, unsure: bool) -> tuple[str, str]:
    """Says how it went, and its colour; times from a busy machine say nothing."""
    if unsure and verdict["quantity"] == Quantity.TIME.value:
        return "unsure", "yellow"
    return ("reached", "green") if verdict["reached"] else ("NOT REACHED", "red")


def _time(found: Summary) -> str:
    low, middle, high = (milliseconds(s) for s in (found.low, found.median, found.high))
    return f"{middle} ({low} to {high})"
