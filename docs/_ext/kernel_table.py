"""Which calls of the shipped mixers run in kernels, as Markdown: a table of all, and one of each.

All of it is `dsfc.api.coverage.coverage`, asked of the compiler when the pages are made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dsfc.api.coverage import TARGETS, Call, CallCoverage, Coverage, Runs, on_targets
from dsfc.api.pipeline import Compilation

Covered = Mapping[str, Coverage]
"""Title of a target → what its kernels run of one mixer."""


def table(mixers: Mapping[str, Compilation]) -> str:
    """Returns the table of all mixers, the reasons under it, and what they come to.

    Args:
        mixers: name → its way through the stages; each compiles.
    """
    rows = {name: on_targets(it) for name, it in mixers.items()}
    numbers: dict[str, int] = {}
    lines = [
        f"| [{name}](mixers/{name}.md) | {' | '.join(_cell(c, call) for call in Call)} "
        f"| {_numbered(c, numbers)} |"
        for name, c in rows.items()
    ]
    head = f"| mixer | {' | '.join(Call)} | why not |\n|---|{'---|' * len(Call)}---|"
    reasons = "\n".join(f"{n}. {_sentence(why)}" for why, n in numbers.items())
    return "\n\n".join([_summary(rows.values()), "\n".join([head, *lines]), reasons])


def section(it: Compilation) -> str:
    """Returns the table of one mixer, with reasons in its cells."""
    targets = on_targets(it)
    said: dict[tuple[str, ...], list[str]] = {}
    for call in Call:
        cells = tuple(_said(c.of(call)) for c in targets.values())
        said.setdefault(cells, []).append(call)
    rows = [f"| {', '.join(calls)} | {' | '.join(cells)} |" for cells, calls in said.items()]
    return "\n".join([f"| | {' | '.join(targets)} |", f"|---|{'---|' * len(targets)}", *rows])


def _cell(targets: Covered, call: Call) -> str:
    """The targets whose kernels run a call, or what is done where none does."""
    runs = {title: c.of(call).runs for title, c in targets.items()}
    if Runs.REFUSED in runs.values():
        return "–"
    words = {Runs.KERNELS: "", Runs.SOME: " in part"}
    shown = [f"{title}{words[r]}" for title, r in runs.items() if r in words]
    return ", ".join(shown) or (Runs.UNCUT if Runs.UNCUT in runs.values() else Runs.TORCH)


def _numbered(targets: Covered, numbers: dict[str, int]) -> str:
    """The numbers of the reasons why torch runs what it runs, which are given out as they come."""
    parts = []
    for title, c in targets.items():
        reasons = (r for call in c.calls if call.runs is not Runs.REFUSED for r in call.reasons)
        in_part = c.of(Call.FORWARD).runs is Runs.SOME
        shown = []
        for reason in dict.fromkeys(reasons):
            number = numbers.setdefault(reason.why, len(numbers) + 1)
            shown.append(f"{number} (`{'`, `'.join(reason.scans)}`)" if in_part else f"{number}")
        parts += [f"{title} {', '.join(shown)}"] if shown else []
    return "; ".join(parts)


def _said(call: CallCoverage) -> str:
    """Returns the text of a call: kernels or torch, and the reasons in brackets."""
    reasons = [f"`{'`, `'.join(r.scans)}`: {r.why}" if r.scans else r.why for r in call.reasons]
    return f"{call.runs} ({'; '.join(reasons)})" if reasons else f"{call.runs}"


def _sentence(clause: str) -> str:
    return f"{clause[0].upper()}{clause[1:]}."


def _summary(rows: Iterable[Covered]) -> str:
    """How many mixers have kernels."""
    rows = list(rows)
    parts = []
    for title in TARGETS.values():
        runs = [r[title].of(Call.FORWARD).runs for r in rows]
        every, some = runs.count(Runs.KERNELS), runs.count(Runs.SOME)
        none = len(runs) - every - some
        parts.append(
            f"{title} has kernels for all scans of {every}, some scans of {some}, none of {none}"
        )
    return f"Of {len(rows)} mixers that compile, {'; '.join(parts)}."
