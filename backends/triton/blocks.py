"""Texts of Triton: integers, and blocks whose dimensions are axes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dsfc.kernel_ir.ir import Axis, Int, Integer, Symbol

ATOM, PRODUCT, SUM, COMPARISON = range(4)
"""How strongly the parts of a text are bound, the strongest first."""


@dataclass(frozen=True, slots=True)
class Block:
    """The text of a block.

    Attributes:
        text: an expression.
        axes: of its dimensions, in order.
        binding: of its outermost operator.
    """

    text: str
    axes: tuple[Axis, ...] = ()
    binding: int = ATOM

    def at_most(self, binding: int) -> str:
        """Returns the text, in parentheses where an operator would tear it apart."""
        return self.text if self.binding <= binding else f"({self.text})"

    def over(self, axes: tuple[Axis, ...]) -> Block:
        """Returns the block with these axes as dimensions, of size 1 where it lacks one."""
        if not self.axes or self.axes == axes:
            return self
        out = self.ordered(tuple(a for a in axes if a in self.axes))
        if out.axes == axes:
            return out
        slots = ", ".join(":" if a in out.axes else "None" for a in axes)
        return Block(f"{out.at_most(ATOM)}[{slots}]", axes)

    def ordered(self, axes: tuple[Axis, ...]) -> Block:
        """Returns the block with its own axes in another order."""
        if self.axes == axes:
            return self
        order = [self.axes.index(a) for a in axes]
        if order == [1, 0]:
            return Block(f"tl.trans({self.text})", axes)
        return Block(f"tl.permute({self.text}, ({', '.join(map(str, order))}))", axes)

    def renamed(self, axis: Axis, to: Axis) -> Block:
        """Returns the block with another axis in the place of one."""
        return replace(self, axes=tuple(to if a == axis else a for a in self.axes))


@dataclass(frozen=True)
class PrintedKernel:
    """The text of a kernel, and what it is started with.

    Attributes:
        name: of the function.
        text: its definition.
        arguments: names of the kernel's arguments, in the order of the pointers.
        dynamic: dynamic sizes that follow them.
        static: sizes that are fixed when it is compiled, by keyword.
        padded: static sizes whose power of two is fixed as well, as `<name>_ALL`.
    """

    name: str
    text: str
    arguments: tuple[str, ...]
    dynamic: tuple[str, ...]
    static: tuple[str, ...]
    padded: tuple[str, ...]


def call(function: str, *arguments: Block | str) -> str:
    """Returns the text of a call."""
    texts = [x.text if isinstance(x, Block) else x for x in arguments]
    return f"{function}({', '.join(texts)})"


def joined(blocks: Sequence[Block], axes: tuple[Axis, ...], function: str) -> Block:
    """Returns a function of entries, of blocks that are broadcast to axes."""
    xs = [b.over(axes) for b in blocks]
    if function in _OPERATORS:
        operator, binding, right = _OPERATORS[function]
        x, y = xs
        text = f"{x.at_most(binding)} {operator} {y.at_most(right)}"
        return Block(text, axes, binding)
    if function == "neg":
        return Block(f"-{xs[0].at_most(ATOM)}", axes, PRODUCT)
    if function in ("max", "min"):
        return Block(call(f"tl.{function}imum", *xs), axes)
    return Block(call(f"tl.{function}", *xs), axes)


_OPERATORS = {
    "add": ("+", SUM, SUM),
    "sub": ("-", SUM, PRODUCT),
    "mul": ("*", PRODUCT, ATOM),
    "div": ("/", PRODUCT, ATOM),
    "and": ("&", ATOM, ATOM),
    "<": ("<", COMPARISON, SUM),
    "<=": ("<=", COMPARISON, SUM),
    "==": ("==", COMPARISON, SUM),
    ">=": (">=", COMPARISON, SUM),
}
"""Operator, how strongly its left operand must be bound, and its right one."""


def integer(e: Int) -> Block:
    """Returns an integer as an expression."""
    match e:
        case int():
            return Block(str(e), (), ATOM if e >= 0 else PRODUCT)
        case Symbol(name=name):
            return Block(name)
        case Integer(operator="min" | "max" as operator):
            return Block(call(f"tl.{operator}imum", integer(e.left), integer(e.right)))
        case Integer(operator=operator):
            binding = SUM if operator in "+-" else PRODUCT
            right = binding if operator == "+" else PRODUCT if operator == "-" else ATOM
            text = (
                f"{integer(e.left).at_most(binding)} {operator} {integer(e.right).at_most(right)}"
            )
            return Block(text, (), binding)


def number(value: float) -> str:
    """Returns the text of a number."""
    return repr(value) if abs(value) != float("inf") else f'float("{value}")'


def bound_at_once(names: Sequence[str], values: Sequence[str], width: int) -> list[str]:
    """Returns the lines that give variables new values, some of which may be read in others."""
    line = f"{', '.join(names)} = {', '.join(values)}"
    if len(line) <= width:
        return [line]
    read = [set(re.findall(r"\w+", value)) for value in values]
    if not any(name in later for k, name in enumerate(names) for later in read[k + 1 :]):
        return [f"{name} = {value}" for name, value in zip(names, values, strict=True)]
    return [f"{', '.join(names)} = (", *(f"    {value}," for value in values), ")"]
