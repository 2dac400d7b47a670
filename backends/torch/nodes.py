"""Prints expressions as torch code."""

from __future__ import annotations

import math
import re
import string
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import singledispatchmethod

from dsfc.expr.over_time import Lag, Past, Run
from dsfc.expr.table import row
from dsfc.expr.tree import (
    Add,
    Axis,
    Div,
    Draw,
    Expr,
    Field,
    Fir,
    Iota,
    LinearMap,
    Map,
    Mul,
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
)

from .code import (
    Binding,
    Code,
    called_as,
    is_opposite,
    letters,
    number,
    opposite,
    product,
    shape,
)
from .functions import FUNCTIONS, called


class Printer:
    """Prints expressions with given names.

    Args:
        ref: text of a `Ref` (a variable name), given the node.
        names: text of each size, parameter, buffer and map, by name.
        like: a tensor whose device and dtype new constants take.
        past: prints a sum over time; None where there is none (everywhere but the reference).
        fir: prints a causal filter; None where its argument has no registers.
    """

    def __init__(
        self,
        ref: Callable[[Ref], Code],
        names: Mapping[str, str],
        like: str,
        past: Callable[[Past | Lag | Run], Code] | None = None,
        fir: Callable[[Fir], Code] | None = None,
    ) -> None:
        self._ref = ref
        self._names = names
        self._like = like
        self._past = past
        self._fir = fir
        self.local: dict[str, Code] = {}

    def text(self, expr: Expr, axes: tuple[Axis, ...] | None = None) -> str:
        """Returns the text of an expression, broadcast to `axes` where given."""
        code = self.print(expr)
        return code.text if axes is None else code.aligned(axes, code.lead)

    def part(self, expr: Expr, whole: Expr) -> Code:
        """Returns the code of a part of an expression, for a statement of its own."""
        return self.print(expr)

    def bind(self, name: str, code: Code) -> None:
        """Learns the variable that holds the part printed last."""
        self.local[name] = code

    @singledispatchmethod
    def print(self, expr: Expr) -> Code:
        """Returns the code of an expression.

        Raises:
            TypeError: a node that has no torch form (an abstract map, a draw).
        """
        raise TypeError(f"{type(expr).__name__} has no torch form")

    @print.register
    def _(self, expr: Num) -> Code:
        text = number(expr.value)
        binding = Binding.ATOM
        if " / " in text:
            binding = Binding.PRODUCT
        elif text.startswith("-"):
            binding = Binding.UNARY
        return Code(text, (), False, binding, number=True)

    @print.register
    def _(self, expr: Size) -> Code:
        return Code(self._names[expr.axis.name], (), False, number=True)

    @print.register
    def _(self, expr: Ones) -> Code:
        axes = tuple(sorted(expr.over))
        sizes = ", ".join(self._names[a.name] for a in axes)
        return Code(f"{self._like}.new_ones({sizes})", axes, False)

    @print.register
    def _(self, expr: Iota) -> Code:
        size = self._names[expr.axis.name]
        where = f"device={self._like}.device, dtype={self._like}.dtype"
        return Code(f"torch.arange({size}, {where})", (expr.axis,), False)

    @print.register
    def _(self, expr: Param) -> Code:
        return Code(self._names[expr.name], tuple(sorted(expr.over)), False)

    @print.register
    def _(self, expr: Ref) -> Code:
        return self.local.get(expr.name) or self._ref(expr)

    @print.register(Past)
    @print.register(Lag)
    @print.register(Run)
    def _(self, expr: Past | Lag | Run) -> Code:
        if self._past is None:
            raise TypeError(f"{type(expr).__name__} stands in a reference only")
        return self._past(expr)

    @print.register
    def _(self, expr: Fir) -> Code:
        if self._fir is None:
            raise TypeError("a filter needs the registers of its argument")
        return self._fir(expr)

    @print.register
    def _(self, expr: Draw) -> Code:
        return self.draw(expr)

    def draw(self, expr: Draw) -> Code:
        """Returns the code of a random draw; initialisers only.

        Raises:
            TypeError: this is not an initialiser.
        """
        raise TypeError(f"a draw ({expr.distribution}) outside an initialiser")

    @print.register
    def _(self, expr: Add) -> Code:
        parts = [(_negative(a), self.print(_positive(a))) for a in expr.args]
        axes, lead = shape(c for _, c in parts)
        if expr.field is Field.COMPLEX and any(c.number for _, c in parts):
            # Ahead-of-time packages lack the difference of a complex tensor and a number.
            parts.sort(key=lambda part: not part[0])
        text = ""
        for negative, code in parts:
            if text and is_opposite(code):
                negative, code = not negative, opposite(code)
            body = code.operand(axes, lead, Binding.PRODUCT if negative else Binding.SUM)
            if not text:
                text = f"-{code.operand(axes, lead, Binding.UNARY)}" if negative else body
            else:
                text += f" - {body}" if negative else f" + {body}"
        numeric = all(c.number for _, c in parts)
        return Code(text, axes, lead, Binding.SUM, number=numeric)

    @print.register
    def _(self, expr: Mul) -> Code:
        if _negative(expr):
            code = self.print(_positive(expr))
            if is_opposite(code):
                return opposite(code)
            hugged = code.binding is Binding.POWER and "**" in code.text
            text = f"-({code.text})" if hugged else f"-{code.at_least(Binding.UNARY)}"
            return Code(text, code.axes, code.lead, Binding.UNARY, number=code.number)
        return product([self.print(a) for a in expr.args])

    @print.register
    def _(self, expr: Div) -> Code:
        num, den = self.print(expr.num), self.print(expr.den)
        axes, lead = shape((num, den))
        above = num.operand(axes, lead, Binding.PRODUCT)
        below = den.operand(axes, lead, Binding.UNARY)
        both = num.number and den.number
        return Code(f"{above} / {below}", axes, lead, Binding.PRODUCT, number=both)

    @print.register
    def _(self, expr: Pow) -> Code:
        base, exponent = self.print(expr.base), self.print(expr.exponent)
        axes, lead = shape((base, exponent))
        below = base.operand(axes, lead, Binding.ATOM)
        above = exponent.operand(axes, lead, Binding.UNARY)
        both = base.number and exponent.number
        hug = all(re.fullmatch(r"-?[\w.]+", side) for side in (below, above))
        power = f"{below}**{above}" if hug else f"{below} ** {above}"
        return Code(power, axes, lead, Binding.POWER, number=both)

    @print.register
    def _(self, expr: Reduce) -> Code:
        if expr.how is Reduction.SUM:
            inner: Expr = expr
            gone: list[Axis] = []
            while isinstance(inner, Reduce) and inner.how is Reduction.SUM:
                gone.append(inner.axis)
                inner = inner.arg
            if isinstance(inner, Mul):
                return self._einsum(inner.args, tuple(gone))
        code = self.print(expr.arg)
        if expr.axis not in code.axes:  # a value that is constant along the axis
            if expr.how is not Reduction.SUM:
                return code
            text = f"{self._names[expr.axis.name]} * {code.at_least(Binding.UNARY)}"
            return Code(text, code.axes, code.lead, Binding.PRODUCT, code.number)
        at = code.axes.index(expr.axis) - len(code.axes)
        call = {"sum": "sum", "mean": "mean", "max": "amax"}[expr.how.value]
        axes = tuple(a for a in code.axes if a != expr.axis)
        return Code(f"{code.at_least(Binding.ATOM)}.{call}(dim={at})", axes, code.lead)

    @print.register
    def _(self, expr: Map) -> Code:
        code = self.print(expr.arg)
        m = expr.map
        stored = (m.each, m.source, m.target) if m.adjoint else (m.each, m.target, m.source)
        axes = tuple(sorted(expr.axes))
        weight = self.weight(m) + (".conj()" if m.adjoint and m.field else "")
        # A matrix product takes one field and one dtype.
        if m.field is not expr.arg.field:
            narrow = expr.arg.field is Field.REAL
            argument = code.at_least(Binding.ATOM)
            if narrow:
                code = Code(f"{argument}.to({weight}.dtype)", code.axes, code.lead)
            else:
                weight = f"{weight}.to({argument}.dtype)"
        plain = not m.each and code.axes == m.source and axes == m.target and not m.adjoint
        if plain and len(m.source) == 1 and len(m.target) == 1:
            return Code(f"F.linear({code.text}, {weight})", axes, code.lead)
        if not m.each and len(m.source) == 1 and code.axes == m.source and axes == m.target:
            stacked = None if m.adjoint else self.stacked(code, weight)
            if stacked is not None:
                return Code(stacked, axes, code.lead)
        # A map may give back an axis it contracts: source and target then need letters apart.
        free = [c for c in string.ascii_letters]
        into: dict[Axis, str] = {}
        out: dict[Axis, str] = {}
        for group, table in ((sorted({*code.axes, *m.source, *m.each}), into), (axes, out)):
            for a in group:
                kept = table is out and a in into and a not in m.target
                letter = into[a] if kept else (a.name[0] if a.name[0] in free else free[0])
                table[a] = letter
                if letter in free:
                    free.remove(letter)
        pieces = (
            [into[a] for a in m.each],
            [(into if m.adjoint else out)[a] for a in stored[1]],
            [(out if m.adjoint else into)[a] for a in stored[2]],
        )
        matrix = "".join("".join(p) for p in pieces)
        dots = "..." if code.lead else ""
        left = dots + "".join(into[a] for a in code.axes)
        right = dots + "".join(out[a] for a in axes)
        text = f'torch.einsum("{left},{matrix}->{right}", {code.text}, {weight})'
        return Code(text, axes, code.lead)

    @print.register
    def _(self, expr: Rename) -> Code:
        code = self.print(expr.arg)
        named = tuple(expr.new if a == expr.old else a for a in code.axes)
        axes = tuple(sorted(named))
        if named == axes:
            return Code(code.text, axes, code.lead, code.binding)
        letter = letters(named)
        dots = "..." if code.lead else ""
        spec = dots + "".join(letter[a] for a in named) + "->" + dots
        spec += "".join(letter[a] for a in axes)
        return Code(f'torch.einsum("{spec}", {code.text})', axes, code.lead)

    @print.register
    def _(self, expr: Prim) -> Code:
        parts = [self.argument(expr, a) for a in expr.args]
        axes, lead = shape(parts)
        if expr.axis is not None:
            (code,) = parts
            return self.along(expr, code, code.axes.index(expr.axis) - len(code.axes))
        if not expr.args:
            return replace(called_as("torch", expr.name, []), number=True)
        if len(expr.args) == 1 and _is_finite(expr):
            return Code(f"math.{expr.name}({parts[0].text})", (), False, number=True)
        if expr.name in _BOUNDS and all(c.number for c in parts):
            # Of sizes, for Python: it takes the larger as it is.
            return Code(f"{expr.name}({', '.join(c.text for c in parts)})", (), False, number=True)
        if all(c.number for c in parts):
            # Not in the dtype of the input: log 0.999 is 0 in bfloat16.
            if expr.name == "cplx":
                real, imag = (c.text for c in parts)
                imag = imag if imag.replace(".", "").isdecimal() else f"({imag})"
                value = f"{real} + 1j * {imag}, dtype=torch.complex128"
                return Code(f"{self._like}.new_tensor({value})", (), False)
            wide = "dtype=torch.float64"
            parts = [Code(f"{self._like}.new_tensor({c.text}, {wide})", (), False) for c in parts]
        bound = _BOUNDS.get(expr.name)
        if bound and any(c.number for c in parts):
            limit, code = sorted(parts, key=lambda c: not c.number)
            return Code(f"torch.clamp({code.text}, {bound}={limit.text})", axes, lead)
        if any(c.number for c in parts):
            whole = next(c for c in parts if not c.number)
            parts = [
                Code(f"torch.full_like({whole.text}, {c.text})", whole.axes, whole.lead)
                if c.number
                else c
                for c in parts
            ]
        whole_parts = [c.broadcast(axes, lead) for c in parts]
        if expr.name in FUNCTIONS:
            arguments = ", ".join(c.text for c in whole_parts)
            return Code(f"{called(expr.name)}({arguments})", axes, lead)
        call = called_as("torch", expr.name, whole_parts)
        return Code(call.text, axes, lead, call.binding)

    def stacked(self, code: Code, weight: str) -> str | None:
        """Returns the text of a map of one axis to several; None for the text of an einsum."""
        return None

    def weight(self, linear: LinearMap) -> str:
        """Returns the text of the weight of a map."""
        return self._names[linear.name]

    def argument(self, expr: Prim, arg: Expr) -> Code:
        """Returns the code of an argument of a primitive."""
        return self.print(arg)

    def along(self, expr: Prim, code: Code, at: int) -> Code:
        """Returns the code of a primitive along an axis.

        Args:
            expr: the primitive.
            code: of its argument.
            at: where the axis stands, counted from the last one.
        """
        where: dict[str, object] = {"dim": at}
        if expr.axis is not None and "{size}" in row(expr.name).printers["torch"]:
            where["size"] = self._names[expr.axis.name]
        call = called_as("torch", expr.name, [code], **where)
        return Code(call.text, code.axes, code.lead, call.binding)

    @print.register
    def _(self, expr: Series) -> Code:
        code = self.print(expr.arg)
        if expr.order == 0:
            ones = "1" if code.number else f"torch.ones_like({code.text})"
            return Code(ones, code.axes, code.lead, number=code.number)
        terms = ["1"]
        factorial = 1
        for r in range(1, expr.order + 1):
            factorial *= r
            base = code.at_least(Binding.ATOM)
            hug = "**" if re.fullmatch(r"[\w.]+", base) else " ** "
            raised = base if r == 1 else f"{base}{hug}{r}"
            terms.append(raised if factorial == 1 else f"{raised} / {factorial}")
        return Code(" + ".join(terms), code.axes, code.lead, Binding.SUM, code.number)

    def _einsum(self, factors: tuple[Expr, ...], gone: tuple[Axis, ...]) -> Code:
        """Σ over the axes `gone` of a product.

        Factors without those axes stand outside; of the others at most two enter one einsum, since
        torch forms the outer product of more.
        """
        parts = [self.print(f) for f in factors]
        fields = {id(c): f.field for f, c in zip(factors, parts, strict=True)}
        tensors = [c for c in parts if not c.number]
        have = {a for c in tensors for a in c.axes}
        scale = [c for c in parts if c.number]
        scale += [Code(self._names[a.name], (), False, number=True) for a in gone if a not in have]
        summed = set(gone) & have
        outside = [c for c in tensors if not summed & set(c.axes)]
        inside = [c for c in tensors if summed & set(c.axes)]
        if len({fields[id(c)] for c in inside}) > 1:
            inside = [product(inside)]  # an einsum takes one field
        while len(inside) > 2:
            inside = [product(inside[:2]), *inside[2:]]
        if not inside:
            return product([*scale, *outside])
        letter = letters({a for c in inside for a in c.axes})
        lead = any(c.lead for c in inside)
        order = tuple(sorted({a for c in inside for a in c.axes} - summed))
        inputs = ",".join(
            ("..." if c.lead else "") + "".join(letter[a] for a in c.axes) for c in inside
        )
        output = ("..." if lead else "") + "".join(letter[a] for a in order)
        operands = ", ".join(c.text for c in inside)
        contracted = Code(f'torch.einsum("{inputs}->{output}", {operands})', order, lead)
        if len(inside) == 1 and len(summed) == 1:
            (axis,) = summed
            at = inside[0].axes.index(axis) - len(inside[0].axes)
            text = f"{inside[0].at_least(Binding.ATOM)}.sum(dim={at})"
            contracted = Code(text, order, lead)
        return product([*scale, contracted, *outside])


_BOUNDS = {"max": "min", "min": "max"}
_MATH = frozenset(("exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tanh"))
"""Primitives that Python's `math` has under the same name."""


def _is_finite(expr: Prim) -> bool:
    """Whether `math` gives a number for a primitive of one number, π too."""
    (arg,) = expr.args
    if expr.name not in _MATH:
        return False
    match arg:
        case Num(value=exact):
            value = float(exact)
        case Prim(name="pi"):
            value = math.pi
        case _:
            return False
    try:
        return math.isfinite(getattr(math, expr.name)(value))
    except (ValueError, OverflowError):
        return False


def _negative(expr: Expr) -> bool:
    """Returns whether the expression prints with a leading minus."""
    head = expr.args[0] if isinstance(expr, Mul) else expr
    return isinstance(head, Num) and head.value < 0


def _positive(expr: Expr) -> Expr:
    """Returns the expression without its leading minus."""
    if not _negative(expr):
        return expr
    if isinstance(expr, Num):
        return Num(-expr.value)
    assert isinstance(expr, Mul)
    head, *rest = expr.args
    assert isinstance(head, Num)
    if head.value == -1:
        return rest[0] if len(rest) == 1 else Mul(tuple(rest))
    return Mul((Num(-head.value), *rest))
