"""Matrices as a notebook shows them, in LaTeX, which notebooks set."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from dsfc.matrices.latex import equations

if TYPE_CHECKING:
    from dsfc.matrices.matrices import Matrices

WIDEST = 12
"""Most rows and columns of a matrix that is shown entry by entry."""


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
    sizes = ", ".join(f"{a.name} = {n}" for a, n in matrices.setting.sizes.items())
    first = next(iter(matrices.explicit_parts.values()))
    values = {"\\Lambda_1": first.Lambda(1), "B_1": first.B(1)}
    for lag in first.lags:
        values["C_1" if len(first.lags) == 1 else f"C_1^{{({lag})}}"] = first.C(1, lag)
    values["D_1"] = first.D(1)
    rows = [_matrix(name, value) for name, value in values.items()]
    return f"{head}, {sizes}\n\n" + "\n\n".join(rows)


def shapes(matrices: Matrices) -> str:
    """Returns the sizes of the axes and the shapes of explicit matrices, as plain text.

    Args:
        matrices: the matrices, explicit ones.
    """
    assert matrices.setting is not None
    sizes = ", ".join(f"{a.name} = {n}" for a, n in matrices.setting.sizes.items())
    head = f"{matrices.system.name}: explicit matrices, {matrices.gauge} gauge, {sizes}"
    if not matrices.parts:
        return f"{head}\n\nNothing in the output is linear: there are no Λ, B, C, D."
    first = next(iter(matrices.explicit_parts.values()))
    known = {"Lambda(i)": first.Lambda(1), "B(i)": first.B(1)}
    for lag in first.lags:
        known["C(i)" if len(first.lags) == 1 else f"C(i) of lag {lag}"] = first.C(1, lag)
    known["D(i)"] = first.D(1)
    rows = (f"  {name}: {' × '.join(map(str, m.shape))}" for name, m in known.items())
    return "\n".join((head, "", *rows))


def _matrix(name: str, value: object) -> str:
    rows, columns = getattr(value, "shape", (0, 0))
    if max(rows, columns) > WIDEST or 0 in (rows, columns):
        return f"${name}$: {rows} × {columns}"
    shown = getattr(value, "_repr_latex_", lambda: "")() or ""
    inner = shown.strip().strip("$").removeprefix("\\displaystyle").strip()
    return f"$$\n{name} = {inner}\n$$"
