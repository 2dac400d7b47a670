"""Formulas of a System as MathML, which browsers show without a script."""

from __future__ import annotations

import re

from latex2mathml.converter import convert

from dsfc.expr.latex import OWN, SUM, Printer, name
from dsfc.expr.reserved_names import TIME
from dsfc.latex_symbol import Symbol
from dsfc.matrices.latex import latex_form
from dsfc.mixer.ir import Mixer
from dsfc.papers import Paper
from dsfc.system.ir import System
from dsfc.transform.gauge import eta_gauge

_OPERATOR = re.compile(r"\\operatorname\{(\w+)\}")


IN_TYPEWRITER = "A name in typewriter has no letter of the paper in the spec."
"""The note below definitions in the letters of a paper."""


def mathml(latex: str, display: str = "block") -> str:
    """Returns a formula as MathML, names of functions upright and in one piece.

    Args:
        latex: the formula.
        display: `block` or `inline`.
    """
    return convert(_OPERATOR.sub(r"\\text{\1}", latex), display=display)


def definition_rows(system: System, paper: Paper | None = None) -> list[str]:
    """Returns the definitions as the spec writes them, a row of LaTeX each.

    Args:
        system: the System.
        paper: whose letters they are spelled in; those of the spec if None.
    """
    printer = Printer(OWN if paper is None else _symbols(paper))
    rows = []
    for d in system.definition:
        at = (printer.token(TIME),) if d.value.time or d.update else ()
        rows.append(f"{printer.name(d.name, *at)} &= {printer(d.value, SUM)}")
    return rows


def letter_rows(mixer: Mixer, paper: Paper) -> list[tuple[str, str]]:
    """Returns the names that a paper has letters for: here and there, in LaTeX.

    Args:
        mixer: whose names they are.
        paper: that it names.
    """
    there = Printer(_symbols(paper))
    of_token = {s.name for s in mixer.states} | {t.name for t in mixer.inputs}
    of_token |= {d.name for d in mixer.definitions if d.value.time}
    rows = []
    for letter in paper.letters:
        at = (TIME,) if letter.name in of_token else ()
        rows.append((name(letter.name, *at), there.name(letter.name, *map(there.token, at))))
    return rows


def _symbols(paper: Paper) -> dict[str, Symbol]:
    return {letter.name: letter.symbol for letter in paper.letters}


def matrix_rows(system: System, gauge: str = "lowered") -> tuple[str, list[str]]:
    """Returns for which heads Λ, B, C and D are, and their rows of LaTeX.

    Args:
        system: the System.
        gauge: "lowered" or "paper".
    """
    comment, _, *rows, _ = latex_form(system, gauge).rstrip().split("\n")
    per = comment.partition(", for each ")[2]
    return (f"For each {per}:" if per else ""), [r.strip().removesuffix(" \\\\") for r in rows]


def paper_rows(system: System) -> list[str]:
    """Returns the rows that differ in the paper's gauge; none where it is the same."""
    if eta_gauge(system)[0] == system:
        return []
    _, rows = matrix_rows(system)
    return [row for row in matrix_rows(system, "paper")[1] if row not in rows]


def formula(rows: list[str]) -> str:
    """Returns rows of LaTeX as one block each, which scrolls where the page is too narrow."""
    shown = (mathml(row.replace("&=", "=", 1)) for row in rows)
    return "".join(f'<div class="formula">{m}</div>' for m in shown)
