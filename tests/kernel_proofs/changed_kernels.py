"""Kernels with one thing changed: an operation, a mask, an index, a sign, an operand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dsfc.kernel_ir.ir import (
    Along,
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
    Part,
    Position,
    Reduce,
    Statement,
    Store,
    Symbol,
    Triangle,
    minus,
    plus,
)
from dsfc.kernel_ir.types import TileType, types_of
from dsfc.kernel_ir.verify import InvalidKernel, verify

Mutant = tuple[str, Kernel]
"""What was changed, and the kernel."""

_SWAPS = {"add": ("sub", "mul"), "sub": ("add",), "mul": ("add", "sub")}


def mutants(kernel: Kernel) -> Iterator[Mutant]:
    """Yields the kernels that are still kernels of the IR."""
    types = types_of(kernel)
    for what, body in _bodies(kernel, kernel.body, types, []):
        mutant = replace(kernel, body=body)
        try:
            verify(mutant)
        except (InvalidKernel, KeyError, TypeError):
            continue
        yield what, mutant


def _bodies(
    kernel: Kernel, body: tuple[Statement, ...], types: dict[str, TileType], known: list[str]
) -> Iterator[tuple[str, tuple[Statement, ...]]]:
    """Yields a body with one statement changed, or left out."""
    known = list(known)
    for i, s in enumerate(body):
        for what, other in _statements(kernel, s, types, known):
            yield what, (*body[:i], other, *body[i + 1 :])
        if isinstance(s, Let):
            known.append(s.name)


def _statements(
    kernel: Kernel, s: Statement, types: dict[str, TileType], known: list[str]
) -> Iterator[tuple[str, Statement]]:
    match s:
        case Let(name=name, operation=operation):
            for what, other in _operations(kernel, operation, types, known):
                yield f"{name}: {what}", Let(name, other)
        case Store(argument=argument, at=at, value=value):
            for what, places in _places(kernel, at):
                yield f"store to {argument}: {what}", replace(s, at=places)
            for other in _alike(value, types, known):
                yield f"store to {argument}: {other}", replace(s, value=other)
        case Loop():
            yield "one iteration more", replace(s, count=plus(s.count, 1))
            yield "one iteration less", replace(s, count=minus(s.count, 1))
            yield "iterations in reverse", replace(s, reverse=not s.reverse)
            inside = [*known, *(c.name for c in s.carries)]
            bound = inside + [x.name for x in s.body if isinstance(x, Let)]
            for i, c in enumerate(s.carries):
                for other in _alike(c.next, types, bound):
                    carries = (*s.carries[:i], replace(c, next=other), *s.carries[i + 1 :])
                    yield f"carries {other}", replace(s, carries=carries)
            for what, body in _bodies(kernel, s.body, types, inside):
                yield what, replace(s, body=body)


def _operations(
    kernel: Kernel, e: Operation, types: dict[str, TileType], known: list[str]
) -> Iterator[tuple[str, Operation]]:
    match e:
        case Const(value=value):
            yield "a constant more by 1", Const(value + 1)
        case Index(start=start):
            yield "an index more by 1", replace(e, start=plus(start, 1))
        case Compare(operator=operator):
            for other in {"<", "<=", "=="} - {operator}:
                yield f"{other} for {operator}", replace(e, operator=other)
        case Map(function=function, operands=operands):
            for other in _SWAPS.get(function, ()):
                yield f"{other} for {function}", replace(e, function=other)
            if function == "neg":
                yield "twice for minus", Map("add", operands * 2)
            if function == "exp":
                yield "no exp", Map("add", operands * 2)
            if function == "where":
                mask, yes, no = operands
                yield "where turned round", replace(e, operands=(mask, no, yes))
            for i, name in enumerate(operands):
                for other in _alike(name, types, known):
                    changed = (*operands[:i], other, *operands[i + 1 :])
                    yield f"{other} for {name}", replace(e, operands=changed)
        case Reduce(function=function):
            yield "another fold", replace(e, function="sum" if function != "sum" else "product")
        case Cumulate():
            yield "reversed", replace(e, reverse=not e.reverse)
            yield "its own entry", replace(e, exclusive=not e.exclusive)
            yield "another fold", replace(e, function="sum" if e.function != "sum" else "product")
            block = None if e.block is None else 2 * e.block
            yield "other blocks", replace(e, block=2 if block is None else block)
        case Between():
            yield "its own entry", replace(e, exclusive=not e.exclusive)
            yield "turned round", replace(e, to=e.since, since=e.to)
        case InverseUnit():
            yield "transposed", replace(e, row=e.column, column=e.row)
        case Dot():
            yield from _dots(e, types, known)
        case Load(argument=argument, at=at):
            for what, places in _places(kernel, at):
                yield what, replace(e, at=places)
            shape = kernel.argument(argument).shape
            for a in kernel.arguments:
                if a.shape == shape and a.name != argument:
                    yield f"{a.name} for {argument}", replace(e, argument=a.name)
        case _:
            pass


def _dots(e: Dot, types: dict[str, TileType], known: list[str]) -> Iterator[tuple[str, Dot]]:
    for side in ("out", "left_part", "right_part"):
        part = getattr(e, side)
        if isinstance(part, Triangle):
            yield f"{side} whole", replace(e, **{side: None})
            turned = replace(part, row=part.column, column=part.row)
            yield f"{side} turned round", replace(e, **{side: turned})
            strict = Part.LOWER if part.part is Part.STRICTLY_LOWER else Part.STRICTLY_LOWER
            yield f"{side} {strict.value}", replace(e, **{side: replace(part, part=strict)})
            if isinstance(part.block, int):
                other = replace(part, block=2 * part.block)
                yield f"{side} in other blocks", replace(e, **{side: other})
    for side, name in (("left", e.left), ("right", e.right)):
        for other in _alike(name, types, known):
            yield f"{other} for {name}", replace(e, **{side: other})


def _places(kernel: Kernel, at: tuple[Position, ...]) -> Iterator[tuple[str, tuple[Position, ...]]]:
    """Yields positions with one of them changed."""
    indices = [g.index for g in kernel.grid]
    for i, p in enumerate(at):
        changed: list[Position] = []
        if isinstance(p, Along):
            changed += [replace(p, start=plus(p.start, 1)), replace(p, bound=minus(p.bound, 1))]
        elif isinstance(p, Symbol):
            changed += [Symbol(n) for n in indices if n != p.name][:1]
        for other in changed:
            yield f"position {i}", (*at[:i], other, *at[i + 1 :])


def _alike(name: str, types: dict[str, TileType], known: list[str]) -> list[str]:
    """The last two other values of the same type that are known."""
    return [n for n in known if n != name and types[n] == types[name]][-2:]
