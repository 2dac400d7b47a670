"""Terms as linear operators: their value, their transpose, and the names of a System.

A term maps a state tensor to after(left · Σ_over(right · matrix(src))). Its conjugate transpose is
the term with left and right, and matrix and after, exchanged and conjugated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dsfc.expr.adjoints import conj
from dsfc.expr.build import ONE, ZERO, add, mul, ones
from dsfc.expr.derivative import adjoint as adjoint_map
from dsfc.expr.reserved_names import FIRST, TIME
from dsfc.expr.tree import Axis, Expr, LinearMap
from dsfc.system.formulas import apply_term
from dsfc.system.ir import Factor, System, Term

Axes = frozenset[Axis]


def mapped_axes(axes: Axes, map: LinearMap | None) -> Axes:
    """Returns the axes of a linear map's result; the same when there is no map."""
    if map is None:
        return axes
    return (axes - frozenset(map.source)) | frozenset(map.target) | frozenset(map.each)


def unmapped_axes(axes: Axes, map: LinearMap | None) -> Axes:
    """Returns the axes of a linear map's argument, from those of its result."""
    if map is None:
        return axes
    return (axes - frozenset(map.target)) | frozenset(map.source) | frozenset(map.each)


def result_axes(term: Term, source: Axes) -> Axes:
    """Returns the axes a term gives.

    Args:
        term: the term.
        source: axes of the state it reads.
    """
    inner = mapped_axes(source, term.matrix)
    kept = inner - term.over
    return mapped_axes(kept | term.left.axes | expansion(term, inner), term.after)


def expansion(term: Term, inner: Axes) -> Axes:
    """Returns the axes that the right side has beside those of the mapped source.

    A group of queries over one key has them: Σ_n q[g, n] S[n, p] has the axis g of q.
    """
    return term.right.axes - inner


def apply_factor(factor: Factor, values: Mapping[str, Expr]) -> Expr:
    """Returns Σ terms(h) + Σ drives.

    Args:
        factor: the factor.
        values: value of each state it reads.
    """
    parts = [apply_term(t, values[t.source]) for t in factor.terms]
    parts += [mul(d.key, d.stream) for d in factor.drives]
    return add(*parts) if parts else ZERO


def transposed(term: Term, source: Axes, target: Axes, name: str, lag: int) -> Term:
    """Returns the conjugate transpose of a term.

    Args:
        term: maps a state over `source` to one over `target`.
        source: axes of the state it reads.
        target: axes of the state it adds to.
        name: the state that the transpose reads.
        lag: its lag.
    """
    inner = mapped_axes(source, term.matrix)
    outer = unmapped_axes(target, term.after)
    kept = inner - term.over
    left, right = conj(term.right), conj(term.left)
    if expansion(term, inner):
        # What expanded under the sum is contracted under it now: both sides go under the new sum.
        left, right = ONE, mul(right, left)
    missing = term.over - left.axes - (right.axes - outer)
    return Term(
        source=name,
        lag=lag,
        left=mul(left, ones(missing)) if missing else left,
        over=outer - kept,
        right=right,
        matrix=None if term.after is None else adjoint_map(term.after),
        after=None if term.matrix is None else adjoint_map(term.matrix),
    )


class Names:
    """Fresh names beside those of a System."""

    def __init__(self, taken: Iterable[str]) -> None:
        """Starts with the names that are taken."""
        self._taken = set(taken)

    @classmethod
    def of(cls, system: System) -> Names:
        """Returns the names that a System leaves free."""
        tensors = (*system.inputs, *system.params, *system.buffers, *system.abstracts)
        taken = {t.name for t in tensors} | {s.name for s in system.streams}
        taken |= {b.state for b in system.blocks} | {o.name for o in system.outputs}
        taken |= {d.axis.name for d in system.axes} | {system.name, FIRST, TIME}
        return cls(taken)

    def fresh(self, wish: str) -> str:
        """Returns an unused name: the wish itself, or with the next number."""
        name, k = wish, 1
        while name in self._taken:
            k += 1
            name = f"{wish}_{k}"
        self._taken.add(name)
        return name
