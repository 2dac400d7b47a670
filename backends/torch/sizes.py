"""Size arguments of an emitted `nn.Module`, and those that are derived from others.

A derived size is a whole number: it is printed as one division of whole numbers, and sizes for
which it is none are refused. A root is rounded, and refused where its power is another number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import lcm

from dsfc.expr.build import ONE, add, is_one, mul, num, power
from dsfc.expr.tree import Add, Div, Expr, Field, Mul, Num, Pow, Ref, Time
from dsfc.plan.ir import Plan

from .code import Binding, Code
from .nodes import Printer


@dataclass(frozen=True, slots=True)
class SizeText:
    """One size argument of the constructor.

    Attributes:
        name: identifier.
        argument: its declaration, such as `h: int = 4` or `n: int | None = None`.
        lines: statements that fill in a derived default; empty where there is none.
        meaning: for the docstring.
    """

    name: str
    argument: str
    lines: tuple[str, ...]
    meaning: str


def sizes(plan: Plan, names: Callable[[str], str]) -> tuple[SizeText, ...]:
    """Returns the size arguments in canonical order; copies of axes have none."""
    out = []
    printer = size_printer(plan, names, "")
    taken = {names(d.axis.name) for d in plan.axes}
    for d in plan.axes:
        if d.axis.copy_of is not None:
            continue
        name = names(d.axis.name)
        if d.size is None:
            out.append(SizeText(name, f"{name}: int", (), "required"))
        elif isinstance(d.size, Num):
            value = d.size.value.numerator
            out.append(SizeText(name, f"{name}: int = {value}", (), f"{value} if not given"))
        else:
            lines, said = _Derived(name, printer, taken).of(d.size)
            argument = f"{name}: int | None = None"
            out.append(SizeText(name, argument, tuple(lines), f"{said} if not given"))
    return tuple(out)


def size_printer(plan: Plan, names: Callable[[str], str], prefix: str, like: str = "") -> Printer:
    """Returns a printer of expressions over sizes, each size's name behind `prefix`."""

    def ref(r: Ref) -> Code:
        raise TypeError(f"{r.name} in a size or an initialiser")

    table = {d.axis.name: f"{prefix}{names(d.axis.copy_of or d.axis.name)}" for d in plan.axes}
    return Printer(ref, table, like)


class _Derived:
    """One derived size.

    Args:
        name: its identifier.
        printer: prints sizes; learns the variables of roots.
        taken: identifiers of sizes, and of these variables.
    """

    def __init__(self, name: str, printer: Printer, taken: set[str]) -> None:
        self._name = name
        self._printer = printer
        self._taken = taken
        self._roots: list[str] = []

    def of(self, size: Expr) -> tuple[list[str], str]:
        """Returns the statements of the default, and what it is."""
        above, below = self._fraction(size)
        top, name = self._printer.print(above), self._name
        if is_one(below):
            text = said = top.text
            check = []
        else:
            bottom = self._printer.print(below)
            sides = top.at_least(Binding.PRODUCT), bottom.at_least(Binding.UNARY)
            text, said = " // ".join(sides), " / ".join(sides)
            values = " / ".join(x if x.isdigit() else f"{{{x}}}" for x in sides)
            why = f"{name} = {said} = {values} is not whole"
            check = self._refused(f"{sides[0]} % {sides[1]}", why)
        if self._roots:
            said = self._printer.text(size)
        lines = [f"if {name} is None:", *self._roots, *check, f"    {name} = {text}"]
        return lines, said

    def _refused(self, where: str, why: str) -> list[str]:
        message = f'f"{why}; give {self._name}"'
        return [f"    if {where}:", f"        raise ValueError({message})"]

    def _fraction(self, size: Expr) -> tuple[Expr, Expr]:
        """A numerator and a denominator that are whole wherever sizes are."""
        match size:
            case Num(value):
                return num(value.numerator), num(value.denominator)
            case Mul(args):
                parts = [self._fraction(a) for a in args]
                return mul(*(p for p, _ in parts)), mul(*(q for _, q in parts))
            case Add(args):
                return _sum([self._fraction(a) for a in args])
            case Div(above, below):
                (p, q), (r, s) = self._fraction(above), self._fraction(below)
                return mul(p, s), mul(q, r)
            case Pow(base, Num(exponent)):
                p, q = self._fraction(base)
                if exponent < 0:
                    p, q = q, p
                if exponent.denominator > 1:
                    p, q = self._root(p, q, exponent.denominator), q
                steps = num(abs(exponent.numerator))
                return power(p, steps), power(q, steps)
            case Pow(base, exponent):
                p, q = self._fraction(base)
                return power(p, exponent), ONE if is_one(q) else power(q, exponent)
        return size, ONE

    def _root(self, p: Expr, q: Expr, degree: int) -> Expr:
        """The numerator of a root of p / q over q: a root of p q^(degree - 1)."""
        inside = self._printer.print(mul(p, power(q, num(degree - 1))))
        name, number = f"{self._name}_root", 1
        while name in self._taken:
            name, number = f"{self._name}_root_{number}", number + 1
        self._taken.add(name)
        value = inside.at_least(Binding.ATOM)
        self._roots.append(f"    {name} = round({value} ** (1 / {degree}))")
        why = f"{inside.text} = {{{inside.text}}} has no whole root of degree {degree}"
        self._roots += self._refused(f"{name}**{degree} != {inside.text}", why)
        self._printer.bind(name, Code(name, (), False, number=True))
        return Ref(name, frozenset(), Field.REAL, Time.CONST, None)


def _sum(parts: list[tuple[Expr, Expr]]) -> tuple[Expr, Expr]:
    """Σ p / q over one denominator: the least common one of numbers, times all others."""
    dens = dict.fromkeys(q for _, q in parts)
    numbers = [q.value.numerator for q in dens if isinstance(q, Num)]
    others = [q for q in dens if not isinstance(q, Num)]
    least = lcm(*numbers)
    terms = []
    for p, q in parts:
        rest = [o for o in others if o != q]
        factor = least // q.value.numerator if isinstance(q, Num) else least
        terms.append(mul(num(factor), p, *rest))
    return add(*terms), mul(num(least), *others)
