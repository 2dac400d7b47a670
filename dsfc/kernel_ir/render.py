"""The text of a kernel: one line a statement, each value with its axes.

Two kernels have the same text only if they are equal: names, axes, positions, bounds and parts of
products are all in it. The text is for readers and for tests; nothing parses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from dsfc.expr.interval import REALS, Interval
from dsfc.kernel_ir.ir import (
    Along,
    Argument,
    Axis,
    Between,
    Compare,
    Const,
    Cumulate,
    Dot,
    Index,
    Int,
    Integer,
    InverseUnit,
    Kernel,
    Kind,
    Let,
    Load,
    Loop,
    Map,
    Operation,
    Position,
    Reduce,
    Rename,
    Shift,
    Statement,
    Storage,
    Store,
    Symbol,
    ToMiddle,
    Triangle,
)
from dsfc.kernel_ir.types import TileType, types_of

_INDENT = "  "
_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "and": "and"}


def render(kernel: Kernel) -> str:
    """Returns the text of a kernel that `verify` accepts.

    Raises:
        KeyError: a value is read that nothing bound.
        TypeError: operands that do not fit an operation.
    """
    lines = [f"kernel {kernel.name}", f"{_INDENT}{kernel.doc}"]
    lines += [f"{_INDENT}{_argument(a)}" for a in kernel.arguments]
    if kernel.static:
        lines.append(f"{_INDENT}static   {', '.join(kernel.static)}")
    if kernel.dynamic:
        lines.append(f"{_INDENT}dynamic  {', '.join(kernel.dynamic)}")
    lines += [f"{_INDENT}for each {g.index} < {_int(g.count)}" for g in kernel.grid]
    types = types_of(kernel)
    others = {a: None for t in types.values() for a in t.axes if a not in kernel.order}
    lines += [
        f"{_INDENT}{word} {_axes(axes)}"
        for word, axes in (("order   ", kernel.order), ("axes    ", others))
        if axes
    ]
    lines += [f"{_INDENT}{line}" for line in _body(kernel.body, types)]
    return "\n".join(lines) + "\n"


def _axes(axes: Iterable[Axis]) -> str:
    return ", ".join(f"{a.name}: {a.size}" for a in axes)


def _argument(a: Argument) -> str:
    shape = ", ".join(_int(s) for s in a.shape)
    text = f"{a.access.value:<8} {a.name}[{shape}]"
    if a.storage is not Storage.GIVEN:
        text += f" {a.storage.value}"
    return text if a.promise == REALS else f"{text} in {_interval(a.promise)}"


def _interval(i: Interval) -> str:
    ends = f"{i.low!r}, {i.high!r}"
    return f"{'(' if i.open_low else '['}{ends}{')' if i.open_high else ']'}"


def _body(body: tuple[Statement, ...], types: Mapping[str, TileType]) -> Iterator[str]:
    for s in body:
        match s:
            case Let():
                yield f"{s.name}{_type(types[s.name])} = {_operation(s.operation)}"
            case Store():
                yield f"{s.argument}[{_positions(s.at)}] = {s.value}"
            case Loop():
                yield from _loop(s, types)


def _loop(loop: Loop, types: Mapping[str, TileType]) -> Iterator[str]:
    order = " from the last" if loop.reverse else ""
    yield f"for {loop.counter} < {_int(loop.count)}{order}"
    for c in loop.carries:
        yield f"{_INDENT}{c.name}{_type(types[c.name])} from {c.first}, then {c.next}"
    for line in _body(loop.body, types):
        yield f"{_INDENT}{line}"
    for c in loop.carries:
        yield f"{c.last}{_type(types[c.last])} = last {c.name}"


def _type(t: TileType) -> str:
    axes = f"[{', '.join(a.name for a in t.axes)}]" if t.axes else ""
    return axes if t.kind is Kind.REAL else f"{axes} {t.kind.value}"


def _operation(operation: Operation) -> str:
    match operation:
        case Const(value=value):
            return f"{value:g}" if float(f"{value:g}") == value else repr(value)
        case Index():
            start = "" if operation.start == 0 else f"{_int(operation.start)} + "
            return f"{start}index {operation.axis.name}"
        case Compare():
            right = operation.right if isinstance(operation.right, str) else _int(operation.right)
            return f"{operation.left} {operation.operator} {right}"
        case Map():
            return _map(operation)
        case Rename():
            return f"{operation.operand} with {operation.axis.name} as {operation.to.name}"
        case Reduce():
            return f"{operation.function} of {operation.operand} over {operation.axis.name}"
        case Cumulate():
            return _cumulate(operation)
        case ToMiddle():
            return _to_middle(operation)
        case Between():
            since, to = operation.since.name, operation.to.name
            end = "<" if operation.exclusive else "<="
            span = f"{since} < {operation.axis.name} {end} {to}"
            return f"product of {operation.operand} over {span}"
        case Shift():
            sign = "-" if operation.back else "+"
            by = f"{sign}({operation.by.name} + {operation.offset})"
            return f"{operation.operand} shifted by {by} along {operation.axis.name}"
        case Dot():
            return _dot(operation)
        case InverseUnit():
            rows, columns = operation.row.name, operation.column.name
            return f"inverse of 1 + {operation.operand} over {rows}, {columns}"
        case Load():
            return f"{operation.argument}[{_positions(operation.at)}]"


def _map(operation: Map) -> str:
    names = operation.operands
    if operation.function in _INFIX:
        text = f" {_INFIX[operation.function]} ".join(names)
    elif operation.function == "neg":
        text = f"-{names[0]}"
    elif operation.function == "where":
        text = f"{names[1]} where {names[0]} else {names[2]}"
    else:
        text = f"{operation.function}({', '.join(names)})"
    return f"{text} of any sign" if operation.free else text


def _cumulate(operation: Cumulate) -> str:
    words = [f"running {operation.function} of {operation.operand} over {operation.axis.name}"]
    if operation.reverse:
        words.append("from the last")
    if operation.exclusive:
        words.append("without itself")
    if operation.block is not None:
        words.append(f"in blocks of {operation.block}")
    return " ".join(words)


def _to_middle(operation: ToMiddle) -> str:
    words = [f"sums of {operation.operand} over {operation.axis.name}"]
    words.append(f"to the middle of blocks of 2 * {_int(operation.half, True)}")
    words += ["without itself"] * operation.exclusive + ["transposed"] * operation.back
    return " ".join(words)


def _dot(operation: Dot) -> str:
    left = _factor(operation.left, operation.left_part)
    right = _factor(operation.right, operation.right_part)
    words = [f"{left} · {right} over {operation.over.name}"]
    if operation.out is not None:
        words.append(f"where {_triangle(operation.out)}")
    if operation.exact:
        words.append("exact")
    return " ".join(words)


def _factor(name: str, part: Triangle | None) -> str:
    return name if part is None else f"({name} where {_triangle(part)})"


def _triangle(part: Triangle) -> str:
    text = f"{part.part.value} in {part.row.name}, {part.column.name}"
    return text if part.block is None else f"{text} of blocks of {_int(part.block)}"


def _positions(at: tuple[Position, ...]) -> str:
    return ", ".join(_along(p) if isinstance(p, Along) else _int(p) for p in at)


def _along(p: Along) -> str:
    start = "" if p.start == 0 else f"{_int(p.start)} + "
    return f"{start}{p.axis.name} < {_int(p.bound)}"


def _int(e: Int, inside: bool = False) -> str:
    match e:
        case Symbol(name=name):
            return name
        case Integer(operator="min" | "max" as function):
            return f"{function}({_int(e.left)}, {_int(e.right)})"
        case Integer():
            text = f"{_int(e.left, True)} {e.operator} {_int(e.right, True)}"
            return f"({text})" if inside else text
        case _:
            return str(e)
