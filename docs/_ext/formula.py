"""A formula as MathML: it needs no script and no network."""

from __future__ import annotations

import re

from latex2mathml.converter import convert

_OPERATOR = re.compile(r"\\operatorname\{(\w+)\}")


def mathml(latex: str, display: str) -> str:
    """Returns a formula as a `math` element, names of functions upright and in one piece.

    Args:
        latex: the formula.
        display: "inline" or "block".
    """
    return convert(_OPERATOR.sub(r"\\text{\1}", latex), display=display)
