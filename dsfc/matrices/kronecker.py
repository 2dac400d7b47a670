"""The operators of a System as Kronecker products over named axes, in the order of its vectors.

One head is shown at a time: axes declared `heads` are indices, every other axis is a factor. On an
axis that argument and result share an operator is the identity or a diagonal; on one that only the
result has it is a column, on one that only the argument has a row; on one that is contracted and
brought back an outer product. With the order (channel, key) this is the paper's form:
Λ_i = λ_i I, B_i = (I_p ⊗ k_i) W_V, C_i = I_p ⊗ q_iᵀ (Sieber et al. 2024 App. A and eq. 15).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from dsfc.expr.build import ONE, is_one, mul
from dsfc.expr.tree import Axis, Div, Expr, LinearMap, Mul, Ones


class Shape(Enum):
    """How an operator acts along some axes."""

    DIAGONAL = "diagonal"
    COLUMN = "column"
    ROW = "row"
    OUTER = "outer"
    COLUMNS = "one column per index of the kept axes"
    ROWS = "one row per index of the kept axes"


@dataclass(frozen=True, slots=True)
class KronFactor:
    """One factor of a Kronecker product.

    Attributes:
        shape: how it acts.
        axes: the axes it acts along, adjacent in the vector.
        value: the entries; 1 on a diagonal is the identity.
        right: the row of an outer product, whose column is `value`.
        kept: for COLUMNS and ROWS the axes that argument and result share.
    """

    shape: Shape
    axes: tuple[Axis, ...]
    value: Expr = ONE
    right: Expr = ONE
    kept: tuple[Axis, ...] = ()

    @property
    def is_identity(self) -> bool:
        """Whether it is an identity matrix."""
        return self.shape is Shape.DIAGONAL and is_one(self.value)


After = LinearMap | Expr | Axis
"""What stands in front of an operator: a map, a diagonal (its entries), a sum over an axis."""


@dataclass(frozen=True, slots=True)
class Kron:
    """above / below · (factor ⊗ factor ⊗ …), between linear maps.

    Attributes:
        above: scalar factors (per head).
        below: scalar divisors.
        factors: in the order of the vector.
        before: maps applied to the argument first, the last one first of all.
        after: what is applied to the result, the last one first.
    """

    above: tuple[Expr, ...]
    below: tuple[Expr, ...]
    factors: tuple[KronFactor, ...]
    before: tuple[LinearMap, ...] = ()
    after: tuple[After, ...] = ()


Operator = tuple[Kron, ...]
"""A sum of Kronecker products; empty is 0."""


def is_identity(o: Operator) -> bool:
    """Returns whether an operator is an identity matrix."""
    if len(o) != 1:
        return False
    (k,) = o
    plain = not (k.above or k.below or k.before or k.after)
    return plain and all(f.is_identity for f in k.factors)


def line_factors(e: Expr) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """Returns the factors above and below the line of a product."""
    if is_one(e) or isinstance(e, Ones):
        return (), ()
    if isinstance(e, Mul):
        pairs = [line_factors(a) for a in e.args]
        return tuple(x for p in pairs for x in p[0]), tuple(x for p in pairs for x in p[1])
    if isinstance(e, Div):
        above, below = line_factors(e.num)
        over, under = line_factors(e.den)
        return (*above, *under), (*below, *over)
    return (e,), ()


def kron(
    left: Expr,
    right: Expr,
    argument: Sequence[Axis],
    result: Sequence[Axis],
    over: frozenset[Axis],
    times: Sequence[Expr] = (),
    divided: Sequence[Expr] = (),
) -> Kron:
    """Returns the operator x ↦ left · Σ_over(right · x) as a Kronecker product.

    Args:
        left: factor of the result.
        right: factor of the argument.
        argument: axes of x without heads, in the order of its vector.
        result: axes of the result without heads, in the order of its vector.
        over: the contracted axes.
        times: more factors, over axes that are not contracted; they cancel equal divisors.
        divided: more divisors, likewise.
    """
    order = list(dict.fromkeys((*result, *argument)))
    product_factors = [(f, inverted, True) for f, inverted in _product(left)]
    product_factors += [(f, inverted, False) for f, inverted in _product(right)]
    for f, inverted in (*((f, False) for f in times), *((f, True) for f in divided)):
        opposite = next((x for x in product_factors if x[0] is f and x[1] is not inverted), None)
        if opposite is None:
            product_factors.append((f, inverted, True))
        else:
            product_factors.remove(opposite)
    above: list[Expr] = []
    below: list[Expr] = []
    sides: list[_Side] = []
    for f, inverted, is_left in product_factors:
        axes = frozenset(a for a in f.axes if not a.heads)
        if axes:
            sides.append(_Side(axes, f, inverted, is_left))
        else:
            (below if inverted else above).append(f)
    groups = _groups(order, [s.axes for s in sides])
    kept = frozenset(argument) & frozenset(result) - over
    factors = tuple(
        _factor(g, [s for s in sides if s.axes & set(g)], kept, frozenset(result), over)
        for g in groups
    )
    return Kron(tuple(above), tuple(below), factors)


@dataclass(frozen=True, slots=True)
class _Side:
    """A factor of a product over some axes, above or below the line, left or right of a sum."""

    axes: frozenset[Axis]
    value: Expr
    inverted: bool
    is_left: bool


def _quotient(sides: list[_Side]) -> Expr:
    above = mul(*(s.value for s in sides if not s.inverted))
    below = mul(*(s.value for s in sides if s.inverted))
    return above if is_one(below) else Div(above, below)


def _groups(order: list[Axis], linked: list[frozenset[Axis]]) -> list[tuple[Axis, ...]]:
    """Splits the axes where no factor of a product links both sides."""
    out: list[tuple[Axis, ...]] = []
    start = 0
    for k in range(1, len(order) + 1):
        before, rest = set(order[:k]), set(order[k:])
        if not any(s & before and s & rest for s in linked):
            out.append(tuple(order[start:k]))
            start = k
    return out


def _factor(
    axes: tuple[Axis, ...],
    sides: list[_Side],
    kept: frozenset[Axis],
    result: frozenset[Axis],
    over: frozenset[Axis],
) -> KronFactor:
    value = _quotient(sides)
    here = tuple(a for a in axes if a in kept)
    target = [a for a in axes if a in result and a not in kept]
    read = [a for a in axes if a in over]
    if target and read:
        left, right = (_quotient([s for s in sides if s.is_left is x]) for x in (True, False))
        return KronFactor(Shape.OUTER, axes, left, right, here)
    if target:
        return KronFactor(Shape.COLUMNS if here else Shape.COLUMN, axes, value, kept=here)
    if read:
        return KronFactor(Shape.ROWS if here else Shape.ROW, axes, value, kept=here)
    return KronFactor(Shape.DIAGONAL, axes, value, kept=here)


def _product(e: Expr) -> list[tuple[Expr, bool]]:
    """The factors of a product, each with whether it stands below the line."""
    above, below = line_factors(e)
    return [*((f, False) for f in above), *((f, True) for f in below)]
