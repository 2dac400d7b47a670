"""Statements that fit a line: long expressions are cut into named parts.

The text must look as a formatter would leave it. No expression is ever wrapped: what does not fit
gets an intermediate variable, which reads better too.
"""

from __future__ import annotations

from collections.abc import Callable

from dsfc.primitives.build import rewrite
from dsfc.primitives.expr import Expr, Now, Ref, Time, children

from .nodes import Code, Printer

WIDTH = 100


def assign(
    target: str,
    expr: Expr,
    printer: Printer,
    fresh: Callable[[str], str],
    indent: str = "    ",
    wrap: Callable[[Code], str] = lambda code: code.text,
) -> list[str]:
    """Returns the lines of `target = expr`, intermediate variables first.

    Args:
        target: left-hand side.
        expr: the value.
        printer: prints it; learns the names of intermediate variables.
        fresh: gives an unused variable name close to the one asked for.
        indent: of every line.
        wrap: makes the right-hand side from the printed value.
    """
    lines: list[str] = []
    while True:
        line = f"{indent}{target} = {wrap(printer.print(expr))}"
        if len(line) <= WIDTH:
            return [*lines, line]
        part = _part(expr, printer, WIDTH - len(indent) - len(target) - 8)
        if part is None:
            return [*lines, line]
        code = printer.print(part)
        name = fresh(target)
        lines.append(f"{indent}{name} = {code.text}")
        at = Now(0) if code.lead else None
        ref = Ref(name, part.axes, part.field, Time.TOKEN if code.lead else Time.CONST, at)
        printer.local[name] = Code(name, code.axes, code.lead)
        expr = _replaced(expr, part, ref)


def _replaced(expr: Expr, old: Expr, new: Expr) -> Expr:
    return rewrite(expr, lambda e: new if e is old else None)


def _part(expr: Expr, printer: Printer, room: int) -> Expr | None:
    """The largest sub-expression that fits a line of its own and is worth a name."""
    best: tuple[int, Expr] | None = None
    stack = list(children(expr))
    seen: set[Expr] = set()
    while stack:
        e = stack.pop()
        if e in seen:
            continue
        seen.add(e)
        if children(e):
            size = len(printer.print(e).text)
            if size > room:
                stack.extend(children(e))
            elif size > 8 and (best is None or size > best[0]):
                best = (size, e)
    return None if best is None else best[1]
