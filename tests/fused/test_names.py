"""Names of new buffers are free, and say what is computed."""

from __future__ import annotations

from collections.abc import Callable

from dsfc.expr.build import num
from dsfc.expr.tree import Field, Now, Prim, Ref, Time
from dsfc.fused.names import called, fresh, taken
from dsfc.plan.ir import Plan


def test_a_name_that_is_taken_gets_the_first_number_that_is_free() -> None:
    assert fresh("x", ()) == "x"
    assert fresh("x", ("x",)) == "x_2"
    assert fresh("x", ("x", "x_2", "x_3", "x_5")) == "x_4"


def test_all_that_has_a_name_in_a_plan_keeps_it(plan_of: Callable[[str], Plan]) -> None:
    for name in ("mlstm", "performer"):
        plan = plan_of(name)
        named = (*plan.params, *plan.buffers, *plan.arrays, *plan.states, *plan.registers)
        assert taken(plan) == {x.name for x in named} | {d.axis.name for d in plan.axes}


def test_a_name_says_what_is_computed() -> None:
    u = Ref("u", frozenset(), Field.REAL, Time.TOKEN, Now(0))
    assert called(u) == "u"
    assert called(Prim("max", (u, Prim("tanh", (u,), Field.REAL)), Field.REAL)) == "max_u_tanh_u"
    assert called(num(2)) == "part"
