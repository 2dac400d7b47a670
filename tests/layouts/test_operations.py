"""Laws of the operations of layout maps."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dsfc.layouts.addresses import Moved, addressed
from dsfc.layouts.dims import Dim
from dsfc.layouts.ir import Layout, Published, Row, Step
from dsfc.layouts.operations import (
    OPERATIONS,
    ZERO,
    BlockDiagonal,
    Blocks,
    Flip,
    Function,
    MisfitError,
    Operation,
    Permute,
    Repeat,
    Reshape,
    Split,
    Transpose,
)
from dsfc.source import NOWHERE
from dsfc.validate.published import backward, forward
from dsfc.validate.weights import Unfit


def size(number: int) -> Dim:
    return Dim(((number, ()),))


@st.composite
def fitting(draw: st.DrawFn) -> tuple[tuple[int, ...], Operation]:
    """A shape, and an operation that takes arrays of it."""
    word = draw(st.sampled_from(sorted(OPERATIONS)))
    if word in ("block_diagonal", "blocks"):
        h, a, b = (draw(st.integers(1, 3)) for _ in range(3))
        if word == "blocks":
            return (h * a, h * b), Blocks(size(h))
        return (h, a, b), BlockDiagonal()
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    axis = draw(st.integers(0, len(shape) - 1))
    long = shape[axis]
    match word:
        case "transpose":
            return shape, Transpose(tuple(draw(st.permutations(range(len(shape))))))
        case "reshape":
            whole = int(np.prod(shape))
            rows = draw(st.sampled_from([k for k in range(1, whole + 1) if whole % k == 0]))
            return shape, Reshape((size(rows), size(whole // rows)))
        case "split":
            cut = draw(st.integers(0, long))
            return shape, Split(axis, (size(cut), size(long - cut)), draw(st.integers(0, 1)))
        case "flip":
            return shape, Flip(axis)
        case "permute":
            return shape, Permute(axis, tuple(draw(st.permutations(range(long)))))
    assert word == "repeat"
    return shape, Repeat(axis, size(draw(st.integers(1, 3))))


@given(fitting())
def test_an_operation_moves_entries_and_looks_at_none(
    case: tuple[tuple[int, ...], Operation],
) -> None:
    """What it makes of any array is read off what it makes of the numbers of the entries."""
    shape, operation = case
    x = np.random.default_rng(0).integers(2, 100, shape)
    numbers = operation.apply(np.arange(x.size).reshape(shape), {})
    wanted = np.where(numbers == ZERO, ZERO, x.reshape(-1)[numbers.clip(0)])
    assert (operation.apply(x, {}) == wanted).all()
    left = operation.dropped(np.arange(x.size).reshape(shape), {})
    assert set(left).isdisjoint(set(numbers.reshape(-1)))


def moved(shape: tuple[int, ...], *steps: Step) -> tuple[Moved, ...]:
    """One row from a tensor `w` to an entry `v`, and what it leaves to an entry `rest`."""
    x = np.zeros(shape, np.int64)
    for step in steps:
        x = x if isinstance(step, Function) else step.apply(x, {})
    rows = [Row("v", ("w",), None, steps, NOWHERE, (NOWHERE,) * len(steps))]
    entries = {"v": x.shape}
    for step in steps:
        if isinstance(step, Split):
            other = Split(step.axis, step.parts, 1 - step.keep)
            rows.append(Row("rest", ("w",), None, (other,), NOWHERE, (NOWHERE,)))
            entries["rest"] = other.apply(np.zeros(shape), {}).shape
    tensor = Published("w", tuple(map(size, shape)), NOWHERE)
    layout = Layout("", "", False, (tensor,), (), tuple(rows), {}, None, NOWHERE)
    return addressed(layout, {}, entries)


@given(fitting())
def test_every_operation_is_undone(case: tuple[tuple[int, ...], Operation]) -> None:
    """There and back is where one was, bit for bit."""
    shape, operation = case
    w = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    if isinstance(operation, Blocks):
        w = w * torch.block_diag(*[torch.ones_like(b) for b in _blocks(w, operation)])
    rows = moved(shape, operation)
    there = forward(rows, {"w": w})
    assert torch.equal(backward(rows, there, {"w": shape})["w"], w)


def _blocks(w: torch.Tensor, operation: Blocks) -> torch.Tensor:
    h = operation.count.value({})
    return torch.zeros(h, w.shape[0] // h, w.shape[1] // h)


@pytest.mark.parametrize("function", list(Function))
def test_every_function_is_undone(function: Function) -> None:
    w = torch.linspace(0.1, 3, 7, dtype=torch.float64)
    rows = moved((7,), function)
    there = forward(rows, {"w": w})
    wanted = {Function.NEG: -w, Function.EXP: w.exp(), Function.LOG: w.log()}[function]
    torch.testing.assert_close(there["v"], wanted, rtol=1e-15, atol=0)
    back = backward(rows, there, {"w": (7,)})["w"]
    torch.testing.assert_close(back, w, rtol=1e-14, atol=0)
    assert function.inverse.inverse is function


def test_functions_are_applied_in_order_and_rounded_once() -> None:
    """The logarithm of a negated number is computed in float64 and kept in float32."""
    w = -torch.linspace(0.1, 3, 7, dtype=torch.bfloat16)
    (v,) = forward(moved((7,), Function.NEG, Function.LOG), {"w": w}).values()
    assert v.dtype is torch.float32
    assert torch.equal(v, w.double().neg().log().float())


def test_a_function_without_a_value_is_refused() -> None:
    with pytest.raises(Unfit, match="log has no value"):
        forward(moved((2,), Function.LOG), {"w": torch.tensor([1.0, -1.0])})


def test_copies_that_differ_are_not_taken_back() -> None:
    rows = moved((2,), Repeat(0, size(2)))
    entries = {"v": torch.tensor([1.0, 1.0, 2.0, 3.0])}
    with pytest.raises(Unfit, match="repeats numbers 2 times, and they are not equal"):
        backward(rows, entries, {"w": (2,)})


def test_what_stands_beside_blocks_has_to_be_0() -> None:
    with pytest.raises(Unfit, match="beside the blocks is not 0"):
        forward(moved((2, 2), Blocks(size(2))), {"w": torch.ones(2, 2)})
    rows = moved((2, 1, 1), BlockDiagonal())
    with pytest.raises(Unfit, match="beside the blocks is not 0"):
        backward(rows, {"v": torch.ones(2, 2)}, {"w": (2, 1, 1)})


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        (Transpose((0, 0)), "no order of 2 axes"),
        (Reshape((size(5),)), "an array of 2 × 3 is not one of 5"),
        (Split(1, (size(1), size(1)), 0), r"the axis has 3 entries, the parts 1 \+ 1"),
        (Split(1, (size(1), size(2)), 2), "of 2 parts none has the number 2"),
        (Flip(2), "has no axis 2"),
        (Permute(1, (0, 1, 1)), "none of 3 entries, each once"),
        (BlockDiagonal(), "three axes, and here are 2"),
        (Blocks(size(2)), "no 2 blocks on its diagonal"),
    ],
)
def test_an_array_that_does_not_fit_is_refused(operation: Operation, reason: str) -> None:
    with pytest.raises(MisfitError, match=reason):
        operation.apply(np.zeros((2, 3)), {})
