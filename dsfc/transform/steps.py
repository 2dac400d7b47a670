"""Steps in time as affine maps: (Λ₂, b₂) after (Λ₁, b₁) is (Λ₂Λ₁, Λ₂b₁ + b₂), a monoid.

Scans, chunks, streaming and splitting a sequence over devices are this one law at four scales.
"""

from __future__ import annotations

from dataclasses import replace

from dsfc.expr.build import ONE, add, mul, ones, total
from dsfc.expr.tree import Axis, Expr, Mul
from dsfc.system.formulas import apply_term
from dsfc.system.ir import Block, Drive, Factor, Term
from dsfc.transform.compose import CompositionError
from dsfc.transform.terms import mapped_axes


def compose_terms(second: Term, first: Term, source: frozenset[Axis]) -> Term:
    """Returns the term that is one term after another.

    Args:
        second: applied to the result of the first.
        first: applied to the state.
        source: axes of the state.

    Raises:
        CompositionError: the composition is not a term: a factor mixes an axis that both contract,
            or there are matrices between them.
    """
    if second.matrix is not None or first.after is not None:
        raise CompositionError("a matrix stands between the two terms")
    kept = mapped_axes(source, first.matrix) - first.over
    inner = second.over & kept
    free = second.over - kept
    middle = mul(second.right, first.left)
    parts = middle.args if isinstance(middle, Mul) else (middle,)
    onto = [p for p in parts if p.axes & inner]
    rest = [p for p in parts if not p.axes & inner]
    right = mul(first.right, *onto)
    if any(p.axes & (free | first.over) for p in onto) or (first.over & inner):
        raise CompositionError("a factor mixes an axis that both terms contract")
    if onto and not right.axes <= mapped_axes(source, first.matrix):
        raise CompositionError("a factor has axes that the state lacks")
    return Term(
        source=first.source,
        lag=first.lag,
        left=mul(second.left, total(free, mul(*rest))),
        over=first.over | inner,
        right=right,
        matrix=first.matrix,
        after=second.after,
    )


def compose_factors(second: Factor, first: Factor, axes: frozenset[Axis]) -> Factor:
    """Returns the step (Λ₂Λ₁, Λ₂b₁ + b₂) of one state: affine maps compose, and are a monoid.

    Args:
        second: the later step.
        first: the earlier step.
        axes: axes of the state.

    Raises:
        CompositionError: a product of two terms is not a term.
    """
    terms = [compose_terms(t, f, axes) for t in second.terms for f in first.terms]
    drives = [_driven(t, d) for t in second.terms for d in first.drives]
    return Factor(_merged(terms), (*drives, *second.drives))


def multiplied_out(block: Block) -> Factor:
    """Returns the chain of a block as one factor: its additive form.

    Raises:
        CompositionError: a product of two terms is not a term.
    """
    axes = frozenset(block.axes)
    out = block.chain[0]
    for f in block.chain[1:]:
        out = compose_factors(f, out, axes)
    return out


def _driven(t: Term, d: Drive) -> Drive:
    if t.matrix is None and t.after is None and not t.over & d.stream.axes:
        inner = mul(t.left, total(t.over, mul(t.right, d.key)))
        if not (t.left.axes & t.over) & d.stream.axes:
            return Drive(inner, d.stream)
    return Drive(ONE, apply_term(t, mul(d.key, d.stream)))


def _merged(terms: list[Term]) -> tuple[Term, ...]:
    """Terms that differ in their left vector only, added up."""
    table: dict[tuple[object, ...], Term] = {}
    for t in terms:
        key = (t.source, t.lag, t.over, t.right, t.matrix, t.after)
        known = table.get(key)
        table[key] = t if known is None else replace(known, left=_sum(known.left, t.left))
    return tuple(table.values())


def _sum(a: Expr, b: Expr) -> Expr:
    axes = a.axes | b.axes
    return add(*(mul(x, ones(axes - x.axes)) if axes - x.axes else x for x in (a, b)))


def identity_step(state: str, lag: int) -> Factor:
    """Returns the neutral step of a state."""
    return Factor((Term(state, lag, ONE, frozenset(), ONE),), ())
