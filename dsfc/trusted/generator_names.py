"""The names of generators: what of a name is a state, a call, an entry, and a time.

`@k` in a name is the token i − k, and a name that starts with `$` is an entry of a state before
the token.
"""

from __future__ import annotations

import re

from dsfc.trusted.entries import Obstacle

STATE = "$"
"""Starts the name of an entry of a state; no spec can spell it."""

CALL = "call<"
"""Starts the name of a function of states; no spec can spell it."""

LEAF = re.compile(r"([^\[\]@~]+)\[([\d,]*)\](?:@(\d))?")
"""An entry of an input, parameter or buffer: its array, its indices, and how many tokens ago."""

LAG = re.compile(r"@(\d)")
"""A time index inside a name: i minus this many tokens."""

LONGEST_LAG = 9
"""Lags have one digit, so that renaming them keeps the order of terms inside names."""


def lags(names: frozenset[str]) -> frozenset[int]:
    """Returns the lags that names read."""
    return frozenset(int(k) for name in names for k in LAG.findall(name))


def shifted(name: str, by: int) -> str:
    """Returns the name of the same thing `by` tokens earlier.

    Raises:
        Obstacle: a lag leaves the digits.
    """

    def moved(match: re.Match[str]) -> str:
        lag = int(match[1]) + by
        if not 0 <= lag <= LONGEST_LAG:
            raise Obstacle(f"a value is read {lag} tokens back, more than {LONGEST_LAG}")
        return f"@{lag}"

    return LAG.sub(moved, name)
