"""Schedules the values of a kernel: inside another loop, in place, or in memory of their own.

A value of numbers is *inlined* when one loop over the same axes uses it once, *added* when it is a
product of matrices whose sum with something else is all that is asked for, and *stored* otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from dsfc.kernel_ir.ir import (
    Access,
    Axis,
    Between,
    Compare,
    Const,
    Cumulate,
    Dot,
    Index,
    InverseUnit,
    Kernel,
    Let,
    Load,
    Loop,
    Map,
    Operation,
    Reduce,
    Rename,
    Statement,
    Store,
)
from dsfc.kernel_ir.types import TileType, types_of
from dsfc.kernel_ir.uses import operands


@dataclass(frozen=True, slots=True)
class Addition:
    """A sum that a product of matrices is added to in place.

    Attributes:
        base: what it is added to.
        dot: the product.
        renames: axes of the product → axes of the sum.
    """

    base: str
    dot: str
    renames: tuple[tuple[Axis, Axis], ...]


@dataclass(frozen=True)
class Schedule:
    """Where the values of a kernel are computed.

    Attributes:
        types: of all values.
        operations: of all values but carried ones.
        inlined: values that have no memory: they are computed where they are used.
        additions: sums that are computed in place, by name.
        deferred: products, and new names of them, that are computed with their sum.
        lying: values that are read where they lie in a scratch argument → the argument.
    """

    types: dict[str, TileType]
    operations: dict[str, Operation]
    inlined: frozenset[str]
    additions: dict[str, Addition]
    deferred: frozenset[str]
    lying: dict[str, str]

    def sources(self, name: str) -> Iterator[str]:
        """Yields the values in memory that a use of a value reads."""
        if name in self.inlined or name in self.deferred:
            for x in operands(self.operations[name]):
                yield from self.sources(x)
        else:
            yield name

    def reads(self, s: Statement) -> Iterator[str]:
        """Yields the values in memory that a statement reads, those of its body too."""
        match s:
            case Let(name=name):
                if name not in self.inlined and name not in self.deferred:
                    for x in operands(s.operation):
                        yield from self.sources(x)
            case Store():
                yield from self.sources(s.value)
            case Loop():
                for c in s.carries:
                    yield from self.sources(c.first)
                for inner in s.body:
                    yield from self.reads(inner)
                for c in s.carries:
                    yield from self.sources(c.next)


Uses = dict[str, list[tuple[int, Statement]]]
"""Which statements use a value, and in which scope: the body of the kernel, or that of a loop."""


def schedule(kernel: Kernel) -> Schedule:
    """Returns where the values of a kernel are computed."""
    types = types_of(kernel)
    operations: dict[str, Operation] = {}
    uses: Uses = {}
    scopes: dict[str, int] = {}
    numbers = count(1)

    def visit(body: tuple[Statement, ...], scope: int) -> None:
        for s in body:
            match s:
                case Let():
                    operations[s.name] = s.operation
                    scopes[s.name] = scope
                    for x in operands(s.operation):
                        uses.setdefault(x, []).append((scope, s))
                case Store():
                    uses.setdefault(s.value, []).append((scope, s))
                case Loop():
                    inner = next(numbers)
                    for c in s.carries:
                        scopes[c.name] = inner
                        scopes[c.last] = scope
                        uses.setdefault(c.first, []).append((scope, s))
                    visit(s.body, inner)
                    for c in s.carries:
                        uses.setdefault(c.next, []).append((inner, s))

    visit(kernel.body, 0)
    additions: dict[str, Addition] = {}
    deferred: set[str] = set()
    for name, operation in operations.items():
        addition = _addition(name, operation, operations, uses, scopes)
        if addition is not None:
            additions[name] = addition[0]
            deferred |= addition[1]
    inlined = {
        name
        for name in operations
        if name not in additions and _is_inlined(name, types, operations, uses, scopes, additions)
    }
    lying = _lying(kernel)
    return Schedule(types, operations, frozenset(inlined), additions, frozenset(deferred), lying)


def _lying(kernel: Kernel) -> dict[str, str]:
    """Returns the values that may lie in scratch arguments, under all their names."""
    scratch = {a.name for a in kernel.arguments if a.access is Access.SCRATCH}
    lying: dict[str, str] = {}

    def visit(body: tuple[Statement, ...]) -> None:
        for s in body:
            match s:
                case Let(name=name, operation=Load(argument=argument)) if argument in scratch:
                    lying[name] = argument
                case Let(name=name, operation=Rename(operand=x)) if x in lying:
                    lying[name] = lying[x]
                case Loop(carries=carries):
                    first = [(c, lying[c.first]) for c in carries if c.first in lying]
                    lying.update({n: a for c, a in first for n in (c.name, c.last)})
                    visit(s.body)
                case _:
                    pass

    visit(kernel.body)
    return lying


def _addition(
    name: str,
    operation: Operation,
    operations: dict[str, Operation],
    uses: Uses,
    scopes: dict[str, int],
) -> tuple[Addition, set[str]] | None:
    """Finds a sum with a product of matrices that has no other reader."""
    if not isinstance(operation, Map) or operation.function != "add":
        return None
    for base, other in (operation.operands, operation.operands[::-1]):
        chain, at, renames = {other}, other, []
        while isinstance(step := operations.get(at), Rename) and _once(at, name, uses, scopes):
            renames.append((step.axis, step.to))
            at = step.operand
            chain.add(at)
        single = all(len(uses[x]) == 1 and scopes.get(x) == scopes[name] for x in chain)
        dot = operations.get(at)
        if not isinstance(dot, Dot) or not single or base == other:
            continue
        # The printer zeroes what lies above the diagonal of such a product, in place.
        whole = dot.out is None or dot.out.block is not None
        if whole or is_lower(base, operations):
            return Addition(base, at, tuple(renames)), chain
    return None


def _once(name: str, user: str, uses: Uses, scopes: dict[str, int]) -> bool:
    return len(uses[name]) == 1 and scopes.get(name) == scopes[user]


def _is_inlined(
    name: str,
    types: dict[str, TileType],
    operations: dict[str, Operation],
    uses: Uses,
    scopes: dict[str, int],
    additions: dict[str, Addition],
) -> bool:
    operation = operations[name]
    users = uses.get(name, [])
    in_loops = all(_is_loop(s, additions) for _, s in users)
    if isinstance(operation, Const | Index | Compare):
        return in_loops
    if not isinstance(operation, Map) or not types[name].axes or not in_loops or len(users) != 1:
        return False
    ((scope, user),) = users
    return scope == scopes[name] and set(_loop_axes(user, types)) == set(types[name].axes)


def _is_loop(s: Statement, additions: dict[str, Addition]) -> bool:
    """Whether a statement computes entry by entry what it reads."""
    match s:
        case Let(operation=Map()):
            return s.name not in additions
        case Let(operation=Compare() | Reduce() | Cumulate()):
            return True
        case Store():
            return True
        case _:
            return False


def _loop_axes(s: Statement, types: dict[str, TileType]) -> tuple[Axis, ...]:
    match s:
        case Let(operation=Reduce() | Cumulate()):
            (x,) = operands(s.operation)
            return types[x].axes
        case Let():
            return types[s.name].axes
        case Store():
            return types[s.value].axes
        case Loop():
            return ()


def is_lower(name: str, operations: dict[str, Operation]) -> bool:
    """Whether a matrix over tokens is known to be 0 above its diagonal."""
    match operations.get(name):
        case Dot(out=out):
            return out is not None
        case Map(function="where", operands=(mask, _, other)):
            # The diagonal: entries of one token.
            same = operations.get(mask)
            equal = isinstance(same, Compare) and same.operator == "=="
            return equal and operations.get(other) == Const(0.0)
        case Between():
            return True
        case Map(function="mul", operands=xs):
            return any(is_lower(x, operations) for x in xs)
        case Map(function="add", operands=xs):
            return all(is_lower(x, operations) for x in xs)
        case Map(function="neg", operands=(x,)):
            return is_lower(x, operations)
        case operation:
            return isinstance(operation, InverseUnit)
