"""Whether a token-wise value is a fixed linear function of the inputs."""

from __future__ import annotations

from dsfc.primitives.expr import (
    Add,
    Div,
    Expr,
    Fir,
    Map,
    Mul,
    Prim,
    Reduce,
    Reduction,
    Ref,
    Rename,
    Time,
)

_LINEAR_PRIMS = frozenset({"re", "im", "conj", "cplx"})


def is_fixed_linear(expr: Expr) -> bool:
    """Returns whether an expression is affine in the inputs with fixed coefficients.

    Its definitions are inlined; such a value is a time-invariant filter of the inputs. Values of
    earlier stages count as inputs. Casts between real and complex are linear over the reals.
    """
    if expr.time is Time.CONST:
        return True
    match expr:
        case Ref():
            return expr.name != "first"
        case Add(args):
            return all(is_fixed_linear(a) for a in args)
        case Mul(args):
            varying = [a for a in args if a.time is not Time.CONST]
            return len(varying) == 1 and is_fixed_linear(varying[0])
        case Div(numerator, denominator):
            return denominator.time is Time.CONST and is_fixed_linear(numerator)
        case Map(arg=arg) | Rename(arg=arg):
            return is_fixed_linear(arg)
        case Reduce(how=how, arg=arg):
            return how is not Reduction.MAX and is_fixed_linear(arg)
        case Fir(weight=weight, arg=arg):
            return weight.time is Time.CONST and is_fixed_linear(arg)
        case Prim(name=name, args=args):
            return name in _LINEAR_PRIMS and all(is_fixed_linear(a) for a in args)
    return False
