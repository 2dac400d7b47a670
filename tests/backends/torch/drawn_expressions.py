"""Random well-typed expressions with values for their leaves, and what printed code computes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random

import numpy as np
import torch
import torch.nn.functional as F
from dsfc.backends.shared.runtime import functions, sequences
from dsfc.backends.torch.code import Code
from dsfc.backends.torch.nodes import Printer

from dsfc.expr.build import add, div, mul, num, prim, total
from dsfc.expr.evaluate import NamedArray, evaluate
from dsfc.expr.tree import (
    Add,
    Axis,
    Div,
    Expr,
    Field,
    Iota,
    LinearMap,
    Map,
    Mul,
    Now,
    Num,
    Ones,
    Param,
    Pow,
    Prim,
    Reduce,
    Reduction,
    Ref,
    Rename,
    Series,
    Size,
    Time,
)

H, N, P, M = Axis(0, "h", heads=True), Axis(1, "n"), Axis(2, "p"), Axis(3, "m", copy_of="n")
SIZES = {H: 2, N: 3, P: 4, M: 3}
BATCH, LENGTH = 2, 3
SPACE: dict[str, object] = {"torch": torch, "F": F, "math": math, "Tensor": torch.Tensor}
SPACE |= {k: v for file in (functions, sequences) for k, v in vars(file).items() if callable(v)}

MAPS = (
    LinearMap("W", (), (N,), (P,)),
    LinearMap("W", (), (P,), (N,), adjoint=True),
    LinearMap("A", (), (N,), (N,)),
    LinearMap("A", (), (N,), (N,), adjoint=True),
    LinearMap("E", (H,), (P,), (N,)),
    LinearMap("E", (H,), (N,), (P,), adjoint=True),
    LinearMap("R", (H,), (N,), (N,)),
    LinearMap("T", (), (N, P), (P,)),
    LinearMap("O", (), (P,), (H, N)),
)
STORED = {"W": (P, N), "A": (N, N), "E": (H, N, P), "R": (H, N, N), "T": (P, N, P), "O": (H, N, P)}
LEAVES: tuple[Expr, ...] = (
    *(Param(n, frozenset(a)) for n, a in {"a": (H,), "b": (N, P), "c": ()}.items()),
    *(
        Ref(n, frozenset(axes), Field.REAL, Time.TOKEN, Now(0))
        for n, axes in {"q": (H, N), "v": (H, P), "x": (N,), "s": (), "S": (H, N, P)}.items()
    ),
    Ref("w", frozenset({N}), Field.REAL, Time.CONST, None),
    Size(N),
    Iota(P),
    Ones(frozenset({H, P})),
    *(Num(Fraction(v)) for v in ("2", "-3/2", "1/3", "-1", "0.1")),
)
ELEMENTWISE = [
    "exp", "sin", "cos", "tanh", "sigmoid", "softplus", "logsigmoid", "relu", "elu", "silu", "gelu",
    "erf", "abs", "sign", "step", "expm1",
]  # fmt: skip


class Maker:
    """Draws well-typed expressions without the constructors that simplify."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def expression(self, depth: int) -> Expr:
        if depth == 0 or self.random.random() < 0.1:
            return self.random.choice(LEAVES)
        e = self.expression(depth - 1)
        kinds = (
            self.sum, self.product, self.quotient, self.raised, self.function, self.bounded,
            self.along, self.reduced, self.mapped, self.renamed, self.series, self.negative,
        )  # fmt: skip
        return self.random.choice(kinds)(e, depth)

    def other(self, depth: int) -> Expr:
        return self.expression(self.random.randrange(depth))

    def sum(self, e: Expr, depth: int) -> Expr:
        more = [self.other(depth) for _ in range(self.random.choice((1, 1, 2)))]
        return Add((e, *more)) if self.random.random() < 0.5 else add(e, *more)

    def product(self, e: Expr, depth: int) -> Expr:
        more = [self.other(depth) for _ in range(self.random.choice((1, 1, 2)))]
        return Mul((e, *more)) if self.random.random() < 0.5 else mul(e, *more)

    def negative(self, e: Expr, depth: int) -> Expr:
        return Mul((Num(Fraction(-1)), e)) if self.random.random() < 0.7 else mul(num(-2), e)

    def quotient(self, e: Expr, depth: int) -> Expr:
        below = Add((num(2), prim("abs", self.other(depth))))
        return Div(e, below) if self.random.random() < 0.5 else div(e, below)

    def raised(self, e: Expr, depth: int) -> Expr:
        base = Add((num(1), prim("abs", e)))
        exponent = self.random.choice((num(2), num(-2), Num(Fraction(-1, 2)), self.other(1)))
        return self.random.choice((Pow(base, exponent), Pow(e, num(2)), Pow(e, num(3))))

    def function(self, e: Expr, depth: int) -> Expr:
        name = self.random.choice((*ELEMENTWISE, "log", "sqrt", "log1p"))
        if name not in ELEMENTWISE:
            e = Add((num(1), prim("abs", e)))
        return Prim(name, (e,), Field.REAL)

    def bounded(self, e: Expr, depth: int) -> Expr:
        args = [e, self.random.choice((num(1), Num(Fraction(-1, 3)), self.other(depth)))]
        self.random.shuffle(args)
        return Prim(self.random.choice(("max", "min")), tuple(args), Field.REAL)

    def along(self, e: Expr, depth: int) -> Expr:
        if not e.axes:
            return self.function(e, depth)
        name = self.random.choice(("softmax", "l2norm", "rmsnorm"))
        return Prim(name, (e,), Field.REAL, self.random.choice(sorted(e.axes)))

    def reduced(self, e: Expr, depth: int) -> Expr:
        e = Mul((e, self.other(depth))) if self.random.random() < 0.5 else e
        axes = sorted(e.axes)
        if not axes:
            return Reduce(self.random.choice(tuple(Reduction)), N, Mul((e, Ones(frozenset({N})))))
        how = self.random.choice(tuple(Reduction))
        if how is Reduction.SUM:
            return total(self.random.sample(axes, self.random.randint(1, len(axes))), e)
        return Reduce(how, self.random.choice(axes), e)

    def mapped(self, e: Expr, depth: int) -> Expr:
        able = [
            m for m in MAPS if e.axes >= {*m.source} and not (e.axes - {*m.source}) & {*m.target}
        ]
        return Map(self.random.choice(able), e) if able else self.product(e, depth)

    def renamed(self, e: Expr, depth: int) -> Expr:
        if N in e.axes and M not in e.axes:
            return Rename(N, M, e)
        return Rename(M, N, e) if M in e.axes and N not in e.axes else self.sum(e, depth)

    def series(self, e: Expr, depth: int) -> Expr:
        return Series(self.random.choice((0, 1, 2, 3)), Prim("tanh", (e,), Field.REAL))


@dataclass
class Values:
    """The leaves at one token, or their whole arrays where there is none."""

    arrays: dict[str, np.ndarray]
    token: tuple[int, int] | None = None
    unknown: list[str] = field(default_factory=list)

    def size(self, axis: Axis) -> int:
        return SIZES[axis]

    def ref(self, e: Ref) -> NamedArray:
        data = self.arrays[e.name]
        return NamedArray(tuple(sorted(e.over)), data[self.token] if e.at and self.token else data)

    def param(self, name: str) -> NamedArray:
        axes = next(
            tuple(sorted(e.over)) for e in LEAVES if isinstance(e, Param) and e.name == name
        )
        return NamedArray(axes, self.arrays[name])

    def matrix(self, map: LinearMap) -> np.ndarray:
        return self.arrays[map.name]

    def abstract(self, name: str, value: NamedArray) -> NamedArray:
        raise NotImplementedError

    def node(self, expr: Expr) -> NamedArray:
        raise NotImplementedError


def arrays(seed: int, lead: bool) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(seed)
    out = {name: draw.normal(size=[SIZES[a] for a in axes]) for name, axes in STORED.items()}
    for e in LEAVES:
        if isinstance(e, Param | Ref):
            front = (BATCH, LENGTH) if lead and isinstance(e, Ref) and e.at is not None else ()
            out[e.name] = draw.normal(size=(*front, *(SIZES[a] for a in sorted(e.over))))
    return out


def printer(lead: bool) -> Printer:
    def ref(e: Ref) -> Code:
        return Code(e.name, tuple(sorted(e.over)), lead and e.at is not None)

    names = {n: n for n in (*STORED, "a", "b", "c")} | {a.name: str(SIZES[a]) for a in SIZES}
    return Printer(ref, names, "S")


def printed(expr: Expr, lead: bool) -> Code:
    return printer(lead).print(expr)


def run(code: Code, given: dict[str, np.ndarray]) -> torch.Tensor:
    """Runs printed code as a module would, on tensors."""
    names = {name: torch.from_numpy(np.asarray(x)) for name, x in given.items()}
    value = eval(code.text, SPACE, names)
    assert isinstance(value, torch.Tensor) is not code.number
    return torch.as_tensor(value, dtype=torch.float64)


def wanted(expr: Expr, given: dict[str, np.ndarray], lead: bool, axes: tuple[Axis, ...]):
    if not lead:
        return evaluate(expr, Values(given)).expand(axes, SIZES.__getitem__).data
    rows = [
        [evaluate(expr, Values(given, (b, i))).expand(axes, SIZES.__getitem__).data
         for i in range(LENGTH)]
        for b in range(BATCH)
    ]  # fmt: skip
    return np.array(rows)
