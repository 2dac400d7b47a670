"""Names of a lifted spec: the user's own, where the language takes them."""

from __future__ import annotations

import re

from dsfc.expr.distributions import DISTRIBUTIONS
from dsfc.expr.table import SPELLINGS
from dsfc.lift.ir import Param

_KEYWORDS = (
    "mixer modifier extends on dims heads input param buffer state abstract const use claim when "
    "and by each complex positive nonneg unit nonzero backward y i j l first sum prod mean max min "
    "fir taylor rename ones iota decay pi"
)
"""Words that the language has for itself, or that stand for tokens."""

_AXES = {
    "d": "d e width",
    "h": "h g heads_",
    "t": "t taps",
    "p": "p v q e",
    "n": "n m k s",
    "r": "r",
    "m": "m c e",
}
"""Names of axes by what they are for, the likeliest first."""


class Names:
    """Gives names, each once."""

    def __init__(self, variables: set[str]) -> None:
        """Keeps the user's variables free.

        Args:
            variables: names that values will want.
        """
        self.taken = {*_KEYWORDS.split(), *SPELLINGS, *DISTRIBUTIONS}
        self.variables = variables

    def axis(self, kind: str) -> str:
        """Returns a name of an axis."""
        for name in _AXES[kind].split():
            if name not in self.taken and name not in self.variables:
                self.taken.add(name)
                return name
        return self._numbered(kind)

    def parameter(self, param: Param, read_as: str | None = None) -> str:
        """Returns a name of a parameter: the last word of its path, `W` and `b` parts of it.

        The path of a layer's weight is the layer's; its bias is called `b_` and the layer's name.

        Args:
            param: the parameter.
            read_as: for a part of one, the variable that is computed from it.
        """
        words = param.path.split(".")
        last = words.pop()
        owner = next((w for w in reversed(words) if not w.isdigit()), "")
        position = next((w for w in reversed(words) if w.isdigit()), "")
        if last == "weight" and owner:
            name = owner + (f"_{position}" if position else "")
        elif last == "bias" and owner:
            name = f"b_{owner}" + (f"_{position}" if position else "")
        else:
            name = last if not last.isdigit() else f"{owner}_{last}"
        if param.cuts and read_as is not None:
            name = f"{name}_{read_as}"
        return self.value(name, "_")

    def value(self, wanted: str, joint: str = "_") -> str:
        """Returns a name of a value, the wanted one where it is free."""
        name = re.sub(r"[^A-Za-z0-9_]", "_", wanted).strip("_") or "x"
        name = name if name[0].isalpha() else f"v_{name}"
        if name not in self.taken:
            self.taken.add(name)
            return name
        return self._numbered(name, joint)

    def _numbered(self, name: str, joint: str = "_") -> str:
        k = 1
        while f"{name}{joint}{k}" in self.taken:
            k += 1
        self.taken.add(f"{name}{joint}{k}")
        return f"{name}{joint}{k}"
