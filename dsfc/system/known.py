"""What is known of the arrays of a system before anything is computed: fixed values and ranges."""

from __future__ import annotations

from collections.abc import Mapping

from dsfc.expr.declarations import Constraint, MapTensor, Tensor
from dsfc.expr.interval import Interval
from dsfc.expr.ranges import PROMISED, Ranges, keeps
from dsfc.expr.tree import Expr, Field
from dsfc.system.ir import System


def fixed(system: System) -> dict[str, Expr]:
    """Returns the values of the buffers that have one: they are no inputs of the function."""
    return {t.name: t.init.value for t in system.buffers if t.init is not None and not t.init.drawn}


Bounds = Mapping[str, Interval]
"""Name → where the entries lie."""


def bounds(system: System) -> tuple[Bounds, Bounds]:
    """Returns where entries of inputs, parameters and buffers lie, and their absolute values.

    They hold at every size. What has a fixed value lies where that does, whatever is declared: a
    floor between 0 and 1 may be 0 itself. Absolute values are those of what is complex and fixed.
    """
    known = {
        t.name: PROMISED[t.constraint]
        for t in (*system.inputs, *system.params, *system.buffers)
        if isinstance(t, Tensor)
    }
    plain, values = Ranges(), fixed(system)
    known |= {name: plain.of(v) for name, v in values.items() if v.field is Field.REAL}
    moduli = {name: plain.modulus(v) for name, v in values.items() if v.field is not Field.REAL}
    return known, moduli


def ranges(system: System) -> Ranges:
    """Returns ranges of expressions by what is known of arrays, at every size."""
    return Ranges(*bounds(system))


def promises(system: System) -> Mapping[str, Constraint]:
    """Returns what all entries keep, by name; of a buffer with a value only what that keeps."""
    values, plain = fixed(system), Ranges()
    out = {}
    for t in (*system.inputs, *system.params, *system.buffers):
        constraint = Constraint.NONE if isinstance(t, MapTensor) else t.constraint
        if t.name in values and constraint is not Constraint.NONE:
            value = values[t.name]
            if value.field is not Field.REAL or not keeps(plain.of(value), constraint):
                constraint = Constraint.NONE
        out[t.name] = constraint
    return out
