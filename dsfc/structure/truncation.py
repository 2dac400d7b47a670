"""What a truncated exponential series leaves out, and what truncating one would: as text.

By Taylor's theorem e^s - Σ_{r ≤ p} s^r / r! = e^ξ s^(p+1) / (p+1)! for some ξ between 0 and s. A
mean weighted by the series is then off by at most 2 ρ / (1 - ρ) of its largest value, where ρ =
R^(p+1) e^R / (p+1)! < 1 and |s| ≤ R: each weight is off by a share of at most ρ, and a mean of
values that lie within 2 max |v| of it moves by no more than that share of the weights.

A sum over the past whose weights are e^s, s = q · k[j], has no finite state; with the series in its
place it has one, of n^r numbers per channel for each order r.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import factorial

from dsfc.expr.build import walk
from dsfc.expr.text import text
from dsfc.expr.tree import Expr, Field, Prim, Reduce, Reduction, Series, Time
from dsfc.system.ir import Cache, System
from dsfc.system.traverse import parts, trees


def truncations(system: System) -> str:
    """Returns each truncated series of a system with its bound, then each exponential in the way.

    Args:
        system: a system; one with neither gives the empty text.
    """
    cut = list(dict.fromkeys(_cut(system)))
    whole = list(dict.fromkeys(_whole(system)))
    lines = ["truncated series", *cut] if cut else []
    lines += ["finite truncations", *whole] if whole else []
    return "\n".join([*lines, ""]) if lines else ""


def _cut(system: System) -> Iterator[str]:
    for d in system.definition:
        for e in walk(d.value):
            if isinstance(e, Series) and e.field is Field.REAL:
                order = e.order + 1
                yield f"  e^s to order {e.order}, s = {text(e.arg)}"
                yield from _bounds(str(order), str(factorial(order)))


def _whole(system: System) -> Iterator[str]:
    sums = (p for t in trees(system) for p in parts(t) if isinstance(p, Cache))
    for e in (e for kept in sums for e in walk(kept.past)):
        if not (isinstance(e, Prim) and e.name == "exp" and e.field is Field.REAL):
            continue
        axes = _contracted(e.args[0])
        if axes:
            yield f"  e^s, s = {text(e.args[0])}: taylor[p](s) in its place has a finite state,"
            size = " ".join(f"{a}^r" for a in axes)
            yield f"    for each order r ≤ p of {size} numbers per channel"
            yield from _bounds("(p+1)", "(p+1)!")


def _contracted(score: Expr) -> list[str]:
    """Names of the axes that a score of two tokens sums over."""
    sums = (e for e in walk(score) if isinstance(e, Reduce) and e.how is Reduction.SUM)
    return sorted({e.axis.name for e in sums if e.arg.time is Time.PAIR})


def _bounds(order: str, product: str) -> Iterator[str]:
    yield f"    it is off by at most |s|^{order} / {product} · e^max(s, 0)"
    yield (
        "    a mean of values v weighted by it is off by at most 2 ρ / (1 - ρ) max |v|"
        f" where ρ = R^{order} e^R / {product} < 1 and |s| ≤ R"
    )
