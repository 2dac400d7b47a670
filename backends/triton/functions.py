"""Primitives that a module has as functions of its kernels, where Triton has none of that name."""

from __future__ import annotations

import re

FUNCTIONS = {
    "_log1p": '''\
@_kernel
def _log1p(x):
    """log(1 + x) with all digits near 0: what rounding takes from 1 + x is put back as a factor."""
    y = 1 + x
    return tl.where(y == 1, x, tl.log(y) * (x / tl.where(y == 1, 1, y - 1)))''',
    "_expm1": '''\
@_kernel
def _expm1(x):
    """exp(x) - 1 with all digits near 0: by its series, to a part in 10^7, below 1/4."""
    s = x * x
    near = 0.041666668 + 0.008333334 * x + 0.0013888889 * s
    near = x + s * (0.5 + 0.16666667 * x + s * near)
    return tl.where(tl.abs(x) < 0.25, near, tl.exp(x) - 1)''',
    "_exp_quotient": '''\
@_kernel
def _exp_quotient(x):
    """(exp(x) - 1) / x, and 1 at 0."""
    return tl.where(x == 0, 1, _expm1(x) / tl.where(x == 0, 1, x))''',
    "_tanh": '''\
@_kernel
def _tanh(x):
    """tanh, which is odd: all digits near 0, and no overflow far from it."""
    e = _expm1(-2 * tl.abs(x))
    return tl.where(x < 0, e, -e) / (2 + e)''',
    "_sine": '''\
@_kernel
def _sine(x, quarter: tl.constexpr):
    """sin(x + quarter · π / 2), of what is left of x by the nearest multiple of π / 2.

    That is taken off in three parts, of which the first two have few digits, so that angles below
    10^4 lose none. For larger ones a library reads 2 / π off its stack, which no loop may do.
    """
    k = tl.floor(x * 0.6366197723675814 + 0.5)
    r = x - k * 1.5703125 - k * 0.0004837512969970703 - k * 7.549789954891882e-08
    s = r * r
    sine = r + r * s * (-0.16666654611 + s * (0.0083321608736 - s * 0.00019515295891))
    cosine = 0.04166664568298827 - s * (0.001388731625493765 - s * 2.443315711809948e-05)
    turn = k.to(tl.int32) + quarter
    y = tl.where(turn % 2 == 0, sine, 1 - 0.5 * s + s * s * cosine)
    return tl.where(turn & 2 == 0, y, -y)''',
}
"""Name of a function → its text. A function stands behind those it calls."""


def functions_of(code: str) -> tuple[str, ...]:
    """Returns the texts of the functions that some code calls, and of those that they call."""
    found: list[str] = []
    for name, text in reversed(FUNCTIONS.items()):
        if any(re.search(rf"(?<!\w){name}\(", c) for c in (code, *found)):
            found.append(text)
    return tuple(reversed(found))
