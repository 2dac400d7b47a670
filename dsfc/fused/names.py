"""Names of buffers that fusing adds: new in the plan, and saying what they hold."""

from __future__ import annotations

from collections.abc import Container

from dsfc.expr.tree import Expr, Map, Param, Prim, Ref
from dsfc.plan.ir import Plan


def taken(plan: Plan) -> set[str]:
    """Returns all names of a plan that no new buffer may have."""
    names = {t.name for t in (*plan.params, *plan.buffers)} | {b.name for b in plan.arrays}
    names |= {d.axis.name for d in plan.axes} | {s.name for s in plan.states}
    return names | {r.name for r in plan.registers}


def fresh(name: str, names: Container[str]) -> str:
    """Returns the name, or one like it that is not among those."""
    unused, count = name, 2
    while unused in names:
        unused, count = f"{name}_{count}", count + 1
    return unused


def called(e: Expr) -> str:
    """Returns a name that says what is computed: `W_r_u` for W_r u, `softplus_zeta`."""
    match e:
        case Map():
            return f"{e.map.name}_{called(e.arg)}"
        case Prim():
            return "_".join([e.name, *(called(a) for a in e.args)])
        case Ref() | Param():
            return e.name
        case _:
            return "part"
