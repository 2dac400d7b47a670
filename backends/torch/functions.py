"""Primitives that an emitted module has as functions: their texts are too long for a line."""

from __future__ import annotations

import re

_EXPREL = '''\
def _exprel(x: Tensor) -> Tensor:
    """(e^x - 1) / x, and 1 at 0."""
    near = torch.abs(x) < torch.finfo(x.dtype).eps ** 0.25
    series = 1 + x * (1 / 2) * (1 + x * (1 / 3) * (1 + x * (1 / 4)))
    return torch.where(near, series, torch.expm1(x) / (x + near))'''

FUNCTIONS = {"exprel": _EXPREL}
"""Primitive → the text of its function."""


def called(name: str) -> str:
    """Returns the identifier of a primitive's function."""
    return f"_{name}"


def functions_of(code: str) -> tuple[str, ...]:
    """Returns the texts of the functions that some code calls."""
    return tuple(
        text for name, text in FUNCTIONS.items() if re.search(rf"(?<!\w){called(name)}\(", code)
    )
