"""Whether a definition has a value at every point, by interval arithmetic. Nothing here is trusted.

Where it has, points at which it has none need not be looked for.
"""

from __future__ import annotations

from dsfc.expr.build import walk
from dsfc.expr.declarations import Tensor
from dsfc.expr.interval import POSITIVE, Interval
from dsfc.expr.ranges import PROMISED, Ranges
from dsfc.expr.tree import Div, Expr, Field, Num, Pow, Prim, Ref
from dsfc.system.ir import System
from dsfc.trusted.defined import TOTAL


def total(system: System) -> bool:
    """Returns whether all that a system divides by, and takes roots and logarithms of, may be.

    Args:
        system: whose definitions are executed.

    Returns:
        False where ranges do not show it.
    """
    ranges = _ranges(system)
    return all(_has_value(e, ranges) for d in system.definition for e in walk(d.value))


def _has_value(e: Expr, ranges: Ranges) -> bool:
    match e:
        case Div(_, below):
            return _never_zero(below, ranges)
        case Pow(base, Num(power)) if power.denominator == 1:
            return power >= 0 or _never_zero(base, ranges)
        case Pow(base, exponent):
            return _positive(base, ranges) and exponent.field is Field.REAL
        case Prim(name=name, args=args) if name not in TOTAL:
            return name == "tanh" or all(_positive(a, ranges) for a in args)
    return True


def _never_zero(e: Expr, ranges: Ranges) -> bool:
    return e.field is Field.REAL and 0.0 not in ranges.of(e)


def _positive(e: Expr, ranges: Ranges) -> bool:
    return e.field is Field.REAL and ranges.of(e).within(POSITIVE)


def _ranges(system: System) -> Ranges:
    """Ranges of what is declared and, in the order in which one reads another, of definitions."""
    stored = (*system.inputs, *system.params)
    known = {t.name: PROMISED[t.constraint] for t in stored if isinstance(t, Tensor)}
    states = {d.name for d in system.definition if d.update}
    values = {d.name: d.value for d in system.definition if d.name not in states}
    ranges, seen = Ranges(known), set[str]()

    def visit(name: str) -> None:
        if name in seen or name not in values:
            return
        seen.add(name)
        for e in walk(values[name]):
            if isinstance(e, Ref):
                visit(e.name)
        interval: Interval = ranges.of(values[name])
        known[name] = interval

    for name in values:
        visit(name)
    return ranges
