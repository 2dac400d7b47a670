"""Formulas of a System as MathML, which browsers show without a script."""

from __future__ import annotations

import re

from latex2mathml.converter import convert

from dsfc.expr.latex import name as latex_name
from dsfc.matrices.latex import latex_form
from dsfc.matrices.notation import Latex
from dsfc.system.ir import System
from dsfc.transform.gauge import eta_gauge

_OPERATOR = re.compile(r"\\operatorname\{(\w+)\}")


def mathml(latex: str, display: str = "block") -> str:
    """Returns a formula as MathML, names of functions upright and in one piece.

    Args:
        latex: the formula.
        display: `block` or `inline`.
    """
    return convert(_OPERATOR.sub(r"\\text{\1}", latex), display=display)


def definition_rows(system: System) -> list[str]:
    """Returns the definitions as the spec writes them, a row of LaTeX each."""
    notation = Latex()
    rows = []
    for d in system.definition:
        left = latex_name(d.name, "i") if d.value.time or d.update else latex_name(d.name)
        rows.append(f"{left} &= {notation.expr(d.value)}")
    return rows


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
