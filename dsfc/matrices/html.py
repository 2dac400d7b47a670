"""Matrices as notebooks and terminals show them: Markdown with LaTeX, and plain text."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from dsfc.matrices.latex import equations

if TYPE_CHECKING:
    from dsfc.matrices.matrices import Matrices

WIDEST = 12
"""Most rows and columns of a matrix that is shown entry by entry."""
_LATEX = {"Lambda": "\\Lambda_1", "B": "B_1", "C": "C_1", "D": "D_1"}


def markdown(matrices: Matrices) -> str:
    """Returns Λ, B, C and D in Kronecker form; of explicit ones the entries at token 1, if few.

    Args:
        matrices: the matrices.
    """
    head = f"**{escape(matrices.system.name)}**, {matrices.gauge} gauge"
    if matrices.setting is None:
        body = equations(matrices.system, matrices.gauge)
        return f"{head}\n\n$$\n\\begin{{split}}\n{body}\n\\end{{split}}\n$$"
    if not matrices.parts:
        return f"{head}: nothing in its output is linear, so there is no Λ, B, C, D"
    rows = [_matrix(_LATEX[x] + (lag and f"^{{({lag})}}"), m) for x, lag, m in _first(matrices)]
    return "\n\n".join((f"{head}, {_sizes(matrices)}", *rows))


def shapes(matrices: Matrices) -> str:
    """Returns the sizes of the axes and the shapes of explicit matrices, as plain text.

    Args:
        matrices: the matrices, explicit ones.
    """
    head = f"{matrices.system.name}: explicit matrices, {matrices.gauge} gauge, {_sizes(matrices)}"
    if not matrices.parts:
        return f"{head}\n\nNothing in the output is linear: there are no Λ, B, C, D."
    rows = (
        f"  {letter}(i){lag and f' of lag {lag}'}: {' × '.join(map(str, m.shape))}"
        for letter, lag, m in _first(matrices)
    )
    return "\n".join((head, "", *rows))


def _sizes(matrices: Matrices) -> str:
    assert matrices.setting is not None
    return ", ".join(f"{a.name} = {n}" for a, n in matrices.setting.sizes.items())


def _first(matrices: Matrices) -> list[tuple[str, str, Any]]:
    """The matrices of token 1 of the first part: letter, lag where there are several, value."""
    first = next(iter(matrices.explicit_parts.values()))
    reads = [("C", str(n) * (len(first.lags) > 1), first.C(1, n)) for n in first.lags]
    return [("Lambda", "", first.Lambda(1)), ("B", "", first.B(1)), *reads, ("D", "", first.D(1))]


def _matrix(name: str, value: object) -> str:
    rows, columns = getattr(value, "shape", (0, 0))
    if max(rows, columns) > WIDEST or 0 in (rows, columns):
        return f"${name}$: {rows} × {columns}"
    shown = getattr(value, "_repr_latex_", lambda: "")() or ""
    inner = shown.strip().strip("$").removeprefix("\\displaystyle").strip()
    return f"$$\n{name} = {inner}\n$$"
