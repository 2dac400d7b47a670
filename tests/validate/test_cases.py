"""The shapes that hurt are the ones that are tried."""

from __future__ import annotations

import pytest
import torch

from dsfc.validate.cases import CHUNK, LAYOUTS, lengths, prime_after


def test_lengths_stand_at_the_borders_of_chunks() -> None:
    assert lengths(CHUNK) == (0, 1, 2, 3, 4, 5, 9, 11)
    assert lengths(16) == (0, 1, 2, 15, 16, 17, 33, 37)


@pytest.mark.parametrize(("length", "prime"), [(2, 3), (9, 11), (13, 17), (33, 37)])
def test_the_next_prime(length: int, prime: int) -> None:
    assert prime_after(length) == prime


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(2, 5), (2, 5, 3), (2, 5, 3, 4)])
def test_a_layout_holds_the_same_numbers_elsewhere(layout, shape: tuple[int, ...]) -> None:
    x = torch.arange(torch.Size(shape).numel(), dtype=torch.float64).view(shape)
    moved = layout(x)
    assert torch.equal(moved, x)
    assert not moved.is_contiguous()
