"""Which interval the entries of every value lie in, from what callers promise of arguments.

An exponential overflows where its argument is large. Kernels take it of sums of log decays, which
are ≤ 0 as each term is: what is proved here is that sign. A difference of two such sums is ≤ 0 too,
but not in floating point, and not by these rules: it is refused, as it should be.

Sums and products along an axis keep no more than signs and the unit interval, for any size of it.
A loop's values are widened until they hold for every iteration. Entries that are nan have no
interval.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from dsfc.expr.interval import INF, NONNEG, REALS, Interval, exactly, inverse, minus, plus, times
from dsfc.expr.table import row
from dsfc.kernel_ir.ir import (
    Access,
    Along,
    Between,
    Const,
    Cumulate,
    Dot,
    Kernel,
    Let,
    Load,
    Loop,
    Map,
    Operation,
    Reduce,
    Rename,
    Statement,
    ToMiddle,
)

_ZERO, _ONE = Interval(0.0, 0.0), Interval(1.0, 1.0)
_UNIT = Interval(0.0, 1.0)
_NOT_POSITIVE = minus(NONNEG)

Ranges = dict[str, Interval]


def unproved_exponents(kernel: Kernel) -> Iterator[str]:
    """Yields the names of exponentials, not free ones, whose argument may be above 0.

    Args:
        kernel: a kernel whose names and types are right.
    """
    ranges = ranges_of(kernel)
    for let in _lets(kernel.body):
        match let.operation:
            case Map(function="exp", free=False, operands=(x,)):
                if not ranges[x].within(_NOT_POSITIVE):
                    yield let.name
            case _:
                pass


def ranges_of(kernel: Kernel) -> Ranges:
    """Returns an interval around the entries of every value.

    Args:
        kernel: a kernel whose names and types are right.
    """
    promises = {a.name: a.promise for a in kernel.arguments if a.access is Access.READ}
    ranges: Ranges = {}
    _body(kernel.body, ranges, promises)
    return ranges


def _lets(body: tuple[Statement, ...]) -> Iterator[Let]:
    for s in body:
        if isinstance(s, Let):
            yield s
        elif isinstance(s, Loop):
            yield from _lets(s.body)


def _body(body: tuple[Statement, ...], ranges: Ranges, promises: Ranges) -> None:
    for s in body:
        if isinstance(s, Let):
            ranges[s.name] = _range(s.operation, ranges, promises)
        elif isinstance(s, Loop):
            _loop(s, ranges, promises)


def _loop(loop: Loop, ranges: Ranges, promises: Ranges) -> None:
    for c in loop.carries:
        ranges[c.name] = ranges[c.first]
    while True:
        _body(loop.body, ranges, promises)
        stable = True
        for c in loop.carries:
            if not ranges[c.next].within(ranges[c.name]):
                # Each end moves at most twice: to 0, then to infinity.
                ranges[c.name] = _cone(ranges[c.name].hull(ranges[c.next]))
                stable = False
        if stable:
            break
    for c in loop.carries:
        ranges[c.last] = ranges[c.name]


def _range(operation: Operation, ranges: Ranges, promises: Ranges) -> Interval:
    match operation:
        case Const(value=value):
            return exactly(Fraction(value)) if abs(value) < INF else REALS
        case Load():
            promise = promises.get(operation.argument, REALS)
            # What lies beyond a bound counts as 0.
            padded = any(isinstance(p, Along) for p in operation.at)
            return promise.hull(_ZERO) if padded else promise
        case Map():
            return _mapped(operation, ranges)
        case Rename():
            return ranges[operation.operand]
        case Reduce() | Cumulate():
            x = ranges[operation.operand]
            folds = {"sum": _cone, "product": _product}
            return folds[operation.function](x) if operation.function in folds else x
        case ToMiddle():
            return _cone(ranges[operation.operand])
        case Between():
            return _product(ranges[operation.operand])
        case Dot():
            return _cone(_multiplied(operation.left, operation.right, ranges))
        case _:
            return REALS


def _mapped(operation: Map, ranges: Ranges) -> Interval:
    names = operation.operands
    if operation.function == "mul":
        return _multiplied(names[0], names[1], ranges)
    if operation.function == "where":
        return ranges[names[1]].hull(ranges[names[2]])
    match operation.function, [ranges[x] for x in names]:
        case "and", _:
            return REALS
        case "add", [a, b]:
            return plus(a, b)
        case "sub", [a, b]:
            return plus(a, minus(b))
        case "div", [a, b]:
            return times(a, inverse(b))
        case "neg", [a]:
            return minus(a)
        case "max", [a, b]:
            return _larger(a, b)
        case "min", [a, b]:
            return minus(_larger(minus(a), minus(b)))
        case function, arguments:
            return row(function).range(*arguments)


def _multiplied(left: str, right: str, ranges: Ranges) -> Interval:
    product = times(ranges[left], ranges[right])
    return product.meet(NONNEG) if left == right else product


def _larger(a: Interval, b: Interval) -> Interval:
    """An interval around {max(x, y)}."""
    return Interval(max(a.low, b.low), max(a.high, b.high))


def _cone(a: Interval) -> Interval:
    """An interval around all sums of points, of nothing too."""
    return Interval(0.0 if a.low >= 0 else -INF, 0.0 if a.high <= 0 else INF)


def _product(a: Interval) -> Interval:
    """An interval around 0 and all products of points, of nothing too."""
    for closed in (_UNIT, NONNEG):
        if a.within(closed):
            return closed
    return REALS
