"""Measures emitted modules beside their peers: `bash benchmarks/run.sh` calls this."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, TextColumn, TimeElapsedColumn

from benchmarks import plots, record, report
from benchmarks.emitted import ROOT
from benchmarks.measure import DisagreementError, measure
from benchmarks.process import Allocator, Conditions, MeasurementError
from benchmarks.record import Document, RowRecord
from benchmarks.table import NAMES, ROWS, Row, chosen

RESULTS = ROOT / "benchmarks" / "results"
QUICK = ROOT / "build" / "benchmarks" / "quick"
_PEERS = ("fla-core", "mambapy", "matplotlib")


def main() -> int:
    """Measures, writes, draws and says which bars are reached; 1 if something failed."""
    arguments = _arguments()
    if missing := [name for name in _PEERS if not _installed(name)]:
        print(f"Missing: {', '.join(missing)}. pip install -c constraints.txt -e '.[benchmark]'")
        return 1
    conditions = Conditions(arguments.threads, arguments.quick, Allocator(arguments.allocator))
    folder = arguments.out or (QUICK if arguments.quick else RESULTS)
    rows = chosen(arguments.only or ())
    file = record.path(folder, record.machine(), conditions)
    console = Console(width=120)
    failed = False
    document: Document | None = None
    for number, row in enumerate(rows, 1):
        title = f"{row.name} ({number} of {len(rows)})"
        try:
            found = _measured(row, title, conditions, not arguments.no_growth, console)
        except (DisagreementError, MeasurementError) as error:
            console.print(f"{title}: failed\n{error}", style="red", markup=False)
            failed = True
            continue
        document = _written(file, found, conditions)
        report.show(found, console)
    if document is None:
        return 1
    for path in (file, *plots.draw(document, file)):
        print(f"wrote {path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}")
    report.verdicts(document, console)
    return int(failed)


def _measured(
    row: Row, title: str, conditions: Conditions, growth: bool, console: Console
) -> RowRecord:
    """Measures a row under a line that says what is being done."""
    columns = (
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[now]}"),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=None, now="")
        return measure(
            row.quick() if conditions.quick else row,
            conditions,
            growth,
            lambda line: progress.update(task, now=line),
        )


def _written(file: Path, found: RowRecord, conditions: Conditions) -> Document:
    """Puts a row into its file as soon as it is measured."""
    new: Document = {
        "machine": record.machine(),
        "conditions": asdict(conditions) | {"allocator": conditions.allocator.value},
        "rows": [found],
    }
    document = record.merge(record.read(file), new, [row.name for row in ROWS])
    record.write(file, document)
    return document


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__, allow_abbrev=False)
    parser.add_argument("--quick", action="store_true", help="an eighth of the length, few runs")
    parser.add_argument(
        "--only", action="append", choices=NAMES, help="this row, or these; may repeat"
    )
    parser.add_argument("--no-growth", action="store_true", help="leave the rising lengths out")
    parser.add_argument("--threads", type=int, default=2, help="of torch; 2 by default")
    parser.add_argument(
        "--allocator",
        choices=[allocator.value for allocator in Allocator],
        default=Allocator.SYSTEM.value,
        help="have glibc keep freed memory, or map every tensor afresh (see README.md)",
    )
    parser.add_argument("--out", type=Path, help="folder of the results")
    return parser.parse_args()


def _installed(name: str) -> bool:
    try:
        return bool(version(name))
    except PackageNotFoundError:
        return False


if __name__ == "__main__":
    sys.exit(main())
