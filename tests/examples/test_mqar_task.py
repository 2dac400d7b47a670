"""What a batch of multi-query associative recall is."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest
import torch


@pytest.fixture(scope="module")
def task(example: Callable[[str], ModuleType]) -> ModuleType:
    return example("mqar.task")


@pytest.mark.parametrize("sizes", [(64, 32, 4), (128, 64, 8), (12, 20, 5), (64, 16, 4)])
def test_every_question_has_its_key_in_the_list(
    task: ModuleType, sizes: tuple[int, int, int]
) -> None:
    vocabulary, length, pairs = sizes
    tokens, targets = task.Task(*sizes).batch(50, torch.Generator().manual_seed(0))
    assert tokens.shape == targets.shape == (50, length)
    for row, target in zip(tokens.tolist(), targets.tolist(), strict=True):
        head, tail = row[: 2 * pairs], row[2 * pairs :]
        keys, values = head[::2], head[1::2]
        assert len(set(keys)) == len(set(values)) == pairs
        assert all(1 <= key < vocabulary // 2 <= value < vocabulary
                   for key, value in zip(keys, values, strict=True))  # fmt: skip
        asked = [i for i, value in enumerate(target) if value != task.IGNORED]
        assert sorted(row[i] for i in asked) == sorted(keys)
        assert [i for i, token in enumerate(tail, 2 * pairs) if token != task.EMPTY] == asked
        answers = dict(zip(keys, values, strict=True))
        assert all(answers[row[i]] == target[i] for i in asked)


def test_questions_gather_behind_the_list(task: ModuleType) -> None:
    _, targets = task.Task(64, 64, 4).batch(500, torch.Generator().manual_seed(0))
    count = (targets != task.IGNORED).sum(0)
    assert count[8] > 2 * count[40:].max()


def test_batches_are_fresh_and_repeatable(task: ModuleType) -> None:
    draw = torch.Generator().manual_seed(3)
    first, second = (task.Task(64, 32, 4).batch(8, draw)[0] for _ in range(2))
    again, _ = task.Task(64, 32, 4).batch(8, torch.Generator().manual_seed(3))
    assert torch.equal(first, again) and not torch.equal(first, second)


@pytest.mark.parametrize("sizes", [(64, 30, 8), (64, 33, 4), (8, 64, 4)])
def test_sizes_without_room_are_refused(task: ModuleType, sizes: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="pairs need"):
        task.Task(*sizes)
