"""Text of values, and how it is put together.

A value is laid out as `[lead, *axes]` with its axes in canonical order, where the lead is the batch
and time dimensions (`[B, L]`, `[B]`, or `[B, L, L]` in the reference) or nothing for constants.
The code never names the lead: it addresses axes from the right, so one text serves a sequence, a
single token and the pairs (i, j).
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum
from fractions import Fraction

from dsfc.expr.table import row
from dsfc.expr.tree import Axis, Fir


class Binding(IntEnum):
    """How tightly the outermost operator of a printed text binds."""

    SUM = 0
    PRODUCT = 1
    UNARY = 2
    POWER = 3
    ATOM = 4


@dataclass(frozen=True, slots=True)
class Code:
    """Printed code of a value.

    Attributes:
        text: a Python expression.
        axes: its axes, in the order of the trailing dimensions.
        lead: whether batch and time dimensions stand in front.
        binding: of the outermost operator.
        number: whether the value is a Python number, not a tensor.
    """

    text: str
    axes: tuple[Axis, ...]
    lead: bool
    binding: Binding = Binding.ATOM
    number: bool = False

    def at_least(self, binding: Binding) -> str:
        """Returns the text, in parentheses where the context binds tighter."""
        return self.text if self.binding >= binding else f"({self.text})"

    def aligned(self, axes: tuple[Axis, ...], lead: bool) -> str:
        """Returns text of the value indexed so that it broadcasts against `axes`.

        Args:
            axes: axes of the result, canonical order.
            lead: whether the result has batch and time dimensions.
        """
        if self.number or self.axes == axes:
            return self.text
        slots = [":" if a in self.axes else "None" for a in axes]
        if self.lead:
            while slots and slots[0] == ":":
                slots.pop(0)
            slots.insert(0, "...")
        else:
            while slots and slots[0] == "None":
                slots.pop(0)
        if all(s in (":", "...") for s in slots):
            return self.text
        return f"{self.at_least(Binding.ATOM)}[{', '.join(slots)}]"

    def broadcast(self, axes: tuple[Axis, ...], lead: bool) -> Code:
        """Returns the code of the `aligned` value."""
        text = self.aligned(axes, lead)
        return self if text is self.text else Code(text, axes, self.lead, number=self.number)

    def operand(self, axes: tuple[Axis, ...], lead: bool, binding: Binding) -> str:
        """Returns `aligned` text, in parentheses where the context binds tighter."""
        text = self.aligned(axes, lead)
        return self.at_least(binding) if text is self.text else text


def filtered(function: str, fir: Fir, values: Code, weight: Code, *more: str) -> Code:
    """Returns the code of a causal filter.

    Args:
        function: name of the emitted function that applies it.
        fir: the filter.
        values: what is filtered, the time axis in front of its axes.
        weight: its taps.
        more: text of further arguments.
    """
    axes = tuple(sorted(fir.axes))
    taps = tuple(sorted({*axes, fir.axis}))
    text = weight.text
    # A single row of taps broadcasts as it is.
    if weight.axes != taps and (weight.axes != (fir.axis,) or weight.lead):
        text = weight.aligned(taps, weight.lead)
    at = taps.index(fir.axis) - len(taps) if text is not weight.text or weight.axes == taps else -1
    arguments = ", ".join([values.aligned(axes, True), text, str(at), *more])
    return Code(f"{function}({arguments})", axes, True)


def letters(axes: Iterable[Axis]) -> dict[Axis, str]:
    """Returns one einsum letter per axis: its own first letter where that is free."""
    out: dict[Axis, str] = {}
    free = [c for c in string.ascii_letters]
    for a in sorted(axes):
        want = a.name[0] if a.name[0] in free else free[0]
        out[a] = want
        free.remove(want)
    return out


def number(value: Fraction) -> str:
    """Returns Python text of an exact number; a division where no short decimal is exact."""
    if value.denominator == 1:
        return str(value.numerator)
    decimal = float(value)
    if Fraction(repr(decimal)) == value:
        return repr(decimal)
    return f"{value.numerator} / {value.denominator}"


def product(parts: list[Code]) -> Code:
    """Returns the code of a product of printed factors, at least one."""
    if len(parts) == 1:
        return parts[0]
    if parts[0].number and any(map(is_opposite, parts[1:])):
        # The sign of a number costs nothing, that of a tensor a call.
        odd = sum(map(is_opposite, parts)) % 2 == 1
        whole = product([opposite(c) if is_opposite(c) else c for c in parts])
        return replace(whole, text=f"-{whole.text}") if odd else whole
    axes, lead = shape(parts)
    # a * (b / c) keeps its parentheses: only the first factor may be a product itself.
    first = parts[0].operand(axes, lead, Binding.PRODUCT)
    text = " * ".join([first, *(c.operand(axes, lead, Binding.UNARY) for c in parts[1:])])
    return Code(text, axes, lead, Binding.PRODUCT, number=all(c.number for c in parts))


def shape(parts: Iterable[Code]) -> tuple[tuple[Axis, ...], bool]:
    """Returns the axes of all parts together, in order, and whether one of them has a lead."""
    axes: set[Axis] = set()
    lead = False
    for c in parts:
        axes.update(c.axes)
        lead = lead or c.lead
    return tuple(sorted(axes)), lead


def called_as(target: str, name: str, args: list[Code], **where: object) -> Code:
    """Returns the table's text of a primitive, without the parentheses it does not need."""
    text = row(name).printers[target].replace("torch.nn.functional.", "F.")
    for i, arg in enumerate(args):
        text = text.replace(f"-({{{i}}})", _opposite(arg))
        text = text.replace(f"({{{i}}})", f"({arg.text})").replace(f"{{{i}}}", arg.text)
    for key, value in where.items():
        text = text.replace(f"({{{key}}}) ** ", f"{value}**").replace(f"{{{key}}}", str(value))
    whole = text.startswith("(") and text.endswith(")")
    text = text[1:-1] if whole else text
    if text.startswith("-") and is_atom(text[1:]):
        return Code(text, (), False, Binding.UNARY)
    return Code(text, (), False, Binding.SUM if whole else Binding.ATOM)


def is_opposite(code: Code) -> bool:
    """Whether a text starts with the sign of the whole value, or of a product's first factor."""
    return code.binding in (Binding.PRODUCT, Binding.UNARY) and code.text.startswith("-")


def opposite(code: Code) -> Code:
    """Returns the code of the negative of a value whose text starts with its sign."""
    text = code.text[1:]
    binding = Binding.ATOM if code.binding is Binding.UNARY and is_atom(text) else code.binding
    return replace(code, text=text, binding=binding)


def _opposite(code: Code) -> str:
    """Text of the negative of a value."""
    if is_opposite(code):
        return opposite(code).text
    # A power would do without the parentheses; a formatter sets them.
    power = code.binding is Binding.POWER
    return f"-{code.at_least(Binding.ATOM if power else Binding.UNARY)}"


def is_atom(text: str) -> bool:
    """Whether a text is a name, or one call."""
    called = re.match(r"[\w.]+", text)
    if called is None:
        return False
    depth = 0
    for at, c in enumerate(text[called.end() :], called.end()):
        depth += (c == "(") - (c == ")")
        if depth == 0 and at < len(text) - 1:
            return False
    return depth == 0


def cast(text: str, dtype: str) -> str:
    """Text of a tensor in the dtype that a variable of the functional form holds."""
    return f"_as({text}, {dtype})"


def uncast(text: str) -> str:
    """Text of the tensor that `cast` was given."""
    return text.removeprefix("_as(").rsplit(", ", 1)[0]
