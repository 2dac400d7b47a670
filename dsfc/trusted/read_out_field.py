"""Whether a read-out is declared real: a complex one may be so by a law alone."""

from __future__ import annotations

from collections.abc import Mapping

from dsfc.expr.table import row
from dsfc.expr.tree import Field
from dsfc.system.ir import Direct, Gate, MapOut, Post, Product, Ratio, Read, ReadOut, Sum, SumOver


def read_out_field(r: ReadOut, states: Mapping[str, Field]) -> Field:
    """Returns the field of a read-out.

    Args:
        r: the read-out.
        states: the field of each state.
    """

    def of(r: ReadOut) -> Field:
        match r:
            case Read(terms, direct):
                fields = [Field.REAL if direct is None else direct.field]
                for t in terms:
                    fields += [states[t.source], t.left.field, t.right.field]
                    fields += [m.field for m in (t.matrix, t.after) if m is not None]
                return max(fields)
            case Direct(value):
                return value.field
            case Gate(factor, arg):
                return max(factor.field, of(arg))
            case MapOut(by, arg):
                return max(by.field, of(arg))
            case Ratio(num, den):
                return max(of(num), of(den))
            case Product(args) | Sum(args):
                return max(of(a) for a in args)
            case Post(name, args):
                return row(name).fields.result(all(of(a) is Field.REAL for a in args))
            case SumOver(_, arg):
                return of(arg)
        return Field.REAL

    return of(r)
