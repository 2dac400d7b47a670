"""Initialisers give values, and such as the declaration promises.

A constraint is what proofs about a mixer assume. What an initialiser gives may depend on the sizes,
so it is refused when it breaks the promise at every size that is tried. What passes may still break
it at others: the sizes are known when a module is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dsfc.diagnostics.catalogue import Initialiser
from dsfc.diagnostics.report import DiagnosticError, Reporter
from dsfc.expr.build import rewrite
from dsfc.expr.declarations import Constraint, Init, MapTensor
from dsfc.expr.distributions import distribution
from dsfc.expr.evaluate import NamedArray, evaluate
from dsfc.expr.tree import Axis, Draw, Expr, LinearMap, Num, Ref
from dsfc.mixer.axes import sizes
from dsfc.mixer.ir import Mixer
from dsfc.mixer.merge import Program
from dsfc.source import NOWHERE

_TRIED = (64, 32, 16)
_PROMISES = {
    Constraint.NONE: "finite",
    Constraint.POSITIVE: "> 0",
    Constraint.NONNEG: "≥ 0",
    Constraint.UNIT: "between 0 and 1",
    Constraint.NONZERO: "other than 0",
}


def check_initial_values(mixer: Mixer, program: Program, reporter: Reporter) -> None:
    """Reports initialisers that break their declaration's promise at all sizes tried."""
    known = tuple(_tried(mixer))
    if not known:
        return
    for tensor in (*mixer.params, *mixer.buffers):
        if tensor.init is None:
            continue
        constraint = Constraint.NONE if isinstance(tensor, MapTensor) else tensor.constraint
        # A lower bound of 0 is the absence of one: a buffer may have it, which proofs read. A
        # parameter is stored as its logit, and proofs read of it that it is above 0.
        floor = constraint is Constraint.UNIT and tensor in mixer.buffers
        problems = [_problem(tensor.init, constraint, floor, chosen) for chosen in known]
        problem = problems[0]
        if problem is not None and all(problems):
            declared = program.declared[tensor.name].decl
            span = NOWHERE if declared.init is None else declared.init.span
            reporter.add(Initialiser(span, name=tensor.name, problem=problem))


def _tried(mixer: Mixer) -> Iterator[Mapping[str, int]]:
    free = [d.axis.name for d in mixer.axes if d.size is None]
    for size in _TRIED if free else _TRIED[:1]:
        try:
            yield sizes(mixer, dict.fromkeys(free, size))
        except DiagnosticError:
            continue  # no sizes that fit together


def _problem(
    init: Init, constraint: Constraint, floor: bool, known: Mapping[str, int]
) -> str | None:
    """What is wrong with the values at some sizes, None if nothing is."""
    try:
        ends = [_evaluated(init.value, known, end) for end in (0, 1)]
    except _NoRangeError as error:
        return f"draws from `{error.distribution}`, whose {error.problem}"
    for values in ends:
        for value in _breaking(values, constraint, init.drawn, floor):
            verb = "may give" if init.drawn else "gives"
            shown = f"{value:.6g}" if np.isrealobj(value) else f"{complex(value):.6g}"
            return f"{verb} {shown}, but its values must be {_PROMISES[constraint]}"
    return None


def _breaking(
    values: NDArray[Any], constraint: Constraint, drawn: bool, floor: bool
) -> NDArray[Any]:
    """The values that break a promise; the ends of a range are drawn with probability 0."""
    broken = ~np.isfinite(values)
    match constraint:
        case Constraint.NONE:
            pass
        case Constraint.POSITIVE:
            broken |= values < 0 if drawn else values <= 0
        case Constraint.NONNEG:
            broken |= values < 0
        case Constraint.UNIT:
            broken |= values < 0 if drawn or floor else values <= 0
            broken |= values > 1 if drawn else values >= 1
        case Constraint.NONZERO:
            broken |= (values == 0) & (not drawn)
    return np.asarray(values[broken])


def _evaluated(value: Expr, known: Mapping[str, int], end: int) -> NDArray[Any]:
    """The values, each draw at the low (0) or the high (1) end of what is drawn."""
    scope = SizeScope(known)

    def drawn(node: Expr) -> Expr | None:
        ends = distribution(node.distribution).ends if isinstance(node, Draw) else None
        if not isinstance(node, Draw) or ends is None:
            return None
        try:
            return _number(ends(*_arguments(node, scope))[end])
        except ValueError as error:
            raise _NoRangeError(node.distribution, str(error)) from None

    with np.errstate(all="ignore"):
        try:
            return np.atleast_1d(evaluate(rewrite(value, drawn), scope).data)
        except OverflowError:
            return np.array([np.inf])


class _NoRangeError(Exception):
    """The arguments of a distribution give it no range."""

    def __init__(self, distribution: str, problem: str) -> None:
        self.distribution = distribution
        self.problem = problem
        super().__init__(distribution, problem)


def _arguments(node: Draw, scope: SizeScope) -> list[float]:
    return [float(evaluate(arg, scope).data) for arg in node.args]


def _number(value: float) -> Expr:
    return Num(Fraction(value))


@dataclass(frozen=True, slots=True)
class SizeScope:
    """The leaves that an initialiser may have: sizes."""

    known: Mapping[str, int]

    def size(self, axis: Axis) -> int:
        """Size of an axis."""
        return self.known[axis.name]

    def param(self, name: str) -> NoReturn:
        """Refuses a parameter: an initialiser reads sizes alone."""
        raise TypeError(name)

    def matrix(self, map: LinearMap) -> NoReturn:
        """Refuses a linear map: an initialiser reads sizes alone."""
        raise TypeError(map.name)

    def ref(self, ref: Ref) -> NoReturn:
        """Refuses a value per token: an initialiser reads sizes alone."""
        raise TypeError(ref.name)

    def abstract(self, name: str, value: NamedArray) -> NoReturn:
        """Refuses an abstract function: an initialiser reads sizes alone."""
        raise TypeError(name)

    def node(self, expr: Expr) -> NamedArray:
        """The last values of a sequence; draws are replaced by numbers before."""
        row = distribution(expr.distribution) if isinstance(expr, Draw) else None
        if not isinstance(expr, Draw) or row is None or row.sequence is None:
            raise TypeError(type(expr).__name__)
        (axis,) = expr.over
        values = row.sequence(*_arguments(expr, self))
        if len(values) < self.size(axis):
            short = f"{len(values)} values are fewer than the {self.size(axis)} of `{axis.name}`"
            raise _NoRangeError(row.name, short)
        return NamedArray((axis,), values[-self.size(axis) :])
