"""L3, flows: x' = diagonal · x + Σ left Σ_over(right · x) + drive, discretised with a step Δ.

    zoh       λ = e^{Δa}        B = (e^{Δa} − 1)/a = Δ exprel(Δa)
    euler     λ = e^{Δa}        B = Δ                     (exact decay, Euler input)
    bilinear  Λ = 2M⁻¹ − 1      B = M⁻¹ Δ      M = 1 − Δ/2 (a + Σ left rightᵀ)

M⁻¹ is a diagonal plus low rank again, by the Sherman–Morrison formula, one pair at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dsfc.derive.affine import Affine
from dsfc.derive.separated import sum_over
from dsfc.expr.build import ONE, ZERO, add, div, is_zero, mul, num, ones, prim, sub
from dsfc.expr.declarations import FlowRule
from dsfc.expr.tree import Axis, Expr
from dsfc.system.ir import KeptFlow, Term

HALF = num(Fraction(1, 2))


class FlowProblem(Exception):
    """The rule does not fit the drift; the text says why."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A low-rank part: left · Σ_over(right · x)."""

    left: Expr
    over: frozenset[Axis]
    right: Expr


def kept_flow(state: str, drift: Affine, rule: FlowRule, step: Expr) -> KeptFlow:
    """Returns the continuous form from the affine form of a drift.

    Raises:
        FlowProblem: the drift reads another state, or has a dense map.
    """
    diagonal: Expr = ZERO
    pairs = []
    for t in drift.terms:
        if t.source != state or t.lag:
            raise FlowProblem(
                f"its drift reads the state `{t.source}` of the same stage; only its own present "
                "value may be read"
            )
        if t.matrix is not None:
            raise FlowProblem("its drift has a dense linear map; write it as a discrete update")
        if t.over:
            pairs.append((t.left, t.over, t.right))
        else:
            diagonal = add(diagonal, t.left)
    if pairs and rule is not FlowRule.BILINEAR:
        raise FlowProblem(
            f"{rule.value} needs a diagonal flow; `{state}` has a low-rank part, use bilinear"
        )
    if len({p[1] for p in pairs}) > 1:
        raise FlowProblem("its low-rank parts contract different axes")
    return KeptFlow(rule, step, diagonal, tuple(pairs), ZERO if drift.rest is None else drift.rest)


def discretised(state: str, axes: frozenset[Axis], lag: int, flow: KeptFlow) -> Affine:
    """Returns the update x_i = Λ x_{i-1} + B of a flow.

    The drive is `input_map` applied to the flow's own.
    """
    terms: list[Term]
    if flow.rule is FlowRule.BILINEAR:
        inverse = _inverse(flow)
        diagonal = sub(mul(num(2), inverse.diagonal), ONE)
        terms = [_diagonal(state, lag, diagonal)]
        terms += [Term(state, lag, mul(num(2), p.left), p.over, p.right) for p in inverse.pairs]
    else:
        terms = [_diagonal(state, lag, prim("exp", mul(flow.step, flow.diagonal)))]
    rest = None if is_zero(flow.drive) else input_map(flow, flow.drive)
    if rest is not None and axes - rest.axes:
        rest = mul(rest, ones(axes - rest.axes))
    return Affine(tuple(terms), rest)


def _diagonal(state: str, lag: int, value: Expr) -> Term:
    return Term(state, lag, value, frozenset(), ONE)


def input_map(flow: KeptFlow, drive: Expr) -> Expr:
    """Returns B applied to a drive, or to the key of one: both have the contracted axes."""
    match flow.rule:
        case FlowRule.EULER:
            return mul(flow.step, drive)
        case FlowRule.ZOH:
            if is_zero(flow.diagonal):
                return mul(flow.step, drive)
            # The quotient as one function, which has a value where the rate is 0.
            return mul(flow.step, prim("exprel", mul(flow.step, flow.diagonal)), drive)
        case FlowRule.BILINEAR:
            return _inverse(flow).applied(mul(flow.step, drive))


@dataclass(frozen=True, slots=True)
class _Inverse:
    """diagonal + Σ left Σ_over(right · )."""

    diagonal: Expr
    pairs: tuple[Pair, ...]

    def applied(self, e: Expr) -> Expr:
        parts = [mul(self.diagonal, e)]
        for p in self.pairs:
            parts.append(mul(p.left, _contracted(p.over, mul(p.right, e))))
        return _sum(parts)

    def transposed(self, e: Expr) -> Expr:
        parts = [mul(self.diagonal, e)]
        for p in self.pairs:
            parts.append(mul(p.right, _contracted(p.over, mul(p.left, e))))
        return _sum(parts)


def _inverse(flow: KeptFlow) -> _Inverse:
    """(1 − Δ/2 (a + Σ l rᵀ))⁻¹ = E + Σ (E' l Δ/2)(rᵀ E') / (1 − rᵀ E' l Δ/2), pair by pair."""
    half = mul(HALF, flow.step)
    out = _Inverse(div(ONE, sub(ONE, mul(half, flow.diagonal))), ())
    for left, over, right in flow.low_rank:
        column = out.applied(mul(half, left))
        row = out.transposed(right)
        below = sub(ONE, _contracted(over, mul(right, column)))
        out = _Inverse(out.diagonal, (*out.pairs, Pair(div(column, below), over, row)))
    return out


def _contracted(over: frozenset[Axis], e: Expr) -> Expr:
    for axis in sorted(over):
        e = sum_over(axis, e)
    return e


def _sum(parts: list[Expr]) -> Expr:
    axes = frozenset().union(*(p.axes for p in parts))
    return add(*(p if p.axes == axes else mul(p, ones(axes - p.axes)) for p in parts))
