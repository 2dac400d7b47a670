"""Statements that compute several expressions: what is used twice is computed once, and named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from dsfc.expr.build import walk
from dsfc.expr.tree import Expr, Num, Ref, Time, children

from ..torch.code import Code
from ..torch.layout import assign
from ..torch.nodes import Printer


class NamingPrinter(Printer):
    """A printer that knows variables of some expressions.

    Attributes:
        named: expression → the code that reads its variable.
    """

    def __init__(self, ref: Callable[[Ref], Code], names: Mapping[str, str], like: str) -> None:
        super().__init__(ref, names, like)
        self.named: dict[Expr, Code] = {}

    def print(self, expr: Expr) -> Code:
        """Returns the code of an expression, its variable where it has one."""
        return self.named.get(expr) or super().print(expr)


@dataclass(frozen=True, slots=True)
class Statements:
    """Statements and what they give.

    Attributes:
        lines: statements.
        results: one text per expression asked for: a variable, or something as short.
        once: statements that stand before a loop over time: of what is the same at all tokens.
    """

    lines: tuple[str, ...]
    results: tuple[str, ...]
    once: tuple[str, ...] = ()


def statements(
    wanted: Sequence[tuple[str, Expr]],
    known: Iterable[tuple[str, Expr]],
    printer: NamingPrinter,
    variable: Callable[[str], str],
    indent: str,
    later: Iterable[Expr] = (),
    reserved: Iterable[str] = (),
    once: str | None = None,
) -> Statements:
    """Returns the statements that compute expressions.

    Args:
        wanted: variable and expression; an expression that has a variable already keeps that.
        known: name and expression of what the plan has names for.
        printer: prints them, and learns the variables.
        variable: the variable of a name.
        indent: of every line.
        later: what statements behind these will compute: what they share with these has a name.
        reserved: variables that hold something else, here or further on.
        once: indent of statements of what is the same at all tokens; not given, they are among the
            others.
    """
    asked = {name for name, _ in wanted}
    names = {e: name for name, e in reversed(wanted)}
    names |= {e: variable(name) for name, e in known}
    uses = _uses([*(e for _, e in wanted), *later])
    taken = {*reserved, *names.values(), *asked}
    taken |= {code.text for code in printer.named.values()}  # of statements before these
    lines: list[str] = []
    before: list[str] = []

    def fresh(name: str) -> str:
        made, count = f"{name}_1", 1
        while made in taken:
            count += 1
            made = f"{name}_{count}"
        taken.add(made)
        return made

    def bind(name: str, e: Expr) -> str:
        if once is not None and e.time is Time.CONST:
            # Loops over segments write variables of the name that is asked for.
            name = f"fixed_{name}" if name in asked else name
            before.extend(assign(name, e, printer, fresh, once))
        else:
            lines.extend(assign(name, e, printer, fresh, indent))
        code = printer.print(e)
        printer.named[e] = Code(name, code.axes, code.lead)
        return name

    def need(e: Expr, fixed: bool = False) -> None:
        if e in printer.named:
            return
        now_fixed = once is not None and e.time is Time.CONST
        for c in children(e):
            need(c, now_fixed)
        worth = children(e) and any(isinstance(n, Ref) for n in walk(e))
        if worth and (e in names or uses[e] > 1 or (now_fixed and not fixed)):
            bind(names.get(e) or fresh(variable("part")), e)

    results = []
    for name, e in wanted:
        need(e)
        short = e in printer.named or isinstance(e, Ref | Num)
        results.append(printer.print(e).text if short else bind(name, e))
    return Statements(tuple(lines), tuple(results), tuple(before))


def _uses(roots: Iterable[Expr]) -> dict[Expr, int]:
    """How often each expression stands in others, or is asked for."""
    uses: dict[Expr, int] = {}
    stack = list(roots)
    while stack:
        e = stack.pop()
        uses[e] = uses.get(e, 0) + 1
        if uses[e] == 1:
            stack.extend(children(e))
    return uses
