"""The figures of the campaigns, from the data that they left in the repository."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import export_table
from dsfc_docs import Generated
from sphinx.application import Sphinx

DATA = Path(__file__).parents[2] / "tests" / "campaigns"


def read(name: str) -> Any:  # noqa: ANN401 - as each campaign writes it
    """Returns the data of a campaign."""
    return json.loads((DATA / f"{name}.json").read_text("utf-8"))


def table(head: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    """Returns a table in Markdown."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in lines) + "\n"


def _share(part: int, of: int) -> str:
    return f"{100 * part / of:.1f} %" if of else "–"


def random_modules(found: dict[str, Any]) -> str:
    """Returns what the campaign of random modules found, in Markdown."""
    first = table(
        ("figure", "value"),
        [
            ("disagreements", found["disagreements"]),
            ("internal errors, crashes included", found["internal errors"]),
            ("well-typed mixers refused", f"{100 * found['refused of well-typed']:.1f} %"),
            ("mixers run", found["mixers run"]),
            ("mixers written", found["count"]),
            ("comparisons", found["comparisons"]["made"]),
        ],
    )
    rows = sorted(found["refusals by reason"].items(), key=lambda it: (-it[1], it[0]))
    why = table(("refused because", "mixers"), [(k.replace("|", "\\|"), n) for k, n in rows])
    failed = found["failures by reason"].items()
    rest = [(k.replace("|", "\\|"), len(seeds)) for k, seeds in sorted(failed)]
    wrong = table(("failed", "mixers"), rest) if rest else "Nothing failed.\n"
    return "\n".join((first, why, wrong, _shares(found), _coverage(found["coverage"])))


def _shares(found: dict[str, Any]) -> str:
    """Returns the shares of a campaign by the source that they judged, in Markdown."""
    runs: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for one in found["shares"]:
        versions = ", ".join(f"{n} {v}" for n, v in one["versions"].items())
        runs.setdefault((one["source"], versions), []).append(one)
    rows: list[tuple[object, ...]] = []
    for (source, versions), shares in runs.items():
        seeds = ", ".join(f"{first} to {last}" for first, last in _spans(shares))
        minutes = round(sum(one["seconds"] for one in shares) / 60)
        count = sum(one["count"] for one in shares)
        rows.append((f"`{source}`", count, seeds, f"{minutes} min", versions))
    return table(("hash of the source", "inputs", "seeds", "duration", "versions"), rows)


def _spans(shares: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """Returns the first and the last seed of each run of shares that follow each other."""
    out: list[tuple[int, int]] = []
    for first, count in sorted((one["seed"], one["count"]) for one in shares):
        if out and out[-1][1] == first - 1:
            out[-1] = out[-1][0], first + count - 1
        else:
            out.append((first, first + count - 1))
    return out


def _coverage(found: dict[str, Any]) -> str:
    names = {"productions": "productions of the grammar"}
    rows: list[tuple[object, ...]] = [
        (names.get(what, what), f["reached"], f["of"]) for what, f in found.items()
    ]
    missing = {n: why for f in found.values() for n, why in f.get("not reached", {}).items()}
    rest: list[tuple[object, ...]] = [
        (f"`` {n} ``", why or "not drawn in this run") for n, why in sorted(missing.items())
    ]
    whole = table(("what the mixers hold", "reached", "of"), rows)
    return f"{whole}\n{table(('not reached', 'why'), rest)}" if rest else whole


def mutation(found: dict[str, Any]) -> str:
    """Returns what changing the passes found, in Markdown."""
    same, reasons = found["equivalent"], found["reasons"]
    rows: list[tuple[object, ...]] = []
    left: list[tuple[object, ...]] = []
    for part, f in found["parts"].items():
        names = [(end, name) for end, each in f["others"].items() for name in each]
        equal = sum(name in same for _, name in names)
        counted = f["drawn"] - equal
        ends = [len(f["others"].get(e, ())) for e in ("survived", "unreached", "endless")]
        score = (f["killed"], _share(f["killed"], counted))
        rows.append((part, f["mutants"], f["seed"], f["drawn"], *ends, equal, *score))
        left += [
            ("`` " + name.replace("|", "\\|") + " ``", "equivalent" if name in same else end,
             same.get(name) or reasons[name])
            for end, name in names
        ]  # fmt: skip
    head = ("part", "mutants", "seed", "drawn", "survived", "unreached", "endless",
            "of these equivalent", "killed", "score")  # fmt: skip
    return table(head, rows) + "\n" + table(("not killed", "how", "why"), left)


def fuzz(found: dict[str, Any]) -> str:
    """Returns what came of texts that nobody would write, in Markdown."""
    shares = found["shares"]
    (slowest, slow), (largest, large) = found["slowest"][0], found["largest"][0]
    first = table(
        ("figure", "value"),
        [
            ("inputs", sum(it["count"] for it in shares)),
            ("promises broken", found["broken"]),
            ("refused because the time was over", found["out_of_time"]),
            ("slowest input", f"{slowest:.2f} s of processor time (seed {slow})"),
            ("largest process", f"{largest} MiB (seed {large})"),
        ],
    )
    rows: list[tuple[object, ...]] = []
    for kind, outcomes in found["outcomes"].items():
        count = sum(outcomes.values())
        if count:
            mean = f"{1000 * found['seconds'][kind] / count:.1f} ms"
            ends = (outcomes.get("accepted", 0), outcomes.get("refused", 0))
            rows.append((kind, count, *ends, count - sum(ends), mean))
    kinds = table(("inputs", "number", "taken", "refused", "broken", "mean time"), rows)
    wrong = "".join(f"- {where}: seeds {seeds}\n" for where, seeds in found["where"].items())
    return "\n".join((first, kinds, _shares(found), wrong))


def features(cells: list[dict[str, Any]]) -> str:
    """Returns what can be done with each mixer, in Markdown: a table, and what was refused."""
    known = {(one["mixer"], one["feature"]): one for one in cells}
    columns = tuple(dict.fromkeys(one["feature"] for one in cells))
    told: dict[str, int] = {}

    def shown(mixer: str, feature: str) -> str:
        one = known.get((mixer, feature))
        if one is None:
            return "not run"
        if one["outcome"] == "green":
            return "✓"
        return f"{one['outcome']} ({told.setdefault(one['said'], len(told) + 1)})"

    mixers = dict.fromkeys(one["mixer"] for one in cells)
    rows: list[tuple[object, ...]] = [
        (f"[{mixer}](mixers/{mixer}.md)", *(shown(mixer, f) for f in columns)) for mixer in mixers
    ]
    reasons = "".join(f"{number}. {_plain(said)}\n" for said, number in told.items())
    runs: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for one in cells:
        versions = ", ".join(f"{n} {v}" for n, v in one["versions"].items())
        runs.setdefault((one["source"], versions), []).append(one)
    sources: list[tuple[object, ...]] = []
    for (source, versions), some in runs.items():
        days = sorted({one["day"] for one in some})
        sources.append((f"`{source}`", len(some), " to ".join({days[0]: 0, days[-1]: 0}), versions))
    made = table(("hash of the source", "cells", "day", "versions"), sources)
    return "\n".join((table(("mixer", *columns), rows), reasons, made))


def _plain(said: str) -> str:
    """Returns the words of a program on one line, no sign of which is markup."""
    return re.sub(r"([\\*_`$\[\]<>|])", r"\\\1", " ".join(said.split()))


class Campaign(Generated):
    """The figures of one campaign."""

    required_arguments = 1

    def markdown(self) -> str:
        """Writes its tables."""
        (name,) = self.arguments
        self.env.note_dependency(str(DATA / f"{name}.json"))
        made = {
            "modules": random_modules,
            "mutation": mutation,
            "fuzz": fuzz,
            "features": features,
        }
        return made[name](read(name))


class ExportTable(Generated):
    """Which mixers are exported to what."""

    def markdown(self) -> str:
        """Writes the table and what is refused."""
        self.env.note_dependency(str(export_table.DATA))
        return export_table.table(export_table.read())


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the directive."""
    app.add_directive("campaign", Campaign)
    app.add_directive("export-table", ExportTable)
    return {"parallel_read_safe": True}
