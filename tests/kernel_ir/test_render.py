"""The text of a kernel: as it reads, and that nothing of a kernel is left out of it."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from enum import Enum
from typing import Any

import pytest
from small_kernels import N, S, T, kernel_of

from dsfc.expr.interval import Interval
from dsfc.kernel_ir import ir
from dsfc.kernel_ir.build import KernelBuilder
from dsfc.kernel_ir.ir import Access, Axis, Kernel, Part, Storage, Triangle
from dsfc.kernel_ir.render import render

U = Axis("u", 8)


def every_node() -> Kernel:
    """A kernel that has every statement, operation and kind of integer."""
    k = KernelBuilder("all", "Every operation once.")
    keys, length = k.static("N"), k.dynamic("L")
    span = k.grid("span", ir.ceil_div(length, 8))
    k.order(T, N)
    x = k.argument("x", (length, keys))
    g = k.argument("g", (length,), storage=Storage.WIDE, promise=Interval(0.0, 1.0))
    o = k.argument("o", (length, keys), Access.WRITE)
    rows = ir.Along(T, ir.least(ir.times(span, 8), length), length)
    a, f = k.load(x, rows, k.all(N)), k.load(g, rows)
    part = Triangle(T, S, Part.STRICTLY_LOWER, 2)
    near = k.dot(a, k.rename(a, T, S), N, out=Triangle(T, S, Part.LOWER), exact=True)
    pairs = k.where(k.less(k.index(S), k.index(T, 1)), near, 0.1)
    ends = k.between(f, T, T, S, exclusive=True) * k.inverse_unit(pairs, T, S)
    ends = ends + k.shift(f, T, S, 1, back=True)
    sums = k.cumulate("sum", a, T, reverse=True, exclusive=True, block=4) + k.max(ends, S)
    sums = sums + k.to_middle(a, T, ir.power_of_two(span), exclusive=True, back=True)
    triangles = k.dot(ends, k.rename(ends, T, U), S, left_part=part, right_part=None)
    with k.loop("step", 3, reverse=True, carried=sums + k.max(triangles, U)) as loop:
        loop.next(carried=k.map("exp", loop["carried"], free=True))
    k.store(o, rows, k.all(N), value=loop.last("carried"))
    return k.kernel()


def test_a_kernel_reads_as_its_statements() -> None:
    kernel = kernel_of(lambda k, x, y: k.sum(k.map("tanh", x) * y, N))
    assert render(kernel) == "\n".join(
        [
            "kernel one",
            "  One operation.",
            "  read     x[8, N]",
            "  read     y[8, N]",
            "  write    o[8]",
            "  static   N",
            "  axes     t: 8, n: N",
            "  x_2[t, n] = x[t < 8, n < N]",
            "  y_2[t, n] = y[t < 8, n < N]",
            "  tanh[t, n] = tanh(x_2)",
            "  product[t, n] = tanh * y_2",
            "  sum[t] = sum of product over n",
            "  o[t < 8] = sum",
            "",
        ]
    )


def test_loops_say_what_they_carry_and_products_which_entries_they_skip() -> None:
    text = render(every_node())
    assert "for each span < (L + 7) // 8" in text
    assert "read     g[L] wide in [0.0, 1.0]" in text
    assert "for step < 3 from the last" in text
    assert "    exp[t, n] = exp(carried) of any sign" in text
    assert "[t, s] = x_2 · rename over n where lower in t, s exact" in text
    assert "strictly lower in t, s of blocks of 2) · " in text
    assert "product of g_2 over s < t < t" in text
    halves = "to the middle of blocks of 2 * (1 << span) without itself transposed"
    assert f"sums of x_2 over t {halves}" in text
    assert "g_2 shifted by -(s + 1) along t" in text
    assert "running sum of x_2 over t from the last without itself in blocks of 4" in text


def test_numbers_keep_their_digits() -> None:
    text = render(kernel_of(lambda k, x, y: x * 3.0 + y * (1 / 3)))
    assert "const = 3\n" in text and "const_2 = 0.3333333333333333\n" in text


def _others(value: object, pool: Counter[Any]) -> Iterator[object]:
    """Values of the same kind that another kernel could have there."""
    match value:
        case bool():
            yield not value
        case int() | float():
            yield value * 2 + 2
        case Enum():
            yield from (m for m in type(value) if m is not value)
        case str():
            yield from (x for x in pool if x != value)
        case Interval():
            yield Interval(-3.0, 4.0)


def _changed(node: Any, pool: Counter[Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Nodes that differ from a node in one field, and where."""
    if isinstance(node, tuple):
        for i, x in enumerate(node):
            for where, y in _changed(x, pool, path):
                yield where, (*node[:i], y, *node[i + 1 :])
    elif dataclasses.is_dataclass(node) and not isinstance(node, Interval):
        for field in dataclasses.fields(node):
            value = getattr(node, field.name)
            for where, y in _changed(value, pool, f"{type(node).__name__}.{field.name}"):
                yield where, dataclasses.replace(node, **{field.name: y})
    else:
        yield from ((path, x) for x in _others(node, pool))


@pytest.mark.ci
def test_kernels_that_differ_have_texts_that_differ() -> None:
    kernel = every_node()
    names = Counter(["sum", "product", "max", "min", "add", "mul", "exp", "tanh", "<", "<=", "=="])
    names.update(["+", "-", "*", "//", "8", "another", "L", "N", "x", "o", "t", "s"])
    names.update(s.name for s in kernel.body if isinstance(s, ir.Let))
    text, reached = render(kernel), set()
    for where, other in _changed(kernel, names):
        try:
            changed = render(other)
        except (KeyError, TypeError):
            continue  # no kernel
        assert changed != text or where == "Axis.size", where  # one name has one size: `verify`
        reached.add(where)
    nodes = (c for c in vars(ir).values() if dataclasses.is_dataclass(c) and c is not Interval)
    leaves = {
        f"{c.__name__}.{f.name}"
        for c in nodes
        if isinstance(c, type)
        for f in dataclasses.fields(c)
        if str(f.type) in ("str", "bool", "float", "Access", "Storage", "Part")
    }
    bound_inside = {"Carry.name", "Dot.right"}  # no other name there gives a kernel
    assert leaves - reached == bound_inside
