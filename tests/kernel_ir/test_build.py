"""The builder binds each value once, under a name that the printed kernel shows."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import pytest
from small_kernels import N, T

from dsfc.kernel_ir.build import KernelBuilder, Tile
from dsfc.kernel_ir.interpret import interpret
from dsfc.kernel_ir.ir import Access, Let, Load, Loop


def builder() -> tuple[KernelBuilder, Tile]:
    """A builder and a tile over (t, n)."""
    k = KernelBuilder("one", "One operation.")
    x = k.load(k.argument("x", (8, k.static("N"))), k.all(T), k.all(N))
    return k, x


def test_a_value_that_is_built_twice_is_one_value() -> None:
    k, x = builder()
    assert (x * x) is (x * x)
    assert k.sum(x, N) is k.sum(x, N)


def test_two_loads_are_two_values() -> None:
    k = KernelBuilder("one", "Two loads.")
    x = k.argument("x", (8,))
    assert k.load(x, k.all(T)) is not k.load(x, k.all(T))


def test_a_value_of_a_loop_is_not_one_of_what_follows() -> None:
    k, x = builder()
    with k.loop("i", 2, S=x) as loop:
        inside = x * x
        loop.next(S=loop["S"] + inside)
    assert x * x is not inside


def test_a_value_before_a_loop_is_known_inside() -> None:
    k, x = builder()
    outside = x * x
    with k.loop("i", 2, S=x) as loop:
        assert x * x is outside
        loop.next(S=loop["S"] + outside)


def test_values_have_the_names_asked_for_each_once() -> None:
    k, x = builder()
    o = k.argument("o", (8, k.static("N")), Access.WRITE)
    k.named("total", x + 1.0)
    k.named("total", x + 2.0)
    k.store(o, k.all(T), k.all(N), value=(x + 1.0) * (x + 2.0))
    names = [s.name for s in k.kernel().body if isinstance(s, Let)]
    assert len(set(names)) == len(names)
    assert {"total", "total_2", "product"} <= set(names)


def test_a_value_is_not_called_like_an_argument() -> None:
    k, x = builder()
    o = k.argument("o", (8, k.static("N")), Access.WRITE)
    k.store(o, k.all(T), k.all(N), value=x)
    (load,) = (s for s in k.kernel().body if isinstance(s, Let) and isinstance(s.operation, Load))
    assert load.name == "x_2"


def test_a_size_that_is_declared_twice_is_one_size() -> None:
    k = KernelBuilder("one", "Sizes.")
    assert k.static("N") == k.static("N") and k.dynamic("L") == k.dynamic("L")
    kernel = k.kernel()
    assert (kernel.static, kernel.dynamic) == (("N",), ("L",))


def test_counters_of_one_name_count_for_themselves() -> None:
    k = KernelBuilder("one", "o = 1.")
    o, one = k.argument("o", (2, 3), Access.WRITE), k.const(1.0)
    with k.loop("i", 2) as outer, k.loop("i", 3) as inner:
        k.store(o, outer.counter, inner.counter, value=one)
    assert (interpret(k.kernel(), {}, {})["o"] == 1).all()


DECLARED: dict[str, Callable[[KernelBuilder], object]] = {
    "argument": lambda k: k.argument("y", ()),
    "static": lambda k: k.static("y"),
    "dynamic": lambda k: k.dynamic("y"),
    "index": lambda k: k.grid("y", 2),
}


@pytest.mark.parametrize(("one", "other"), [*combinations(DECLARED, 2)])
def test_sizes_arguments_and_indices_have_names_of_their_own(one: str, other: str) -> None:
    k = KernelBuilder("one", "Two things of one name.")
    DECLARED[one](k)
    DECLARED[other](k)
    with pytest.raises(ValueError, match="one name"):
        k.kernel()


def test_two_arguments_have_two_names() -> None:
    k, _ = builder()
    k.argument("x", (8,))
    with pytest.raises(ValueError, match="one name"):
        k.kernel()


def test_a_loop_carries_what_it_was_given() -> None:
    k, x = builder()
    o = k.argument("o", (8, k.static("N")), Access.WRITE)
    with k.loop("i", 3, reverse=True, S=x) as loop:
        loop.next(S=loop["S"] + loop["S"])
    k.store(o, k.all(T), k.all(N), value=loop.last("S"))
    (repeated,) = (s for s in k.kernel().body if isinstance(s, Loop))
    assert repeated.reverse and repeated.count == 3
    assert [c.name for c in repeated.carries] == ["S"]


def test_a_loop_goes_on_with_all_that_it_carries() -> None:
    k, x = builder()
    with pytest.raises(ValueError, match="goes on with"), k.loop("i", 2, S=x):
        pass


def test_a_carried_tile_keeps_its_axes() -> None:
    k, x = builder()
    with pytest.raises(ValueError, match="carries S"), k.loop("i", 2, S=x) as loop:
        loop.next(S=k.sum(loop["S"], N))


def test_a_carried_tile_keeps_its_kind() -> None:
    k, _ = builder()
    with pytest.raises(ValueError, match="carries S"), k.loop("i", 2, S=k.index(T)) as loop:
        loop.next(S=k.less(loop["S"], 3))
