"""Prints expressions as Triton code over the values of one token, or of a tile.

All values of a kernel's gates have the axes of the state, so that nothing is broadcast here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction

from dsfc.expr.build import mul, num, walk
from dsfc.expr.table import row
from dsfc.expr.tree import Add, Div, Expr, Field, Mul, Num, Ones, Pow, Prim, Ref, Size, children

from ..torch.code import Binding, Code, called_as, number, product
from .statements import NamingPrinter

_BRACKETED = re.compile(r"(?<!\w)\((\w+)\)")
LOG2_E = num(Fraction(math.log2(math.e)))


def computes(prim: Prim) -> bool:
    """Whether a kernel can compute a primitive."""
    real = prim.field is Field.REAL and all(a.field is Field.REAL for a in prim.args)
    return real and "triton" in row(prim.name).printers


class KernelPrinter(NamingPrinter):
    """Prints expressions over variables of a kernel.

    Args:
        ref: variable that holds a leaf.
        sizes: what holds the size of an axis, by name.
    """

    def __init__(self, ref: Callable[[str], str], sizes: Mapping[str, str] | None = None) -> None:
        super().__init__(lambda r: Code(ref(r.name), (), False), sizes or {}, "")

    def print(self, expr: Expr) -> Code:
        """Returns the code of an expression.

        Raises:
            TypeError: a node or primitive that no kernel computes.
        """
        if expr in self.named:
            return self.named[expr]
        match expr:
            case Ref():
                return super().print(expr)
            case Ones():
                return self.print(num(1))
            case _ if not any(isinstance(e, Ref | Ones) for e in walk(expr)):
                sized = any(isinstance(e, Size) for e in walk(expr))
                return super().print(expr) if sized else _constant(expr)
            case Pow(exponent=Num(value=power)):
                return product([self.print(expr.base)] * int(power))
            case Prim(name="exp", args=(Mul(args=(Num(), *_)) as arg,)) if arg not in self.named:
                # The hardware has powers of two; a factor that is there already takes the change.
                return Code(f"tl.exp2({self.print(mul(LOG2_E, arg)).text})", (), False)
            case Prim():
                if not computes(expr):
                    raise TypeError(f"{expr.name} has no Triton form")
                code = called_as("triton", expr.name, [self.print(a) for a in expr.args])
                return replace(code, text=_BRACKETED.sub(r"\1", code.text))
            case _:
                return super().print(expr)


def _constant(expr: Expr) -> Code:
    """A value that is the same at all tokens and channels, computed when it is printed."""
    exact = expr.value if isinstance(expr, Num) else Fraction(_value(expr))
    text = number(exact) if exact.denominator < 1000 else repr(float(exact))
    binding = Binding.ATOM
    if " / " in text or text.startswith("-"):
        binding = Binding.SUM
    return Code(text, (), False, binding, number=True)


def _value(expr: Expr) -> float:
    args = [_value(c) for c in children(expr)]
    match expr:
        case Num(value=value):
            return float(value)
        case Add():
            return math.fsum(args)
        case Mul():
            return math.prod(args)
        case Div():
            return args[0] / args[1]
        case Pow():
            return float(args[0] ** args[1])
        case Prim(name=name):
            return float(row(name).value(*args))
        case _:
            raise TypeError(f"{type(expr).__name__} has no Triton form")
