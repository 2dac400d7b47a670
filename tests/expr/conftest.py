"""Random well-formed expressions over three axes, and a scope that gives their leaves values."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pytest

from dsfc.expr.build import add, div, mul, num, ones, power, prim, total
from dsfc.expr.evaluate import NamedArray
from dsfc.expr.tree import (
    Axis,
    Expr,
    Field,
    Iota,
    LinearMap,
    Map,
    Now,
    Param,
    Reduce,
    Reduction,
    Ref,
    Rename,
    Series,
    Size,
    Time,
)

H = Axis(0, "h", heads=True)
N = Axis(1, "n")
P = Axis(2, "p")
M = Axis(3, "m", copy_of="n")
SIZES = {H: 2, N: 3, P: 2, M: 3}

W = LinearMap("W", (), (N,), (P,))
Z = LinearMap("Z", (H,), (P,), (N,), Field.COMPLEX)
SQUARE = LinearMap("A", (), (N,), (N,))


def ref(name: str, *axes: Axis, kind: Field = Field.REAL, lag: int = 0) -> Ref:
    return Ref(name, frozenset(axes), kind, Time.TOKEN, Now(lag))


def param(name: str, *axes: Axis, kind: Field = Field.REAL) -> Param:
    return Param(name, frozenset(axes), kind)


REAL_LEAVES = [
    ref("q", H, N),
    ref("k", H, N),
    ref("v", H, P),
    ref("v", H, P, lag=1),
    ref("x", N),
    ref("s"),
    param("a", H),
    param("b", N, P),
    param("c"),
]
COMPLEX_LEAVES = [
    ref("z", N, kind=Field.COMPLEX),
    param("w", N, P, kind=Field.COMPLEX),
    param("t", kind=Field.COMPLEX),
]
REAL_PRIMS = [
    "exp", "sin", "cos", "tanh", "sigmoid", "softplus", "logsigmoid", "relu", "elu", "silu",
    "gelu", "erf", "abs", "sign", "expm1",
]  # fmt: skip
COMPLEX_PRIMS = ["exp", "sin", "cos", "tanh", "abs", "re", "im", "conj", "sign"]


@dataclass
class Values:
    """A scope with random values; `leaves` may be overridden one by one."""

    seed: int
    leaves: dict[Expr | LinearMap, np.ndarray] = field(default_factory=dict)

    def size(self, axis: Axis) -> int:
        return SIZES[axis]

    def _draw(self, key: str, shape: list[int], kind: Field) -> np.ndarray:
        rng = np.random.default_rng([self.seed, *key.encode()])
        out = rng.normal(size=shape)
        return out + 1j * rng.normal(size=shape) if kind is Field.COMPLEX else out

    def array(self, e: Ref | Param) -> np.ndarray:
        if e not in self.leaves:
            key = e.name + (str(e.at) if isinstance(e, Ref) else "")
            self.leaves[e] = self._draw(key, [SIZES[a] for a in sorted(e.over)], e.kind)
        return self.leaves[e]

    def ref(self, e: Ref) -> NamedArray:
        return NamedArray(tuple(sorted(e.over)), self.array(e))

    def param(self, name: str) -> NamedArray:
        e = next(x for x in REAL_LEAVES + COMPLEX_LEAVES if isinstance(x, Param) and x.name == name)
        return NamedArray(tuple(sorted(e.over)), self.array(e))

    def matrix(self, map: LinearMap) -> np.ndarray:
        declared = next(m for m in (W, Z, SQUARE) if m.name == map.name)
        if declared not in self.leaves:
            shape = [SIZES[a] for a in (*declared.each, *declared.target, *declared.source)]
            self.leaves[declared] = self._draw(map.name, shape, declared.field)
        return self.leaves[declared]

    def abstract(self, name: str, value: NamedArray) -> NamedArray:
        raise NotImplementedError

    def node(self, expr: Expr) -> NamedArray:
        raise NotImplementedError


class Maker:
    """Draws well-formed expressions; smooth ones where a derivative is to be compared."""

    def __init__(self, seed: int, complex_values: bool = True) -> None:
        self.rng = np.random.default_rng(seed)
        self.leaves = REAL_LEAVES + (COMPLEX_LEAVES if complex_values else [])

    def pick(self, items):
        return items[int(self.rng.integers(len(items)))]

    def leaf(self) -> Expr:
        return self.pick([*self.leaves, *self.leaves, num(Fraction(2, 3)), Size(N), Iota(N)])

    def expression(self, depth: int) -> Expr:
        if depth == 0:
            return self.leaf()
        e = self.expression(depth - 1)
        makers = [self.sum, self.product, self.quotient, self.function, self.along, self.shape]
        return self.pick(makers)(e, depth)

    def sum(self, e: Expr, depth: int) -> Expr:
        other = self.expression(depth - 1)
        axes = e.axes | other.axes
        return add(mul(e, ones(axes)), mul(other, ones(axes)))

    def product(self, e: Expr, depth: int) -> Expr:
        return mul(e, self.expression(depth - 1))

    def quotient(self, e: Expr, depth: int) -> Expr:
        if self.rng.random() < 0.3:
            return power(e, self.pick([num(2), num(3)]))
        other = self.expression(depth - 1)
        if other.field is Field.COMPLEX:
            other = prim("abs", other)
        return div(e, add(num(2), mul(other, other)))

    def function(self, e: Expr, depth: int) -> Expr:
        if e.field is Field.COMPLEX:
            return prim(self.pick(COMPLEX_PRIMS), e)
        choice = self.rng.random()
        if choice < 0.1:
            return prim("cis", e)
        if choice < 0.2:
            return prim("cplx", e, mul(num(3), e))
        if choice < 0.3:
            return prim(self.pick(["max", "min"]), e, param("c"))
        if choice < 0.35:
            return prim("log", add(num(3), prim("abs", e)))
        if choice < 0.4:
            return prim("sqrt", add(num(3), mul(e, e)))
        return prim(self.pick(REAL_PRIMS), e)

    def along(self, e: Expr, depth: int) -> Expr:
        if not e.axes:
            return Series(3, e)
        axis = self.pick(sorted(e.axes))
        if e.field is Field.REAL and self.rng.random() < 0.4:
            return prim(self.pick(["softmax", "l2norm", "rmsnorm"]), e, axis=axis)
        if e.field is Field.REAL and self.rng.random() < 0.2:
            return Reduce(Reduction.MAX, axis, e)
        if self.rng.random() < 0.3:
            return Reduce(Reduction.MEAN, axis, e)
        return total((axis,), e)

    def shape(self, e: Expr, depth: int) -> Expr:
        if N in e.axes and M not in e.axes and self.rng.random() < 0.3:
            return Rename(N, M, e)
        if N in e.axes and self.rng.random() < 0.3:
            return Map(SQUARE, e)
        if N in e.axes and P not in e.axes:
            return Map(W, e)
        if P in e.axes and N not in e.axes:
            return Map(Z, e)
        return self.product(e, depth)


@pytest.fixture(scope="session")
def draw():
    """A function (seed, depth, complex values) → expression."""

    def make(seed: int, depth: int = 4, complex_values: bool = True) -> Expr:
        return Maker(seed, complex_values).expression(depth)

    return make


@pytest.fixture(scope="session")
def values():
    """A function seed → scope."""
    return Values
