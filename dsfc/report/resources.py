"""The costs of a mixer, as HTML."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dsfc.analysis import pictures
from dsfc.analysis.accounts import CHUNKED, LENGTHS, WIDTH, Account
from dsfc.report.html import figure, gallery, paragraph, table
from dsfc.report.subject import Compiled, Subject


def resources(s: Subject) -> str:
    """Multiply-adds, numbers moved, state and cache."""
    if isinstance(s.compiled, str):
        return paragraph(f"It does not compile: {s.compiled}.")
    a = s.compiled.account
    own = [d.axis for d in s.compilation.system.axes if d.axis.copy_of is None]
    at = ", ".join(f"{x.name} = {a.sizes[x.name]}" for x in own if x.name in a.sizes)
    rows: list[Sequence[object]] = [
        ("linear maps, multiply-adds a token", a.projections),
        (
            "recurrence as written, multiply-adds a token",
            "not counted: it sums over all tokens so far" if a.kept else a.recurrence,
        ),
        ("bytes a token that kernels must move for its scans", a.compulsory * WIDTH),
        ("state, bytes", a.state * WIDTH),
        ("kept of each token, bytes", a.kept * WIDTH),
        ("cache of softmax attention as wide, bytes a token", a.cache * WIDTH),
        ("tokens from which its memory is smaller than that cache", a.crossover),
    ]
    return (
        paragraph(f"Sizes of a layer: {at}; one sequence, numbers of {WIDTH} bytes.")
        + table(rows)
        + _modes(a)
        + _memory(s.name, a)
        + _calls(s.compiled)
    )


def _modes(a: Account) -> str:
    """Costs by mode and length: a chart of what torch's operators move, and a table of both."""
    if not a.modes:
        return paragraph("It has no scan.")
    names = list(dict.fromkeys(m.mode for m in a.modes))
    picked = [LENGTHS[1], LENGTHS[-1]]
    rows = []
    for name in names:
        by = {m.length: m for m in a.modes if m.mode == name}
        row: list[object] = [name]
        for n in picked:
            row += ["not counted" if a.pairs else round(by[n].macs), round(by[n].words) * WIDTH]
        rows.append(row)
    head = ["mode"]
    for n in picked:
        head += [f"multiply-adds, L = {n}", f"bytes, L = {n}"]
    drawn = {
        name: (np.array(LENGTHS), np.array([m.words * WIDTH for m in a.modes if m.mode == name]))
        for name in names
    }
    label = "bytes a token by mode and length"
    chart = ""
    if any(y.any() for _, y in drawn.values()):
        chart = figure(pictures.mode_costs(drawn, "bytes a token", label), label)
    told = f"Scans alone, a token; chunks of {CHUNKED}. Multiply-adds are those in products."
    return (
        f"<h3>By mode and length, without kernels</h3>{paragraph(told)}"
        f"{table(rows, head)}{gallery([chart])}"
    )


def _memory(name: str, a: Account) -> str:
    """The state beside a cache."""
    lengths = np.array(LENGTHS)
    drawn = {
        name: (lengths, np.array([max(1, a.memory(int(n))) * WIDTH for n in LENGTHS])),
        "softmax cache": (lengths, lengths * a.cache * WIDTH),
    }
    label = f"memory of {name} and of a cache of keys and values"
    return gallery([figure(pictures.mode_costs(drawn, "bytes", label), label)])


def _calls(c: Compiled) -> str:
    """The calls that run in kernels."""
    said: dict[tuple[str, str, str], list[str]] = {}
    for title, covered in c.coverage.items():
        for call in covered.calls:
            why = "; ".join(dict.fromkeys(r.why for r in call.reasons))
            said.setdefault((title, str(call.runs), why), []).append(str(call.call))
    rows = [(title, ", ".join(calls), runs, why) for (title, runs, why), calls in said.items()]
    return f"<h3>With kernels</h3>{table(rows, ('target', 'calls', 'run by', 'why not'))}"
