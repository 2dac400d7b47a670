"""What a notebook shows of a System."""

from __future__ import annotations

from dsfc.system.ir import System
from dsfc.system.render.latex import equations


def latex(system: System) -> str:
    r"""Returns the streams and Λ, B, C, D of a System as one display of LaTeX.

    It is `split` inside `$$`, which MathJax, KaTeX and the documentation can all show.
    """
    return f"$$\n\\begin{{split}}\n{equations(system)}\n\\end{{split}}\n$$"
