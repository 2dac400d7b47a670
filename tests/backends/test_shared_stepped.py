"""The gradient of a loop over tokens keeps few states, and is the loop's own derivative."""

from __future__ import annotations

import math

import pytest
import torch
from dsfc.backends.shared.runtime.stepped import _pulled_back, _Stepped
from torch import Tensor

BATCH, D = 2, 3


@pytest.mark.parametrize(
    ("length", "chunk", "most"), [(64, 1, 8), (400, 1, 20), (400, 40, 10), (400, 1000, 1)]
)
def test_the_states_that_are_kept_are_no_more_than_the_root_of_the_length(
    length: int, chunk: int, most: int
) -> None:
    """h_i = a_i h_{i-1} + u_i, y_i = h_i; each token is stepped through twice."""
    steps, spans = [], []

    def step(h: Tensor, a: Tensor, u: Tensor) -> tuple[Tensor]:
        steps.append(h)
        return (a * h + u,)

    def step_back(h_bar: Tensor, a: Tensor, u: Tensor, y_bar: Tensor) -> tuple[Tensor]:
        return (a * (h_bar + y_bar),)

    def gradients(
        before: Tensor, after: Tensor, h_bar: Tensor, a: Tensor, u: Tensor, y_bar: Tensor
    ) -> tuple[Tensor, Tensor]:
        spans.append(before.shape[1])
        return (h_bar + y_bar) * before, h_bar + y_bar

    torch.manual_seed(0)
    a, u, y_bar = torch.randn(3, BATCH, length, D, dtype=torch.float64).tanh()
    h, h_bar = torch.randn(2, BATCH, D, dtype=torch.float64)
    inputs = [x.requires_grad_() for x in (a, u, h)]
    rows, last = [], h
    for i in range(length):
        last = a[:, i] * last + u[:, i]
        rows.append(last)
    want = torch.autograd.grad([torch.stack(rows, 1), last], inputs, [y_bar, h_bar])

    run = _Stepped(step, step_back, gradients, wanted=(0, 1))
    with torch.no_grad():
        made = _pulled_back(run, (h,), (a, u), (), None, (y_bar,), (h_bar,), chunk)
    torch.testing.assert_close(made, want)
    assert len(steps) == 2 * length and sum(spans) == length
    assert len(spans) == most
    assert max(spans) <= max(chunk, math.isqrt(length - 1) + 1)
