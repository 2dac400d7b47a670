"""Where the tiles of a kernel are known to be 0: in the padding of an axis, beside a triangle.

Triton's blocks have sizes that are powers of two, so that an axis has entries that the kernel IR
does not know. Loads fill them with 0; what is computed of them must not reach a sum. What is known
here to be 0 needs no mask.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dsfc.kernel_ir.ir import (
    Along,
    Axis,
    Between,
    Carry,
    Const,
    Cumulate,
    Dot,
    InverseUnit,
    Kernel,
    Let,
    Load,
    Loop,
    Map,
    Operation,
    Part,
    Reduce,
    Rename,
    Statement,
    ToMiddle,
    Triangle,
)


@dataclass(frozen=True, slots=True)
class Zeros:
    """Where one tile is 0.

    Attributes:
        padding: axes whose padding has zeros alone.
        parts: triangles outside of which there are zeros alone.
        always: whether all entries are 0.
        tame: whether padding stays finite where operands are finite.
    """

    padding: frozenset[Axis] = frozenset()
    parts: frozenset[Triangle] = frozenset()
    always: bool = False
    tame: bool = True

    def common(self, other: Zeros) -> Zeros:
        """Returns what is known of both."""
        if self.always or other.always:
            return other if self.always else self
        tame = self.tame and other.tame
        return Zeros(self.padding & other.padding, self.parts & other.parts, False, tame)

    def outside(self, part: Triangle) -> bool:
        """Whether a tile is 0 outside of a triangle."""
        return self.always or any(contains(part, p) for p in self.parts)


def contains(whole: Triangle, part: Triangle) -> bool:
    """Returns whether all entries of one triangle are in another."""
    if whole == part:
        return True
    if (part.row, part.column) != (whole.row, whole.column) or whole.block is not None:
        return False
    strict = part.block is not None or part.part is Part.STRICTLY_LOWER
    return whole.part is Part.LOWER or strict


def zeros_of(kernel: Kernel) -> dict[str, Zeros]:
    """Returns where each value of a kernel is 0."""
    known: dict[str, Zeros] = {}
    _visit(kernel.body, known)
    return known


def _visit(body: tuple[Statement, ...], known: dict[str, Zeros]) -> None:
    for s in body:
        match s:
            case Let():
                known[s.name] = _zeros(s.operation, known)
            case Loop():
                known |= {c.name: known[c.first] for c in s.carries}
                # What is known of a carried tile holds before the loop and after every iteration.
                while _shrinks(s.carries, s.body, known):
                    pass
                known |= {c.last: known[c.name] for c in s.carries}
            case _:
                pass


def _shrinks(
    carries: tuple[Carry, ...],
    body: tuple[Statement, ...],
    known: dict[str, Zeros],
) -> bool:
    _visit(body, known)
    before = [known[c.name] for c in carries]
    after = [known[c.name].common(known[c.next]) for c in carries]
    known |= {c.name: z for c, z in zip(carries, after, strict=True)}
    return before != after


def _zeros(operation: Operation, known: Mapping[str, Zeros]) -> Zeros:
    match operation:
        case Const(value=value):
            return Zeros(always=value == 0)
        case Load():
            return Zeros(frozenset(p.axis for p in operation.at if isinstance(p, Along)))
        case Rename():
            return _renamed(known[operation.operand], operation.axis, operation.to)
        case Map():
            return _of_map(operation, known)
        case Reduce(axis=axis) | Cumulate(axis=axis) | ToMiddle(axis=axis):
            x = known[operation.operand]
            kept = x.padding - {axis}
            if isinstance(operation, Cumulate) and operation.function == "product":
                kept = frozenset() if operation.exclusive else kept
            return Zeros(kept, tame=x.tame)
        case Between():
            side = Part.STRICTLY_LOWER if operation.exclusive else Part.LOWER
            return Zeros(parts=frozenset({Triangle(operation.to, operation.since, side)}))
        case Dot():
            x, y = known[operation.left], known[operation.right]
            parts = frozenset() if operation.out is None else frozenset({operation.out})
            return Zeros((x.padding | y.padding) - {operation.over}, parts, tame=x.tame and y.tame)
        case InverseUnit():
            part = Triangle(operation.row, operation.column, Part.LOWER)
            return Zeros(parts=frozenset({part}))
        case _:
            return Zeros()


def _renamed(x: Zeros, axis: Axis, to: Axis) -> Zeros:
    def new(a: Axis) -> Axis:
        return to if a == axis else a

    parts = frozenset(Triangle(new(p.row), new(p.column), p.part, p.block) for p in x.parts)
    return Zeros(frozenset(map(new, x.padding)), parts, x.always, x.tame)


def _of_map(operation: Map, known: Mapping[str, Zeros]) -> Zeros:
    xs = [known[x] for x in operation.operands]
    tame = all(x.tame for x in xs)
    match operation.function:
        case "mul":
            rest = [all(y.tame for y in xs if y is not x) for x in xs]
            padding = frozenset(a for x, ok in zip(xs, rest, strict=True) if ok for a in x.padding)
            parts = frozenset(p for x in xs for p in x.parts)
            always = any(x.always for x in xs) and tame
            return Zeros(padding, parts, always, tame)
        case "neg":
            return xs[0]
        case "where":
            return xs[1].common(xs[2])
        case "add" | "sub" | "min" | "max":
            both = xs[0].common(xs[1])
            # A tile without an axis is the same in its padding.
            return Zeros(both.padding, both.parts, all(x.always for x in xs), tame)
        case "and":
            return Zeros()
        case "exp" | "sin" | "cos":
            return Zeros(tame=tame)
        case _:
            return Zeros(tame=False)
