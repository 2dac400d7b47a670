"""What is known of the entries of inputs, parameters and buffers.

A declaration promises a range. A buffer that the spec gives a value is that value, which may leave
the range: at some sizes, or at the floor of `unit`. Then no proof may rest on the declaration.
"""

from __future__ import annotations

from collections.abc import Mapping

from dsfc.primitives.declarations import Constraint, MapTensor, Tensor
from dsfc.primitives.expr import Expr, Field
from dsfc.primitives.ranges import Ranges, keeps
from dsfc.system.ir import System


def fixed(system: System) -> dict[str, Expr]:
    """Returns the values of the buffers that have one: they are no inputs of the function."""
    return {
        t.name: t.init.value
        for t in system.buffers
        if t.init is not None and not t.init.drawn and isinstance(t, Tensor)
    }


def promises(system: System) -> Mapping[str, Constraint]:
    """Returns what all entries keep, by name; of a buffer only what its own value keeps."""
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
