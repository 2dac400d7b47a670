"""A kernel that is damaged, in any way, is refused with words that say where."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from small_kernels import N, S, T

import dsfc
from dsfc.kernel_ir.build import KernelBuilder
from dsfc.kernel_ir.interpret import interpret
from dsfc.kernel_ir.ir import (
    Access,
    Along,
    Argument,
    Axis,
    Carry,
    Compare,
    Cumulate,
    Dot,
    Grid,
    Index,
    Int,
    Integer,
    InverseUnit,
    Kernel,
    Let,
    Load,
    Loop,
    Map,
    Operation,
    Part,
    Reduce,
    Rename,
    Statement,
    Store,
    Symbol,
    Triangle,
)
from dsfc.kernel_ir.verify import InvalidKernel, verify
from dsfc.kernels.chunkwise import backward, forward
from dsfc.plan.scan_ir import Scan

ROW, KEYS = Symbol("row"), Symbol("N")
AT = Along(T, 0, 8), Along(N, 0, KEYS)
LOAD, SCRATCH, LOOP, TURNED, PAIRS, OUT, STORE = range(7)
"""The statements of the sound kernel."""
SOUND = Kernel(
    "sound",
    "(4 x) (4 x)ᵀ (4 x) of each row.",
    (
        Argument("x", (Symbol("B"), 8, KEYS)),
        Argument("o", (Symbol("B"), 8, KEYS), Access.WRITE),
        Argument("s", (8, KEYS), Access.SCRATCH),
    ),
    ("N",),
    ("B",),
    (Grid("row", Symbol("B")),),
    (T, S, N),
    (
        Let("first", Load("x", (ROW, *AT))),
        Store("s", AT, "first"),
        Loop(
            "i",
            3,
            (Carry("state", "first", "following", "last"),),
            (Let("again", Load("s", AT)), Let("following", Map("add", ("state", "again")))),
        ),
        Let("turned", Rename("last", T, S)),
        Let("pairs", Dot("last", "turned", N)),
        Let("out", Dot("pairs", "turned", S)),
        Store("o", (ROW, *AT), "out"),
    ),
)


def with_statements(at: int, *statements: Statement) -> Kernel:
    """The sound kernel with others in the place of one statement."""
    return replace(SOUND, body=(*SOUND.body[:at], *statements, *SOUND.body[at + 1 :]))


def changed(at: int, /, **fields: Any) -> Kernel:
    """The sound kernel with a statement changed."""
    return with_statements(at, replace(SOUND.body[at], **fields))


def ending(*operations: Operation) -> Kernel:
    """The sound kernel with values more: new_0, new_1, …"""
    lets = [Let(f"new_{i}", x) for i, x in enumerate(operations)]
    return with_statements(STORE, *lets, SOUND.body[STORE])


def looping(carry: Carry, *more: Statement) -> Kernel:
    """The sound kernel with another carry, and more in the loop."""
    loop = SOUND.body[LOOP]
    assert isinstance(loop, Loop)
    return changed(LOOP, carries=(carry,), body=(*loop.body, *more))


def starting(start: Int) -> Kernel:
    return ending(Index(T, start))


DAMAGED: dict[str, tuple[Kernel, str]] = {
    "a value bound twice": (changed(TURNED, name="first"), "first is bound twice"),
    "a value like an argument": (
        with_statements(STORE, Let("s", Index(T)), SOUND.body[STORE]),
        "s is bound twice",
    ),
    "a counter like a size": (changed(LOOP, counter="N"), "N is bound twice"),
    "a carried value bound twice": (
        looping(Carry("first", "first", "following", "last")),
        "first is bound twice",
    ),
    "two arguments of one name": (
        replace(SOUND, arguments=(*SOUND.arguments, Argument("x", (8,)))),
        "x is bound twice",
    ),
    "a value that is no identifier": (
        with_statements(STORE, Let("a; b", Index(T)), SOUND.body[STORE]),
        "'a; b' is no name",
    ),
    "an axis that is no identifier": (ending(Index(Axis("a\nb", 4))), r"'a\nb' is no name"),
    "a kernel that is no identifier": (replace(SOUND, name="f()"), "'f()' is no name"),
    "a value before it is bound": (
        changed(TURNED, operation=Rename("pairs", T, S)),
        "value turned: nothing bound pairs before",
    ),
    "a value of a loop after it": (
        changed(TURNED, operation=Rename("again", T, S)),
        "value turned: nothing bound again before",
    ),
    "a store of nothing": (changed(STORE, value="none"), "store to o: nothing bound none before"),
    "a carry of nothing": (
        looping(Carry("state", "none", "following", "last")),
        "loop i: nothing bound none before",
    ),
    "a carry that goes on with nothing": (
        looping(Carry("state", "first", "last", "last")),
        "loop i: nothing bound last inside",
    ),
    "a carry of other axes": (
        looping(Carry("state", "first", "short", "last"), Let("short", Reduce("sum", "state", N))),
        "loop i: state goes on with other axes or another kind as short",
    ),
    "a carry of another kind": (
        looping(
            Carry("state", "first", "mask", "last"),
            Let("at", Index(T)),
            Let("key", Index(N)),
            Let("mask", Compare("<", "at", "key")),
        ),
        "loop i: state goes on with other axes or another kind as mask",
    ),
    "a dot over an axis of one": (
        changed(PAIRS, operation=Dot("last", "turned", T)),
        "value pairs: dot along t of a tile over (s, n)",
    ),
    "a rename to another size": (
        changed(TURNED, operation=Rename("last", T, Axis("short", 4))),
        "value turned: rename of axes of one size, not t of 8, short of 4",
    ),
    "a choice without a mask": (
        ending(Map("where", ("first", "first", "first"))),
        "value new_0: where takes mask entries, first has real ones",
    ),
    "a number that is a mask": (
        ending(Index(T), Compare("<", "new_0", 3), Map("neg", ("new_1",))),
        "value new_2: neg takes real entries, new_1 has mask ones",
    ),
    "an inverse of no matrix": (
        ending(InverseUnit("first", T, S)),
        "value new_0: inverseunit along s of a tile over (t, n)",
    ),
    "a triangle of another tile": (
        changed(PAIRS, operation=Dot("last", "turned", N, left_part=Triangle(T, S, Part.LOWER))),
        "value pairs: a triangle over (t, s) of a tile over (t, n)",
    ),
    "blocks that do not divide": (
        ending(Cumulate("sum", "first", T, block=3)),
        "value new_0: blocks of 3 along t of 8 entries",
    ),
    "an unknown function": (
        ending(Map("system", ("first",))),
        "value new_0: no function 'system'",
    ),
    "an unknown reduction": (
        ending(Reduce("mean", "first", T)),
        "value new_0: no function 'mean'",
    ),
    "an unknown comparison": (
        ending(Index(T), Compare("!=", "new_0", 1)),
        "value new_1: no function '!='",
    ),
    "an unknown operator": (
        starting(Integer("%", 1, 2)),
        "value new_0: no operator '%' of integers",
    ),
    "an unknown integer": (starting(Symbol("M")), "value new_0: no integer is called M"),
    "a counter after its loop": (starting(Symbol("i")), "value new_0: no integer is called i"),
    "a value for an integer": (
        starting(Symbol("first")),
        "value new_0: no integer is called first",
    ),
    "a loop of an unknown count": (
        changed(LOOP, count=Symbol("M")),
        "loop i: no integer is called M",
    ),
    "an unknown argument": (
        changed(LOAD, operation=Load("y", AT)),
        "value first: no argument is called y",
    ),
    "too few positions": (
        changed(LOAD, operation=Load("x", AT)),
        "value first: 2 positions in 3 dimensions",
    ),
    "too many positions": (
        changed(SCRATCH, at=(ROW, *AT)),
        "store to s: 3 positions in 2 dimensions",
    ),
    "one axis at two positions": (
        changed(SCRATCH, at=(AT[0], AT[0])),
        "store to s: one axis at two positions",
    ),
    "a load of one axis at two positions": (
        ending(Load("s", (AT[0], AT[0]))),
        "value new_0: load gives a tile over (t, t), one of them twice",
    ),
    "a tile that has an axis more": (
        changed(STORE, at=(ROW, 0, AT[1])),
        "store to o: no position along t of out",
    ),
    "a store of a mask": (
        with_statements(
            STORE,
            Let("at", Index(T)),
            Let("mask", Compare("<", "at", 3)),
            replace(SOUND.body[STORE], value="mask"),  # type: ignore[call-arg]
        ),
        "store to o: mask has mask entries",
    ),
    "a load of a result": (
        ending(Load("o", (ROW, *AT))),
        "value new_0: loads a result, o",
    ),
    "a store to what is read": (
        changed(SCRATCH, argument="x", at=(ROW, *AT)),
        "store to x: stores to what is read, x",
    ),
    "a result that nobody writes": (
        with_statements(STORE),
        "argument o: nothing is stored to a result",
    ),
    "programs that write to one place": (
        changed(STORE, at=(0, *AT)),
        "store to o: programs of all row write to one place",
    ),
    "programs whose stores differ in their end alone": (
        changed(STORE, at=(0, Along(T, 0, ROW), AT[1])),
        "store to o: programs of all row write to one place",
    ),
    "two axes of one name": (
        ending(Index(Axis("t", 16))),
        "value new_0: two axes are called t",
    ),
    "an axis of a dynamic size": (
        ending(Index(Axis("b", "B"))),
        "value new_0: B, the size of axis b, is no static size",
    ),
    "an argument of an unknown size": (
        replace(SOUND, arguments=(*SOUND.arguments, Argument("y", (Symbol("M"),)))),
        "argument y: no integer is called M",
    ),
    "a grid of an unknown size": (
        replace(SOUND, grid=(*SOUND.grid, Grid("part", Symbol("row")))),
        "index part: no integer is called row",
    ),
}


def test_a_sound_kernel_passes_and_computes() -> None:
    x = np.random.default_rng(0).normal(size=(2, 8, 3))
    got = interpret(verify(SOUND), {"x": x}, {"N": 3, "B": 2})["o"]
    assert np.allclose(got, 64 * x @ x.transpose(0, 2, 1) @ x)


@pytest.mark.parametrize("what", DAMAGED)
def test_a_damaged_kernel_is_refused(what: str) -> None:
    kernel, problem = DAMAGED[what]
    with pytest.raises(InvalidKernel) as error:
        verify(kernel)
    assert problem in error.value.problems
    assert problem in str(error.value)


def test_all_problems_are_told_at_once() -> None:
    kernel = replace(
        changed(STORE, at=(0, *AT), value="none"),
        order=(T, S, N, Axis("m", "M")),
    )
    with pytest.raises(InvalidKernel) as error:
        verify(kernel)
    assert error.value.problems == (
        "order: M, the size of axis m, is no static size",
        "store to o: nothing bound none before",
        "store to o: programs of all row write to one place",
    )


def test_what_follows_from_a_wrong_value_is_not_a_problem_more() -> None:
    with pytest.raises(InvalidKernel) as error:
        verify(changed(TURNED, operation=Rename("none", T, S)))
    assert error.value.problems == ("value turned: nothing bound none before",)


def test_an_index_of_one_program_need_not_be_written_to() -> None:
    assert verify(replace(SOUND, grid=(*SOUND.grid, Grid("part", 1))))


def test_scratch_belongs_to_one_program_and_needs_no_index() -> None:
    scratch = SOUND.body[SCRATCH]
    assert isinstance(scratch, Store) and ROW not in scratch.at
    assert verify(SOUND) is SOUND


def test_the_builder_gives_no_kernel_that_is_not_sound() -> None:
    k = KernelBuilder("shared", "Every program writes one place.")
    k.grid("row", k.dynamic("B"))
    k.store(k.argument("o", (), Access.WRITE), value=k.const(1.0))
    with pytest.raises(InvalidKernel, match="programs of all row"):
        k.kernel()


def test_a_value_of_a_loop_is_not_for_the_builder_to_use_after() -> None:
    k = KernelBuilder("late", "o = what a loop left behind.")
    x = k.argument("x", (3,))
    with k.loop("i", 3) as loop:
        inside = k.load(x, loop.counter)
    k.store(k.argument("o", (), Access.WRITE), value=inside)
    with pytest.raises(InvalidKernel, match="nothing bound x_2 before"):
        k.kernel()


@pytest.mark.parametrize("spec", ["retnet", "gla", "gated_deltanet", "kda", "rwkv7"])
def test_the_kernels_of_scans_are_sound(spec: str) -> None:
    plan = dsfc.load(spec).plan
    scan = next(k for k in plan.kernels if isinstance(k, Scan))
    adjoint = next(a for a in plan.adjoints if a.scan == scan.name)
    for shared in (False, True):
        assert verify(forward(scan, shared)).body and verify(backward(scan, adjoint, shared)).body
