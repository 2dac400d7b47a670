"""Whether a token-wise value is a fixed linear function of the inputs."""

from __future__ import annotations

from collections.abc import Callable

from dsfc.expr.reserved_names import FIRST
from dsfc.expr.tree import Add, Div, Expr, Fir, Map, Mul, Prim, Reduce, Reduction, Ref, Rename, Time

_LINEAR_PRIMS = frozenset({"re", "im", "conj", "cplx"})


def is_fixed_linear(expr: Expr, value: Callable[[str], Expr | None]) -> bool:
    """Returns whether an expression is affine in the inputs with fixed coefficients.

    Such a value is a time-invariant filter of the inputs. Values of earlier stages count as inputs.
    Casts between real and complex are linear over the reals.

    Args:
        expr: the expression, its definitions inlined.
        value: gives the definition of a name read at another token, None for an input.
    """
    if expr.time is Time.CONST:
        return True

    def linear(e: Expr) -> bool:
        return is_fixed_linear(e, value)

    match expr:
        case Ref(name=name):
            definition = value(name)
            return name != FIRST and (definition is None or linear(definition))
        case Add(args):
            return all(linear(a) for a in args)
        case Mul(args):
            varying = [a for a in args if a.time is not Time.CONST]
            return len(varying) == 1 and linear(varying[0])
        case Div(numerator, denominator):
            return denominator.time is Time.CONST and linear(numerator)
        case Map(arg=arg) | Rename(arg=arg):
            return linear(arg)
        case Reduce(how=how, arg=arg):
            return how is not Reduction.MAX and linear(arg)
        case Fir(weight=weight, arg=arg):
            return weight.time is Time.CONST and linear(arg)
        case Prim(name=name, args=args):
            return name in _LINEAR_PRIMS and all(linear(a) for a in args)
    return False
