"""What SHIFT, CUMSUM and CUMMAX are, and what a convolution can make of them."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor


@pytest.fixture(scope="module")
def task(example: Callable[[str], ModuleType]) -> ModuleType:
    return example("kernels.task")


def drawn(task: ModuleType, name: str, length: int, size: int) -> tuple[Tensor, Tensor]:
    return task.Task(name, length).batch(size, torch.Generator().manual_seed(0))


ORACLES: dict[str, Callable[[np.ndarray, int], list[float]]] = {
    "shift": lambda x, i: [
        x[i - j * len(x) // 8] if i >= j * len(x) // 8 else 0.0 for j in range(8)
    ],
    "cumsum": lambda x, i: [sum(x[: i + 1]) / (i + 1) ** 0.5],
    "cummax": lambda x, i: [max(x[: i + 1])],
}
"""One position at a time, as the paper says it."""


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("length", [8, 40])
def test_targets_are_the_papers(task: ModuleType, name: str, length: int) -> None:
    xs, ys = drawn(task, name, length, 5)
    assert ys.shape == (5, length, task.Task(name, length).outputs)
    for x, y in zip(xs.double().numpy(), ys.numpy(), strict=True):
        wanted = [ORACLES[name](x, i) for i in range(length)]
        # Sums of 40 numbers of at most 1, in float32.
        np.testing.assert_allclose(y, wanted, atol=40 * 6e-8)


def test_inputs_reach_one_and_are_fresh_and_repeatable(task: ModuleType) -> None:
    x, _ = drawn(task, "cummax", 64, 100)
    assert torch.equal(x.abs().amax(1), torch.ones(100))
    assert 0 < (x.amax(1) == 1).sum() < 100  # sometimes the largest is negative
    draw = torch.Generator().manual_seed(0)
    first, second = (task.Task("cummax", 64).batch(100, draw)[0] for _ in range(2))
    assert torch.equal(first, x) and not torch.equal(first, second)


def test_r_squared_is_one_for_the_truth_and_zero_for_the_mean(task: ModuleType) -> None:
    _, y = drawn(task, "cumsum", 64, 100)
    assert task.r_squared(y, y) == 1
    # The mean is rounded to float32; errors are squared.
    assert task.r_squared(y.mean().expand_as(y), y) == pytest.approx(0, abs=1e-6)
    assert task.r_squared(torch.tensor([1.0, 3]), torch.tensor([0.0, 4])) == 0.75


def test_one_shift_of_eight_explains_two_ninths(task: ModuleType) -> None:
    """Of y, Σ_j (1 - j/8) L numbers are not zero; the unshifted ones are L of these."""
    _, y = drawn(task, "shift", 256, 400)
    only = torch.zeros_like(y)
    only[..., 0] = y[..., 0]
    # 400 sequences of 256 numbers: the standard error is near 1e-3.
    assert task.r_squared(only, y) == pytest.approx(2 / 9, abs=5e-3)


def convolved(x: Tensor, kernel: Tensor) -> Tensor:
    length = x.shape[1]
    past = F.pad(x, (length - 1, 0)).unfold(1, length, 1).flip(-1)
    return past @ kernel


@pytest.mark.parametrize("name", ["shift", "cumsum"])
def test_the_kernel_and_the_scale_are_exact(task: ModuleType, name: str) -> None:
    x, y = drawn(task, name, 64, 10)
    made = convolved(x, task.Task(name, 64).kernel) * task.Task(name, 64).scale[:, None]
    torch.testing.assert_close(made, y)


@pytest.mark.share(2)
@pytest.mark.parametrize("name", ["shift", "cumsum"])
def test_the_fit_finds_the_exact_kernel(task: ModuleType, name: str) -> None:
    x, y = drawn(task, name, 32, 20_000)
    score, kernel = task.best_convolution(x, y, task.Task(name, 32).scale)
    # Elements count as uncorrelated; in 20,000 sequences they are so within a few times 1e-2.
    torch.testing.assert_close(kernel, task.Task(name, 32).kernel, atol=0.1, rtol=0)
    assert score > 0.998


def test_the_fit_is_least_squares(task: ModuleType) -> None:
    """Against a solver that knows nothing of convolutions: all lags, and a mean per position."""
    length, size = 16, 20_000
    x, y = (part.double() for part in drawn(task, "cummax", length, size))
    score, kernel = task.best_convolution(x, y, torch.ones(length))
    past = F.pad(x, (length - 1, 0)).unfold(1, length, 1).flip(-1)
    place = torch.eye(length, dtype=x.dtype).expand(size, -1, -1)
    table = torch.cat((past, place), -1).flatten(0, 1)
    solved = torch.linalg.lstsq(table, y.flatten(0, 1)).solution
    limit = task.r_squared(table @ solved, y.flatten(0, 1))
    assert score <= limit < 0.75
    assert score == pytest.approx(limit, abs=1e-3)
    torch.testing.assert_close(kernel.double(), solved[:length], atol=0.02, rtol=0)


def test_a_kernel_without_the_scale_explains_nine_tenths_of_cumsum(task: ModuleType) -> None:
    """The best K_l is the mean of s_i over i ≥ l; what it explains is worked out from s alone."""
    length = 256
    x, y = drawn(task, "cumsum", length, 4000)
    score, _ = task.best_convolution(x, y, torch.ones(length))
    scale = task.Task("cumsum", length).scale.double()
    seen = torch.arange(length, 0, -1)
    explained = scale.flip(0).cumsum(0).flip(0).square() / seen
    # A running sum of 256 numbers is one sample per sequence: 4,000 are good to 1e-2.
    assert score == pytest.approx(float(explained.sum() / length), abs=1e-2)
    assert 0.90 < score < 0.92


@pytest.mark.parametrize(("name", "length"), [("reverse", 64), ("shift", 63), ("cumsum", 0)])
def test_what_is_not_defined_is_refused(task: ModuleType, name: str, length: int) -> None:
    with pytest.raises(ValueError, match="must be"):
        task.Task(name, length)
