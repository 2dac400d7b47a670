"""What a truncated exponential series leaves out, as text.

By Taylor's theorem e^s - Σ_{r ≤ P} s^r / r! = e^ξ s^(P+1) / (P+1)! for some ξ between 0 and s. A
mean weighted by the series is then off by at most 2 ρ / (1 - ρ) of its largest value, where ρ =
R^(P+1) e^R / (P+1)! < 1 and |s| ≤ R: each weight is off by a share of at most ρ, and a mean of
values that lie within 2 max |v| of it moves by no more than that share of the weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import factorial

from dsfc.primitives.build import walk
from dsfc.primitives.expr import Field, Series
from dsfc.primitives.text import text
from dsfc.system.ir import System


def truncations(system: System) -> str:
    """Returns a line for each truncated series of a system and its bound; nothing for none."""
    lines = list(dict.fromkeys(_lines(system)))
    return "\n".join(["truncated series", *lines, ""]) if lines else ""


def _lines(system: System) -> Iterator[str]:
    for d in system.definition:
        for e in walk(d.value):
            if isinstance(e, Series) and e.field is Field.REAL:
                order = e.order + 1
                share = f"R^{order} e^R / {factorial(order)}"
                yield f"  e^s to order {e.order}, s = {text(e.arg)}"
                yield f"    it is off by at most |s|^{order} / {factorial(order)} · e^max(s, 0)"
                yield (
                    f"    a mean of values v weighted by it is off by at most 2 ρ / (1 - ρ) max |v|"
                    f" where ρ = {share} < 1 and |s| ≤ R"
                )
